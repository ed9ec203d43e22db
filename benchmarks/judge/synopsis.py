"""Centres clustered again from a release, against a fresh fit with that k at the same epsilon: cost over cost, mean of runs."""

from collections.abc import Iterator
from math import inf

import numpy as np

from benchmarks.bar import Bar
from benchmarks.judge.tables import best_cost, cost, made
from kveil import PrivateKMeans

RUNS, FITTED = 3, 25
SETS = ("s2", "UK accidents", "adult", "diamonds", "mixture d=16", "mixture d=32")
EPSILON = 0.25


def run() -> Iterator[Bar]:
    for name in SETS:
        table = made(name)
        if table is None:
            continue
        rows, _, domain = table
        given = {"epsilon": EPSILON, "delta": 0.0 if rows.shape[1] <= 3 else 1e-6, **domain}
        releases = [PrivateKMeans(FITTED, **given).fit(rows).release_ for _ in range(RUNS)]
        if rows.shape[1] <= 3:
            again = [cost(rows, release.recluster(FITTED).centers) / cost(rows, release.centers) for release in releases]
            yield Bar(f"{name}, its own k again", float(np.mean(again)), 1.04, note=f"worst {max(again):.3f}")
        for k in (4, 8, 15, 20, 25):
            fresh = [cost(rows, PrivateKMeans(k, **given).fit(rows).cluster_centers_) for _ in range(RUNS)]
            free = [cost(rows, release.recluster(k).centers) for release in releases]
            ratio, error = float(np.mean(free) / np.mean(fresh)), float(np.std(free) / np.mean(fresh) / RUNS**0.5)
            limit = 1.04 if rows.shape[1] <= 3 else 1.08 if rows.shape[1] <= 16 else inf
            best = best_cost(rows, k)
            told = (
                f"(fresh {np.mean(fresh) / best:.3f}, again {np.mean(free) / best:.3f} of no privacy; standard error {error:.3f})"
            )
            yield Bar(f"{name}, k={k} from {FITTED}, eps {EPSILON}", ratio, limit, note=told)
