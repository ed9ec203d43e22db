"""The sets of the table: real ones of ../shared/data, made-up ones, and some of both with bounds that are far too wide."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks import sets
from benchmarks.judge.tables import dim032, mixture


@dataclass(frozen=True)
class Table:
    """How rows are made, and the centres that they were made around, where somebody knows them."""

    make: sets.Maker
    planted: Callable[[], np.ndarray] | None = None

    def loose(self, times: float) -> "Table":
        """The same rows in a domain so many times as wide, about the same middle."""
        return replace(self, make=partial(_loosened, self.make, times))


def _loosened(make: sets.Maker, times: float) -> sets.Made:
    rows, k, domain = make()
    if "radius" in domain:
        return rows, k, domain | {"radius": times * domain["radius"]}
    low, high = (np.broadcast_to(np.asarray(bound, dtype=float), rows.shape[1]) for bound in domain["bounds"])
    middle, half = (low + high) / 2, (high - low) / 2
    return rows, k, {"bounds": ((middle - times * half).tolist(), (middle + times * half).tolist())}


def sipu(name: str, k: int, high: float) -> Table:
    """A set of the SIPU benchmark with its published centres."""

    def planted() -> np.ndarray:
        with np.load(sets.SHARED / f"{name}.npz") as file:
            return file["centers"] / high

    return Table(sets.shared(name, k, 0, high), planted)


def places(name: str, bounds: Any, k: int) -> Table:
    """Longitudes and latitudes, in degrees."""
    return Table(partial(_degrees, name, bounds, k))


def _degrees(name: str, bounds: Any, k: int) -> sets.Made:
    with np.load(sets.SHARED / f"{name}.npz") as file:
        return file["lonlat_e6"] / 1e6, k, {"bounds": bounds}


def city(bounds: Any) -> Table:
    """The accidents of London alone, in bounds that somebody who knows only the country, or the planet, would give."""

    def make() -> sets.Made:
        rows, _, _ = UK.make()
        is_near = (abs(rows[:, 0] + 0.1) < 0.35) & (abs(rows[:, 1] - 51.5) < 0.22)
        return rows[is_near], 20, {"bounds": bounds}

    return Table(make)


def path() -> Table:
    """A hundred narrow clusters in a row along a curve."""

    def planted() -> np.ndarray:
        t = np.linspace(0, 1, 100)
        return np.column_stack([0.1 + 0.8 * t, 0.5 + 0.35 * np.sin(7 * t)])

    def make() -> sets.Made:
        rng = np.random.default_rng(100)
        rows = planted()[rng.integers(0, 100, 100_000)] + 0.0015 * rng.standard_normal((100_000, 2))
        return rows, 100, {"bounds": (0, 1)}

    return Table(make, planted)


def one_column() -> sets.Made:
    rng = np.random.default_rng(11)
    rows = rng.uniform(0, 1, 12)[rng.integers(0, 12, 30_000)] + 0.01 * rng.standard_normal(30_000)
    return rows[:, None], 12, {"bounds": (-1, 2)}


def heavy(d: int, k: int, n: int) -> Table:
    """Uneven clusters with heavy tails."""
    return Table(mixture(d, k, n, seed=1, deviation=0.03, tail=2.5, is_even=False))


def ball(d: int) -> Table:
    return Table(sets.gaussians(d), lambda: sets.ball_places(d)[1])


PLANET = ([-180, -90], [180, 90])
UK = places("geo_uk_accidents", ([-8, 49.5], [2, 61]), 20)
MIXED = Table(mixture(3, 15, 20_000, seed=2, is_even=False))

TIGHT = {
    "15 in the square": Table(sets.square, lambda: sets.square_places()[1]),
    "s1": sipu("sipu_s1", 15, 1e6),
    "s2": sipu("sipu_s2", 15, 1e6),
    "s4": sipu("sipu_s4", 15, 1e6),
    "a1": sipu("sipu_a1", 20, 65536),
    "unbalance": sipu("sipu_unbalance", 8, 1e6),
    "birch1": sipu("sipu_birch1", 100, 1e6),
    "birch3": Table(sets.shared("sipu_birch3", 100, 0, 1e6)),
    "UK": UK,
    "cities": places("geo_world_cities", PLANET, 20),
    "city": city(([-1.6, 50.3], [1.4, 52.6])),
    "100 along a path": path(),
    "one column": Table(one_column),
    "mixed, d=3": MIXED,
    "heavy tails, d=2": heavy(2, 8, 30_000),
    "heavy tails, d=3": heavy(3, 10, 60_000),
    "heavy tails, d=6": heavy(6, 6, 20_600),
    "heavy tails, d=9": heavy(9, 8, 20_600),
    "heavy tails, d=12": heavy(12, 8, 60_000),
    "heavy tails, d=24": heavy(24, 8, 60_000),
    "mixed, d=23": Table(mixture(23, 12, 30_000, seed=5, deviation=0.2, is_even=False)),
    "15 in the ball, d=4": ball(4),
    "15 in the ball, d=8": ball(8),
    "15 in the ball, d=16": ball(16),
    "15 in the ball, d=32": ball(32),
    "64 tight, d=100": Table(sets.MAKERS["64 tight, d=100"], lambda: sets.sphere_places(1)[1]),
    "64 tight, k=16": Table(sets.MAKERS["64 tight, k=16"]),
    "64 overlapping, d=100": Table(sets.MAKERS["64 overlapping, d=100"], lambda: sets.sphere_places(2)[1]),
    "dim032": Table(dim032),
    "dim128": sipu("sipu_dim128", 16, 255),
    "dim512": sipu("sipu_dim512", 16, 255),
    **{name: Table(sets.MAKERS[name]) for name in ("digits", "adult", "diamonds", "wordvec", "flights", "kdd99", "MNIST")},
}
LOOSE = {
    f"{name}, bounds x{times}": TIGHT[name].loose(times)
    for name, wide in {
        "s1": (10, 100), "a1": (10, 100), "unbalance": (10, 100), "UK": (10,), "mixed, d=3": (10, 100), "digits": (10,),
        "15 in the ball, d=8": (10, 100), "15 in the ball, d=32": (10,), "adult": (10,), "diamonds": (10, 100),
    }.items()
    for times in wide
} | {"city in the world": city(PLANET)}  # fmt: skip
SETS: dict[str, Table] = TIGHT | LOOSE
