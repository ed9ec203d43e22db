"""What an ideal attack would find: how much of a promise can be seen at all, if it is spent in these draws.

Whatever a draw of pure epsilon releases can be computed from randomised response of the same epsilon, and several draws, each
chosen by the ones before, from independent ones (Kairouz, Oh, Viswanath, "The Composition Theorem for Differential Privacy",
2015). Laplace noise on a number of many steps shows less, by a law that is known. A draw of rho-zCDP is taken for Gaussian noise
with mu = sqrt(2 rho). So no attack on pure draws expects a larger bound than the best event of these gives. A release that
hides part of what was drawn, such as the sums behind clipped centres, and the exponential mechanism show less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import norm

from kveil.arrays import Floats
from kveil.auditing.bound import lower_epsilons

ATOMS = 400  # of Gaussian noise
CELLS = 60  # of Laplace noise, between the two values
FINE = 1e-6  # losses that differ by less are one


def ideal_bound(
    epsilons: Sequence[float], rhos: Sequence[float] = (), laplace: Sequence[float] = (), *, runs: int, delta: float = 0.0,
    error: float = 5e-4,
) -> float:  # fmt: skip
    """The lower bound that the best event would give, with expected counts in so many fits of each table.

    epsilons, rhos, laplace: of all draws: pure ones, Gaussian ones, and pure ones that are one number with Laplace noise, of
        which a person moves many steps.

    >>> round(ideal_bound([1.0], runs=2500), 2), round(ideal_bound([0.25] * 4, runs=2500), 2)
    (0.84, 0.44)
    """
    losses, chances = np.zeros(1), np.ones(1)
    for epsilon in epsilons:
        right = 1 / (1 + math.exp(-epsilon))
        losses, chances = _joined(losses, chances, np.array([epsilon, -epsilon]), np.array([right, 1 - right]))
    for epsilon in laplace:
        losses, chances = _joined(losses, chances, *_laplace(epsilon))
    mu = math.sqrt(2 * sum(rhos))
    if mu:
        cuts = norm.ppf(np.linspace(0, 1, ATOMS + 1))
        mine, theirs = np.diff(norm.cdf(cuts)), np.diff(norm.cdf(cuts + mu))
        losses, chances = _joined(losses, chances, np.log(mine / theirs), mine)
    order = np.argsort(-losses)
    hits, others = np.cumsum(chances[order]), np.cumsum((chances * np.exp(-losses))[order])
    counts = [np.minimum(np.round(runs * shares), runs).astype(int) for shares in (hits, others)]
    return float(lower_epsilons(counts[0], runs, counts[1], runs, delta, error).max())


def _laplace(epsilon: float) -> tuple[Floats, Floats]:
    """Losses of a number that moves from 1 to 0 under noise of density exp(-epsilon |x|), and their chances."""
    cuts = np.concatenate([[-np.inf], np.linspace(0, 1, CELLS + 1), [np.inf]])

    def below(x: Floats) -> Floats:
        found: Floats = np.where(x < 0, np.exp(-epsilon * np.abs(x)) / 2, 1 - np.exp(-epsilon * np.abs(x)) / 2)
        return found

    mine, theirs = np.diff(below(cuts - 1)), np.diff(below(cuts))
    return np.log(mine / theirs), mine


def _joined(losses: Floats, chances: Floats, more: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """The law of a sum of losses."""
    every = np.round((losses[:, None] + more[None]).ravel() / FINE) * FINE
    found, place = np.unique(every, return_inverse=True)
    return found, np.bincount(place, weights=(chances[:, None] * shares[None]).ravel()).astype(np.float64)
