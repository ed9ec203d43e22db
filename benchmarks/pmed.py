"""The p-median instances of the OR-Library: published optima reached by perturbed search, nearly so by the default."""

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.bar import Bar
from benchmarks.sets import SHARED
from kveil import Graph, KMedian

SEEDS = 3


def run() -> Iterator[Bar]:
    if not SHARED.is_dir():
        print("p-median instances: not run, ../shared/data is not here")
        return
    reached, slowest, worst = [], 0.0, 1.0
    for name, space, k, optimum in _instances():
        for seed in range(SEEDS):
            start = time.process_time()
            cost = KMedian(k, n_perturbations=500, random_state=seed).fit(space).cost_
            slowest = max(slowest, time.process_time() - start)
            reached.append(cost == optimum)
            if cost != optimum:
                print(f"{name}, seed {seed}: {cost:g}, published {optimum}")
            worst = max(worst, KMedian(k, random_state=seed).fit(space).cost_ / optimum)
    note = f"of {len(reached)} runs, {SEEDS} an instance"
    yield Bar("p-median, 500 perturbations: published optima reached", sum(reached), len(reached), at_least=True, note=note)
    yield Bar("p-median, 500 perturbations: CPU of the slowest run", slowest, 5.0, " s")
    yield Bar("p-median, the default: worst cost over the optimum", worst, 1.02, " times")


def _instances() -> Iterator[tuple[str, Graph, int, int]]:
    with np.load(SHARED / "pmed.npz") as file:
        for number, n_points, _, k, optimum, _ in file["table"].tolist():
            edges = file[f"pmed{number}_e"].astype(np.int64)
            yield f"pmed{number}", Graph.from_edges(edges[:, :2], lengths=edges[:, 2], n_points=n_points), k, optimum
