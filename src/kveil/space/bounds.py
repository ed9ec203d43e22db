"""The public domain that a caller states: bounds, or a centre and a radius, checked against the number of columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.errors import BoundsRequired, InvalidValue
from kveil.kernel.grid import Ball, Box
from kveil.space.unit_ball import is_cosine

Floats = NDArray[np.float64]
Names = tuple[str, ...] | None

BOUNDS_MISSING = (
    "bounds is missing. Taking the range from the data would publish its extremes exactly. Pass bounds=(low, high), or center "
    "and radius, from public knowledge of what the columns can hold; or spend part of the budget on kveil.find_bounds."
)
FORMS = (
    "bounds must be (low, high) for all columns; [(low, high), ...], one pair per column; ([low, ...], [high, ...]); "
    "{name: (low, high), ...}; or kveil.Bounds(low, high)."
)


@dataclass(frozen=True)
class Bounds:
    """Public bounds that can be read in one way only: low and high, each one number, or one per column.

    Accepted wherever bounds are. Plain values are too; `lows_and_highs` says how they are read. With `names` they are bounds of
    these columns, in any order, and a table with other columns is refused. `find_bounds` returns such bounds.

    Parameters
    ----------
    low, high : float or tuple of float
        One number for all columns, or one per column.
    names : tuple of str or None
        Names of the columns.

    Examples
    --------
    >>> Bounds.by_column([(18, 90), (20, 1000)])
    Bounds(low=(18.0, 20.0), high=(90.0, 1000.0))
    >>> found = Bounds.by_column([(18, 90), (20, 1000)], names=("age", "income"))
    >>> found["income"], lows_and_highs(found, 2, ("income", "age"))[0]
    ((20.0, 1000.0), array([20., 18.]))
    """

    low: Any
    high: Any
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            numbers = numbers_of("bounds", getattr(self, name))
            if numbers.ndim > 1:
                raise InvalidValue(f"{name} must be one number, or one per column. For pairs use kveil.Bounds.by_column.")
            object.__setattr__(self, name, float(numbers) if numbers.ndim == 0 else tuple(numbers.tolist()))
        if self.names is not None:
            names = (self.names,) if isinstance(self.names, str) else tuple(self.names)
            sizes = [len(end) for end in (self.low, self.high) if isinstance(end, tuple)]
            if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names) or sizes != [len(names)] * 2:
                raise InvalidValue("names must be different texts, one for each low and each high.")
            object.__setattr__(self, "names", names)

    def __iter__(self) -> Iterator[Any]:
        """Low, then high: `low, high = bounds`."""
        return iter((self.low, self.high))

    def __getitem__(self, name: str) -> tuple[float, float]:
        """Low and high of a column, by its name."""
        if self.names is None or name not in self.names:
            raise KeyError(name)
        place = self.names.index(name)
        return self.low[place], self.high[place]

    def __repr__(self) -> str:
        names = "" if self.names is None else f", names={self.names!r}"
        return f"Bounds(low={self.low!r}, high={self.high!r}{names})"

    @classmethod
    def by_column(cls, pairs: Iterable[Any], names: tuple[str, ...] | None = None) -> Bounds:
        """Bounds from one pair (low, high) per column, which may have names.

        Parameters
        ----------
        pairs : list of (low, high)
            One per column.
        names : tuple of str, optional
            Their names.
        """
        found = [numbers_of("bounds", pair) for pair in pairs]
        if not found or any(pair.shape != (2,) for pair in found):
            raise InvalidValue("Bounds.by_column takes one pair (low, high) per column, such as [(18, 90), (20, 1000)].")
        low, high = np.transpose(found)
        return cls(low, high, names)


BoundsLike = Bounds | Mapping[str, tuple[float, float]] | Sequence[Any] | NDArray[Any]


def lows_and_highs(bounds: Any, n_features: int, names: Names = None) -> tuple[Floats, Floats]:
    """Low and high of every column, from any form in which bounds are given.

    {name: (low, high)} and `Bounds` say what they mean. Of plain values the shape decides: two numbers, one pair per column,
    or two sequences (lows, highs). With two columns both shapes are 2 x 2, and the type decides: a list of tuples is one pair
    per column, a tuple of lists or arrays is (lows, highs). Any other 2 x 2 value is read in the one way that gives low < high
    in both columns, and refused if both ways do.

    >>> lows_and_highs([(18, 90), (20, 1000)], 2)
    (array([18., 20.]), array([  90., 1000.]))
    >>> lows_and_highs(([-8, 49.5], [2, 61]), 2)
    (array([-8. , 49.5]), array([ 2., 61.]))
    """
    if isinstance(bounds, Bounds) and bounds.names is not None:
        bounds = {name: bounds[name] for name in bounds.names}
    if isinstance(bounds, Mapping):
        bounds = _by_name(bounds, names)
    low, high = (bounds.low, bounds.high) if isinstance(bounds, Bounds) else _ends(bounds, n_features, names)
    low, high = _vector("bounds", low, n_features), _vector("bounds", high, n_features)
    bad = np.flatnonzero(~(np.isfinite(low) & np.isfinite(high) & (low < high)))
    if bad.size:
        where = f"{called(names, bad[0])} has low {low[bad[0]]:g} and high {high[bad[0]]:g}"
        is_unsure = n_features == 2 and not isinstance(bounds, Bounds) and np.ndim(bounds[0]) > 0
        read = " A list of tuples is one pair per column, a tuple of lists is (lows, highs)." if is_unsure else ""
        raise InvalidValue(f"bounds must be finite, with low < high: {where}. Take them from public knowledge.{read}")
    return low, high


def names_of(bounds: Any) -> Names:
    """The columns that bounds name, if they do."""
    return tuple(bounds) if isinstance(bounds, Mapping) else bounds.names if isinstance(bounds, Bounds) else None


def domain_width(bounds: Any, center: Any) -> int | None:
    """How many features the domain itself names, if any."""
    if isinstance(bounds, Mapping):
        return len(bounds)
    if isinstance(bounds, Bounds):
        bounds = (bounds.low, bounds.high)
    elif bounds is not None:
        _check_sequence(bounds)
    ends = [numbers_of("bounds", end) for end in ((center,) if bounds is None else bounds)]
    sizes = {end.size for end in ends if end.ndim == 1}
    if sizes == {2} and len(ends) != 2 and bounds is not None:
        return len(ends)  # pairs
    return sizes.pop() if len(sizes) == 1 else None


def check_domain(bounds: Any, center: Any, radius: Any, n_features: int, bits: int, names: Names = None) -> Box | Ball:
    """The public domain of rows with `n_features` columns, which may have `names`."""
    if bounds is None and radius is None:
        if center is not None:
            raise InvalidValue("center needs radius: together they are a public ball that holds the rows.")
        raise BoundsRequired(BOUNDS_MISSING)
    if bounds is not None and (center is not None or radius is not None):
        raise InvalidValue("pass either bounds or center and radius, not both: they are two ways to state one domain.")
    if bounds is not None:
        return Box(*lows_and_highs(bounds, n_features, names), bits)
    if isinstance(radius, bool) or not isinstance(radius, Real):
        raise InvalidValue(f"radius must be a number above 0, got {radius!r}.")
    return Ball(_vector("center", 0.0 if center is None else center, n_features), float(radius), bits)


def public_domain(domain: Box | Ball) -> dict[str, Any]:
    """The domain as a release tells it: bounds are always (lows, highs)."""
    if is_cosine(domain):
        return {"metric": "cosine", "bits": domain.bits}
    if isinstance(domain, Ball):
        return {"center": domain.center.tolist(), "radius": domain.radius, "bits": domain.bits}
    return {"bounds": [domain.lower.tolist(), domain.upper.tolist()], "bits": domain.bits}


def numbers_of(name: str, value: Any) -> Floats:
    try:
        numbers = np.array(value, dtype=np.float64)
        said = value.ravel()[:1] if isinstance(value, np.ndarray) else np.array(value, dtype=object).flat
    except (TypeError, ValueError, OverflowError):
        numbers = None
    if numbers is None or any(isinstance(entry, bool | np.bool_) for entry in said):
        raise InvalidValue(f"{name} must hold numbers only: one, or one per feature.")
    return numbers


def called(names: Names, place: int) -> str:
    """A column in a message: by its name, as UTF-8 can hold it, or by its number."""
    if names is None:
        return f"column {place}"
    return '"' + str(names[place]).encode("utf-8", "backslashreplace").decode() + '"'


def _by_name(bounds: Mapping[str, Any], names: Names) -> Bounds:
    if names is None or set(bounds) != set(names):
        missing, unknown = sorted(set(names or ()) - set(bounds)), sorted(set(map(str, bounds)) - set(names or ()))
        raise InvalidValue(
            f"bounds by name must name exactly the columns in use. Missing: {missing or 'none'}. Unknown: {unknown or 'none'}. "
            "Choose columns with kveil.read(data, columns=[...])."
        )
    pairs = [bounds[name] for name in names]
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        raise InvalidValue("bounds by name must be {name: (low, high), ...}.")
    return Bounds.by_column(pairs)


def _ends(bounds: Any, n_features: int, names: Names) -> tuple[Any, Any]:
    """(low, high) of plain values, each one number or one per column."""
    _check_sequence(bounds)
    parts = [numbers_of("bounds", part) for part in bounds]
    if n_features == 2 and [part.shape for part in parts] == [(2,), (2,)]:
        return _two_by_two(bounds, parts, names)
    if len(parts) == n_features != 2 and all(part.shape == (2,) for part in parts):
        low, high = np.transpose(parts)
        return low, high
    if len(parts) != 2:
        pairs = all(part.shape == (2,) for part in parts)
        raise InvalidValue(f"bounds has {len(parts)} pairs for {n_features} feature(s). {FORMS}" if pairs else FORMS)
    return parts[0], parts[1]


def _two_by_two(bounds: Any, parts: list[Floats], names: Names) -> tuple[Floats, Floats]:
    """Two columns: (lows, highs) and one pair per column have the same shape."""
    a, b = parts
    by_pair = np.array([a[0], b[0]]), np.array([a[1], b[1]])
    if isinstance(bounds, list) and all(isinstance(part, tuple) for part in bounds):
        return by_pair
    if isinstance(bounds, tuple) and all(isinstance(part, list | np.ndarray) for part in bounds):
        return a, b
    is_ends, is_pairs = (bool((low < high).all()) for low, high in ((a, b), by_pair))
    if is_ends and is_pairs and a[1] != b[0]:
        x, y = called(names, 0), called(names, 1)
        raise InvalidValue(
            f"bounds can be read in two ways. One pair per column: {x} from {a[0]:g} to {a[1]:g}, {y} from {b[0]:g} to {b[1]:g}; "
            f"write it as a list of tuples, [({a[0]:g}, {a[1]:g}), ({b[0]:g}, {b[1]:g})]. Or (lows, highs): {x} from {a[0]:g} to "
            f"{b[0]:g}, {y} from {a[1]:g} to {b[1]:g}; write it as a tuple of lists, ([{a[0]:g}, {a[1]:g}], "
            f"[{b[0]:g}, {b[1]:g}]). kveil.Bounds says it either way."
        )
    return by_pair if is_pairs else (a, b)


def _check_sequence(bounds: Any) -> None:
    if isinstance(bounds, str | bytes) or not hasattr(bounds, "__len__") or not hasattr(bounds, "__iter__") or not len(bounds):
        raise InvalidValue(FORMS)


def _vector(name: str, value: Any, n_features: int) -> Floats:
    numbers = numbers_of(name, value)
    if numbers.ndim == 0:
        return np.full(n_features, float(numbers))
    if numbers.shape != (n_features,):
        has = f"{numbers.size} entries" if numbers.ndim == 1 else f"rows and columns {numbers.shape}"
        raise InvalidValue(f"{name} has {has} for {n_features} feature(s); pass one number, or one per feature.")
    return numbers
