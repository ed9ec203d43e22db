"""Who is to be served: points of a universe with whole weights, so that sums do not depend on their order."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log2

import numpy as np
from numpy.typing import ArrayLike

from kveil.arrays import Integers

TOTAL = 2**30  # what weights that are no whole numbers add up to, about: with distances below 2**31 no bit of those is lost


@dataclass(frozen=True, eq=False)
class Demand:
    """Distinct points in ascending order and their weights above 0; one unit of weight is `unit` of the caller's."""

    indices: Integers  # (m,)
    weights: Integers  # (m,)
    unit: float = 1.0

    @classmethod
    def of(cls, indices: ArrayLike, weights: ArrayLike | None = None, unit: float = 1.0) -> Demand:
        """Whole weights of points, 1 each if not given. Points that occur twice are added up, those of weight 0 left out."""
        places = np.asarray(indices, dtype=np.int64)
        mass = np.ones(len(places), dtype=np.int64) if weights is None else np.asarray(weights, dtype=np.int64)
        distinct, where = np.unique(places, return_inverse=True)
        totals = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(totals, where, mass)
        return cls(distinct[totals > 0], totals[totals > 0], unit)

    @classmethod
    def weighted(cls, weights: ArrayLike) -> Demand:
        """One finite weight >= 0 for every point. Whole numbers with a sum up to 2**30 are kept; others are rounded to
        multiples of about 2**-30 of their sum."""
        mass = np.asarray(weights, dtype=np.float64)
        peak = float(mass.max(initial=0.0)) or 1.0
        shares = mass / peak  # whose sum cannot overflow
        total = float(shares.sum()) or 1.0
        if peak * total <= TOTAL and not (mass % 1).any():
            return cls.of(np.arange(len(mass)), mass.astype(np.int64))
        bits = floor(log2(TOTAL / total))
        return cls.of(np.arange(len(mass)), np.rint(np.ldexp(shares, bits)).astype(np.int64), peak * 2.0**-bits)

    @property
    def total(self) -> int:
        return int(self.weights.sum())
