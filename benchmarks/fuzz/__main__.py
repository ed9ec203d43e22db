"""`python -m benchmarks.fuzz [reader ...]`: damaged bytes for every reader, or for those named, and what became of them.

Each reader runs in a process of its own, with so much memory and not more, so that one that crashes or takes all memory is seen,
too. Exit code 1 if anything but a `KveilError` was raised. `--case N` shows one case. Linux only.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import signal
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.fuzz import running

MEMORY = 2**30  # bytes above what a process has before its first case
SECONDS = 60  # for one case; only one that hangs takes so long


def main() -> int:
    options = _options()
    names = options.reader or list(running.all_readers())
    if unknown := set(names) - set(running.all_readers()):
        print(f"no such reader: {', '.join(sorted(unknown))}. There are: {', '.join(running.all_readers())}.")
        return 2
    if options.case is not None:
        data = running.case(names[0], options.seed, options.case)
        print(data, running.tried(running.all_readers()[names[0]], data))
        return 0
    wrong, total = 0, 0
    for name in names:
        share = running.all_readers()[name].share
        told = _apart(name, options.seed, range(int(share * options.start), int(share * (options.start + options.cases))))
        wrong, total = wrong + bool(told["broken"]), total + told["cases"]
        print(_line(name, told), flush=True)
        if options.json:
            with options.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"reader": name, "seed": options.seed, "start": options.start, **told}) + "\n")
    print(f"{total} cases, {wrong} reader(s) broke")
    return int(wrong > 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fuzz", description="Damaged bytes for everything that kveil reads."
    )
    parser.add_argument("reader", nargs="*", help="names; default: all")
    parser.add_argument("--cases", type=int, default=1000, help="of each reader (1000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0, help="number of the first case (0)")
    parser.add_argument("--case", type=int, help="show one case of the first reader, and read it here")
    parser.add_argument("--json", type=Path, help="a file to which a line per reader is added")
    return parser.parse_args()


def _apart(name: str, seed: int, numbers: range) -> dict[str, Any]:
    """What a process found; if it ended before, in which case."""
    ours, theirs = multiprocessing.get_context("fork").Pipe(duplex=False)
    now = multiprocessing.get_context("fork").Value("q", numbers.start, lock=False)
    process = multiprocessing.get_context("fork").Process(target=_run, args=(name, seed, numbers, theirs, now))
    process.start()
    theirs.close()
    try:
        told: dict[str, Any] = ours.recv()
    except EOFError:
        told = {"cases": now.value - numbers.start + 1, "refused": 0, "peak": 0, "seconds": 0.0, "broken": {}, "first": {}}
    process.join()
    if process.exitcode:
        ended = f"the process ended, code {process.exitcode}"
        told["broken"], told["first"] = {**told["broken"], ended: 1}, {**told["first"], ended: now.value}
    return told


def _run(name: str, seed: int, numbers: range, sink: Any, now: Any) -> None:
    logging.disable()  # parties log what they refuse
    running.run(name, seed, range(-20, 0))  # what is loaded once
    before = running.peak()
    running.limit_memory(MEMORY)

    def told(number: int) -> None:
        now.value = number
        signal.alarm(SECONDS)

    start = time.process_time()
    found = running.run(name, seed, numbers, told)
    signal.alarm(0)
    sink.send(vars(found) | {"peak": running.peak() - before, "seconds": time.process_time() - start})


def _line(name: str, told: dict[str, Any]) -> str:
    broken = "; ".join(f"{what}, {n} times, first in case {told['first'][what]}" for what, n in told["broken"].items())
    counts = f"{told['cases']:7} cases, {told['refused']:7} refused, {told['seconds']:5.0f} s"
    return f"{name:33} {counts}, {told['peak'] / 2**20:.0f} MB more at most: {broken or 'none broke'}"


sys.exit(main())
