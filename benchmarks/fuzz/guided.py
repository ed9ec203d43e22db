"""`python -m benchmarks.fuzz.guided [READER ...] --runs N`: the same readers led by coverage, by atheris (to be installed).

Branches are counted in the parsers of kveil alone. A case that breaks is printed, and the search goes on. Several readers run one
after the other in a process each, because atheris ends the process that it ran in. Exit code 1 if anything broke.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import types
from pathlib import Path
from typing import NoReturn

import atheris

from benchmarks.fuzz import running

PARSERS = (
    "json", "csv", "tomllib", "kveil.canonical", "kveil.cli.config", "kveil.collect.documents", "kveil.collect.intake",
    "kveil.collect.keys", "kveil.collect.manifest", "kveil.collect.report", "kveil.federate", "kveil.kernel.ledger",
    "kveil.kernel.loss", "kveil.release", "kveil.source.lines", "kveil.source.text", "kveil.space.edge_list",
    "kveil.stream.checkpoint",
)  # fmt: skip


def instrument() -> None:
    """Count branches in every function of the parsers. Modules are loaded as they are: numba would not compile others."""
    running.all_readers()
    for name, module in list(sys.modules.items()):
        if any(name == parser or name.startswith(f"{parser}.") for parser in PARSERS):
            kinds = [kind for kind in vars(module).values() if isinstance(kind, type) and kind.__module__ == name]
            for held in (module, *kinds):
                for made in vars(held).values():
                    function = getattr(made, "__func__", made)
                    if isinstance(function, types.FunctionType) and function.__module__ == name:
                        atheris.instrument_func(function)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz.guided")
    parser.add_argument("reader", nargs="*", help="names; default: all")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    names = options.reader or list(running.all_readers())
    instrument()
    if len(names) == 1:
        search(names[0], options.runs, options.seed)
    wrong = [name for name in names if not is_fine(name, options.runs, options.seed)]
    print(f"{len(names)} readers, {len(names) * options.runs} cases: {', '.join(wrong) or 'none'} broke")
    return int(bool(wrong))


def is_fine(name: str, runs: int, seed: int) -> bool:
    """Whether a search in a process of its own found nothing."""
    with tempfile.TemporaryFile("w+") as told:
        sys.stdout.flush()
        child = os.fork()
        if not child:
            os.dup2(told.fileno(), 1)
            os.dup2(told.fileno(), 2)
            search(name, runs, seed)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        told.seek(0)
        lines = told.read().splitlines()
    covered = [line.split("cov: ")[1].split()[0] for line in lines if "DONE" in line and "cov: " in line]
    broken = [line for line in lines if line.startswith(f"{name}: ")]
    ended = [f"the process ended with {status}", *lines[-5:]] if status or not covered else []
    print(f"{name}: {runs} cases, {' '.join(covered) or 'no'} branches", *broken, *ended, sep="\n  ", flush=True)
    return not (broken or ended)


def search(name: str, runs: int, seed: int) -> NoReturn:
    """Lead one reader; atheris ends this process."""
    reader, seen = running.all_readers()[name], set[str]()

    def once(data: bytes) -> None:
        broken = running.tried(reader, data)[1]
        if broken and broken not in seen:
            seen.add(broken)
            print(f"{name}: {broken}: {data!r}", flush=True)

    with tempfile.TemporaryDirectory() as corpus:
        for number, start in enumerate(reader.seeds):
            (Path(corpus) / str(number)).write_bytes(start)
        flags = [f"-runs={runs}", f"-seed={seed}", "-rss_limit_mb=4096", "-timeout=60", "-max_len=65536"]
        atheris.Setup([sys.argv[0], *flags, corpus], once)
        atheris.Fuzz()
    raise AssertionError("atheris came back")


if __name__ == "__main__":
    sys.exit(main())
