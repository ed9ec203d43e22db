"""Plain k-means of a public sample: a few steps from a quick start, for tables too long for the thorough one."""

from __future__ import annotations

import warnings

import numpy as np

from kveil.arrays import Floats, Integers

STEPS = 10
MOST_ROWS, PER_PROTOTYPE, MOST_PRODUCTS = 20_000, 10, 2**32  # rows that are clustered, and numbers a step multiplies


def clustered(rows: Floats, n: int, rng: np.random.Generator) -> Floats:
    """`n` centres of public rows; the rows themselves where there are no more of them."""
    if len(rows) <= n:
        return rows
    from sklearn.cluster import KMeans, kmeans_plusplus

    some = rows[_some(rows, n, rng)]
    seed = int(rng.integers(2**31))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer distinct rows than centres: some centres are equal then
        start, _ = kmeans_plusplus(some, n, n_local_trials=1 if n > 100 else None, random_state=seed)
        return np.asarray(KMeans(n, init=start, n_init=1, max_iter=STEPS, random_state=seed).fit(some).cluster_centers_)


def settled(rows: Floats, weights: Floats, start: Floats, rng: np.random.Generator) -> Floats:
    """Centres after a few steps of k-means on public rows with weights; as they were where too few rows have weight."""
    some = _some(rows, len(start), rng)
    some = some[weights[some] > 0]
    if len(some) <= len(start):
        return start
    from sklearn.cluster import KMeans

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        steps = KMeans(len(start), init=start, n_init=1, max_iter=STEPS, random_state=0)
        return np.asarray(steps.fit(rows[some], sample_weight=weights[some]).cluster_centers_)


def _some(rows: Floats, n: int, rng: np.random.Generator) -> Integers:
    """Which rows are clustered: all, or as many as a step has time for."""
    most = min(MOST_ROWS, max(PER_PROTOTYPE * n, MOST_PRODUCTS // (n * rows.shape[1])))
    return np.arange(len(rows)) if len(rows) <= most else np.sort(rng.choice(len(rows), most, replace=False))
