"""The public domain that a caller states: bounds, or a centre and a radius, checked against the number of columns."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.errors import BoundsRequired, InvalidValue
from kveil.kernel.grid import Ball, Box

BOUNDS_MISSING = (
    "bounds is missing. Taking the range from the data would publish its extremes exactly. Pass bounds=(low, high), or center "
    "and radius, from public knowledge of what the columns can hold; or spend part of the budget on kveil.find_bounds."
)


def domain_width(bounds: Any, center: Any) -> int | None:
    """How many features the domain itself names, if any."""
    if isinstance(bounds, Mapping):
        return len(bounds)
    ends = bounds if bounds is not None else (center,)
    sizes = {np.size(end) for end in ends if np.ndim(end) == 1}
    return sizes.pop() if len(sizes) == 1 else None


def bounds_by_name(bounds: Mapping[str, Any], names: tuple[str, ...] | None) -> tuple[list[Any], list[Any]]:
    """(lows, highs) in the order of the columns."""
    if names is None or set(bounds) != set(names):
        missing, unknown = sorted(set(names or ()) - set(bounds)), sorted(set(map(str, bounds)) - set(names or ()))
        raise InvalidValue(
            f"bounds by name must name exactly the columns in use. Missing: {missing or 'none'}. Unknown: {unknown or 'none'}. "
            "Choose columns with kveil.read(data, columns=[...])."
        )
    pairs = [bounds[name] for name in names]
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        raise InvalidValue("bounds by name must be {name: (low, high), ...}.")
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def check_domain(bounds: Any, center: Any, radius: Any, n_features: int, bits: int) -> Box | Ball:
    """The public domain of rows with `n_features` columns."""
    if bounds is None and radius is None:
        if center is not None:
            raise InvalidValue("center needs radius: together they are a public ball that holds the rows.")
        raise BoundsRequired(BOUNDS_MISSING)
    if bounds is not None and (center is not None or radius is not None):
        raise InvalidValue("pass either bounds or center and radius, not both: they are two ways to state one domain.")
    if bounds is not None:
        if isinstance(bounds, str) or not hasattr(bounds, "__len__") or len(bounds) != 2:
            raise InvalidValue("bounds must be a pair (low, high): two numbers, or two sequences with one entry a feature.")
        low, high = (_vector("bounds", end, n_features) for end in bounds)
        return Box(low, high, bits)
    if isinstance(radius, bool) or not isinstance(radius, Real):
        raise InvalidValue(f"radius must be a number above 0, got {radius!r}.")
    return Ball(_vector("center", 0.0 if center is None else center, n_features), float(radius), bits)


def public_domain(domain: Box | Ball) -> dict[str, Any]:
    """The domain as a release tells it."""
    if isinstance(domain, Ball):
        return {"center": domain.center.tolist(), "radius": domain.radius, "bits": domain.bits}
    return {"bounds": [domain.lower.tolist(), domain.upper.tolist()], "bits": domain.bits}


def numbers_of(name: str, value: Any) -> NDArray[np.float64]:
    try:
        numbers = np.array(value, dtype=np.float64)
        said = value.ravel()[:1] if isinstance(value, np.ndarray) else np.array(value, dtype=object).flat
    except (TypeError, ValueError, OverflowError):
        numbers = None
    if numbers is None or any(isinstance(entry, bool | np.bool_) for entry in said):
        raise InvalidValue(f"{name} must hold numbers only: one, or one a feature.")
    return numbers


def _vector(name: str, value: Any, n_features: int) -> NDArray[np.float64]:
    numbers = numbers_of(name, value)
    if numbers.ndim == 0:
        return np.full(n_features, float(numbers))
    if numbers.shape != (n_features,):
        has = f"{numbers.size} entries" if numbers.ndim == 1 else f"rows and columns {numbers.shape}"
        raise InvalidValue(f"{name} has {has} for {n_features} feature(s); pass one number, or one a feature.")
    return numbers
