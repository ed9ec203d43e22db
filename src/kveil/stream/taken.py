"""Which batches were taken, by source and number, so that none counts twice. All of it is public."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, Self

from kveil.errors import InvalidType, InvalidValue

Interval = tuple[int, int]  # first and last number, both included

LONGEST, LARGEST = 200, 2**62


class Taken:
    """For every source the numbers of its batches that were taken, as intervals.

    A row that is counted twice moves a summary twice as far as its noise hides, so a private stream refuses a batch that it
    has taken; where batches are delivered at least once, this makes it exactly once.
    """

    def __init__(self) -> None:
        self.own = secrets.token_hex(8)  # the name of a stream whose caller gives none: no two streams share it
        self._taken: dict[str, list[Interval]] = {}

    def taken(self) -> dict[str, tuple[Interval, ...]]:
        return {source: tuple(intervals) for source, intervals in sorted(self._taken.items())}

    def check(self, source: str | None, seq: int | None) -> tuple[str, int]:
        """The batch that may come now: the successor of the last one of its source, or any number of a new source."""
        source = self.own if source is None else source
        check_label(source, seq)
        if source not in self._taken:
            return source, 0 if seq is None else seq
        following = self._taken[source][-1][1] + 1
        if seq is not None and seq != following:
            raise InvalidValue(
                f'batch {seq} of "{source}" cannot come now: the next one is {following}. A batch that counts twice breaks the '
                "guarantee, and one that is skipped would be lost. Nothing was added; send the next one."
            )
        return source, following

    def has(self, source: str | None, seq: int) -> bool:
        """Whether this batch was taken."""
        return any(first <= seq <= last for first, last in self._taken.get(self.own if source is None else source, ()))

    def noted(self, source: str, seq: int) -> Self:
        """The same with one batch more, which `check` let through."""
        more = type(self)()
        more.own, more._taken = self.own, {**self._taken, source: _joined([*self._taken.get(source, ()), (seq, seq)])}
        return more

    def united(self, other: Taken) -> Self:
        """The batches of both; refused if one of them is in both."""
        both = type(self)()
        both.own = self.own
        for source in {**self._taken, **other._taken}:
            both._taken[source] = _joined(sorted([*self._taken.get(source, ()), *other._taken.get(source, ())]))
        return both

    def to_plain(self) -> dict[str, Any]:
        return {"own": self.own, "taken": {source: [list(pair) for pair in pairs] for source, pairs in self.taken().items()}}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """What `to_plain` gave; anything else raises."""
        made = cls()
        made.own, _ = made.check(plain["own"], None)
        for source, pairs in plain["taken"].items():
            for first, last in pairs:
                cls().check(source, first)  # a name and a number; merged streams may have gaps between theirs
                if not isinstance(last, int) or not first <= last < LARGEST:
                    raise InvalidValue("this is no journal of batches.")
                made._taken[source] = _joined([*made._taken.get(source, ()), (first, last)])
        return made


def check_label(source: Any, seq: Any) -> None:
    """Refuse what is no name of a source, or no number of a batch; None stands for either."""
    if source is not None and (not isinstance(source, str) or not 0 < len(source) <= LONGEST):
        raise InvalidType(f"source must be a name of at most {LONGEST} characters.")
    if seq is not None and (isinstance(seq, bool) or not isinstance(seq, int) or not 0 <= seq < LARGEST):
        raise InvalidType("seq, the number of a batch, must be a whole number of at least 0.")


def _joined(intervals: list[Interval]) -> list[Interval]:
    """Ascending intervals with neighbours made one; refused if two overlap."""
    found: list[Interval] = []
    for first, last in intervals:
        if found and first <= found[-1][1]:
            raise InvalidValue(
                "a batch was taken by both streams. Merging them would count its rows twice, which breaks the guarantee. "
                "Nothing was merged; give each source to one stream only."
            )
        if found and first == found[-1][1] + 1:
            found[-1] = (found[-1][0], last)
        else:
            found.append((first, last))
    return found
