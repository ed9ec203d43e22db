"""A stream as it is seen: what is kept of its rows, the names of its columns, and which batches were taken."""

from __future__ import annotations

from dataclasses import dataclass, field

from kveil.errors import InvalidValue
from kveil.source import Source
from kveil.space.euclidean import check_finite
from kveil.stream.journal import Journal
from kveil.stream.synopsis import Synopsis
from kveil.stream.table import LeafTable


@dataclass
class Flow:
    """Rows go in, a batch whole or not at all; a synopsis, or the table of a private stream, is what is kept of them."""

    kept: Synopsis | LeafTable
    names: tuple[str, ...] | None
    journal: Journal = field(default_factory=Journal)

    @property
    def is_private(self) -> bool:
        return isinstance(self.kept, LeafTable)

    @property
    def is_empty(self) -> bool:
        """Whether a stream without privacy has no rows yet; of a private one nothing tells."""
        return isinstance(self.kept, Synopsis) and not len(self.kept)

    @property
    def n_columns(self) -> int:
        return self.kept.domain.n_columns if isinstance(self.kept, LeafTable) else self.kept.n_columns

    def take(self, batch: Source, source: str | None, seq: int | None, *, is_held: bool = False) -> None:
        """Add a batch, the number `seq` of its source, if that is the one to come.

        is_held: its rows are in memory, so all of them can be checked before the first one goes in; else work on a copy.
        """
        source, seq = self.journal.check(source, seq)
        if isinstance(self.kept, LeafTable):
            self.kept.update(batch)
        else:
            blocks = (check_finite(rows) for rows in batch.raw_blocks())
            seen = self.kept if is_held else self.kept.copy()
            for rows in list(blocks) if is_held else blocks:
                seen.update(rows)
            self.kept = seen
        self.journal.note(source, seq)

    def merge(self, other: Flow) -> None:
        """Add all batches of another stream. `other` stays as it is."""
        if self.is_private != other.is_private or self.names != other.names:
            raise InvalidValue(
                "streams can be merged if both are private or neither is, and if their columns have the same names."
            )
        both = self.journal.united(other.journal)
        self.kept.merge(other.kept)  # type: ignore[arg-type]  # of one kind, as checked above
        self.journal = both
