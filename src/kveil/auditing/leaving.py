"""Everything that leaves after a fit, as numbers with names: an attacker sees all of it.

Attributes of the fitted object, private ones too since a pickle holds them; the release; warnings; what was raised. Parameters
that the caller passed are public and left out.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from numbers import Real
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Self
from zlib import crc32

import numpy as np
import scipy.sparse as sp

from kveil.arrays import Floats

WHOLE = 128  # entries of an array that are looked at one by one; of a larger one its sums and quantiles
DEEP = 8
HUGE = 1e300
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")
PUBLIC = (type, ModuleType, FunctionType, MethodType, BuiltinFunctionType)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Numbers that left, one line per fit. NaN: not there in this fit."""

    names: tuple[str, ...]
    values: Floats

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def of(cls, fits: Sequence[Mapping[str, float]]) -> Self:
        names = tuple(dict.fromkeys(chain.from_iterable(fits)))
        place = {name: column for column, name in enumerate(names)}
        values = np.full((len(fits), len(names)), np.nan)
        for row, fit in zip(values, fits, strict=True):
            row[[place[name] for name in fit]] = list(fit.values())
        return cls(names, values)

    @classmethod
    def joined(cls, parts: Sequence[Outcomes]) -> Self:
        names = tuple(dict.fromkeys(chain.from_iterable(part.names for part in parts)))
        return cls(names, np.vstack([part.on(names) for part in parts]) if parts else np.empty((0, 0)))

    def on(self, names: Sequence[str]) -> Floats:
        """The columns of these names, in this order."""
        place = {name: column for column, name in enumerate(self.names)}
        found = np.full((len(self.values), len(names)), np.nan)
        there = [(to, place[name]) for to, name in enumerate(names) if name in place]
        if there:
            to, at = map(list, zip(*there, strict=True))
            found[:, to] = self.values[:, at]
        return found

    @property
    def n_raised(self) -> int:
        """How many fits ended with an error."""
        return int((self.on(["raised"]) == 1).sum())


def observe(run: Callable[[Any], Any], table: Any) -> dict[str, float]:
    """Run once, and look at everything that comes out: also warnings and errors, of which the text counts."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)  # comes when garbage is collected, which may be that of another fit
        try:
            found = leaves(run(table))
        except Exception as error:  # of whatever kind: it is something that leaves
            found = {"raised": 1.0, **dict(_walk("raised.kind", f"{type(error).__name__}: {error}", set(), 0))}
    found["warnings"] = float(len(said))
    for number, warning in enumerate(said[:4]):
        found.update(_walk(f"warnings[{number}]", f"{warning.category.__name__}: {warning.message}", set(), 0))
    return found


def leaves(outcome: Any) -> dict[str, float]:
    """Everything in an object as numbers, by where it stands.

    >>> leaves({"centers": np.array([2.0, 1.0])})["['centers'][0]"]
    2.0
    """
    return {name if name[:1] in (".", "[") else f"value{name}": number for name, number in _walk("", outcome, set(), 0)}


def _walk(name: str, value: Any, seen: set[int], depth: int) -> Iterator[tuple[str, float]]:
    if value is None or isinstance(value, int | float | np.bool_):
        yield name, _finite(value)
    elif isinstance(value, str):
        yield f"{name} as text", float(crc32(value.encode()) % 2**20)
        if " " in value:
            yield from ((f"{name} number {i}", _finite(float(part))) for i, part in enumerate(NUMBER.findall(value)[:16]))
    elif isinstance(value, bytes | bytearray):
        yield f"{name} as bytes", float(crc32(value) % 2**20)
        yield f"{name} length", float(len(value))
    elif isinstance(value, np.ndarray) or sp.issparse(value):
        yield from _array(name, value)
    elif isinstance(value, Real):
        yield name, _finite(value)
    elif depth < DEEP and id(value) not in seen and not isinstance(value, PUBLIC):
        seen.add(id(value))
        for key, part in _parts(value):
            yield from _walk(f"{name}{key}", part, seen, depth + 1)


def _finite(value: Any) -> float:
    number = 0.0 if value is None else float(value)
    return min(max(number, -HUGE), HUGE) if number == number else -HUGE  # no number is a number of its own


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", part) for key, part in value.items())
    elif isinstance(value, Sequence | Set):
        listed = sorted(value, key=repr) if isinstance(value, Set) else list(value)
        yield " length", len(listed)
        if len(listed) > WHOLE and all(isinstance(part, Real) for part in listed):
            yield "", np.asarray(listed, dtype=float)
        else:
            yield from ((f"[{place}]", part) for place, part in enumerate(listed[:WHOLE]))
    else:
        state = getattr(value, "__dict__", None)
        slots = {key: getattr(value, key) for key in getattr(type(value), "__slots__", ()) if hasattr(value, key)}
        asked = value.get_params(deep=False) if hasattr(value, "get_params") and not isinstance(value, type) else {}
        yield from ((f".{key}", part) for key, part in {**slots, **(state or {})}.items() if key not in asked)
        if state is None and not slots:
            yield " as text", str(value)


def _array(name: str, value: Any) -> Iterator[tuple[str, float]]:
    if sp.issparse(value):
        yield f"{name} entries", float(value.nnz)
        value = value.toarray() if np.prod(value.shape) <= 2**16 else value.data
    yield from ((f"{name} shape[{axis}]", float(size)) for axis, size in enumerate(value.shape))
    if value.dtype.kind not in "biuf":
        yield f"{name} as text", float(crc32(repr(value.tolist()[:WHOLE]).encode()) % 2**20)
        return
    flat = np.nan_to_num(value.astype(np.float64), nan=-HUGE, posinf=HUGE, neginf=-HUGE)
    if not flat.size:
        return
    yield f"{name} sum", float(np.clip(flat, -1e250, 1e250).sum())
    yield from ((f"{name} least", float(flat.min())), (f"{name} most", float(flat.max())))
    if flat.size > WHOLE:
        yield from ((f"{name} quantile {q:g}", float(x)) for q, x in zip(QUANTILES, np.quantile(flat, QUANTILES), strict=True))
        flat = flat.reshape(len(flat), -1)[:WHOLE] if flat.ndim and len(flat) <= WHOLE else flat.ravel()[:WHOLE]
        yield from ((f"{name} row {place} sum", x) for place, x in enumerate(np.atleast_2d(flat).sum(axis=-1).tolist()))
        flat = flat.ravel()[:WHOLE]
    yield from ((f"{name}[{place}]", x) for place, x in enumerate(flat.ravel().tolist()))
    if flat.ndim and len(flat) > 1:
        rows = flat.reshape(len(flat), -1)
        order = rows[np.lexsort(rows.T[::-1])]
        yield from ((f"{name} sorted[{place}]", x) for place, x in enumerate(order.ravel().tolist()))


QUANTILES = np.array([0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0])
