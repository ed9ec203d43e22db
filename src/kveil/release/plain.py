"""Public values as JSON holds them: the same after a round trip through a file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kveil.errors import InvalidType, InvalidValue, ReleaseError

DEEPEST = 32


def plain(value: Any, depth: int = 0) -> Any:
    """A copy of `value` made of None, booleans, numbers, strings, lists and dicts; infinity becomes "inf".

    Arrays and tuples become lists. Anything else is refused, and so are paths, which tell about the machine.

    >>> plain({"bounds": (0, np.float64(120.0)), "epsilon": float("inf")})
    {'bounds': [0, 120.0], 'epsilon': 'inf'}
    """
    if depth > DEEPEST:
        raise ReleaseError("a release cannot hold lists or mappings nested this deep. Pass parameters that a person could read.")
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Mapping):
        return {_key(key): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [plain(item, depth + 1) for item in value]
    raise InvalidType(
        f"a release cannot hold a value of type {type(value).__name__}: it is saved as JSON and read anywhere. Use numbers, "
        "strings, None, and lists or mappings of them."
    )


def canonical(value: Any) -> bytes:
    """The one way to write a plain value: sorted keys, no blanks, UTF-8."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _number(value: float) -> float | str:
    if math.isnan(value):
        raise InvalidValue("a release cannot hold NaN as a parameter: JSON has no word for it. Leave the parameter out.")
    return value if math.isfinite(value) else str(value)


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise InvalidType("the keys of a mapping in a release must be strings.")
    return key
