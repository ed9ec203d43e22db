"""Data sets of the benchmarks: rows, number of clusters, and the public domain. Some are read from ../shared/data."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

SHARED = Path(__file__).parents[2] / "shared" / "data"
Made = tuple[np.ndarray, int, dict[str, Any]]
Maker = Callable[[], Made]
Planted = tuple[np.random.Generator, np.ndarray]  # the middles of made-up clusters, and what the rows are drawn from next


def digits() -> Made:
    return load_digits().data / 16, 10, {"bounds": (0, 1)}


def square_places() -> Planted:
    rng = np.random.default_rng(3)
    return rng, rng.uniform(0.1, 0.9, (15, 2))


def square() -> Made:
    rng, places = square_places()
    return places[rng.integers(0, 15, 100_000)] + 0.05 * rng.standard_normal((100_000, 2)), 15, {"bounds": (0, 1)}


def ball_places(d: int) -> Planted:
    rng = np.random.default_rng(d)
    places = rng.standard_normal((15, d))
    return rng, places * ((0.8 * rng.random((15, 1)) ** (1 / d)) / np.linalg.norm(places, axis=1, keepdims=True))


def gaussians(d: int) -> Maker:
    def make() -> Made:
        rng, places = ball_places(d)
        return places[rng.integers(0, 15, 100_000)] + 0.06 * rng.standard_normal((100_000, d)), 15, {"radius": 1.0}

    return make


def sphere_places(seed: int) -> Planted:
    rng = np.random.default_rng(seed)
    places = rng.standard_normal((64, 100))
    return rng, places * (0.7 / np.linalg.norm(places, axis=1, keepdims=True))


def on_a_sphere(deviation: float, k: int, seed: int) -> Maker:
    """64 Gaussians in 100 dimensions, their middles on a sphere of radius 0.7."""

    def make() -> Made:
        rng, places = sphere_places(seed)
        return places[rng.integers(0, 64, 100_000)] + deviation * rng.standard_normal((100_000, 100)), k, {"radius": 1.0}

    return make


def shared(name: str, k: int, low: Any, high: Any) -> Maker:
    """A table of ../shared/data, its public range mapped to [0, 1] in every column."""

    def make() -> Made:
        with np.load(SHARED / f"{name}.npz") as file:
            rows = file["x"].astype(float)
        low_, high_ = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
        return (rows.reshape(len(rows), -1) - low_) / (high_ - low_), k, {"bounds": (0, 1)}

    return make


def wordvec() -> Made:
    """Unit vectors: cosine distance, in effect."""
    with np.load(SHARED / "wordvec_top20k.npz") as file:
        rows = file["xq"].astype(float)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True), 20, {"radius": 1.0}


def kdd99() -> Made:
    """Skewed counts, on a logarithmic scale."""
    with np.load(SHARED / "kdd99_10pct.npz") as file:
        return np.log1p(np.maximum(file["x"].astype(float), 0)) / 22, 20, {"bounds": (0, 1)}


def flights() -> Made:
    """Where from, where to, how far, how late."""
    with np.load(SHARED / "flights_2001_q1.npz") as file:
        where = file["airport_lonlat"]
        rows = np.column_stack([where[file["origin"]], where[file["destination"]], file["distance"], file["delay"]]).astype(float)
    low, high = np.array([-170, 15, -170, 15, 0, -180]), np.array([-60, 75, -60, 75, 5000, 1800])
    return (rows - low) / (high - low), 12, {"bounds": (0, 1)}


mnist = shared("mnist", 10, 0, 255)
ADULT = ([0, 0, 1, 0, 0, 0], [100, 1.5e6, 16, 1e5, 5000, 100])
DIAMONDS = ([0, 40, 40, 0, 0, 0, 0], [6, 80, 100, 20000, 12, 60, 35])

MAKERS: dict[str, Maker] = {
    "digits": digits,
    "15 in the square": square,
    "15 in the ball, d=4": gaussians(4),
    "15 in the ball, d=8": gaussians(8),
    "15 in the ball, d=16": gaussians(16),
    "15 in the ball, d=32": gaussians(32),
    "64 tight, d=100": on_a_sphere(0.0125, 64, 1),
    "64 tight, k=16": on_a_sphere(0.0125, 16, 1),
    "64 overlapping, d=100": on_a_sphere(0.05, 64, 2),
    "MNIST": mnist,
    "adult": shared("adult", 8, *ADULT),
    "diamonds": shared("diamonds", 8, *DIAMONDS),
    "s1": shared("sipu_s1", 15, 0, 1e6),
    "s2": shared("sipu_s2", 15, 0, 1e6),
    "s4": shared("sipu_s4", 15, 0, 1e6),
    "a1": shared("sipu_a1", 20, 0, 65536),
    "unbalance": shared("sipu_unbalance", 8, 0, 1e6),
    "birch1": shared("sipu_birch1", 100, 0, 1e6),
    "wordvec": wordvec,
    "kdd99": kdd99,
    "flights": flights,
}


def is_here(make: Maker) -> bool:
    """Whether the rows can be made."""
    return SHARED.is_dir() or not (make in (wordvec, kdd99, flights) or "shared" in make.__qualname__)
