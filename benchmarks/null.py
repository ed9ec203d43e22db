"""The null: no default result may cost more than 1.1 times one private mean with the same budget."""

import warnings
from collections.abc import Iterator

from benchmarks.bar import Bar
from benchmarks.sets import MAKERS, is_here
from benchmarks.utility import ratios

RUNS, MOST = 5, 1.1


def run() -> Iterator[Bar]:
    warnings.simplefilter("ignore")
    for name, make in MAKERS.items():
        if not is_here(make):
            print(f"{name}: not run, ../shared/data is not here")
            continue
        rows, k, domain = make()
        for epsilon in (0.1, 0.5, 1, 2):
            for delta in (1e-6, 0.0):
                budget = {"epsilon": epsilon, "delta": delta}
                mine, mean = (ratios(rows, k, 1.0, method, RUNS, **budget, **domain) for method in ("auto", "mean"))
                what = f"{name}, epsilon {epsilon:g}, delta {delta:g}: cost over that of one private mean"
                yield Bar(what, float(mine.mean() / mean.mean()), MOST)
