"""What one unit of demand costs at a distance, in whole numbers, for sums that cannot overflow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Objective = Literal["k-median", "k-means"]
OBJECTIVES = ("k-median", "k-means")
MOST_BITS = 62  # of a sum of costs: one bit below int64, for differences


@dataclass(frozen=True)
class Loss:
    """The distance in steps (k-median), or its square (k-means), shifted down by whole bits.

    Shifting keeps order, so the least shifted loss is the shifted least loss, and sums are exact in int64 whatever their order.
    """

    is_squared: bool
    shift: int = 0

    @classmethod
    def within(cls, diameter: int, objective: Objective, max_weight: int) -> Loss:
        """The finest loss of which `max_weight` units of demand, each at most `diameter` steps away, cost less than 2**62.

        Where the demand is secret, `max_weight` must be a public bound: the shift shows in every cost.
        """
        is_squared = objective == "k-means"
        widest = diameter**2 if is_squared else diameter
        return cls(is_squared, max(0, widest.bit_length() + max(max_weight, 1).bit_length() - MOST_BITS))

    def of(self, distances: Any) -> NDArray[np.int64]:
        """Losses at whole distances of at most 2**31 steps."""
        steps = np.asarray(distances, dtype=np.int64)
        return np.asarray((steps * steps if self.is_squared else steps) >> self.shift)

    def worth(self, step: float) -> float:
        """One unit of loss in the user's units, `step` being the length of one step there."""
        return float((step**2 if self.is_squared else step) * 2.0**self.shift)
