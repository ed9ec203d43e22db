"""Rows that the caller says are public: looked at without noise, refused where they are marked as private."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kveil.arrays import Floats
from kveil.errors import InvalidValue
from kveil.source import Source, read
from kveil.source.base import is_marked_private

MOST_NUMBERS = 2**27  # of a public sample: 1 GB


class PublicRows(NamedTuple):
    """Rows that may be looked at, and the names of their columns, if they have any."""

    rows: Floats
    names: tuple[str, ...] | None

    @property
    def table(self) -> Any:
        """As a fit takes them: bounds may be given by name."""
        return self.rows if self.names is None else pa.table(dict(zip(self.names, self.rows.T, strict=True)))

    def halves(self, rng: np.random.Generator) -> tuple[PublicRows, PublicRows]:
        """Two halves, at random."""
        order = rng.permutation(len(self.rows))
        first, second = (self.rows[np.sort(part)] for part in np.array_split(order, 2))
        return self._replace(rows=first), self._replace(rows=second)


def public_rows(data: Any, most: int, rng: np.random.Generator) -> PublicRows:
    """At most `most` rows of what the caller says is public, drawn at random. What is marked as private is refused unread."""
    source = read(data)
    if is_marked_private(source) or source.unit.kind != "record":
        mark = "it was read with private=True" if is_marked_private(source) else "it has a column of person ids"
        raise InvalidValue(
            f"this source is private: {mark}. Here rows are looked at without noise, and what they show is printed: pass public "
            "rows, such as last year's open table. Choosing parameters on the private rows themselves would publish them."
        )
    if source.is_sparse:
        raise InvalidValue("a public sample must be dense: sparse rows are not supported here. Pass X.toarray(), if it fits.")
    rows, keys = np.empty((0, source.n_columns)), np.empty(0)
    for block in source.raw_blocks():  # public: the caller says so
        rows, keys = np.concatenate([rows, block]), np.concatenate([keys, rng.random(len(block))])
        if len(rows) > most:
            kept = np.sort(np.argpartition(keys, most - 1)[:most])
            rows, keys = rows[kept], keys[kept]
    return PublicRows(rows, source.names)


def check_sample(public: Any, X: Any, source: Source, n_clusters: int) -> Floats:
    """The rows of a public sample for a fit of `source`, which was read from `X`; refused, in words, if they cannot be used."""
    given = read(public)
    if public is X or given is source:
        raise InvalidValue("public is the table of the fit itself. A public sample is other rows, which anyone may see.")
    if given.n_columns != source.n_columns:
        raise InvalidValue(
            f"the public sample has {given.n_columns} columns and the table has {source.n_columns}. Both need the same columns: "
            "read it as the table is read, with kveil.read(...)."
        )
    if given.names is not None and source.names is not None and given.names != source.names:
        raise InvalidValue(
            "the public sample has other columns than the table, or another order. Choose them with columns=[...]."
        )
    rows = public_rows(given, MOST_NUMBERS // max(1, given.n_columns) + 1, np.random.default_rng(0)).rows
    if rows.size > MOST_NUMBERS:
        raise InvalidValue("the public sample does not fit into memory. Pass some of its rows, drawn at random: 20 000 will do.")
    if len(rows) < n_clusters:
        raise InvalidValue(f"the public sample has {len(rows)} row(s), and at least {n_clusters} are needed, one per cluster.")
    if not np.isfinite(rows).all():
        raise InvalidValue("the public sample has missing or infinite values. Fill or drop such rows: they are public.")
    return rows
