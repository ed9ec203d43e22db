"""Theorems of the k-variates++ paper, measured: what seeds cost on small made-up sets, over what the bounds allow.

Without noise costs are exact expectations; with noise they are means of runs. Where a constant of a theorem lies in a range,
the end that makes its bound smallest is taken, so that a ratio below 1 is below 1 for all of it. First draws are by weight: with
the printed uniform ones Theorems 4 and 5 fail (docs/errata.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import exp, inf
from typing import NamedTuple

import numpy as np

from kveil.arrays import Floats
from kveil.research.expectations import Labels, Small, by_batches, by_distance, by_nodes, expected_cost, small_sets, streams
from kveil.research.ratios import potential
from kveil.research.spreads import eta, online_share, theorem_10_g
from kveil.solve.densities import Density, ProductLaplace, UniformOver
from kveil.solve.families import Gaussian
from kveil.solve.seeding import Rng, kvariates

OnStep = Callable[[str, int, int], None]
Ratios = Callable[[int, int, Rng], Iterator[float | None]]  # (sets, runs of noisy ones, rng) -> left side over right side

SEED = 2016


class Measured(NamedTuple):
    """A claim on many sets: how large its left side came out over its right side, and on how many sets it says nothing."""

    claim: str
    sets: int
    silent: int
    mean: float
    largest: float


def measured(n_sets: int, n_runs: int, on_step: OnStep) -> list[Measured]:
    """All claims, each on so many sets."""
    found = []
    for number, (claim, ratios) in enumerate(CLAIMS.items(), start=1):
        on_step(f"theorems: {claim}", number, len(CLAIMS))
        all_of_them = list(ratios(n_sets, n_runs, np.random.default_rng([SEED, number])))
        told = [ratio for ratio in all_of_them if ratio is not None]
        mean, largest = (float(np.mean(told)), max(told)) if told else (np.nan, np.nan)
        found.append(Measured(claim, len(all_of_them), len(all_of_them) - len(told), mean, largest))
    return found


def no_noise(n_sets: int, n_runs: int, rng: Rng) -> Iterator[float]:
    for some in small_sets(n_sets, rng):
        yield expected_cost(some.rows, some.k, by_distance(some.rows)) / (some.factor * 8 * some.least)


def noise(n_sets: int, n_runs: int, rng: Rng) -> Iterator[float]:
    """Laplace or Gaussian noise of 0.1 to 10 times the width of the clusters."""
    for place, some in enumerate(small_sets(n_sets, rng)):
        wide = some.width * 10.0 ** rng.uniform(-1, 1)
        density = ProductLaplace(wide) if place % 2 else Gaussian(wide)
        variance = float(density.variance(some.rows).sum())
        yield _mean_cost(some, density, n_runs, rng) / (some.factor * (8 * some.least + 2 * variance))


def probes(n_sets: int, n_runs: int, rng: Rng) -> Iterator[float | None]:
    """Rows seen where they were moved to, by up to half of the width in a column."""
    for some in small_sets(n_sets, rng):
        seen = some.rows + some.width * rng.uniform(-0.5, 0.5, some.rows.shape)
        stretch = eta(some.rows, seen, some.k, labels=some.labels).low
        cost = expected_cost(some.rows, some.k, by_distance(some.rows, seen=seen))
        yield None if stretch == inf else cost / (some.factor * (8 + 4 * stretch) * some.least)


def replaced(m: int, *, is_of_noisy: bool) -> Ratios:
    """m rows in one place of the plane, each replaced by a Gaussian one, and the best centre of those: what it costs, on the
    noisy rows or on the true ones, over m tr(Sigma)."""

    def ratios(n_sets: int, n_runs: int, rng: Rng) -> Iterator[float]:
        for _ in range(n_sets):
            noisy = rng.standard_normal((m, 2))  # public
            center = noisy.mean(axis=0, keepdims=True)
            yield potential(noisy if is_of_noisy else np.zeros((m, 2)), center) / (2 * m)

    return ratios


def nodes(n_sets: int, n_runs: int, rng: Rng) -> Iterator[float]:
    for some, groups, scatter in _at_nodes(n_sets, rng):
        parts = [some.rows[groups == group] for group in np.unique(groups)]
        yield expected_cost(some.rows, some.k, by_nodes(parts)) / (some.factor * (10 * some.least + 6 * scatter))


def noisy_nodes(n_sets: int, n_runs: int, rng: Rng) -> Iterator[float]:
    """phi_var is read as the variance of the noise alone, which makes the bound smallest."""
    for some, groups, scatter in _at_nodes(n_sets, rng):
        density = NoisyNodes(groups, some.width * 10.0 ** rng.uniform(-1, 0.5))
        variance = float(density.noise.variance(some.rows).sum())
        allowed = some.factor * (10 * some.least + 4 * scatter + 2 * variance)
        yield _mean_cost(some, density, n_runs, rng) / allowed


class NoisyNodes(UniformOver):
    """PDk-means++: any row of the node, and Gaussian noise around it."""

    def __init__(self, groups: Labels, deviation: float) -> None:
        super().__init__(groups)
        self.noise = Gaussian(deviation)

    def draw(self, points: Floats, anchor: int, rng: Rng) -> Floats:
        return self.noise.draw(super().draw(points, anchor, rng)[None], 0, rng)


def synopses(of_least: float, of_spread: float) -> Ratios:
    """Over (2 + ln k)(of_least phi_opt + of_spread phi_s), eta = 0: rows that were moved, by 0.01 to 10 widths, stand for all."""

    def ratios(n_sets: int, n_runs: int, rng: Rng) -> Iterator[float]:
        for some in small_sets(n_sets, rng):
            picked = rng.permutation(some.rows)[: int(rng.integers(some.k, 6))]
            points = picked + some.width * 10.0 ** rng.uniform(-2, 1) * rng.standard_normal(picked.shape)  # public
            squares = ((some.rows[:, None] - points) ** 2).sum(axis=2)
            weights = np.bincount(squares.argmin(axis=1), minlength=len(points)).astype(np.float64)
            allowed = of_least * some.least + of_spread * float(squares.min(axis=1).sum())
            yield expected_cost(some.rows, some.k, by_distance(points, weights)) / (some.factor * allowed)

    return ratios


def batches(n_sets: int, n_runs: int, rng: Rng) -> Iterator[float | None]:
    for some, parts in streams(n_sets, rng):
        share = online_share(parts, some.k, labels=some.labels).share_of_theorem.high
        cost = expected_cost(some.rows, some.k, by_batches(parts))
        yield None if share == 0 else cost / (some.factor * (4 + 32 / share**2) * some.least)


def batches_at_best(n_sets: int, n_runs: int, rng: Rng) -> Iterator[float]:
    """As if the share were 1, which it never passes: no bound of the theorem is smaller."""
    for some, parts in streams(n_sets, rng):
        yield expected_cost(some.rows, some.k, by_batches(parts)) / (some.factor * 36 * some.least)


def shares(n_sets: int, n_runs: int, rng: Rng) -> Iterator[float]:
    """The share itself, at most."""
    for some, parts in streams(n_sets, rng):
        yield online_share(parts, some.k, labels=some.labels).share_of_theorem.high


def likelihoods(n_sets: int, n_runs: int, rng: Rng) -> Iterator[float]:
    """1024 even rows of [-1, 1], k = 2, Laplace noise of scale 1: the largest ratio found, less 1, over g. Condition (15) holds
    with equality at delta = 1/2. Tried: 17 places per centre; the lowest, highest or midmost row moved to an end or to 0."""
    m, places = 1024, np.linspace(-2, 2, 17)
    for _ in range(n_sets):
        rows = rng.uniform(-1, 1, m)
        own, largest = two_centres(rows, places), 1.0
        for gone in (rows.argmin(), rows.argmax(), np.abs(rows).argmin()):
            for new in (-1.0, 0.0, 1.0):
                other = two_centres(np.append(np.delete(rows, gone), new), places)
                largest = max(largest, float((own / other).max()), float((other / own).max()))
        yield (largest - 1) / theorem_10_g(m, 2, 1, exp(2.0))


def two_centres(rows: Floats, places: Floats) -> Floats:
    """(first, second): how likely two centres of rows on a line are, with Laplace noise of scale 1; up to a constant."""
    density, squares = np.exp(-np.abs(places[:, None] - rows)), (places[:, None] - rows) ** 2
    return np.asarray(density.mean(axis=1)[:, None] * (squares @ density.T) / squares.sum(axis=1)[:, None])


def _at_nodes(n_sets: int, rng: Rng) -> Iterator[tuple[Small, Labels, float]]:
    """Sets at up to four nodes, and the scatter of rows about the mean of their node."""
    for some in small_sets(n_sets, rng):
        groups = rng.integers(0, int(rng.integers(2, 5)), len(some.rows))
        yield some, groups, float(UniformOver(groups).variance(some.rows).sum())


def _mean_cost(some: Small, density: Density, n_runs: int, rng: Rng) -> float:
    runs = (kvariates(some.rows, some.k, density=density, random_state=rng).centers for _ in range(n_runs))
    return float(np.mean([potential(some.rows, centers) for centers in runs]))


CLAIMS: dict[str, Ratios] = {
    "Theorem 2, no noise": no_noise,
    "Theorem 2, Laplace or Gaussian noise": noise,
    "Theorem 2, probes": probes,
    "Lemma 3, cost of the noisy rows, m = 10": replaced(10, is_of_noisy=True),
    "Lemma 3, cost of the noisy rows, m = 1000": replaced(1000, is_of_noisy=True),
    "Lemma 3, cost of the true rows, m = 10": replaced(10, is_of_noisy=False),
    "Lemma 3, cost of the true rows, m = 1000": replaced(1000, is_of_noisy=False),
    "Theorem 4, Dk-means++": nodes,
    "Theorem 4, PDk-means++": noisy_nodes,
    "Theorem 5, as printed": synopses(8, 2),
    "Theorem 5, as kveil states it": synopses(10, 4),
    "Theorem 6": batches,
    "Theorem 6, as if the share were 1": batches_at_best,
    "Theorem 6, the share itself": shares,
    "Theorem 10, likelihood ratio": likelihoods,
}
