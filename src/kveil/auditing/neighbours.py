"""Tiny public tables that differ in one person, made by rules: where a private method is most likely to give itself away."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from kveil.arrays import Floats
from kveil.errors import InvalidValue

Relation = Literal["add-remove", "replace-one"]


def as_it_is(table: Any) -> Any:
    return table


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Two tables that differ in one person.

    name: short, for reports. rule: what makes the pair hurt, in one sentence.
    one, other: the tables. relation: "add-remove" or "replace-one".
    arguments: what `fit` is passed besides the table.
    shown: how a table is handed to `fit`, for example lambda rows: kveil.read(rows, person=0, max_rows_per_person=3).

    >>> pair = Neighbours("empty against one row", np.empty((0, 2)), np.zeros((1, 2)))
    >>> pair.relation
    'add-remove'
    """

    name: str
    one: Any
    other: Any
    relation: Relation = "add-remove"
    rule: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    shown: Callable[[Any], Any] = as_it_is

    def tables(self) -> tuple[Any, Any]:
        """Both tables as `fit` is given them."""
        return self.shown(self.one), self.shown(self.other)


def worst_cases(
    low: Any, high: Any, relation: Relation = "add-remove", *, many: int = 8, crowd: int = 256
) -> list[Neighbours]:  # fmt: skip
    """Neighbours in a public box, by rules.

    low, high: of every column. many, crowd: how many equal rows a heavy place has, and a crowd.

    >>> [pair.name for pair in worst_cases([-1], [1])][:3]
    ['empty against one row', 'empty against the middle', 'outlier']
    """
    box = np.atleast_1d(np.asarray(low, dtype=float)), np.atleast_1d(np.asarray(high, dtype=float))
    if box[0].shape != box[1].shape or box[0].ndim != 1 or not (box[0] < box[1]).all():
        raise InvalidValue("low and high must have one number per column, with low below high.")
    if relation == "add-remove":
        return list(_added(*box, many, crowd))
    if relation == "replace-one":
        return list(_replaced(*box, many, crowd))
    raise InvalidValue('relation must be "add-remove" or "replace-one".')


def of_people(pairs: Sequence[Neighbours], most: int, shown: Callable[[Any], Any]) -> list[Neighbours]:
    """The same pairs with a column before the others that says whose row it is. A person with `most` + 1 rows comes or goes, of
    which `most` may count. `shown` hands a table to `fit`, such as lambda rows: kveil.read(rows, person=0, ...).
    """
    found = []
    for pair in pairs:
        others, person = pair.one, np.repeat(pair.other[-1:], most + 1, axis=0)
        rows = np.column_stack([np.arange(len(others)) + 1.0, others])
        more = np.vstack([rows, np.column_stack([np.zeros(most + 1), person])])
        found.append(Neighbours(f"{pair.name}, a person with many rows", rows, more, "add-remove", pair.rule, shown=shown))
    return found


def _added(low: Floats, high: Floats, many: int, crowd: int) -> Iterator[Neighbours]:
    middle, none, heavy = (low + high) / 2, np.empty((0, len(low))), np.tile(low, (many, 1))
    for name, others, row, rule in (
        ("empty against one row", none, high, "nothing hides the only row there is"),
        ("empty against the middle", none, middle, "a row that moves no sum shows in counts alone"),
        ("outlier", heavy, high, "all rows lie in one corner but one, which lies in the opposite one"),
        ("outlier in a crowd", np.tile(middle, (crowd, 1)), high, "so many rows that noisy sums can be read off the centres"),
        ("duplicates", heavy, low, "one more of many equal rows moves every count and sum in one direction"),
        ("empty cluster", np.vstack([heavy, np.tile(middle, (many, 1))]), high, "a cluster has one row or none"),
        ("edge of the clip", heavy, 1e6 * (high - low) + high, "a row far outside must count as if it lay at the edge"),
        ("threshold", np.vstack([heavy, high[None]]), high, "a place has one row or two, and a threshold may lie between"),
    ):
        yield Neighbours(name, others, np.vstack([others, row]), "add-remove", rule)


def _replaced(low: Floats, high: Floats, many: int, crowd: int) -> Iterator[Neighbours]:
    middle, heavy = (low + high) / 2, np.tile(low, (many, 1))
    for name, others, before, after, rule in (
        ("one row at either end", heavy[:0], low, high, "nothing hides the only row there is"),
        ("middle or edge", heavy[:0], middle, high, "a row that moves no sum, or moves it the most"),
        ("outlier", heavy, low, high, "all rows lie in one corner, or one lies in the opposite one"),
        ("outlier in a crowd", np.tile(middle, (crowd, 1)), low, high, "noisy sums can be read off the centres"),
        ("duplicates", np.vstack([heavy, np.tile(high, (many, 1))]), low, high, "one row goes from one heavy place to another"),
        ("edge of the clip", heavy, low, 1e6 * (high - low) + high, "a row far outside must count as if it lay at the edge"),
        ("threshold", np.vstack([heavy, high[None]]), low, high, "a place has one row or two, and a threshold may lie between"),
    ):
        yield Neighbours(name, np.vstack([others, before]), np.vstack([others, after]), "replace-one", rule)
