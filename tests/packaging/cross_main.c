/* Runs the steps of cases.h in the native executor, alone and with one helper thread,
   and checks what comes out. libc's syscall is handed over, as any host does. */
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef int32_t Kernel(const int64_t *, int64_t, int64_t, int64_t);
typedef struct { Kernel *kernel; int64_t *words, tasks; } Launch;
typedef struct { void *got, *want; int64_t count, reals; } Check;

#include "cases.h"

#define STEPS (sizeof launches / sizeof launches[0])
#define CHECKS (sizeof checks / sizeof checks[0])

int64_t ew_run(int64_t pool, int64_t steps, int64_t first, int64_t last, int64_t threads);
int64_t ew_work(int64_t pool, int64_t worker);
int64_t ew_stop(int64_t pool);

static _Alignas(64) int64_t pool[56], steps[STEPS][4];

static void *work(void *worker) {
  ew_work((int64_t)pool, (int64_t)worker);
  return 0;
}

static int run(int threads) {
  for (size_t i = 0; i < CHECKS; i++)
    memset(checks[i].got, 0x5a, (checks[i].reals ? 4 : 1) * checks[i].count);
  if (ew_run((int64_t)pool, (int64_t)steps, 0, STEPS, threads)) return 1;
  for (size_t i = 0; i < CHECKS; i++)
    for (int64_t j = 0; j < checks[i].count; j++) {
      float got, want, room = 0;
      if (checks[i].reals) {
        got = ((float *)checks[i].got)[j], want = ((float *)checks[i].want)[j];
        room = 1e-4f * (1 + fabsf(want));
      } else
        got = ((uint8_t *)checks[i].got)[j], want = ((uint8_t *)checks[i].want)[j];
      if (!(fabsf(got - want) <= room) && !(isnan(got) && isnan(want))) {
        printf("check %d at %ld: %g instead of %g\n", (int)i, (long)j, got, want);
        return 1;
      }
    }
  return 0;
}

int main(void) {
  setup();
  for (size_t i = 0; i < STEPS; i++) {
    int64_t row[4] = {(int64_t)launches[i].kernel, (int64_t)launches[i].words,
                      launches[i].tasks, 1};
    memcpy(steps[i], row, sizeof row);
  }
  pool[48] = (int64_t)syscall, pool[49] = FUTEX, pool[50] = YIELD, pool[51] = 500;
  pthread_t helper;
  pthread_create(&helper, 0, work, (void *)1);
  int bad = 0;
  for (int i = 0; i < 100 && !bad; i++) bad = run(i % 2 ? 1 : 2);
  ew_stop((int64_t)pool);
  pthread_join(helper, 0);
  if (!bad) printf("tasks of the helper: %ld\n", (long)pool[18]);
  return bad;
}
