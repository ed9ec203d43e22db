"""Grids that are finer where people crowd, against one grid and refinement: the local model on two columns.

Two shared tables of places, and clusters far narrower than a cell of the first round. Same public randomness for all protocols.
"""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from benchmarks.bar import Bar
from benchmarks.local import REAL, _cost, _mean, _unit_rows, _without_privacy
from benchmarks.sets import SHARED

RUNS, K = 16, 8
PROTOCOLS = ("refine", "grid", "zoom")
MADE = {"100 clusters along a path": 0.01, "round clusters of radius 0.03": 0.021}  # standard deviation of a coordinate
BEFORE = {1.0: "refine", 2.0: "refine", 4.0: "grid"}  # what was the default before, with 100 000 people


def run() -> Iterator[Bar]:
    places = ("geo_uk_accidents", "geo_world_cities") if SHARED.is_dir() else ()
    tables = {name: _unit_rows(name, REAL[name][0], *REAL[name][2:]) for name in places}
    tables |= {name: _made(deviation, 100 if "path" in name else K) for name, deviation in MADE.items()}
    for name, rows in tables.items():
        least, _ = _without_privacy(rows[:: max(1, len(rows) // 50_000)], K)
        for epsilon, before in BEFORE.items():
            found = {protocol: _ratios(rows, protocol, epsilon, least) for protocol in PROTOCOLS}
            told = ", ".join(f"{protocol} {_mean(some)}" for protocol, some in found.items())
            print(f"{name}, {len(rows)} people, k = {K}, epsilon {epsilon:g}: {told}", flush=True)
            change = found["zoom"] - found[before]
            if epsilon > 1:  # below, "auto" stays with refinement for so few people
                error = change.std(ddof=1) / np.sqrt(RUNS)
                yield Bar(f"{name}, epsilon {epsilon:g}: zoom less the default before, in errors", change.mean() / error, 2.0)


def _made(deviation: float, n_places: int) -> np.ndarray:
    """100 000 people around places: along a path, or anywhere in the ball of radius 0.7."""
    rng = np.random.default_rng(5)
    if n_places > K:
        angles = np.cumsum(rng.normal(0, 0.35, n_places))
        middles = np.cumsum(np.column_stack([np.cos(angles), np.sin(angles)]), axis=0)
        middles -= middles.mean(axis=0)
        middles *= 0.85 / np.linalg.norm(middles, axis=1).max()
    else:
        middles = 0.7 * rng.uniform(-1, 1, (n_places, 2)) / np.sqrt(2)
    return middles[rng.integers(0, n_places, 100_000)] + deviation * rng.standard_normal((100_000, 2))


def _ratios(rows: np.ndarray, protocol: str, epsilon: float, least: float) -> np.ndarray:
    from kveil.collect.protocols import build
    from kveil.collect.queries import Terms
    from kveil.collect.simulate import simulate

    terms, ratios = Terms(len(rows), K, 2, Fraction(epsilon)), []
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        found = simulate(rows, build(protocol, terms, rng.bytes(32)), terms.epsilon, rng)
        ratios.append(_cost(rows, found.outcome.centres) / least)
    return np.array(ratios)
