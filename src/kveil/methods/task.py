"""What a fit is asked to do, checked from public parameters before a row is read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.errors import InvalidValue
from kveil.kernel.grid import Ball, Box
from kveil.kernel.loss import PrivacyUnit, Relation, floor_delta, floor_epsilon
from kveil.space.bounds import numbers_of, public_domain
from kveil.space.euclidean import Scaling

INITS = ("auto", "spread", "packing")
PRIVATE_INITS = ("noisy-sample", "variates")  # look at the rows, and pay for it
MOST_NUMBERS = 2**27  # in a table of centres: 1 GB


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
    reading: Mapping[str, Any] = field(default_factory=dict)  # how rows are read: levels of categories, missing cells
    scales: Any = None  # `methods.scales.Scales`, once a fit has found its box privately
    sample: NDArray[np.float64] | None = None  # public rows, in the units of the data: they are protected by nothing
    k_range: tuple[int, int] | None = None  # "auto": between these, by released values; n_clusters is then the larger one

    def public(self) -> dict[str, Any]:
        """What a reader of the release needs to use it: everything here was known before the data, or was released."""
        start = {} if isinstance(self.init, str) and self.init == "auto" else {"init": np.asarray(self.init).tolist()}
        return {
            **({"n_clusters": self.n_clusters} if self.k_range is None else {"n_clusters": "auto", "k_range": self.k_range}),
            "epsilon": "inf" if self.epsilon is None else float(self.epsilon),
            "delta": float(self.delta),
            **public_domain(self.domain),
            "scaling": self.scaling,
            **({} if self.scales is None else {"scaled_by": self.scales.public()}),
            **self.reading,
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


def check_expected_rows(value: Any) -> float | None:
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if value is not None and not (is_number and value >= 1 and math.isfinite(value)):
        raise InvalidValue("expected_rows must be a public number of at least 1, or None.")
    return None if value is None else float(value)


def check_clusters(value: Any, n_features: int) -> int:
    n_clusters = check_count("n_clusters", value)
    if n_clusters * n_features > MOST_NUMBERS:
        raise InvalidValue(f"{n_clusters} centres of {n_features} feature(s) do not fit into memory. Use fewer.")
    return n_clusters


def check_choice(name: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    if not any(value is option or (isinstance(value, str) and value == option) for option in allowed):
        raise InvalidValue(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}.")
    return value


def check_init(init: Any, n_clusters: int, n_features: int, private: tuple[str, ...] = ()) -> str | NDArray[np.float64]:
    """The name of a start, or public starting centres. `private`: names of starts that spend budget, where there are any."""
    if isinstance(init, str):
        return str(check_choice("init", init, (*INITS, *private)))
    start = numbers_of("init", init)
    if start.shape != (n_clusters, n_features) or not np.isfinite(start).all():
        raise InvalidValue(
            f"init must be one of {', '.join(map(repr, INITS))}, or {n_clusters} public centres with {n_features} finite "
            "features each. Centres picked from the rows are not public."
        )
    return start
