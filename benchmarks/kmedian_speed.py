"""`KMedian` as it comes on matrices of distances beside FasterPAM of the package kmedoids, in turn, each on one thread.

FasterPAM starts from random medoids, as its package does by default. Our time is that of the search, and again with the checks
of the matrix (`Precomputed`), which FasterPAM does not make. The cost is equal if our mean is not above theirs by more than a
standard error of the difference. `kmedian_speed large` is the last set alone.
kmedoids is under the GPL: an optional comparison, never a dependency. `pip install kmedoids` in an environment of its own.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from benchmarks.bar import Bar
from benchmarks.sets import SHARED, mnist
from kveil import KMedian, Precomputed

N, K = 5000, 20
LARGE, MANY = 20_000, 100  # a matrix of 1.6 GB
RUNS = 10
WANTED = 0.2  # of the CPU of FasterPAM, at an equal cost


def run(*sizes: str) -> Iterator[Bar]:
    """`sizes`: of "small" and "large"; both if none is given."""
    try:
        from kmedoids import fasterpam
    except ImportError:
        print("KMedian beside FasterPAM: not run, kmedoids is not installed")
        return
    for name, rows, k in _sets(sizes or ("small", "large")):
        matrix = _matrix(rows)
        KMedian(2, random_state=0).fit(Precomputed(matrix[:50, :50]))  # compiles
        start = time.process_time()
        space, rng = Precomputed(matrix), np.random.default_rng(0)
        checks = time.process_time() - start
        ours, theirs = np.empty((RUNS, 3)), np.empty((RUNS, 3))
        for seed in range(RUNS):
            theirs[seed] = _timed("loss", partial(fasterpam, n_cpu=1), matrix, rng.choice(len(rows), k, replace=False))
            ours[seed] = _timed("cost_", KMedian(k, random_state=seed).fit, space)
        yield from _bars(f"{name}, n = {len(rows)}, k = {k}", ours, theirs, checks)


def _bars(where: str, ours: np.ndarray, theirs: np.ndarray, checks: float) -> Iterator[Bar]:
    (cpu, wall, cost), mean = ours.mean(axis=0) / theirs.mean(axis=0), float(theirs[:, 2].mean())
    error = float(np.hypot(ours[:, 2].std(ddof=1), theirs[:, 2].std(ddof=1))) / np.sqrt(RUNS) / mean
    seconds, their_seconds = ours[:, 0].mean(), theirs[:, 0].mean()
    whole = (seconds + checks) / their_seconds
    note = f"({seconds:.3f} s against {their_seconds:.3f} s, mean of {RUNS}; wall {wall:.3f}, with checks {whole:.3f} times)"
    yield Bar(f"{where}: CPU against FasterPAM", float(cpu), WANTED, " times", note=note)
    yield Bar(f"{where}: cost over FasterPAM's, less 1", float(cost) - 1, error, note=f"(standard error {error:.2g})")


def _matrix(rows: np.ndarray) -> np.ndarray:
    """Distances in whole steps: these suit both, and cost both the same."""
    widest = float(np.linalg.norm(np.ptp(rows, axis=0)))
    matrix = np.empty((len(rows), len(rows)), dtype=np.int32)
    for start in range(0, len(rows), 1000):
        matrix[start : start + 1000] = np.ceil(cdist(rows[start : start + 1000], rows) * (2**20 / widest))
    return matrix


def _sets(sizes: tuple[str, ...]) -> Iterator[tuple[str, np.ndarray, int]]:
    if "small" in sizes:
        rng = np.random.default_rng(0)
        yield "square", rng.random((N, 2)), K
        yield "20 Gaussians, d=16", rng.normal(size=(20, 16))[rng.integers(0, 20, N)] + 0.7 * rng.normal(size=(N, 16)), K
        if SHARED.is_dir():
            yield "MNIST", mnist()[0][:N], K
    if "large" in sizes:
        yield "square", np.random.default_rng(0).random((LARGE, 2)), MANY


def _timed(result: str, action: Callable[..., Any], *arguments: Any) -> tuple[float, float, float]:
    """CPU and wall seconds of an action, and the number it found."""
    cpu, wall = time.process_time(), time.perf_counter()
    answer = action(*arguments)
    return time.process_time() - cpu, time.perf_counter() - wall, float(getattr(answer, result))
