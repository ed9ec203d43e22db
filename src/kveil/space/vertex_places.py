"""Coordinates of the vertices of a graph: where they come from, and which vertex is nearest to a position.

Coordinates are public, like the graph. A position becomes a vertex by itself alone, in integers, so one row is one vertex
whatever other rows hold: what is counted afterwards has the sensitivity that it has for rows that name their vertex.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from math import cos, radians
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kveil.errors import InvalidType, InvalidValue, SourceError
from kveil.space.edge_list import cells_of, lines_of
from kveil.space.universe import seal
from kveil.space.untyped import number
from kveil.space.vectors import Euclidean

BITS = 24  # of the grid that positions are rounded to: a country's width in steps of a few centimetres
STEEPEST = 85.0  # degrees of latitude; beyond it a degree of longitude is no length to speak of


class Ground:
    """Vertices in the plane, for positions to be snapped to."""

    def __init__(self, points: NDArray[np.float64] | None, *, degrees: bool) -> None:
        if points is None:
            raise InvalidValue(
                "this graph has no coordinates, so no position is near a vertex. Make it with xy=..., one row per vertex."
            )
        self.points, self.degrees = points, degrees

    def snap(self, positions: Any) -> NDArray[np.int64]:
        """`Graph.snap`."""
        is_list = isinstance(positions, list | tuple)  # which has no type: each of its rows is a position by itself, or none
        if not is_list and width_of(positions) != self.points.shape[1]:
            raise InvalidType(f"positions must be rows of {self.points.shape[1]} numbers, as the vertices' coordinates are.")
        table = positions.to_numpy() if hasattr(positions, "to_numpy") else positions
        if isinstance(table, np.ndarray) and table.dtype.kind in "iufb":
            with np.errstate(all="ignore"):  # what rows hold never warns
                return self._plane.locate(table.astype(np.float64) * self._scale)
        return self._plane.locate([_scaled(row, self._scale) for row in (table.tolist() if hasattr(table, "tolist") else table)])

    def identity(self) -> dict[str, Any]:
        """What the coordinates are, and a digest of them: rows given as positions are counted by them."""
        plain = np.ascontiguousarray(self.points, dtype="<f8")
        return {"coordinates": "degrees" if self.degrees else "plane", "xy_sha256": hashlib.sha256(plain.data).hexdigest()}

    @cached_property
    def _scale(self) -> NDArray[np.float64]:
        """What coordinates are multiplied by, so that their units are of one length."""
        scale = np.ones(self.points.shape[1])
        if self.degrees:
            middle = float(self.points[:, 1].min() / 2 + self.points[:, 1].max() / 2)
            scale[0] = cos(radians(min(abs(middle), STEEPEST)))
        return scale

    @cached_property
    def _plane(self) -> Euclidean:
        return Euclidean(self.points * self._scale, bits=BITS)


def coordinates(xy: ArrayLike, n_points: int, *, degrees: bool) -> NDArray[np.float64]:
    """Checked coordinates (n_points, 2), sealed."""
    given = np.asarray(xy)
    if given.dtype.kind not in "iuf":
        raise InvalidType("xy must be numbers: the two coordinates of every vertex.")
    if given.shape != (n_points, 2):
        raise InvalidValue(f"xy must have one row of two coordinates per vertex: ({n_points}, 2), not {given.shape}.")
    points = np.array(given, dtype=np.float64, order="C")
    if not (np.abs(points) <= 1e300).all():  # also false for NaN
        raise InvalidValue("xy must be finite and of ordinary size. Vertices without a known place have no coordinates to give.")
    if degrees and not (np.abs(points) <= (180.0, 90.0)).all():
        raise InvalidValue("xy must be longitudes of -180 to 180 and latitudes of -90 to 90, in this order, with degrees=True.")
    seal(points)
    return points


def node_attributes(graph: Any, numbers: dict[Any, int], xy: tuple[str, str] | str) -> NDArray[np.float64]:
    """Coordinates that the nodes of a networkx graph carry, in the order of their numbers."""
    found = np.full((len(numbers), 2), np.nan)
    names = (xy,) if isinstance(xy, str) else tuple(xy)
    if len(names) not in (1, 2) or not all(isinstance(name, str) for name in names):
        raise InvalidType('xy must name node attributes: two of numbers, such as ("x", "y"), or one of pairs, such as "pos".')
    for node, held in graph.nodes(data=True):
        values = [held.get(name) for name in names]
        try:
            x, y = values[0] if len(names) == 1 else values
            found[numbers[node]] = float(x), float(y)
        except (TypeError, ValueError):
            continue  # said below, for all of them
    if not np.isfinite(found).all():
        raise InvalidValue(
            f"some nodes have no coordinates in {' and '.join(map(repr, names))}. Name other attributes, or add them."
        )
    return found


def read_xy(path: Path, names: Any, n_points: int) -> NDArray[np.float64] | None:
    """Coordinates on disk: the array xy of an .npz, if it has one; an .npy; or text lines `vertex x y`, parted as edges are."""
    if not path.is_file():
        raise SourceError(f"there is no file {path}. Pass the coordinates of the vertices: text lines `vertex x y`, or an .npy.")
    if path.suffix in (".npz", ".npy"):
        return _from_numpy(path)
    return _from_text(path, names, n_points)


def _from_numpy(path: Path) -> NDArray[np.float64] | None:
    try:
        held = np.load(path, allow_pickle=False)
        if path.suffix == ".npy":
            return np.asarray(held)
        with held:
            return np.asarray(held["xy"]) if "xy" in held.files else None
    except Exception:  # numpy, zipfile and zlib complain each in their own way
        pass
    raise SourceError(f"{path} is no file of arrays, or damaged. Save coordinates with numpy.save(path, xy).")


def _from_text(path: Path, names: Any, n_points: int) -> NDArray[np.float64]:
    lines = [cells for line in lines_of(path) if (cells := cells_of(line.partition("#")[0]))]
    called = {str(name): place for place, name in enumerate(range(n_points) if names is None else names.tolist())}
    found = np.full((n_points, 2), np.nan)
    for cells in lines:
        try:
            name, x, y = cells
            found[called[name]] = float(x), float(y)
        except (KeyError, ValueError):
            raise SourceError(
                f"{path}: every line must be `vertex x y`, with a vertex of the graph. Put # before headings."
            ) from None
    if not np.isfinite(found).all():
        raise SourceError(f"{path} does not hold finite coordinates of every vertex: one line `vertex x y` for each is expected.")
    return found


def width_of(rows: Any) -> int | None:
    """How many columns a table has, by its type; None if it has one dimension."""
    shape: Any = getattr(rows, "shape", ())
    return int(shape[1]) if len(shape) == 2 else None


def _scaled(row: Any, scale: NDArray[np.float64]) -> list[Any]:
    """One row of Python objects in units of one length; what is no row of numbers is no position."""
    values = row.tolist() if hasattr(row, "tolist") else row
    if not isinstance(values, list | tuple) or len(values) != len(scale):
        return [None] * len(scale)
    return [number(value) * factor for value, factor in zip(values, scale.tolist(), strict=True)]
