"""Tables that results are judged on: rows, the true number of clusters (None if nobody knows) and the public domain."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from benchmarks import sets

Table = tuple[np.ndarray, int | None, dict[str, Any]]
Maker = Callable[[], Table]
MOST_ROWS = 20_000  # that the non-private cost is computed from


def mixture(
    d: int, k: int, n: int, *, seed: int = 0, deviation: float = 0.05, tail: float | None = None, is_even: bool = True
) -> Maker:
    """Clusters with middles anywhere in a cube, normal or with heavy tails (Student's t), of equal shares or not."""

    def make() -> Table:
        rng = np.random.default_rng([d, k, n, seed])
        middles, shares = rng.uniform(-0.7, 0.7, (k, d)), np.full(k, 1 / k) if is_even else rng.dirichlet(np.full(k, 3.0))
        noise = rng.standard_normal((n, d)) if tail is None else rng.standard_t(tail, (n, d))
        return np.clip(middles[rng.choice(k, n, p=shares)] + deviation * noise, -1, 1), k, {"bounds": (-1, 1)}

    return make


def uk() -> Table:
    """Road accidents of the United Kingdom by longitude and latitude."""
    with np.load(sets.SHARED / "geo_uk_accidents.npz") as file:
        return file["lonlat_e6"] / 1e6, None, {"bounds": ([-8, 49.5], [2, 61])}


def dim032() -> Table:
    """16 tight clusters in 32 columns, every row 20 times with a little jitter."""
    rows, k, domain = sets.shared("sipu_dim032", 16, 0, 255)()
    rng = np.random.default_rng(0)
    return np.repeat(rows, 20, axis=0) + 1e-3 * rng.standard_normal((20 * len(rows), 32)), k, domain


def without_truth(make: sets.Maker) -> Maker:
    def made() -> Table:
        rows, _, domain = make()
        return rows, None, domain

    return made


MAKERS: dict[str, Maker] = {
    **{name: sets.MAKERS[name] for name in ("s1", "s2", "s4", "a1", "unbalance", "birch1", "digits")},
    "birch3": sets.shared("sipu_birch3", 100, 0, 1e6),
    "dim032": dim032,
    "UK accidents": uk,
    **{name: without_truth(sets.MAKERS[name]) for name in ("adult", "diamonds", "kdd99")},
    "mixture d=2": mixture(2, 6, 100_000, seed=3),
    "mixture d=4": mixture(4, 7, 100_000),
    "mixture d=8": mixture(8, 12, 100_000),
    "mixture d=16": mixture(16, 10, 100_000),
    "mixture d=32": mixture(32, 9, 100_000),
    "heavy tails d=2": mixture(2, 8, 30_000, seed=1, deviation=0.03, tail=2.5, is_even=False),
    "heavy tails d=3": mixture(3, 10, 60_000, seed=1, deviation=0.03, tail=2.5, is_even=False),
    "heavy tails d=6": mixture(6, 6, 60_000, seed=1, deviation=0.03, tail=2.5, is_even=False),
    "heavy tails d=12": mixture(12, 8, 60_000, seed=1, deviation=0.03, tail=2.5, is_even=False),
    "heavy tails d=24": mixture(24, 8, 60_000, seed=1, deviation=0.03, tail=2.5, is_even=False),
}


def made(name: str) -> Table | None:
    """The table of this name; None, with a word, where ../shared/data is not there."""
    try:
        return MAKERS[name]()
    except OSError:
        print(f"{name}: not here")
        return None


def cost(rows: np.ndarray, centers: np.ndarray) -> float:
    """The mean squared distance of rows to the nearest centre, exactly."""
    nearest = [((rows[at : at + 4096, None] - centers) ** 2).sum(axis=2).min(axis=1) for at in range(0, len(rows), 4096)]
    return float(np.concatenate(nearest).mean())


def best_cost(rows: np.ndarray, k: int) -> float:
    """What k-means without privacy costs: the best of three starts, on at most `MOST_ROWS` rows."""
    some = rows[np.random.default_rng(0).choice(len(rows), min(len(rows), MOST_ROWS), replace=False)]
    return cost(rows, KMeans(k, n_init=3, random_state=0).fit(some).cluster_centers_)
