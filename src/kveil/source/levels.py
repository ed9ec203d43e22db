"""Public levels of a category: which level a cell holds, as a number. A cell's number depends on that cell alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kveil.arrays import Floats
from kveil.errors import InvalidType, InvalidValue

MOST_LEVELS = 1000
UNKNOWN = -1.0


class Levels(NamedTuple):
    """Levels of one column, all text or all numbers, in the order of their columns."""

    of: tuple[str, ...] | tuple[float, ...]

    @property
    def are_text(self) -> bool:
        return isinstance(self.of[0], str)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(level if isinstance(level, str) else f"{level:.17g}" for level in self.of)

    def of_text(self, texts: Any) -> Floats:
        """Numbers of the levels that an arrow array of bytes holds: -1 for what is no level, NaN where it is null."""
        known = pa.array([str(level).encode("utf-8", "surrogatepass") for level in self.of], pa.large_binary())
        places = pc.fill_null(pc.index_in(texts, value_set=known), int(UNKNOWN)).to_numpy(zero_copy_only=False)
        found: Floats = places.astype(np.float64)
        found[pc.is_null(texts).to_numpy(zero_copy_only=False)] = np.nan
        return found

    def of_numbers(self, cells: Floats) -> Floats:
        """Numbers of the levels that cells of numbers hold: -1 for what is no level, NaN where one is missing or infinite."""
        levels = np.array(self.of, dtype=np.float64)
        order = np.argsort(levels)
        places = order[np.minimum(np.searchsorted(levels[order], cells), len(levels) - 1)]
        with np.errstate(all="ignore"):
            found = np.where(levels[places] == cells, places, UNKNOWN)
        return np.where(np.isfinite(cells), found, np.nan)


def check_categories(categories: Any) -> dict[Any, Levels]:
    """Levels by column, from what `read` was given."""
    if categories is None:
        return {}
    if not isinstance(categories, Mapping):
        raise InvalidType('categories must be {column: (level, ...), ...}, such as {"sex": ("female", "male")}.')
    return {column: _levels(column, levels) for column, levels in categories.items()}


def check_weight(weight: Any) -> float:
    if isinstance(weight, bool) or not isinstance(weight, Real) or not 0 < float(weight) <= 1e6:
        raise InvalidValue("category_weight must be a number above 0, and not above a million: the distance between two levels.")
    return float(weight)


def _levels(column: Any, given: Any) -> Levels:
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise InvalidType(f"the levels of {column!r} must be a list of text or of numbers, from public knowledge.")
    levels = tuple(given)
    are_text = all(isinstance(level, str) for level in levels)
    are_numbers = all(isinstance(level, Real) and not isinstance(level, bool) and isfinite(level) for level in levels)
    if not levels or not (are_text or are_numbers):
        raise InvalidType(f"the levels of {column!r} must be text, or finite numbers, and at least one.")
    found = levels if are_text else tuple(float(level) for level in levels)
    if len(set(found)) < len(found) or len(found) > MOST_LEVELS:
        raise InvalidValue(f"the levels of {column!r} must differ from each other, and be at most {MOST_LEVELS}.")
    return Levels(found)
