"""How a demand on a universe comes in: as a table of one column of indices, or as coordinates where the universe has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from kveil.errors import InvalidValue
from kveil.space.universe import Space


def as_column(demand: Any) -> Any:
    """A demand as a table: one that has a single dimension is one column of indices."""
    if isinstance(demand, list | tuple):
        is_flat = not any(hasattr(entry, "__len__") for entry in demand)
        return ([[entry] for entry in demand] or np.empty((0, 1))) if is_flat else demand
    if hasattr(demand, "to_frame"):  # a series of pandas, polars or Dask
        return demand.to_frame()
    return demand.reshape(-1, 1) if getattr(demand, "ndim", None) == 1 else demand


def check_meant(demand: Any, universe: Space) -> None:
    """Refuse numbers that could be meant as coordinates on a line: silently taken for indices, most would be point 0."""
    on_a_line = universe.points is not None and universe.points.shape[1] == 1
    if on_a_line and getattr(getattr(demand, "dtype", None), "kind", None) == "f":
        raise InvalidValue(
            "this universe has one coordinate, so a column of fractions could be places or indices. Pass places as "
            "universe.locate(demand), or indices as integers."
        )
