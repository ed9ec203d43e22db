"""What parties of a federation are asked about released centres: as a curator is, with labels and bounds of their own.

Charges of a party name a reason for each part, and sums have a bound cell by cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kveil.arrays import Integers
from kveil.questions.base import Part
from kveil.questions.cells import TOP, Lengths, Residuals
from kveil.questions.midpoint_cells import IN_ONE_CELL, OWN_BOUND


@dataclass(frozen=True, eq=False)
class PartyLengths(Lengths):
    """Bins of the distance to the nearest of some centres: a row is in one."""

    parts: ClassVar = (Part("distances", "counts", reason=IN_ONE_CELL),)


@dataclass(frozen=True, eq=False)
class PartyResiduals(Residuals):
    """Counts and summed residuals of the rows nearest to each centre: a row adds 1 and a vector of norm <= TOP to one of them."""

    @property
    def parts(self) -> tuple[Part, Part]:
        sums = Part("residuals in clusters", "vectors", TOP, reason=OWN_BOUND)
        return Part("rows in clusters", "counts", reason=IN_ONE_CELL), sums

    @property
    def lengths(self) -> Integers:
        return np.full(len(self.bases), TOP, dtype=np.int64)
