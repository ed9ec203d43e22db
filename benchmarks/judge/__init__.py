"""How results judge themselves: `python -m benchmarks judge [table ...]`, all tables or those named.

A table is a module here with `run()`, which yields bars; it is listed in TABLES.
"""

from collections.abc import Iterator
from importlib import import_module

from benchmarks.bar import Bar

TABLES = ("synopsis", "auto", "verdict", "plan", "evaluate", "units")


def run(*names: str) -> Iterator[Bar]:
    for name in names or TABLES:
        if name not in TABLES:
            raise SystemExit(f"there is no table {name!r}: {', '.join(TABLES)}")
        yield from import_module(f"benchmarks.judge.{name}").run()
