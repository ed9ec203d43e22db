"""What a fit is asked to do, checked from public parameters before a row is read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.errors import BoundsRequired, InvalidValue
from kveil.kernel.grid import Ball, Box
from kveil.kernel.loss import PrivacyUnit, Relation, floor_delta, floor_epsilon
from kveil.space.euclidean import Scaling

INITS = ("auto", "spread", "packing")
PRIVATE_INITS = ("noisy-sample", "variates")  # look at the rows, and pay for it
MOST_NUMBERS = 2**27  # in a table of centres: 1 GB
BOUNDS_MISSING = (
    "bounds is missing. Taking the range from the data would publish its extremes exactly. Pass bounds=(low, high), or center "
    "and radius, from public knowledge of what the columns can hold; or spend part of the budget on kveil.find_bounds."
)


@dataclass(frozen=True)
class Task:
    """A checked request. `epsilon` is None for a noise-free result, which promises nothing."""

    n_clusters: int
    epsilon: Fraction | None
    delta: Fraction
    domain: Box | Ball
    scaling: Scaling
    relation: Relation
    unit: PrivacyUnit
    tuning: Any  # constants of the method
    n_steps: int | None = None  # None: the method's own
    init: str | NDArray[np.float64] = "auto"  # how a start is found without data, or public centres
    expected_rows: float | None = None  # a public figure, for choices only
    max_rows: int = 2**40  # public; rules out overflow
    is_sparse: bool = False  # whether rows come as SciPy sparse ones
    is_zcdp: bool = False  # the ledger adds zCDP, where pure noise would cost much more than Gaussian

    def public(self) -> dict[str, Any]:
        """What a reader of the release needs to use it: everything here was known before the data."""
        domain = self.domain
        place: dict[str, Any] = (
            {"center": domain.center.tolist(), "radius": domain.radius}
            if isinstance(domain, Ball)
            else {"bounds": [domain.lower.tolist(), domain.upper.tolist()]}
        )
        start = {} if isinstance(self.init, str) and self.init == "auto" else {"init": np.asarray(self.init).tolist()}
        return {
            "n_clusters": self.n_clusters,
            "epsilon": "inf" if self.epsilon is None else float(self.epsilon),
            "delta": float(self.delta),
            **place,
            "bits": domain.bits,
            "scaling": self.scaling,
            "relation": self.relation,
            **start,
            **({} if self.n_steps is None else {"n_steps": self.n_steps}),
            "tuning": asdict(self.tuning),
        }


def check_budget(epsilon: Any, delta: Any) -> tuple[Fraction | None, Fraction]:
    """Epsilon and delta as the exact multiples that are charged; None for epsilon = infinity."""
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if isinstance(value, bool) or not isinstance(value, Real):
            raise InvalidValue(f"{name} must be a number, got {value!r}.")
    if epsilon == math.inf:
        return None, Fraction(0)
    return floor_epsilon(float(epsilon)), floor_delta(float(delta))


def check_count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise InvalidValue(f"{name} must be a whole number of at least 1, got {value!r}.")
    return int(value)


def check_clusters(value: Any, n_features: int) -> int:
    n_clusters = check_count("n_clusters", value)
    if n_clusters * n_features > MOST_NUMBERS:
        raise InvalidValue(f"{n_clusters} centres of {n_features} feature(s) do not fit into memory. Use fewer.")
    return n_clusters


def check_choice(name: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    if not any(value is option or (isinstance(value, str) and value == option) for option in allowed):
        raise InvalidValue(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}.")
    return value


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


def check_init(init: Any, n_clusters: int, n_features: int, private: tuple[str, ...] = ()) -> str | NDArray[np.float64]:
    """The name of a start, or public starting centres. `private`: names of starts that spend budget, where there are any."""
    if isinstance(init, str):
        return str(check_choice("init", init, (*INITS, *private)))
    start = _numbers("init", init)
    if start.shape != (n_clusters, n_features) or not np.isfinite(start).all():
        raise InvalidValue(
            f"init must be one of {', '.join(map(repr, INITS))}, or {n_clusters} public centres with {n_features} finite "
            "features each. Centres picked from the rows are not public."
        )
    return start


def _vector(name: str, value: Any, n_features: int) -> NDArray[np.float64]:
    numbers = _numbers(name, value)
    if numbers.ndim == 0:
        return np.full(n_features, float(numbers))
    if numbers.shape != (n_features,):
        raise InvalidValue(f"{name} has {numbers.size} entries for {n_features} feature(s); pass one number, or one a feature.")
    return numbers


def _numbers(name: str, value: Any) -> NDArray[np.float64]:
    try:
        numbers = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        numbers = None
    if numbers is None:
        raise InvalidValue(f"{name} must hold numbers only: one, or one a feature.")
    return numbers
