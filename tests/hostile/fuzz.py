"""Files changed at random, converted or loaded, and run: our own errors, or none.

    python tests/hostile/fuzz.py KIND [--count N] [--first N] [--wide]

KIND is one of

- onnx-bytes: bytes of ONNX files changed, doubled, cut out;
- onnx-fields: fields of parsed ONNX models set to extremes, mixed up, taken from other
  models;
- ew-bytes: bytes of ``.ew`` files changed, half of the files then sealed anew, so that
  it is for the verifier and not for the checksum to see it.

With ``--wide`` the models of ONNX's own node tests are mutated, too.  Mutant number N
of a kind is always the same.  A process of its own does the work, with limits on memory
and time, and prints a number before it tries the mutant: one that dies is counted, and
the next goes on behind it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from fuzz_seeds import write_ew, write_node_cases

WORKER = Path(__file__).with_name("fuzz_worker.py")
BATCH = 5000  # mutants of one process, so that memory that grows is seen


def fuzzed(kind: str, first: int, count: int, seeds: Path) -> dict[str, Any]:
    """What mutants ``first`` to ``first + count`` of a kind did.

    Args:
        kind: Of mutants.
        first: Number of the first.
        count: How many.
        seeds: A folder of models to mutate, beside those that are always there.
    """
    total: dict[str, Any] = {
        "kind": kind,
        "mutants": 0,
        "accepted": 0,
        "ran": 0,
        "refused": 0,
        "odd": [],
        "megabytes": 0,
    }
    at, end = first, first + count
    while at < end:
        last = min(at + BATCH, end)
        words = [kind, str(at), str(last), str(seeds)]
        at = _batch(words, last, total)
    return total


def _batch(words: list[str], last: int, total: dict[str, Any]) -> int:
    """Run one process; the number of the mutant that comes next."""
    command = [sys.executable, str(WORKER), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    ended = [line for line in lines if "outcome" in line]
    for line in ended:
        total["mutants"] += 1
        if line["outcome"] == "odd":
            total["odd"].append(line["what"])
        else:
            total[line["outcome"]] += 1
        total["megabytes"] = max(total["megabytes"], line["megabytes"])
    if done.returncode == 0:
        return last
    if not lines:
        raise RuntimeError(f"the worker never began: {done.stderr[-2000:]}")
    at = int(lines[-1]["mutant"])
    total["mutants"] += 1
    reason = done.stderr.strip().splitlines()[-1:]
    total["odd"].append(f"{words[0]} {at}: exit {done.returncode} {reason}")
    return at + 1


def main() -> None:
    """Run, and print a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("onnx-bytes", "onnx-fields", "ew-bytes"))
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--wide", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        seeds = Path(name)
        if options.wide:
            write_node_cases(seeds)
        if options.kind == "ew-bytes":
            write_ew(seeds)
        total = fuzzed(options.kind, options.first, options.count, seeds)
    print(json.dumps(total, indent=1))
    sys.exit(bool(total["odd"]))


if __name__ == "__main__":
    main()
