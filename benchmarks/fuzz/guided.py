"""`python -m benchmarks.fuzz.guided READER --runs N`: the same readers, led by coverage with atheris (`pip install atheris`).

Branches are counted in the parsers of kveil alone. A case that breaks is printed, and the search goes on.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import types
from pathlib import Path

import atheris

from benchmarks.fuzz import running

PARSERS = (
    "json", "csv", "kveil.canonical", "kveil.collect.documents", "kveil.collect.keys", "kveil.collect.manifest",
    "kveil.collect.report", "kveil.federate", "kveil.kernel.ledger", "kveil.kernel.loss", "kveil.release", "kveil.source.lines",
    "kveil.source.text", "kveil.space.edge_list", "kveil.stream.checkpoint",
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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz.guided")
    parser.add_argument("reader")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    instrument()
    reader, seen = running.all_readers()[options.reader], set[str]()

    def once(data: bytes) -> None:
        broken = running.tried(reader, data)[1]
        if broken and broken not in seen:
            seen.add(broken)
            print(f"{options.reader}: {broken}: {data!r}", flush=True)

    with tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(reader.seeds):
            (Path(corpus) / str(number)).write_bytes(seed)
        flags = [f"-runs={options.runs}", f"-seed={options.seed}", "-rss_limit_mb=4096", "-timeout=60", "-max_len=65536"]
        atheris.Setup([sys.argv[0], *flags, corpus], once)
        atheris.Fuzz()


main()
