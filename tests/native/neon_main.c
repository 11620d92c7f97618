/* Runs the tiles over the cases of a file.  Rows and panels end where memory ends: what
   reads beyond them crashes. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef int32_t Kernel(const int64_t *, int64_t, int64_t, int64_t);
Kernel taken_off;
#include "kernels.h" /* static Kernel *kernels[] */

static uint8_t *ending(const uint8_t *data, size_t size) {
  size_t page = sysconf(_SC_PAGESIZE), room = (size + page - 1) / page * page;
  uint8_t *start = mmap(0, room + page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED || mprotect(start + room, page, PROT_NONE)) abort();
  memcpy(start + room - size, data, size);
  return start + room - size;
}

int main(int count, char **names) {
  FILE *file = fopen(names[count - 1], "rb");
  int64_t off = 0, words[] = {(int64_t)&off}, head[4], cases = 0;
  taken_off(words, 0, 1, 0);
  while (fread(head, sizeof head, 1, file) == 1) {
    int64_t number = head[0], rows = head[1], k = head[2], panels = head[3];
    static uint8_t data[1 << 20];
    static int32_t sums[6 * 16], columns[6 * 16], want[6 * 16];
    int64_t addresses[6];
    for (int64_t i = 0; i < rows; i++) {
      if (fread(data, 1, 4 * k, file) != 4 * k) return 2;
      addresses[i] = (int64_t)ending(data, 4 * k);
    }
    if (fread(data, 64, panels * k, file) != panels * k) return 2;
    int64_t args[] = {k, (int64_t)addresses, (int64_t)ending(data, 64 * panels * k),
                      (int64_t)sums};
    size_t each = sizeof sums;
    if (fread(sums, 1, each, file) + fread(columns, 1, each, file) +
        fread(want, 1, each, file) != 3 * each) return 2;
    for (int i = 0; i < 6 * 16; i++) sums[i] += (uint32_t)off * (uint32_t)columns[i];
    if (kernels[number](args, 0, 1, 0)) return 3;
    for (int i = 0; i < 6 * 16; i++)
      if (sums[i] != want[i]) {
        printf("kernel %d, K %d, sum %d: %d instead of %d\n", (int)number, (int)k, i,
               sums[i], want[i]);
        return 1;
      }
    cases++;
  }
  printf("%d cases\n", (int)cases);
  return 0;
}
