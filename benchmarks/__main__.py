"""`python -m benchmarks [name ...]`: run all benchmarks, or those named, and say which bars hold.

`python -m benchmarks judge [table ...]`: the tables of `benchmarks.judge`, or those named.
"""

import sys
from importlib import import_module

ALL = (
    "import_time", "samplers", "selection", "lloyd_speed", "tree_speed", "hst_speed", "pmed", "kmedian_speed", "seattle",
    "stream", "federation", "hostile_messages", "parquet_memory", "utility", "null", "kmedian_utility",
    "candidate_claims", "local", "collect", "tags", "text", "judge",
)  # fmt: skip


def main() -> int:
    missed, names = 0, sys.argv[1:] or list(ALL)
    tables = names[1:] if names[0] == "judge" else []
    for name in names[:1] if names[0] == "judge" else names:
        for bar in import_module(f"benchmarks.{name}").run(*tables):
            print(bar, flush=True)
            missed += not bar.holds
    print(f"{missed} bar(s) missed" if missed else "every bar holds")
    return int(missed > 0)


sys.exit(main())
