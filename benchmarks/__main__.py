"""`python -m benchmarks [name ...]`: run all benchmarks, or those named, and say which bars hold.

`python -m benchmarks judge [table ...]`: the tables of `benchmarks.judge`, or those named; `public [set ...]`, `sparse_cost
[table ...]`, `tags [preset ...]` and `text [name ...]` likewise; `kmedian_speed [small|large]`, `kmedian_yardstick [city ...]`,
`tree_speed [beside|growth|rows]`.
`python -m benchmarks collector [--quick] [storage ...]` and `collector_faults --kills n`: the service under load, and killed;
`collector_campaign [runs]`: a campaign of 5000 devices by commands alone.
`python -m benchmarks utility [option ...]`: what privacy costs, beside other methods and libraries; `--help` lists the options.
"""

import sys
from importlib import import_module

ALL = (
    "import_time", "tiny_fits", "samplers", "selection", "lloyd_speed", "tree_speed", "hst_speed", "pmed", "kmedian_speed",
    "seattle", "stream", "federation", "hostile_messages", "parquet_memory", "utility", "relative_steps", "bounds",
    "null", "kmedian_utility", "kmedian_yardstick", "candidate_claims", "local", "local_grids", "collect", "collector", "public",
    "tags", "text", "sparse_memory", "sparse_cost", "judge", "twins",
)  # fmt: skip
WITH_ARGUMENTS = (
    "bounds", "collector", "collector_campaign", "collector_faults", "judge", "kmedian_speed", "kmedian_yardstick", "public",
    "sparse_cost", "sparse_memory", "tags", "text", "tree_speed", "utility",
)  # fmt: skip
USUAL = {"utility": ("--barred",)}  # among others: the whole table takes hours


def main() -> int:
    missed, names = 0, sys.argv[1:] or list(ALL)
    takes_arguments = names[0] in WITH_ARGUMENTS and not set(names[1:]) & set(ALL)
    names, arguments = (names[:1], names[1:]) if takes_arguments else (names, [])
    for name in names:
        given = USUAL.get(name, ()) if len(names) > 1 else arguments
        for bar in import_module(f"benchmarks.{name}").run(*given):
            print(bar, flush=True)
            missed += not bar.holds
    print(f"{missed} bar(s) missed" if missed else "every bar holds")
    return int(missed > 0)


sys.exit(main())
