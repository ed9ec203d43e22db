"""Words for numbers with errors: which of several is best, and whether one has changed. Two standard errors make a difference."""

from collections.abc import Mapping

import numpy as np

ENOUGH = 2.0  # standard errors of a difference


def error(costs: np.ndarray) -> float:
    """The standard error of a mean; unknown from a single run."""
    return float(costs.std(ddof=1) / len(costs) ** 0.5) if len(costs) > 1 else np.inf


def told(costs: np.ndarray) -> str:
    return f"{costs.mean():.4g}+-{error(costs):.2g}"


def verdict(mine: np.ndarray, rivals: Mapping[str, np.ndarray]) -> str:
    """`best`: every rival costs more. `behind X`: X, the cheapest that does so, costs less. `tie`: neither can be said."""
    ahead = [name for name, costs in rivals.items() if _apart(mine, costs) > ENOUGH]
    if ahead:
        return f"behind {min(ahead, key=lambda name: rivals[name].mean())}"
    return "best" if all(_apart(mine, costs) < -ENOUGH for costs in rivals.values()) else "tie"


def slack(mine: np.ndarray, other: np.ndarray) -> float:
    """So much above the other may the mean be before it is behind."""
    return ENOUGH * float(np.hypot(error(mine), error(other)))


def change(now: np.ndarray, before: np.ndarray) -> str:
    """`better`, `same` or `worse`."""
    away = _apart(now, before)
    return "worse" if away > ENOUGH else "better" if away < -ENOUGH else "same"


def _apart(one: np.ndarray, other: np.ndarray) -> float:
    """How far the mean of one is above that of the other, in standard errors of the difference."""
    away, noise = float(one.mean() - other.mean()), float(np.hypot(error(one), error(other)))
    return away / noise if noise > 0 else np.sign(away) * np.inf if away else 0.0
