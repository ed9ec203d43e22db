"""What privacy costs on a universe: the cost of a private fit over that of an ordinary search for the same demand, k = 10.

The thresholds of `kveil.solve.denoise` were chosen on the first sets; the others, marked "unseen", are there to doubt them.
A bar of infinity only reports. `python -m benchmarks kmedian_utility`; KVEIL_RUNS=4 for a quick look.
"""

import os
from collections.abc import Iterator
from math import inf
from typing import Any

import numpy as np

from benchmarks.bar import Bar
from benchmarks.sets import SHARED
from benchmarks.universes import EVERYWHERE, MAKERS, Setting, demand
from kveil import PrivateKMedian
from kveil.solve.demand import Demand
from kveil.solve.kmedian import solve_kmedian

K, RUNS = 10, int(os.environ.get("KVEIL_RUNS", "20"))  # a quarter of them on unseen sets

# universe -> kind of demand -> number of people -> the most that epsilon = 1 may cost
LIMITS: dict[str, dict[str, dict[int, float]]] = {
    "graph, r = 1": {"two": {500: 1.10, 5000: 1.03}, "spread": {500: 1.10, 5000: 1.03}},
    "graph, r = 100": {"two": {500: 1.10, 5000: 1.03}, "spread": {500: 1.10, 5000: 1.03}},
    "MNIST": {"two": {500: 1.06, 5000: 1.03}, "spread": {5000: 1.03}},
    "Chicago": {"two": {500: 1.15, 5000: 1.03}, "spread": {5000: 1.03}},
    "digits": {"two": {500: 1.10, 5000: 1.03}},
}
UNSEEN = {
    "Facebook": {"two": {500: inf, 5000: 1.03}},
    "power grid": {"two": {500: inf, 5000: 1.03}},
    "Sydney": {"two": {500: inf, 5000: 1.03}},
    "words": {"two": {500: inf, 5000: 1.03}},
}


def run() -> Iterator[Bar]:
    for name, kinds in {**LIMITS, **UNSEEN}.items():
        if name not in EVERYWHERE and not SHARED.is_dir():
            print(f"{name}: not run, ../shared/data is not here")
            continue
        setting = MAKERS[name]()
        for kind, sizes in kinds.items():
            for size, limit in sizes.items():
                found = ratios(setting, kind, size, RUNS if name in LIMITS else -(-RUNS // 4))
                what = f"{name}{' (unseen)' if name in UNSEEN else ''}, {kind}, {size} people: cost ratio"
                yield Bar(
                    what, float(found.mean()), limit, note=f"+- {found.std():.2g}, at worst {found.max():.3g}, of {len(found)}"
                )


def ratios(setting: Setting, kind: str, size: int, runs: int = RUNS, **parameters: Any) -> np.ndarray:
    """Private over ordinary cost, one demand a run."""
    found = []
    for seed in range(runs):
        people = demand(setting, kind, size, np.random.default_rng(seed))
        ordinary = solve_kmedian(setting.space, Demand.of(people), K, np.random.default_rng(seed), n_restarts=2).centers
        model = PrivateKMedian(K, universe=setting.space, random_state=seed, **parameters).fit(people)
        found.append(cost(setting, people, model.center_indices_) / cost(setting, people, ordinary))
    return np.array(found)


def cost(setting: Setting, people: np.ndarray, centers: np.ndarray) -> float:
    return float(setting.space.nearest(centers)[1][people].sum(dtype=np.int64))
