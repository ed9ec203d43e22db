"""A randomly shifted cube, halved along every axis again and again; only active cubes are followed further.

All integers, so that the cube of a point is exact. Which cubes are active was released; the shift is public.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kveil.arrays import Floats, Integers

MOST_AXES, MOST_ACTIVE, MOST_LEVELS = 40, 2**14, 30  # a code then has at most 54 bits, a shifted coordinate at most 58


@dataclass(frozen=True, eq=False)
class Cubes:
    """Active cubes, level by level. A child's code: the rank of its parent among the active cubes of the level above, then
    one bit an axis, 1 for the upper half.

    low, side: lowest corner and side of the root; half: points are clipped to -half .. half first, and the root holds those.
    levels: ascending codes of the active cubes of each level below the root.
    places: (active, axes) where the deepest active cubes are, counted in cubes of their level from the lowest corner.
    """

    low: Integers
    side: int
    half: int
    levels: tuple[Integers, ...]
    places: Integers

    @classmethod
    def shifted(cls, half: int, n_axes: int, rng: np.random.Generator) -> Cubes:
        """The root [-2 half, 2 half]^p + v, v uniform in [-half, half]^p: it holds every clipped point, whatever v is."""
        shift = rng.integers(-half, half, size=n_axes, endpoint=True)
        return cls(shift - 2 * half, 4 * half + 1, half, (), np.zeros((1, n_axes), dtype=np.int64))

    @property
    def n_axes(self) -> int:
        return int(self.low.size)

    @property
    def n_children(self) -> int:
        """Children of the deepest active cubes, occupied or not."""
        return len(self.places) << self.n_axes

    def grown(self, codes: Integers) -> Cubes:
        """One level deeper, with these children active; `codes` ascend."""
        sides = (codes[:, None] >> np.arange(self.n_axes - 1, -1, -1)) & 1
        return replace(self, levels=(*self.levels, codes), places=2 * self.places[codes >> self.n_axes] + sides)

    def middles(self) -> Floats:
        """Middles (active, axes) of the deepest active cubes."""
        return np.asarray(self.low + (2 * self.places + 1) * (self.side / 2 ** (len(self.levels) + 1)))
