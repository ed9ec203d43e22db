"""The public ground that all parties share: a domain, its grid, and the cells that it is divided into."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kveil.arrays import Floats
from kveil.federate.wire import WireError, digest, encode, fields, many, one_of, text, whole
from kveil.kernel.grid import Ball, Box
from kveil.kernel.loss import PrivacyUnit
from kveil.partition.midpoints import Midpoints
from kveil.questions.frame import Frame
from kveil.source import Source
from kveil.space.bounds import check_domain
from kveil.space.euclidean import clip

MOST_COLUMNS = 2**16
DEEPEST = 59
WIDTH = 2.5  # coordinates of most points of a ball of radius R lie within WIDTH R / sqrt(d) of its middle; cells cover that cube

_BITS = text(r"-?0x[01]\.[0-9a-f]{1,13}p[+-][0-9]{1,4}")  # of a float, as float.hex writes them


@dataclass(frozen=True)
class Layout:
    """A domain with a privacy unit: what parties must agree on before anything is asked.

    Lengths are whole steps, equal in all columns, from the centre of the domain.
    """

    domain: Box | Ball
    unit: PrivacyUnit

    @cached_property
    def frame(self) -> Frame:
        return Frame.of(self.domain, None)

    @cached_property
    def cells(self) -> Midpoints:
        """Cells of the domain. A cube that cuts a ball of many columns is finer where rows are; those outside are moved in."""
        if isinstance(self.domain, Ball):
            half = [min(self.domain.top, int(WIDTH * self.domain.top / self.domain.n_columns**0.5))] * self.domain.n_columns
            radius = self.domain.top
        else:
            ratio = np.ones(self.domain.n_columns) if self.frame.ratio is None else self.frame.ratio
            half, radius = np.maximum(np.rint(self.domain.top * ratio), 1).astype(int).tolist(), None
        finest = sum((2 * side).bit_length() - 1 for side in half)  # below it cells would be narrower than the grid
        return Midpoints.widest_first(half, min(DEEPEST, finest), radius)

    @cached_property
    def digest(self) -> str:
        return digest(encode(self.described()))

    def described(self) -> dict[str, Any]:
        """The layout as a message: numbers by their bits."""
        domain, unit = self.domain, self.unit
        ends = [domain.center] if isinstance(domain, Ball) else [domain.lower, domain.upper]
        return {
            "kind": "ball" if isinstance(domain, Ball) else "box",
            "bits": domain.bits,
            "ends": [[(float(x) + 0.0).hex() for x in end] for end in ends],
            "radius": float(domain.radius).hex() if isinstance(domain, Ball) else float(0).hex(),
            "unit": unit.kind,
            "rows_per_person": unit.max_rows_per_person,
        }

    @classmethod
    def read(cls, value: Any) -> Layout:
        """The layout that a party describes."""
        numbers = many(_number, 1, MOST_COLUMNS)
        found = fields(value, {
            "kind": one_of("ball", "box"), "bits": whole(2, 32), "ends": many(numbers, 1, 2), "radius": _number,
            "unit": one_of("record", "person"), "rows_per_person": whole(1, 2**31),
        })  # fmt: skip
        ends = found["ends"]
        if len(ends) != (1 if found["kind"] == "ball" else 2):
            raise WireError("a domain is a box with two ends, or a ball with one centre.")
        if found["kind"] == "ball":
            domain: Box | Ball = Ball(ends[0], found["radius"], found["bits"])
        else:
            domain = Box(ends[0], ends[1], found["bits"])
        return cls(domain, PrivacyUnit(found["unit"], found["rows_per_person"]))

    def decoded(self, steps: Floats) -> Floats:
        """Points in the units of the data, inside the domain."""
        return clip(self.domain, self.domain.center + steps * self.frame.unit(self.domain))

    def encoded(self, points: Floats) -> Floats:
        """Points in steps from the centre of the domain: the inverse of `decoded` inside it."""
        return np.asarray((points - self.domain.center) / self.frame.unit(self.domain))

    @property
    def step(self) -> float:
        """The length of a step in the units of the data."""
        return float(np.max(self.frame.unit(self.domain)))


def _number(value: Any) -> float:
    try:
        return float.fromhex(_BITS(value))
    except OverflowError:
        raise WireError("a number in a message is larger than a float.") from None


def layout_of(source: Source, bounds: Any, center: Any, radius: Any) -> Layout:
    """The layout of a source in a stated domain, checked before a row is read."""
    domain = check_domain(bounds, center, radius, source.n_columns, grid_bits(source.n_columns), source.names)
    source.check(domain)
    return Layout(domain, source.unit)


def grid_bits(n_columns: int) -> int:
    """As fine a grid as exact distances and exact sums of 2**40 rows allow."""
    return max(2, min(23, 1 + int((51 - np.log2(n_columns)) // 2)))
