"""Rows made ready, each by itself: levels become columns, missing cells are filled or their rows left out, weights repeat rows.

What a row becomes depends on that row and on public options alone. So one person's rows decide about nobody else's, and all that
is proved of rows afterwards holds for the rows before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kveil.arrays import Floats
from kveil.errors import InvalidValue
from kveil.source.base import Block, RawRows, Reader, part_sizes
from kveil.source.intake import Choice
from kveil.source.options import Options


class Preparation(NamedTuple):
    """How the columns that a reader reads become those of a source.

    levels: for each column read, how many levels it has; 0 for numbers.  high: what a column of a level holds, or 0.
    fill: for each column read, what a missing cell becomes (a number, or the number of a level), or NaN: it stays missing.
    drops: whether a row with a missing cell is left out.  most: of the copies of a row, if the last column is its weight.
    """

    levels: tuple[int, ...]
    high: float
    fill: tuple[float, ...]
    drops: bool
    most: int | None = None

    @property
    def is_needed(self) -> bool:
        return any(self.levels) or self.drops or self.most is not None or not np.isnan(self.fill).all()

    @property
    def n_columns(self) -> int:
        return sum(max(1, n) for n in self.levels)

    def pieces(self, block: RawRows, rows: int) -> Iterator[RawRows]:
        """Rows of a block made ready, with the ids of their people, at most `rows` at a time: copies may be many."""
        values, people = np.asarray(block.values, dtype=np.float64), block.ids
        values, weights = (values, None) if self.most is None else (values[:, :-1], values[:, -1])
        missing = ~np.isfinite(values)
        fill = np.array(self.fill)
        values = np.where(missing & ~np.isnan(fill), fill, values)
        copies = np.ones(len(values), dtype=np.int64) if weights is None else whole_weights(weights, self.most or 1)
        if self.drops:
            copies[missing.any(axis=1)] = 0
        which = np.repeat(np.arange(len(values)), copies)
        for start in range(0, max(1, len(which)), rows):
            some = which[start : start + rows]
            yield RawRows(self._spread(values[some]), None if people is None else people.take(pa.array(some)), block.read)

    def _spread(self, values: Floats) -> Floats:
        """Columns of categories as one column per level: `high` in that of the row's level, 0 in the others. What is no level,
        or stays missing, is the middle of all."""
        if not any(self.levels):
            return values
        columns: list[Floats] = []
        for column, n in zip(values.T, self.levels, strict=True):
            if not n:
                columns.append(column)
                continue
            with np.errstate(all="ignore"):
                columns += [np.where(column == level, self.high, np.where(column >= 0, 0.0, self.high / n)) for level in range(n)]
        return np.column_stack(columns)


class PreparedReader:
    """A `Reader` whose rows are made ready as they are read."""

    def __init__(self, reader: Reader, preparation: Preparation, names: tuple[str, ...] | None) -> None:
        self.names, self.n_columns, self.is_sparse = names, preparation.n_columns, False
        self.width = max(self.n_columns, reader.width)
        self._reader, self._preparation = reader, preparation

    def parts(self, rows: int) -> Sequence[Any]:
        return self._reader.parts(rows)

    def sizes(self, parts: Sequence[Any]) -> Sequence[int]:
        return part_sizes(self._reader, parts)

    def blocks(self, part: Any, rows: int, with_ids: bool) -> Iterator[RawRows]:
        for block in self._reader.blocks(part, rows, with_ids):
            yield from self._preparation.pieces(block, rows)


class Plan(NamedTuple):
    """What a source says of its columns, and how its readers are wrapped."""

    preparation: Preparation
    names: tuple[str, ...] | None
    blocks: tuple[Block, ...]

    @property
    def n_columns(self) -> int:
        return self.preparation.n_columns

    def wrap(self, reader: Reader) -> Reader:
        return PreparedReader(reader, self.preparation, self.names) if self.preparation.is_needed else reader


def plan(choice: Choice, options: Options) -> Plan:
    """What becomes of the chosen columns, from the schema and the options alone."""
    features = choice.features if options.weight is None else choice.features[:-1]
    high = options.category_weight / sqrt(2)
    levels = tuple(len(choice.levels[name].of) if name in choice.levels else 0 for name in features)
    preparation = Preparation(
        levels, high, _fill(features, choice, options.missing), options.missing == "drop",
        None if options.weight is None else options.max_rows_per_person,
    )  # fmt: skip
    blocks, names, at = [], [], 0
    for name, n in zip(features, levels, strict=True):
        if n:
            called = choice.levels[name].names
            blocks.append(Block(str(name), called, at, high))
            names += [f"{name}={level}" for level in called]
        else:
            names.append(name)
        at += max(1, n)
    if len(set(names)) < len(names):
        raise InvalidValue("a column is called as a level of a category would be, such as sex=female. Rename it.")
    return Plan(preparation, None if choice.names is None else tuple(names), tuple(blocks))


def whole_weights(weights: Floats, most: int) -> Any:
    """How often a row counts: its weight, rounded down, at most `most`; not at all if that is missing or below 1."""
    with np.errstate(all="ignore"):
        return np.floor(np.clip(np.where(np.isnan(weights), 0.0, weights), 0.0, float(most))).astype(np.int64)


def _fill(features: Sequence[Any], choice: Choice, missing: Any) -> tuple[float, ...]:
    if not isinstance(missing, Mapping):
        return (np.nan,) * len(features)
    unknown = [name for name in missing if name not in features]
    if unknown:
        raise InvalidValue(f"missing names columns that are not in use: {', '.join(map(repr, unknown[:20]))}.")
    return tuple(_value(name, choice, missing[name]) if name in missing else np.nan for name in features)


def _value(name: Any, choice: Choice, value: Any) -> float:
    if name not in choice.levels:
        if isinstance(value, str):
            raise InvalidValue(f"missing must give a number for {name!r}, which is a column of numbers.")
        return float(value)
    levels = choice.levels[name].of
    if value not in levels:
        raise InvalidValue(f"missing must give one of the levels of {name!r}, as categories lists them.")
    return float(levels.index(value))
