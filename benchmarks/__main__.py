"""`python -m benchmarks [name ...]`: run all benchmarks, or those named, and say which bars hold."""

import sys
from importlib import import_module

ALL = (
    "import_time", "samplers", "selection", "lloyd_speed", "tree_speed", "hst_speed", "pmed", "kmedian_speed", "seattle",
    "stream", "federation", "hostile_messages", "parquet_memory", "utility", "null", "kmedian_utility",
    "candidate_claims", "local", "collect",
)  # fmt: skip


def main() -> int:
    missed = 0
    for name in sys.argv[1:] or ALL:
        for bar in import_module(f"benchmarks.{name}").run():
            print(bar, flush=True)
            missed += not bar.holds
    print(f"{missed} bar(s) missed" if missed else "every bar holds")
    return int(missed > 0)


sys.exit(main())
