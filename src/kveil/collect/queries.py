"""What devices are asked, in public words: queries of a round, and what a protocol of several rounds is.

A round manifest carries exactly these queries. Floats are single precision here already, so that a device and the collector
hold the same numbers. A protocol is a pure function of its terms, a public seed and the answers of each round: whoever replays
it, from storage or in a simulation, gets the same queries.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Integral
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import Floats, Integers
from kveil.errors import InvalidValue
from kveil.partition.lsh import Buckets
from kveil.partition.public_map import DEEPEST, PublicMap

Floats32 = NDArray[np.float32]
Keys = NDArray[np.uint64]
Kind = Literal["olh", "grr", "hrr", "vec"]
KeyRule = Literal["cell", "nearest", "product", "bucket"]

MOST_QUERIES, MOST_CENTRES, MOST_CELLS, MOST_VALUES = 4096, 4096, 2**20, 2**16
MOST_PEOPLE = 2**31  # integer sums of codewords and their squares then stay below 2**63
MOST_COLUMNS = 2**16 - 2  # a codeword has at most 2**16 numbers, one of them for counting
MOST_KEYS = 2**DEEPEST
LARGEST = 2.0**40  # of any published number; a device's arithmetic then stays finite
SHARE_OF_POINT, SHARE_OF_COUNT = 0.8, 0.2  # of the squared length of a report that carries a point and a one for counting


@dataclass(frozen=True)
class Fold:
    """A key too large to be looked for, asked for in pieces: the bin it is hashed to, of a power of 2, and one of its bits."""

    seed: int
    bins: int
    bit: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Query:
    """One question. A device forms a key of its point, perhaps a vector too, and reports one of `M` values, `kappa` preferred.

    kind: "olh" (the key, hashed), "grr" (the key itself), "hrr" (a Hadamard bit of it), "vec" (a vector, its sign hashed from the
        key; the values are codewords).
    key_rule: "cell": the cell of `maps[0]` at `depth`. "nearest": the nearest of `centres[0]`, in the image of `maps[0]` if there
        is one. "product": nearest in both images, j1 * len(centres[1]) + j2. "bucket": `buckets`, and 0 for a point in none.
    rho: for vectors but of buckets: the report carries (point - base)/rho, clipped to the unit ball, and a one for counting. The
        base is the nearest centre where centres lie among the points, the joint lift of a product's two centres, and else 0.
        A bucket's vector is the offset from the middle of its large cell instead, without a one.
    fold: the key is 2 * bin + bit of the key by the rule.
    """

    id: int
    kind: Kind
    M: int
    kappa: int
    key_rule: KeyRule
    weight: int = 1
    maps: tuple[PublicMap, ...] = ()
    depth: int | None = None
    centres: tuple[Floats32, ...] = ()
    lift: Floats32 | None = None
    rho: float | None = None
    buckets: Buckets | None = None
    fold: Fold | None = None

    @property
    def n_keys(self) -> int:
        """Keys are 0 .. n_keys-1."""
        return self.n_whole_keys if self.fold is None else 2 * self.fold.bins

    @property
    def n_whole_keys(self) -> int:
        """The same before folding."""
        if self.key_rule == "cell":
            return 1 << (self.depth or 0)
        if self.key_rule == "bucket":
            assert self.buckets is not None
            return self.buckets.n_keys
        return int(np.prod([len(some) for some in self.centres]))

    @property
    def key_bits(self) -> int:
        """Bits of a key: the Hadamard matrix has 2**key_bits rows."""
        return (self.n_keys - 1).bit_length()

    def length(self, n_columns: int) -> int:
        """Numbers in the vector of a "vec" query."""
        if self.buckets is not None:
            return self.buckets.map.n_axes
        return n_columns + 1


def whole(name: str, value: Any, low: int, high: int) -> int:
    """A public number that somebody typed, if it is one."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= int(value) <= high:
        raise InvalidValue(f"{name} must be a whole number from {low} to {high}, got {value!r}.")
    return int(value)


@dataclass(frozen=True)
class Terms:
    """What is fixed and public before a campaign: people, centres, columns, and epsilon of each person."""

    n: int
    k: int
    n_columns: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        checked = {
            "n": whole("n, the number of people,", self.n, 1, MOST_PEOPLE),
            "k": whole("k, the number of clusters,", self.k, 1, MOST_CENTRES),
            "n_columns": whole("the number of columns", self.n_columns, 1, MOST_COLUMNS),
        }
        vars(self).update(checked)  # integers of numpy would overflow, and no manifest could hold them
        if self.epsilon <= 0:
            raise InvalidValue("epsilon of a campaign must be above 0: it is what one person's report may give away.")


@dataclass(frozen=True)
class Round:
    """The queries of one round, and the few numbers that later rounds need; both go into storage, both are public.

    state: JSON of numbers, strings and lists.
    """

    number: int
    queries: tuple[Query, ...]
    state: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a campaign found. Centres are relative to the domain: the unit ball around 0.

    counts, count_sd: people of each centre and the standard deviation of that; None where no report tells.
    sd: standard deviation of one coordinate of each centre, or None. padded: how many centres are mere filling.
    """

    centres: Floats
    counts: Floats | None = None
    count_sd: float | None = None
    sd: Floats | None = None
    padded: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Sums:
    """Integer statistics of a "vec" query: signed sums of codewords a key, and sums of their squares, shifted right by 16."""

    sums: Integers  # (keys, columns)
    squares: Integers  # (columns,)


class Answers(Protocol):
    """The reports of a closed round, decoded on demand. Statistics are integers: order, blocks and engines do not change them."""

    def received(self, query: Query) -> int:
        """How many people answered a query."""

    def support(self, query: Query, keys: Keys) -> Integers:
        """The statistic of "olh", "grr" and "hrr" for each key; `oracles.estimates` turns it into people."""

    def sums(self, query: Query, keys: Keys, start: int = 0) -> Sums:
        """The statistic of "vec" for each key, from column `start` on."""


class LocalProtocol(Protocol):
    """Rounds of queries that end in centres. Every person answers in one round, with all of epsilon.

    shares: of people a round; their number is the number of rounds. version: protocols that never changed have the first.
    """

    name: str
    terms: Terms
    version: int
    shares: tuple[float, ...]

    def first(self) -> Round:
        """The first round, from public terms alone."""

    def next(self, done: Round, answers: Answers, seed: bytes) -> Round | Outcome:
        """What follows a closed round. `seed` is public: a hash of that round's manifest."""


def public_generator(*parts: bytes | str | int) -> np.random.Generator:
    """A generator of public choices that anyone can repeat from the same parts. Never for noise."""
    text = b"|".join(part if isinstance(part, bytes) else str(part).encode() for part in parts)
    return np.random.default_rng(np.frombuffer(hashlib.sha256(text).digest(), dtype="<u4"))
