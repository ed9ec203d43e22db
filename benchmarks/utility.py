"""What privacy costs: the cost of every method over the best of ten non-private runs, mean of several runs, in one table.

Bounds are public value ranges. Sets from ../shared/data join in where that folder is present.
"""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from benchmarks.bar import Bar
from kveil import PrivateKMeans

RUNS = 5
SHARED = Path(__file__).parents[2] / "shared" / "data"
Made = tuple[np.ndarray, int, dict[str, Any]]


def digits() -> Made:
    return load_digits().data / 16, 10, {"bounds": (0, 1)}


def square() -> Made:
    rng = np.random.default_rng(3)
    places = rng.uniform(0.1, 0.9, (15, 2))
    return places[rng.integers(0, 15, 100_000)] + 0.05 * rng.standard_normal((100_000, 2)), 15, {"bounds": (0, 1)}


def gaussians(d: int) -> Callable[[], Made]:
    def make() -> Made:
        rng = np.random.default_rng(d)
        places = rng.standard_normal((15, d))
        places *= (0.8 * rng.random((15, 1)) ** (1 / d)) / np.linalg.norm(places, axis=1, keepdims=True)
        return places[rng.integers(0, 15, 100_000)] + 0.06 * rng.standard_normal((100_000, d)), 15, {"radius": 1.0}

    return make


def tight() -> Made:
    rng = np.random.default_rng(1)
    places = rng.standard_normal((64, 100))
    places *= 0.7 / np.linalg.norm(places, axis=1, keepdims=True)
    return places[rng.integers(0, 64, 100_000)] + 0.0125 * rng.standard_normal((100_000, 100)), 64, {"radius": 1.0}


def mnist() -> Made:
    rows = np.load(SHARED / "mnist.npz")["x"]
    return rows.reshape(len(rows), -1) / 255.0, 10, {"bounds": (0, 1)}


def sipu(name: str, k: int) -> Callable[[], Made]:
    return lambda: (np.load(SHARED / f"sipu_{name}.npz")["x"].astype(float), k, {"bounds": (0, 1e6)})


# name, data, (epsilon, delta) -> the most that the default may cost
SETS: list[tuple[str, Callable[[], Made], dict[tuple[float, float], float]]] = [
    ("digits", digits, {(1, 1e-6): 1.42, (4, 1e-6): 1.12, (4, 0): 1.45}),
    ("15 in the square", square, {(0.25, 1e-6): 1.003, (1, 1e-6): 1.001}),
    ("15 in the ball, d=8", gaussians(8), {(0.25, 1e-6): 1.005, (1, 1e-6): 1.002}),
    ("15 in the ball, d=32", gaussians(32), {(0.25, 1e-6): 1.005, (1, 1e-6): 1.002}),
    ("64 tight, d=100", tight, {(0.25, 1e-6): 2.2, (1, 1e-6): 1.02, (4, 1e-6): 1.005}),
    ("MNIST", mnist, {(0.1, 1e-6): 1.18, (1, 1e-6): 1.03, (1, 0): 1.27}),
    ("s1", sipu("s1", 15), {(1, 0): 1.05}),
    ("birch1", sipu("birch1", 100), {(1, 0): 1.05}),
]
MAKERS = {name: make for name, make, _ in SETS}


def is_here(make: Callable[[], Made]) -> bool:
    """Whether the rows can be made: some are read from ../shared/data."""
    return SHARED.is_dir() or not (make is mnist or "sipu" in make.__qualname__)


def run() -> Iterator[Bar]:
    warnings.simplefilter("ignore")
    for name, make, limits in SETS:
        if not is_here(make):
            print(f"{name}: not run, ../shared/data is not here")
            continue
        rows, k, domain = make()
        floor = min(KMeans(k, n_init=1, random_state=seed).fit(rows).inertia_ for seed in range(10))
        for (epsilon, delta), limit in limits.items():
            found = {method: _ratios(rows, k, floor, method, epsilon=epsilon, delta=delta, **domain) for method in _methods(rows)}
            others = ", ".join(f"{method} {ratios.mean():.3g}" for method, ratios in found.items() if method != "auto")
            mine = found["auto"]
            note = f"+- {mine.std():.2g} ({others})"
            yield Bar(f"{name}, epsilon {epsilon:g}, delta {delta:g}: cost ratio", float(mine.mean()), limit, note=note)


def _methods(rows: np.ndarray) -> list[str]:
    return ["auto", "lloyd", "mean", *(["grid"] if rows.shape[1] <= 3 else [])]


def _ratios(rows: np.ndarray, k: int, floor: float, method: str, **parameters: Any) -> np.ndarray:
    models = [PrivateKMeans(k, method=method, random_state=seed, **parameters).fit(rows) for seed in range(RUNS)]
    return np.array([-model.score(rows) / floor for model in models])
