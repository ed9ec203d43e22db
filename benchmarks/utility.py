"""What privacy costs: the cost of every method over the best of ten non-private runs, mean of several runs, in one table.

Bounds are public value ranges. A bar of infinity only reports.
"""

import warnings
from collections.abc import Iterator
from math import inf
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from benchmarks.bar import Bar
from benchmarks.sets import MAKERS, is_here
from kveil import PrivateKMeans
from kveil.tuning import Lloyd

RUNS, FEW_RUNS = 10, 2
MOST_NUMBERS = 12_000_000  # of a table; beyond, the candidates with their dozens of passes get but a few runs
GAUSSIANS = {(0.25, 1e-6): 1.005, (1, 1e-6): 1.002}
REPORT = {(0.1, 1e-6): inf, (1, 1e-6): inf, (1, 0): inf}

# set -> (epsilon, delta) -> the most that the default may cost
LIMITS: dict[str, dict[tuple[float, float], float]] = {
    "digits": {(1, 1e-6): 1.42, (4, 1e-6): 1.12, (4, 0): 1.45},
    "15 in the square": {(0.25, 1e-6): 1.003, (1, 1e-6): 1.001, (0.25, 0): 1.002},
    "15 in the ball, d=4": GAUSSIANS,
    "15 in the ball, d=8": GAUSSIANS,
    "15 in the ball, d=16": GAUSSIANS,
    "15 in the ball, d=32": GAUSSIANS,
    "64 tight, d=100": {(0.25, 1e-6): 2.2, (1, 1e-6): 1.02, (4, 1e-6): 1.005},
    "64 tight, k=16": {(1, 1e-6): 1.035},
    "64 overlapping, d=100": {(1, 1e-6): 1.15},
    "MNIST": {(0.1, 1e-6): 1.18, (1, 1e-6): 1.03, (1, 0): 1.27, (4, 0): 1.08},
    "adult": {(1, 1e-6): 1.08},
    "diamonds": {(1, 1e-6): 1.03},
    "s1": {(1, 0): 1.05},
    "s2": {(1, 0): 1.05},
    "s4": {(1, 0): 1.05},
    "birch1": {(1, 0): 1.05},
    "a1": REPORT,
    "unbalance": REPORT,
    "wordvec": REPORT,
    "kdd99": REPORT,
    "flights": REPORT,
}


def run() -> Iterator[Bar]:
    warnings.simplefilter("ignore")
    for name, limits in LIMITS.items():
        make = MAKERS[name]
        if not is_here(make):
            print(f"{name}: not run, ../shared/data is not here")
            continue
        rows, k, domain = make()
        floor = cost_without_privacy(rows, k)
        for (epsilon, delta), limit in limits.items():
            cell = f"{name}, epsilon {epsilon:g}, delta {delta:g}"
            mine = ratios(rows, k, floor, "auto", epsilon=epsilon, delta=delta, **domain)
            others = {
                label: ratios(rows, k, floor, method, n, epsilon=epsilon, **domain, **({"delta": delta} | extra))
                for label, (method, n, extra) in _baselines(rows).items()
            }
            told = ", ".join(f"{label} {_told(costs)}" for label, costs in others.items())
            yield Bar(f"{cell}: cost ratio", float(mine.mean()), limit, note=f"{_told(mine)} ({told})")
            best = min(others.values(), key=np.mean)
            slack = np.hypot(_error(mine), _error(best)) / best.mean()
            yield Bar(f"{cell}: over the best baseline", float(mine.mean() / best.mean()), 1 + float(slack))


def cost_without_privacy(rows: np.ndarray, k: int) -> float:
    return min(float(KMeans(k, n_init=1, random_state=seed).fit(rows).inertia_) for seed in range(10))


def ratios(rows: np.ndarray, k: int, floor: float, method: str, runs: int = RUNS, **parameters: Any) -> np.ndarray:
    models = [PrivateKMeans(k, method=method, random_state=seed, **parameters).fit(rows) for seed in range(runs)]
    return np.array([-model.score(rows) / floor for model in models])


def _baselines(rows: np.ndarray) -> dict[str, tuple[str, int, dict[str, Any]]]:
    """Label -> method, runs, parameters. The improved DPLloyd is pure whatever delta is."""
    plain = {"tuning": Lloyd(noise="coordinates", reseed=False), "delta": 0.0}
    found = {"lloyd": ("lloyd", RUNS, {}), "improved DPLloyd": ("lloyd", RUNS, plain), "mean": ("mean", RUNS, {})}
    found["candidates"] = ("candidates", RUNS if rows.size <= MOST_NUMBERS else FEW_RUNS, {})
    return found | ({"grid": ("grid", RUNS, {})} if rows.shape[1] <= 3 else {})


def _error(costs: np.ndarray) -> float:
    return float(costs.std(ddof=1) / len(costs) ** 0.5)


def _told(costs: np.ndarray) -> str:
    return f"{costs.mean():.4g}+-{_error(costs):.2g}"
