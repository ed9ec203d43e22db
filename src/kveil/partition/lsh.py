"""Hashing that keeps near points together: which bucket of which large cell a point of a medium cell falls into.

A cell is *medium* if it is light and its parent is heavy. Only points of medium cells have a bucket: the rank of a large cell,
some levels up, and where a random partition around its middle puts the point. All others have key 0, and must report it.

The paper hashes a synthetic space: (lambda v, p - o), where v is one of nearly orthogonal unit vectors, one for each large cell,
o the middle of that cell and lambda = (14 c + 5) t sqrt(d) keeps points of different cells apart. Here the rank of the large cell
is part of the key instead, as if lambda were infinite: no bucket spans two cells, and the space has no further dimensions. To
project a mean onto that space is to clip it to the large cell of its rank. The pseudo-code takes offsets from the middle of the
point's own cell, the text from that of the large one; so do we.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, pi, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import gamma

from kveil.arrays import Floats, Integers
from kveil.partition.public_map import Floats32, Keys, PublicMap, side


@dataclass(frozen=True, eq=False)
class RotatedGrid:
    """A grid of cubes of side `width`, rotated and shifted at random. Near points at distance c share a cube with chance
    E prod (1 - c |v_i| / width)+, v uniform on the sphere."""

    rotation: Floats32  # (d, d)
    shift: Floats32  # (d,), in cubes
    width: float

    @classmethod
    def drawn(cls, n_axes: int, width: float, rng: np.random.Generator) -> RotatedGrid:
        rotation, _ = np.linalg.qr(rng.standard_normal((n_axes, n_axes)))  # public randomness, no noise
        return cls(rotation.astype(np.float32), rng.random(n_axes).astype(np.float32), float(np.float32(width)))

    def n_buckets(self, reach: float) -> int:
        return int(self._wide(reach) ** self.shift.size)

    def buckets(self, offsets: Floats, reach: float) -> Integers:
        """Which cube, for offsets within `reach` of 0; others count as being at the edge."""
        wide = self._wide(reach)
        places = np.floor(offsets @ self.rotation.astype(np.float64) / self.width + self.shift) + wide // 2
        digits = np.clip(places, 0, wide - 1).astype(np.int64)
        code = np.zeros(len(offsets), dtype=np.int64)
        for column in digits.T:
            code = code * wide + column
        return code

    def _wide(self, reach: float) -> int:
        """Cubes along an axis: from -ceil(reach / width) to ceil(reach / width), since the shift is below 1."""
        return 2 * ceil(reach / self.width) + 1


@dataclass(frozen=True, eq=False)
class BallLattice:
    """Balls of radius `width` on shifted grids of spacing 4 widths, after a projection to few axes; the first grid wins that has
    a ball around the point. As in "Near-Optimal Hashing Algorithms for Approximate Nearest Neighbor in High Dimensions"."""

    axes: Floats32  # (d, t)
    shifts: Floats32  # (grids, t), in spacings
    width: float

    @classmethod
    def drawn(cls, n_axes: int, width: float, rng: np.random.Generator, n_image: int = 2) -> BallLattice:
        """As many grids as leave a point uncovered with a chance of 1e-6: a ball has vol/4**t of a grid's cell."""
        volume = pi ** (n_image / 2) / gamma(n_image / 2 + 1)
        n_grids = ceil(np.log(1e6) * 4**n_image / volume)
        axes = rng.standard_normal((n_axes, n_image)) / sqrt(n_image)  # public randomness, no noise
        return cls(axes.astype(np.float32), rng.random((n_grids, n_image)).astype(np.float32), float(np.float32(width)))

    def n_buckets(self, reach: float) -> int:
        return int(len(self.shifts) * self._wide(reach) ** self.shifts.shape[1])

    def buckets(self, offsets: Floats, reach: float) -> Integers:
        """Which ball, for offsets within `reach` of 0. A point that no ball holds is in the last grid's nearest one."""
        image = offsets @ self.axes.astype(np.float64) / (4 * self.width)
        wide, half = self._wide(reach), self._wide(reach) // 2
        code, is_held = np.zeros(len(offsets), dtype=np.int64), np.zeros(len(offsets), dtype=bool)
        for number, shift in enumerate(self.shifts.astype(np.float64)):
            places = np.rint(image - shift)
            held = ((image - shift - places) ** 2).sum(axis=1) <= 1 / 16
            new = ~is_held & (held | (number == len(self.shifts) - 1))
            digits = np.clip(places + half, 0, wide - 1).astype(np.int64)
            ball = np.full(len(offsets), number, dtype=np.int64)
            for column in digits.T:
                ball = ball * wide + column
            code, is_held = np.where(new, ball, code), is_held | new
        return code

    def _wide(self, reach: float) -> int:
        """A random projection may stretch; a point beyond 4 times the reach counts as being at the edge."""
        return 2 * (ceil(reach / self.width) + 1)


@dataclass(frozen=True, eq=False)
class Buckets:
    """Buckets of the medium cells of one level.

    above, here: ascending keys of the heavy cells of the level above (the root's key is 0) and of this one.
    up: how many levels up the large cell is.
    """

    map: PublicMap
    level: int
    up: int
    above: Keys
    here: Keys
    lsh: RotatedGrid | BallLattice

    @property
    def top(self) -> int:
        """Level of the large cells."""
        return max(0, self.level - self.up)

    @property
    def large(self) -> Keys:
        """Ascending keys of the large cells that hold medium ones."""
        return np.asarray(np.unique(self.above >> np.uint64(self.map.n_axes * (self.level - 1 - self.top))))

    @property
    def reach(self) -> float:
        """Half the diagonal of a large cell: how far an offset can be."""
        return side(self.top) * sqrt(self.map.n_axes) / 2

    @property
    def radius(self) -> float:
        """What offsets are divided by to fit into the unit ball. The middle of the root is off 0 by the shift."""
        return self.reach if self.top else min(self.reach, 1 + float(np.linalg.norm(self.map.shift)))

    @property
    def n_keys(self) -> int:
        return 1 + len(self.large) * self.lsh.n_buckets(self.reach)

    def place(self, points: Floats) -> tuple[Keys, Floats]:
        """Key and offset over `radius` of every point; 0 and 0 where it is in no medium cell."""
        image = self.map.image(points)
        cells = self.map.image_cells(image, self.level * self.map.n_axes)
        medium = is_medium(cells, self.above, self.here, self.map.n_axes)
        large = self.large
        tops = cells >> np.uint64(self.map.n_axes * (self.level - self.top))
        rank = np.minimum(np.searchsorted(large, tops), max(0, len(large) - 1))
        offsets = image - self.map.middles(tops, self.top * self.map.n_axes)
        code = rank * self.lsh.n_buckets(self.reach) + self.lsh.buckets(offsets, self.reach)
        keys = np.where(medium, 1 + code, 0).astype(np.uint64)
        return keys, np.where(medium[:, None], offsets / self.radius, 0.0)


def is_medium(cells: Keys, above: Keys, here: Keys, n_axes: int) -> NDArray[np.bool_]:
    """Whether cells are light children of heavy ones; `above` and `here` list the heavy cells of two levels, ascending."""
    return contains(above, cells >> np.uint64(n_axes)) & ~contains(here, cells)


def contains(ordered: Keys, keys: Keys) -> NDArray[np.bool_]:
    """Which keys are among the ascending ones."""
    if not len(ordered):
        return np.zeros(len(keys), dtype=bool)
    places = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    return np.asarray(ordered[places] == keys)
