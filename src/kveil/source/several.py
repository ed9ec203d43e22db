"""Several files as one table: the rows of the first, then those of the second, and so on, always in this order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kveil.errors import SourceError
from kveil.source.base import RawRows, part_sizes


class SeveralReader:
    """Reads files that have the same columns. A part is a part of one of them."""

    is_sparse = False

    def __init__(self, readers: Sequence[Any]) -> None:
        first = readers[0]
        self.choice, self.names, self.n_columns, self.width = first.choice, first.names, first.n_columns, first.width
        self._readers = readers

    def parts(self, rows: int) -> Sequence[tuple[int, Any]]:
        return [(number, part) for number, reader in enumerate(self._readers) for part in reader.parts(rows)]

    def sizes(self, parts: Sequence[tuple[int, Any]]) -> Sequence[int]:
        return [part_sizes(self._readers[number], [part])[0] for number, part in parts]

    def blocks(self, part: tuple[int, Any], rows: int, with_ids: bool) -> Iterator[RawRows]:
        number, inner = part
        return iter(self._readers[number].blocks(inner, rows, with_ids))


def joined(readers: Sequence[Any]) -> Any:
    """One reader of all, or a refusal by their schemas: the chosen columns, and the type of ids, must be the same."""
    first = readers[0]
    if len(readers) == 1:
        return first
    if any(reader.choice != first.choice or reader.n_columns != first.n_columns for reader in readers):
        raise SourceError(
            "the files have different columns, or ids of different types. As one table all must have the same columns, in the "
            "same order. Choose those that all have with columns=[...]."
        )
    return SeveralReader(readers)
