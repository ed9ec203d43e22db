"""`python -m benchmarks [name ...]`: run all benchmarks, or those named, and say which bars hold.

`python -m benchmarks judge [table ...]`: the tables of `benchmarks.judge`, or those named; `public [set ...]` likewise.
"""

import sys
from importlib import import_module

ALL = (
    "import_time", "samplers", "selection", "lloyd_speed", "tree_speed", "hst_speed", "pmed", "kmedian_speed", "seattle",
    "stream", "federation", "hostile_messages", "parquet_memory", "utility", "null", "kmedian_utility",
    "candidate_claims", "local", "collect", "public", "judge",
)  # fmt: skip


def main() -> int:
    missed, names = 0, sys.argv[1:] or list(ALL)
    takes_tables = names[0] in ("judge", "public") and not set(names[1:]) & set(ALL)
    tables = names[1:] if takes_tables else []
    for name in names[:1] if takes_tables else names:
        for bar in import_module(f"benchmarks.{name}").run(*tables):
            print(bar, flush=True)
            missed += not bar.holds
    print(f"{missed} bar(s) missed" if missed else "every bar holds")
    return int(missed > 0)


sys.exit(main())
