"""How large a message may be, by its kind and direction: from public things, and by counting bytes, before anything is parsed.

Parsed, a message of 64 MB can take 3 GB: what costs is not its bytes but its values. So what is no number is kept short, and
numbers and lists are counted, which takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from kveil.federate.layout import MOST_COLUMNS, Layout
from kveil.federate.plan import MOST_CLUSTERS
from kveil.federate.policy import Policy
from kveil.federate.sealed import sealed_size
from kveil.federate.wire import LARGEST, MOST_NUMBERS, NUMBER_SIZE, WireError, is_plain

SMALL = 2**17  # bytes; what is shorter is parsed as it is: whatever it holds takes a few megabytes
NAME_SIZE = 67  # bytes of a party's name in a list
STEP = 2**20  # bytes that are looked at in one go


@dataclass(frozen=True)
class Limit:
    """The most that a message may hold: numbers, lists of them, and bytes of everything else.

    has_words: whether there is text of somebody's choice in it, such as names of columns. Other messages have no blanks, no
    escapes and no letters beyond ASCII.
    """

    numbers: int = 0
    lists: int = 0
    text: int = SMALL
    has_words: bool = False

    @property
    def size(self) -> int:
        """Bytes."""
        return min(LARGEST, self.text + NUMBER_SIZE * self.numbers + 3 * self.lists)

    def check(self, data: bytes) -> None:
        """Refuse a message that holds more."""
        if len(data) > SMALL and not (
            len(data) <= self.size
            and data.count(b",") <= self.numbers + self.lists + SMALL // NAME_SIZE
            and data.count(b"[") <= self.lists + SMALL // NAME_SIZE
            and _text(data) <= self.text
            and (self.has_words or is_plain(data))
        ):
            raise WireError("a message is larger than what may be said at this place.")


SHORT = Limit()
HELLO = Limit(
    4 * MOST_COLUMNS, MOST_COLUMNS, 2**22, has_words=True
)  # of a reply: before it nobody knows how many columns there are


def of_request(kind: str | None, layout: Layout, policy: Policy) -> Limit:
    """What a coordinator may send to a party that has this domain and policy."""
    cells, k, d = policy.max_cells, min(policy.max_clusters, MOST_CLUSTERS), layout.domain.n_columns
    numbers, lists, names = {
        "cells": (cells, 1, 0),
        "sums": (2 * cells, cells, 0),
        **dict.fromkeys(("spread", "stats", "total", "pick"), (k * (d + 1), k, 0)),
        **dict.fromkeys(("seed", "update", "first"), (k * (sealed_size(d) + 1), k, k)),
    }.get(kind or "", (0, 0, 0))
    return Limit(min(numbers, MOST_NUMBERS), min(lists, MOST_NUMBERS), SMALL + NAME_SIZE * names)


def largest_request(layout: Layout, policy: Policy) -> int:
    """Bytes of the longest message that a party reads."""
    return max(of_request(kind, layout, policy).size for kind in ("sums", "stats", "first"))


def of_reply(shapes: Sequence[tuple[int, ...]]) -> Limit:
    """What a party may answer to a question for arrays of these shapes."""
    return Limit(sum(map(prod, shapes)), sum(prod(shape[:-1]) for shape in shapes))


def _text(data: bytes) -> int:
    """How many bytes are not of numbers and lists of them."""
    return sum(len(data[start : start + STEP].translate(None, b"0123456789-,[]")) for start in range(0, len(data), STEP))
