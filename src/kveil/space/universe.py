"""What a finite public universe of points must answer, and what all of them answer alike.

A universe, its order and its distances are public and fixed without looking at the demand: the private part of a problem is
only how many people are at each point. Distances are whole numbers of a public `step`, and the distance of a pair is a
function of that pair alone, so sums of them are exact for any blocking, thread count or BLAS.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from functools import cached_property
from math import floor, inf, log2
from typing import Any, Protocol, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kveil.errors import InvalidType, InvalidValue
from kveil.space.untyped import is_typed, listed, number

Distances = NDArray[np.int32]
Nearest = tuple[NDArray[np.int32], Distances, Distances, NDArray[np.int32]]  # owner, first, second, runner

STEPS = 2**22  # what a diameter gets at least where distances are fractions: rounding is below a millionth of it
MOST_STEPS = 2**30  # no diameter may pass it: diameter + 1 and the sum of two distances still fit into int32


class Space(Protocol):
    """A finite public universe; immutable. Points are numbers 0 to n_points - 1."""

    n_points: int
    diameter: int  # public upper bound of every distance, in steps
    step: float  # length of one step, in the units of the user

    @property
    def points(self) -> NDArray[np.float64] | None:
        """Coordinates, where the universe has them."""

    def distances(self, sources: ArrayLike, targets: ArrayLike | None = None) -> Distances:
        """One row a source, one column a target; all points if no targets are given."""

    def claim(self, site: int, label: int, best: Distances, owner: NDArray[np.int32]) -> None:
        """Give every point strictly nearer to `site` than best[u] to `label`, in place: best[u] = distance, owner[u] = label.

        Before the first site `best` is diameter + 1 everywhere and `owner` -1; afterwards both are changed by `claim` alone.
        """

    def nearest(self, centers: ArrayLike) -> Nearest:
        """For every point: position of the nearest centre, distance to it, distance to the second nearest, its position.

        Ties go to the lowest position. With one centre the second distance is the diameter and its position 0.
        """

    def locate(self, rows: Any) -> NDArray[np.int64]:
        """The point each demand row stands for. Row by row; what rows hold never raises: what is no number is point 0."""

    def locations(self) -> NDArray[np.int64]:
        """For every point the smallest point at distance 0 from it: duplicates share one."""

    def identity(self) -> dict[str, Any]:
        """Kind, number of points and a digest, for `release.json`."""


class Universe(ABC):
    """What all universes share: copies are the universe itself, a short repr, checked indices, demand by index, a digest."""

    kind: str
    n_points: int
    diameter: int
    step: float
    points: NDArray[np.float64] | None = None

    def locate(self, rows: Any) -> NDArray[np.int64]:
        """Rows are point numbers, (m,) or (m, 1). A number outside 0 to n_points - 1, a fraction or a NaN is point 0."""
        numbers = rows if is_typed(rows) else self._numbers(rows)
        if numbers.ndim == 2 and numbers.shape[1] == 1:
            numbers = numbers[:, 0]
        if numbers.ndim != 1:
            raise InvalidType("demand must be point numbers: one column of integers.")
        inside = (numbers >= 0) & (numbers < self.n_points)  # negative ones would wrap around
        if numbers.dtype.kind == "f":
            inside &= numbers == np.floor(numbers)
        return np.where(inside, numbers, 0).astype(np.int64)

    def _numbers(self, rows: Any) -> NDArray[np.float64]:
        if getattr(getattr(rows, "dtype", None), "kind", "O") not in "Oiufb" or getattr(rows, "ndim", 1) > 2:
            raise InvalidType("demand must be point numbers: one column of integers.")
        return np.array([number(entry) for entry in listed(rows)], dtype=np.float64)

    def _one(self, site: Any, *arrays: Distances) -> int:
        """One point number, checked together with arrays of one number per point: compiled code checks nothing."""
        if any(array.shape != (self.n_points,) or array.dtype != np.int32 for array in arrays):
            raise InvalidValue("best, owner and limit must be int32 arrays of one number a point.")
        return int(indices(site, self.n_points, "site")[0])

    def identity(self) -> dict[str, Any]:
        return {"kind": self.kind, "n_points": self.n_points, "sha256": self._digest}

    @cached_property
    def _digest(self) -> str:
        said = hashlib.sha256(f"{self.kind} {self.n_points} {self.diameter} {self.step.hex()}".encode())
        for array in self._contents():
            said.update(repr(array.shape).encode())
            said.update(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).data)
        return said.hexdigest()

    @abstractmethod
    def _contents(self) -> tuple[NDArray[np.signedinteger[Any]], ...]:
        """The integers that, with kind, diameter and step, decide every distance."""

    def __copy__(self) -> Self:
        return self  # immutable, and often large

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Without what can be computed again."""
        return {
            name: value for name, value in vars(self).items() if not isinstance(getattr(type(self), name, None), cached_property)
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        seal(*(value for value in state.values() if isinstance(value, np.ndarray)))  # pickling forgets it

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_points={self.n_points}, diameter={self.diameter * self.step:g})"


def check_universe(space: Any) -> Space:
    """`space`, if it is a universe."""
    if not isinstance(space, Universe):
        raise InvalidType(
            "a public universe of kveil is needed here: Euclidean(points), Manhattan(points), Precomputed(matrix), "
            "Graph.from_edges(edges), Graph.from_networkx(graph) or Metric(points, distance), say. Which of them a plain array "
            "or another library's graph should be, only you can tell."
        )
    found: Any = space
    return cast(Space, found)


def indices(numbers: ArrayLike, n_points: int, name: str) -> NDArray[np.int64]:
    """Point numbers of a public argument, checked. Demand never comes this way: see `locate`."""
    found = np.atleast_1d(np.asarray(numbers))
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise InvalidType(f"{name} must be point numbers: a whole number or a flat array of them.")
    found = found.astype(np.int64)
    if found.size and not (found.min() >= 0 and found.max() < n_points):
        raise InvalidValue(f"{name} must be numbers of points, 0 to {n_points - 1}.")
    return found


def capped(truncate: float | None) -> float:
    """The public length above which distances do not count; infinity if there is none."""
    if truncate is None:
        return inf
    if isinstance(truncate, bool) or not isinstance(truncate, int | float | np.integer | np.floating):
        raise InvalidType("truncate must be a number, in the units of the distances.")
    if not (np.isfinite(truncate) and truncate > 0):
        raise InvalidValue("truncate must be finite and above 0: the largest distance that counts.")
    return float(truncate)


def power_of_two(most: float) -> float:
    """The largest power of two that is at most `most`: dividing by it is exact."""
    return float(2.0 ** max(floor(log2(max(most, 5e-324))), -1020))  # a part of the least of all lengths is 0


def seal(*arrays: NDArray[Any]) -> None:
    for array in arrays:
        array.setflags(write=False)
