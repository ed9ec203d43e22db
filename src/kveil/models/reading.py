"""What the columns of a source are to a model: which have bounds of their own, and what a release says of how rows were read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kveil.errors import InvalidValue
from kveil.kernel.grid import Ball, Box
from kveil.source.base import Block
from kveil.space.bounds import check_domain
from kveil.space.column_box import ColumnBox

Blocks = tuple[Block, ...]


def domain_of_columns(
    given: tuple[Any, Any, Any], n_features: int, bits: int, names: tuple[str, ...] | None, blocks: Blocks, *, fills: bool
) -> Box | Ball:
    """The public domain: bounds, center and radius as given for columns of numbers, and the levels of categories beside them.

    fills: whether a missing cell has a value of its own, at first the middle of its column.
    """
    numbers = np.ones(n_features, dtype=np.bool_)
    for block in blocks:
        numbers[block.first : block.stop] = False
    own = None if names is None else tuple(name for name, is_number in zip(names, numbers, strict=True) if is_number)
    if not blocks and not fills:
        return check_domain(*given, n_features, bits, names)
    low, high = np.zeros(n_features), np.empty(n_features)
    for block in blocks:
        high[block.first : block.stop] = block.high
    if numbers.any():
        domain = check_domain(*given, int(numbers.sum()), bits, own)
        if isinstance(domain, Ball):
            raise InvalidValue(
                "categories, and cells filled with means, need bounds: a ball is about columns that are all alike."
            )
        low[numbers], high[numbers] = domain.lower, domain.upper
    elif any(value is not None for value in given):
        raise InvalidValue(
            "all columns are categories, and levels have bounds of their own. Leave out bounds, center and radius."
        )
    return ColumnBox(low, high, bits, ~numbers, (low + high) / 2 if fills else None)


def names_beside(names: tuple[str, ...], blocks: Blocks) -> tuple[str, ...]:
    """Names of all columns, from those of the columns of numbers, in order."""
    found = list(names)
    for block in blocks:
        found[block.first : block.first] = [f"{block.column}={level}" for level in block.levels]
    return tuple(found)


def told_of_reading(blocks: Blocks, missing: Any) -> dict[str, Any]:
    """How rows were read, as parameters of a release; nothing if they were read as they are."""
    told: dict[str, Any] = {}
    if blocks:
        told["categories"] = [{"column": block.column, "levels": list(block.levels), "first": block.first} for block in blocks]
    if isinstance(missing, Mapping):
        told["missing"] = {str(column): value for column, value in missing.items()}
    elif missing != "middle":
        told["missing"] = missing
    return told


def check_unknown(given: Mapping[str, Any]) -> None:
    """Refuse what `fit` does not take, and say why it takes no weights."""
    if given.get("sample_weight") is not None:
        raise InvalidValue(
            "sample_weight has no public bound, and a row of weight 1000 would count a thousand times where noise hides one. Put "
            "whole weights into a column: kveil.read(X, person=..., max_rows_per_person=5, weight=...) bounds what each person "
            "weighs, and noise is made for that."
        )
    unknown = sorted(set(given) - {"sample_weight"})
    if unknown:
        raise TypeError(f"fit() got an unexpected keyword argument {unknown[0]!r}")
