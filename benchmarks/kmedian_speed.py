"""Local search on matrices of distances beside FasterPAM of the package kmedoids, from the same starts, in turn.

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
from kveil.solve.demand import Demand
from kveil.solve.eager import TableSearch
from kveil.solve.loss import Loss

N, K, STARTS = 5000, 20, 6
LARGE, MANY, FEW_STARTS = 20_000, 100, 2  # a matrix of 1.6 GB
WANTED = 0.2  # of the CPU of FasterPAM, at a cost no higher
Timed = tuple[float, float]  # CPU seconds, cost


def run() -> Iterator[Bar]:
    try:
        from kmedoids import fasterpam
    except ImportError:
        print("local search beside FasterPAM: not run, kmedoids is not installed")
        return
    everyone, loss = Demand.of(np.arange(N)), Loss(is_squared=False)
    for name, rows in _sets():
        matrix = _matrix(rows)
        space, rng = Precomputed(matrix), np.random.default_rng(0)
        search = TableSearch(space, everyone, loss)
        search.improve([0], np.arange(2), 1)  # compiles
        KMedian(2, random_state=0).fit(Precomputed(matrix[:50, :50]))
        mine, whole, plus, theirs = [], [], [], []
        for seed in range(STARTS):
            start, order = rng.choice(N, K, replace=False), rng.permutation(N)
            mine.append(_timed("cost", search.improve, start, order, 100))
            whole.append(_timed("cost_", KMedian(K, random_state=seed).fit, space))
            plus.append(_timed("cost_", KMedian(K, init="k-median++", random_state=seed).fit, space))
            theirs.append(_timed("loss", partial(fasterpam, n_cpu=1), matrix, start))
        _print_wanted(f"{name}, n = {N}, k = {K}", {"hst": whole, "k-median++": plus}, theirs)
        for what, ours, limit in (("local search, same starts", mine, 0.6), ("KMedian, own start, labels", whole, 1.0)):
            cpu, cost = _total(ours, 0) / _total(theirs, 0), _total(ours, 1) / _total(theirs, 1)
            note = f"({_total(ours, 0) / STARTS:.3f} s against {_total(theirs, 0) / STARTS:.3f} s, mean of {STARTS})"
            yield Bar(f"{name}, k = {K}, {what}: CPU against FasterPAM", cpu, limit, " times", note=note)
            yield Bar(f"{name}, k = {K}, {what}: cost against FasterPAM", cost, 1.01, " times")
    matrix, rng = _matrix(np.random.default_rng(0).random((LARGE, 2))), np.random.default_rng(0)
    space, theirs = Precomputed(matrix), list[Timed]()
    ours: dict[str, list[Timed]] = {"hst": [], "k-median++": []}
    for seed in range(FEW_STARTS):
        theirs.append(_timed("loss", partial(fasterpam, n_cpu=1), matrix, rng.choice(LARGE, MANY, replace=False)))
        for init, runs in ours.items():
            runs.append(_timed("cost_", KMedian(MANY, init=init, random_state=seed).fit, space))
    _print_wanted(f"square, n = {LARGE}, k = {MANY}", ours, theirs)


def _print_wanted(where: str, ours: dict[str, list[Timed]], theirs: list[Timed]) -> None:
    """CPU and cost of each init beside FasterPAM; wanted, not yet held everywhere, so no bar."""
    for init, runs in ours.items():
        cpu, cost = _total(runs, 0) / _total(theirs, 0), _total(runs, 1) / _total(theirs, 1)
        is_held = cpu <= WANTED and cost <= 1
        print(
            f"{where}, KMedian(init={init!r}): {cpu:.2f} of the CPU, {cost:.4f} of the cost; wanted {WANTED}, 1: {is_held}",
            flush=True,
        )


def _matrix(rows: np.ndarray) -> np.ndarray:
    """Distances in whole steps: these suit both, and cost both the same."""
    widest = float(np.linalg.norm(np.ptp(rows, axis=0)))
    matrix = np.empty((len(rows), len(rows)), dtype=np.int32)
    for start in range(0, len(rows), 1000):
        matrix[start : start + 1000] = np.ceil(cdist(rows[start : start + 1000], rows) * (2**20 / widest))
    return matrix


def _sets() -> Iterator[tuple[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    yield "square", rng.random((N, 2))
    yield "20 Gaussians, d=16", rng.normal(size=(20, 16))[rng.integers(0, 20, N)] + 0.7 * rng.normal(size=(N, 16))
    if SHARED.is_dir():
        yield "MNIST", mnist()[0][:N]


def _timed(result: str, action: Callable[..., Any], *arguments: Any) -> Timed:
    """CPU seconds of an action, and the number it found."""
    start = time.process_time()
    answer = action(*arguments)
    return time.process_time() - start, float(getattr(answer, result))


def _total(runs: list[Timed], part: int) -> float:
    return sum(run[part] for run in runs)
