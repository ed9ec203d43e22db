"""A public map of the unit ball: a linear image, a shift, and cells that halve one axis after the other.

All of it is drawn before any data is seen. A cell at depth b is a prefix of b bits: bit i tells the half along axis i mod d,
so the parent of a cell is its key without the last bit. Floats decide which cell a point is in; no guarantee rests on them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import Floats

Floats32 = NDArray[np.float32]
Keys = NDArray[np.uint64]

ROOT = 3.0  # side of the root cell: an image in the unit ball, shifted by at most 1/2 an axis, lies within 3/2 of 0
DEEPEST = 60
ROUNDING = 1e-9  # that floats may put a point of the unit ball outside of it


@dataclass(frozen=True, eq=False)
class PublicMap:
    """axes: (D, d), stretched so that mean squared lengths are kept; shift: (d,). Single precision, as they are published."""

    axes: Floats32
    shift: Floats32

    @classmethod
    def drawn(cls, n_columns: int, n_axes: int, rng: np.random.Generator) -> PublicMap:
        """Random orthonormal directions, or the identity where nothing is lost; and a uniform shift. Public randomness."""
        return cls(random_frames(n_columns, n_axes, 1, rng)[0], random_shift(n_axes, rng))

    @property
    def n_axes(self) -> int:
        return int(self.shift.size)

    def image(self, points: Floats) -> Floats:
        """Where points of the unit ball go: again into the unit ball, of d dimensions."""
        return into_ball(points @ self.axes.astype(np.float64))

    def cells(self, points: Floats, depth: int) -> Keys:
        """The cell of every point at a depth."""
        return self.image_cells(self.image(points), depth)

    def image_cells(self, image: Floats, depth: int) -> Keys:
        """The same for points that are images already."""
        keys, bits = np.zeros(len(image), dtype=np.uint64), axis_bits(depth, self.n_axes)
        share = (image + self.shift + ROOT / 2) / ROOT
        places = [
            np.clip(share[:, i] * 2.0**b, 0, 2.0**b - 1).astype(np.uint64)  # who left the root is at its edge
            for i, b in enumerate(bits)
        ]
        for step in range(depth):
            axis, done = step % self.n_axes, step // self.n_axes
            keys = (keys << np.uint64(1)) | ((places[axis] >> np.uint64(bits[axis] - 1 - done)) & np.uint64(1))
        return keys

    def middles(self, keys: Keys, depth: int) -> Floats:
        """Centres of cells as images: the shift is taken off."""
        bits = axis_bits(depth, self.n_axes)
        places = np.zeros((len(keys), self.n_axes))
        for step in range(depth):
            bit = (keys >> np.uint64(depth - 1 - step)) & np.uint64(1)
            places[:, step % self.n_axes] = 2 * places[:, step % self.n_axes] + bit
        return np.asarray((places + 0.5) * (ROOT / 2.0 ** np.array(bits)) - ROOT / 2 - self.shift)

    def meets_ball(self, keys: Keys, depth: int) -> NDArray[np.bool_]:
        """Which cells an image can lie in at all: those that the unit ball reaches. A public fact."""
        halves = ROOT / 2.0 ** (1 + np.array(axis_bits(depth, self.n_axes)))
        beyond = np.maximum(np.abs(self.middles(keys, depth)) - halves, 0.0)  # from 0 to the nearest point of the cell
        return np.asarray((beyond**2).sum(axis=1) <= 1 + ROUNDING)


def into_ball(points: Floats) -> Floats:
    """Every row, or where its ray from 0 leaves the unit ball."""
    return np.asarray(points / np.maximum(np.sqrt(np.einsum("ij,ij->i", points, points)), 1.0)[:, None])


def axis_bits(depth: int, n_axes: int) -> list[int]:
    """How often each axis is halved down to a depth."""
    return [len(range(axis, depth, n_axes)) for axis in range(n_axes)]


def side(level: int) -> float:
    """Side of a cell after every axis was halved `level` times."""
    return ROOT * 2.0**-level


def random_frames(n_columns: int, n_axes: int, n_frames: int, rng: np.random.Generator) -> list[Floats32]:
    """Frames (D, d) of stretched orthonormal directions: blocks of one rotation while there is room, else drawn independently."""
    if n_columns == n_axes:
        return [np.eye(n_columns, dtype=np.float32)] * n_frames
    blocks = min(n_frames, n_columns // n_axes)
    stretch = np.sqrt(n_columns / n_axes)
    drawn: list[Floats32] = []
    while len(drawn) < n_frames:
        rotation, _ = np.linalg.qr(rng.standard_normal((n_columns, n_axes * blocks)))  # public randomness, no noise
        drawn += [(stretch * rotation[:, i * n_axes : (i + 1) * n_axes]).astype(np.float32) for i in range(blocks)]
    return drawn[:n_frames]


def random_shift(n_axes: int, rng: np.random.Generator) -> Floats32:
    return rng.uniform(-0.5, 0.5, n_axes).astype(np.float32)


def lift(frame: Floats32) -> Floats:
    """(d, D): from an image back to where it came from, as far as the frame tells: the transpose over d/D."""
    n_columns, n_axes = frame.shape
    return np.asarray(frame.T.astype(np.float64) * (n_axes / n_columns))


def joint_lift(frames: list[Floats32]) -> Floats32:
    """(sum of d, D): from several images together, least squares."""
    return np.asarray(np.linalg.pinv(np.hstack([frame.astype(np.float64) for frame in frames])), dtype=np.float32)
