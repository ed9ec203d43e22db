"""A stream as it is seen: what is kept of its rows, the names of its columns, and which batches were taken."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from kveil.desk.leaf_table import LeafTable
from kveil.errors import InvalidValue
from kveil.source import Source
from kveil.space.euclidean import check_finite
from kveil.stream.coreset import Coreset
from kveil.stream.taken import Taken


class State(NamedTuple):
    """What was seen, and which batches that was; they change together."""

    kept: Coreset | LeafTable
    journal: Taken


class Flow:
    """Rows go in, a batch whole or not at all; a synopsis, or the table of a private stream, is what is kept of them.

    A row that counts twice, or is in a count but not in its sum, moves a release farther than its noise hides. So a private
    table is never changed once it is kept: another takes its place, together with the journal, in one assignment. An interrupt
    leaves the state before or after a batch, and threads that bring the same batch cannot both add it.

    n_released: in how many releases what was seen has been before. Public.
    """

    def __init__(self, kept: Coreset | LeafTable, names: tuple[str, ...] | None, journal: Taken | None = None) -> None:
        self.state = State(kept, journal or Taken())
        self.names, self.n_released = names, 0
        self._adding = threading.RLock()  # held only to add up tables, not to read rows

    @property
    def kept(self) -> Coreset | LeafTable:
        return self.state.kept

    @property
    def journal(self) -> Taken:
        return self.state.journal

    @property
    def is_private(self) -> bool:
        return isinstance(self.kept, LeafTable)

    @property
    def is_empty(self) -> bool:
        """Whether a stream without privacy has no rows yet; of a private one nothing tells."""
        return isinstance(self.kept, Coreset) and not len(self.kept)

    @property
    def n_columns(self) -> int:
        return self.kept.domain.n_columns if isinstance(self.kept, LeafTable) else self.kept.n_columns

    def take(self, batch: Source, source: str | None, seq: int | None, *, is_held: bool = False) -> None:
        """Add a batch, the number `seq` of its source, if that is the one to come.

        is_held: its rows are in memory, so all of them can be checked before the first one goes in; else work on a copy.
        """
        kept, journal = self.state
        source, place = journal.check(source, seq)
        if isinstance(kept, LeafTable):
            self._add(kept.alone(batch), source, seq)
            return
        blocks = (check_finite(rows) for rows in batch.raw_blocks())
        seen = kept if is_held else kept.copy()
        for rows in list(blocks) if is_held else blocks:
            seen.update(rows)
        self.state = State(seen, journal.noted(source, place))

    def merge(self, other: Flow) -> None:
        """Add all batches of another stream. `other` stays as it is."""
        if self.is_private != other.is_private or self.names != other.names:
            raise InvalidValue(
                "streams can be merged if both are private or neither is, and if their columns have the same names."
            )
        with self._adding:
            (kept, journal), (more, batches) = self.state, other.state
            both = journal.united(batches)
            seen = kept.copy() if isinstance(kept, LeafTable) else kept
            seen.merge(more)  # type: ignore[arg-type]  # of one kind, as checked above
            self.n_released = max(self.n_released, other.n_released)
            self.state = State(seen, both)

    def _add(self, alone: LeafTable, source: str, seq: int | None) -> None:
        """Put the table of a batch, with all that was kept in it, in place of what was kept."""
        with self._adding:
            kept, journal = self.state
            source, place = journal.check(source, seq)  # again: another thread may have brought it meanwhile
            assert isinstance(kept, LeafTable)
            alone.merge(kept)
            self.state = State(alone, journal.noted(source, place))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_adding"}  # a lock stays where it is

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _adding=threading.RLock())
