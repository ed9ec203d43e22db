"""Federated k-means by the default protocol: ten parties, pure epsilon 1, cost over that of k-means without privacy.

`python -m benchmarks federation`. Mixtures have bars; sets of ../shared/data are reported beside the curator's result: the
federated cost over that of PrivateKMeans with the same epsilon and all rows in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf

import numpy as np
from sklearn.cluster import KMeans

from benchmarks.bar import Bar
from benchmarks.sets import ADULT, SHARED, Made, Maker, shared
from kveil import FederatedKMeans, PrivateKMeans

PARTIES, RUNS, ROWS = 10, 10, 100_000
MIXTURES = {(2, 8): 1.03, (10, 8): 1.03, (2, 20): 1.06, (10, 20): 1.25}  # (columns, clusters): limit of the mean


def places(name: str, low: list[float], high: list[float]) -> Made:
    """Longitude and latitude, in degrees, within public bounds."""
    with np.load(SHARED / f"{name}.npz") as file:
        return np.clip(file["lonlat_e6"] / 1e6, low, high), 20, {"bounds": (low, high)}


REAL: dict[str, Maker] = {
    "UK accidents": lambda: places("geo_uk_accidents", [-9, 49], [3, 61]),
    "world cities": lambda: places("geo_world_cities", [-180, -90], [180, 90]),
    "adult": shared("adult", 8, *ADULT),
}


def run() -> Iterator[Bar]:
    for (d, k), limit in MIXTURES.items():
        found: dict[str, list[float]] = {name: [] for name in SPLITS}
        for seed in range(RUNS):
            rows = mixture(d, k, seed)
            floor = least_cost(rows, k)
            for name, split in SPLITS.items():
                model = FederatedKMeans(k, epsilon=1.0, radius=1.0, random_state=seed).fit(split(rows, seed))
                found[name].append(-model.score(rows) / floor)
        for name, ratios in found.items():
            error = np.std(ratios) / len(ratios) ** 0.5
            yield Bar(f"{k} clusters, d={d}, {name} parties: cost ratio", float(np.mean(ratios)), limit, note=f"+- {error:.2g}")
    yield loose()
    if SHARED.is_dir():
        for name, make in REAL.items():
            yield real(name, make())


def loose() -> Bar:
    """Rows in a quarter of the bounds, off their middle: levels of cells find them, where one fine level would not."""
    ratios = []
    for seed in range(RUNS):
        rows = mixture(2, 8, seed) / 4 + [0.4, -0.3]
        model = FederatedKMeans(8, epsilon=1.0, radius=1.0, random_state=seed).fit(even(rows, seed))
        ratios.append(-model.score(rows) / least_cost(rows, 8))
    error = np.std(ratios) / RUNS**0.5
    return Bar("8 clusters, d=2, loose bounds, even parties: cost ratio", float(np.mean(ratios)), 1.05, note=f"+- {error:.2g}")


def real(name: str, made: Made) -> Bar:
    rows, k, domain = made
    floor = least_cost(rows, k)
    here, curated = [], []
    for seed in range(RUNS):
        parties = even(rows, seed)
        here.append(-FederatedKMeans(k, epsilon=1.0, random_state=seed, **domain).fit(parties).score(rows) / floor)
        curated.append(-PrivateKMeans(k, epsilon=1.0, random_state=seed, **domain).fit(rows).score(rows) / floor)
    note = f"{np.mean(here):.3f} +- {np.std(here) / RUNS**0.5:.2g}, curator {np.mean(curated):.3f}, of the cost without privacy"
    return Bar(f"{name}, 10 parties: cost over the curator's", float(np.mean(here) / np.mean(curated)), inf, note=note)


def mixture(d: int, k: int, seed: int) -> np.ndarray:
    """Gaussians in the unit ball, as the specification has them: deviation 0.06 a column, 0.03 for 20 of them in the plane."""
    rng = np.random.default_rng([d, k, seed])
    places = rng.standard_normal((k, d))
    places *= 0.8 * rng.random((k, 1)) ** (1 / d) / np.linalg.norm(places, axis=1, keepdims=True)
    deviation = 0.03 if (d, k) == (2, 20) else 0.06
    rows = places[rng.integers(0, k, ROWS)] + deviation * rng.standard_normal((ROWS, d))
    return np.asarray(rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True)))


def even(rows: np.ndarray, seed: int) -> list[np.ndarray]:
    return np.array_split(rows[np.random.default_rng(seed).permutation(len(rows))], PARTIES)


def skewed(rows: np.ndarray, seed: int) -> list[np.ndarray]:
    """Sizes cut at random from 500 rows up; each party holds what lies in one slice, and so few clusters."""
    rng = np.random.default_rng(seed)
    cuts = 500 * np.sort(rng.choice(np.arange(1, len(rows) // 500), PARTIES - 1, replace=False))
    return np.split(rows[np.argsort(rows @ rng.standard_normal(rows.shape[1]))], cuts)


SPLITS: dict[str, Callable[[np.ndarray, int], list[np.ndarray]]] = {"even": even, "skewed": skewed}


def least_cost(rows: np.ndarray, k: int) -> float:
    return min(float(KMeans(k, n_init=1, random_state=seed).fit(rows).inertia_) for seed in range(10))
