"""Laws of the vault's draws, written down a second time: how probable an outcome is, in logarithms, and which outcomes there are.

The vault draws integers bit by bit and never computes these numbers. Tests hold its samplers against them, and `exact` adds them
up. Rounded K-norm noise is integrated over the unit square of an outcome, for one or two columns.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
from scipy.special import logsumexp

from kveil.arrays import Floats
from kveil.errors import InvalidValue

NODES = 24  # of a Gauss-Legendre rule, along either side of a unit square
NARROW = 1e5  # a discrete Gaussian that is wider is normalised by an integral


def log_probability(charge: Any, raw: Any, outcome: Any) -> float:
    """Of an outcome, all of its numbers together, if the exact answer is `raw`. `charge`: which law, as guarantees list them."""
    if isinstance(raw, dict) or charge.mechanism not in LAWS:
        raise InvalidValue(f'no law of "{charge.mechanism}" is written down here, or not for such values ("{charge.label}").')
    return float(LAWS[charge.mechanism](charge, np.asarray(raw), outcome))


def outcomes(charge: Any, raw: Any, most: int, tail: float) -> list[Any] | None:
    """All outcomes, without noise farther out than all but `tail` of it; None if they are more than `most`, or endless."""
    raw = np.asarray(raw)
    if charge.mechanism == "select":
        rows = np.atleast_2d(raw)
        if rows.shape[1] ** rows.shape[0] > most:
            return None
        return (
            list(range(rows.shape[1]))
            if raw.ndim == 1
            else [np.array(row) for row in product(range(rows.shape[1]), repeat=len(rows))]
        )
    if charge.mechanism == "discrete-laplace":
        reach = math.ceil(math.log(1 / tail) / _rate(charge))
        if (2 * reach + 1) ** raw.size > most:
            return None
        return [raw + np.array(noise).reshape(raw.shape) for noise in product(range(-reach, reach + 1), repeat=raw.size)]
    return None


def laplace_log(noise: Any, rate: float) -> Floats:
    """log P(z) of discrete Laplace noise, P(z) ~ exp(-|z| rate)."""
    found: Floats = math.log(math.tanh(rate / 2)) - rate * np.abs(noise)
    return found


def gaussian_log(noise: Any, sigma: float) -> Floats:
    """log P(z) of discrete Gaussian noise, P(z) ~ exp(-z**2 / (2 sigma**2))."""
    reach = math.ceil(12 * sigma) + 10
    total = math.log(2 * math.pi * sigma**2) / 2
    if sigma < NARROW:
        total = float(logsumexp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma**2)))
    found: Floats = -(np.asarray(noise, dtype=np.float64) ** 2) / (2 * sigma**2) - total
    return found


def rounded_k_norm_log(noise: Any, beta: float) -> Floats:
    """log P(round(v) = z) of (n, d) blocks z, for v of density ~ exp(-|v| / beta); d is 1 or 2."""
    z = np.asarray(noise, dtype=np.float64)
    if z.shape[1] == 1:
        far = np.abs(z[:, 0])
        at_zero, side = math.log(-math.expm1(-0.5 / beta)), math.log(math.sinh(0.5 / beta))
        return np.where(far == 0, at_zero, side - far / beta)
    if z.shape[1] != 2:
        raise InvalidValue("rounded K-norm noise is integrated in one or two columns only.")
    nodes, weights = (part / 2 for part in np.polynomial.legendre.leggauss(NODES))
    x, y = (z[:, axis, None] + nodes for axis in (0, 1))
    inside = -np.hypot(x[:, :, None], y[:, None, :]) / beta
    found = logsumexp(inside, axis=(1, 2), b=np.outer(weights, weights)) - math.log(2 * math.pi * beta**2)
    return np.where((z == 0).all(axis=1), _around_the_tip(beta, nodes, weights), found)


def _around_the_tip(beta: float, nodes: Floats, weights: Floats) -> float:
    """The unit square of the origin holds the tip of the cone: eight triangles up to r = 1/(2 cos t), each with a closed radial
    integral."""
    r = 0.5 / np.cos((nodes + 0.5) * np.pi / 4) / beta
    return math.log(8 / (2 * np.pi) * float(((1 - (1 + r) * np.exp(-r)) * weights).sum()) * np.pi / 4)


def _rate(charge: Any) -> float:
    return float(charge.epsilon / charge.sensitivity)


def _select(charge: Any, raw: Any, chosen: Any) -> float:
    scores = -_rate(charge) * np.atleast_2d(raw).astype(np.float64)
    places = np.atleast_1d(chosen)
    return float((scores[np.arange(len(scores)), places] - logsumexp(scores, axis=1)).sum())


def _laplace(charge: Any, raw: Any, noisy: Any) -> float:
    return float(laplace_log(noisy - raw, _rate(charge)).sum())


def _gaussian(charge: Any, raw: Any, noisy: Any) -> float:
    return float(gaussian_log(noisy - raw, charge.sensitivity / math.sqrt(2 * float(charge.rho))).sum())


def _k_norm(charge: Any, raw: Any, noisy: Any) -> float:
    return float(rounded_k_norm_log(np.atleast_2d(noisy - raw), 1 / _rate(charge)).sum())


LAWS = {"select": _select, "discrete-laplace": _laplace, "discrete-gaussian": _gaussian, "k-norm": _k_norm}
