"""A mechanism whose epsilon is known, to audit the audit with. It draws from a generator of its own: nobody is protected here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kveil.audit import Neighbours


class Geometric:
    """The number of rows with two-sided geometric noise: exactly `epsilon`, attained by "more than the smaller number"."""

    def __init__(self, epsilon: float, seed: int = 0) -> None:
        self._share, self._rng = np.exp(-epsilon), np.random.default_rng(seed)

    def __call__(self, rows: Any) -> dict[str, float]:
        up, down = self._rng.geometric(1 - self._share, size=2)
        return {"count": float(len(rows) + up - down), "other": float(self._rng.normal())}


@pytest.fixture
def geometric():
    return Geometric


@pytest.fixture
def pair():
    return Neighbours("one row more", np.zeros((3, 1)), np.zeros((4, 1)))
