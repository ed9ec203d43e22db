"""What a round asks of devices: a signed text that names the campaign, its promise, its queries, and the round before.

The header is the same in all rounds and its hash is the campaign's name, so a collector cannot change the promise midway. Every
manifest names the hash of the one before, so there is one past: two would be two chains, signed by the same key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from kveil import canonical
from kveil.collect import report
from kveil.collect.constants import checked, image_axes
from kveil.collect.documents import decode_floats, encode, query_document, read_query
from kveil.collect.protocols import TUNED
from kveil.collect.queries import MOST_CENTRES, MOST_COLUMNS, MOST_PEOPLE, MOST_QUERIES, Query
from kveil.errors import InvalidValue, ManifestError
from kveil.kernel.loss import response_weights
from kveil.partition.lsh import BallLattice
from kveil.signing import SigningKey, is_key, is_signed
from kveil.tuning import Lae as Tuning

Mode = Literal["one_round", "all_rounds"]
SCHEMA = "kveil.local/1"
FIRST = "0" * 64  # what comes before round 1
COHORTS, MOST_ROUNDS, MOST_WITNESSES = 2**16, 64, 32
MOST_NAME, LEAST_RADIUS = 200, 2.0**-40
MOST_DAYS_AHEAD = 365  # that a round may end, counted from the day on which it is published or answered
MOST_NUMBERS = 2**26  # of the codebook that a device makes for a vector: about a second
HEADER = {"cohorts", "domain", "k", "key", "method", "n", "name", "privacy", "report_bytes", "schema"}
BODY = {"campaign", "header", "min_reports", "not_after", "not_before", "prev", "queries", "round"}


@dataclass(frozen=True, eq=False)
class Header:
    """The promise and the terms of a campaign; constant over its rounds.

    center, radius: the public ball that points are clipped to, in single precision. n: the declared population.
    epsilon: of one person over the whole campaign. In mode "one_round" everyone answers in the round of their cohort, with all
    of it; in "all_rounds" everyone answers in every round, with `epsilon_rounds`, which add up to no more.
    cohorts: an inclusive range of 16-bit numbers a round. key: the collector's, which signs.
    tuning: of LAE, its numbers as fractions. Headers that name none are those that every version reads.
    """

    name: str
    center: NDArray[np.float32]
    radius: float
    k: int
    method: str
    n: int
    epsilon: Fraction
    cohorts: tuple[tuple[int, int], ...]
    key: str
    mode: Mode = "one_round"
    epsilon_rounds: tuple[Fraction, ...] = ()
    tuning: Tuning | None = None

    @property
    def n_columns(self) -> int:
        return int(self.center.size)

    @property
    def n_rounds(self) -> int:
        return len(self.cohorts)

    @cached_property
    def campaign(self) -> str:
        """The campaign's name for machines: the hash of the header."""
        return canonical.digest(canonical.DEVICE.write(self.to_json()))

    def epsilon_of(self, number: int) -> Fraction:
        """What an answer in this round may cost."""
        return self.epsilon if self.mode == "one_round" else self.epsilon_rounds[number - 1]

    def to_json(self) -> dict[str, Any]:
        a, b = response_weights(self.epsilon)
        privacy: dict[str, Any] = {"eps": str(self.epsilon), "a": a, "b": b, "mode": self.mode}
        if self.mode == "all_rounds":
            privacy["eps_rounds"] = [str(epsilon) for epsilon in self.epsilon_rounds]
        domain = {"D": self.n_columns, "o": encode(self.center), "Rad": encode(np.array([self.radius]))}
        cohorts = [list(cohort) for cohort in self.cohorts]
        given = {} if self.tuning is None else {"tuning": _tuning_document(self.tuning)}
        return given | {
            "schema": SCHEMA, "name": self.name, "domain": domain, "k": self.k, "method": self.method, "n": self.n,
            "privacy": privacy, "cohorts": cohorts, "report_bytes": report.BYTES, "key": self.key,
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Read strictly; anything else than this version writes raises `ManifestError`."""
        need(isinstance(data, dict) and data.get("schema") == SCHEMA, f"its schema is not {SCHEMA}; a newer program may read it")
        fields(data, HEADER, {"tuning"})
        fields(data["domain"], {"D", "Rad", "o"})
        n_columns = integer(data["domain"]["D"], 1, MOST_COLUMNS)
        mode, epsilon, shares = _privacy(data["privacy"])
        header = cls(
            name=_name(data["name"], MOST_NAME),
            center=decode_floats(data["domain"]["o"], "o", (n_columns,)),
            radius=float(decode_floats(data["domain"]["Rad"], "Rad", (1,), least=LEAST_RADIUS)[0]),
            k=integer(data["k"], 1, MOST_CENTRES),
            method=_name(data["method"], 40),
            n=integer(data["n"], 1, MOST_PEOPLE),
            epsilon=epsilon,
            cohorts=_cohorts(data["cohorts"], mode),
            key=data["key"],
            mode=mode,
            epsilon_rounds=shares,
            tuning=_tuning(data["tuning"]) if "tuning" in data else None,
        )
        need(header.tuning is None or header.method in TUNED, "its tuning belongs to another method")
        need(is_key(header.key), "its key is no Ed25519 key in hexadecimal")
        need(mode == "one_round" or len(shares) == header.n_rounds, "eps_rounds does not have an entry for each round")
        integer(data["report_bytes"], report.BYTES, report.BYTES)
        return header


@dataclass(frozen=True, eq=False)
class Manifest:
    """One round of a campaign. Dates are inclusive, UTC. With fewer than `min_reports` reports the round is not decoded."""

    header: Header
    number: int
    prev: str
    not_before: date
    not_after: date
    min_reports: int
    queries: tuple[Query, ...]

    @cached_property
    def body(self) -> bytes:
        """The canonical bytes, which are signed."""
        return canonical.DEVICE.write(
            {
                "header": self.header.to_json(),
                "campaign": self.header.campaign,
                "round": self.number,
                "prev": self.prev,
                "not_before": self.not_before.isoformat(),
                "not_after": self.not_after.isoformat(),
                "min_reports": self.min_reports,
                "queries": [query_document(query) for query in self.queries],
            }
        )

    @cached_property
    def hash(self) -> str:
        return canonical.digest(self.body)

    @property
    def epsilon(self) -> Fraction:
        """What an answer costs."""
        return self.header.epsilon_of(self.number)

    def signed(self, key: SigningKey) -> Signed:
        if key.public != self.header.key:
            raise InvalidValue("a manifest is signed by the key that its header names. Use that key, or open a new campaign.")
        return Signed(self.body, key.sign(self.body))

    @classmethod
    def from_bytes(cls, body: bytes) -> Self:
        """Read strictly. Signature and chain are `verified`'s."""
        data = canonical.DEVICE.read(body)
        fields(data, BODY)
        header = Header.from_json(data["header"])
        need(data["campaign"] == header.campaign, "its campaign is not the hash of its header")
        listed = data["queries"]
        need(isinstance(listed, list) and 1 <= len(listed) <= MOST_QUERIES, f"a round has 1 to {MOST_QUERIES} queries")
        manifest = cls(
            header=header,
            number=integer(data["round"], 1, header.n_rounds),
            prev=data["prev"],
            not_before=_day(data["not_before"]),
            not_after=_day(data["not_after"]),
            min_reports=integer(data["min_reports"], 0, MOST_PEOPLE),
            queries=tuple(read_query(query, header.n_columns) for query in listed),
        )
        books = [query.M * query.length(header.n_columns) for query in manifest.queries if query.kind == "vec"]
        need(max(books, default=0) <= MOST_NUMBERS, "a codebook is so large that a device would be busy for minutes")
        need([query.id for query in manifest.queries] == [*range(len(listed))], "its queries are not numbered from 0 on")
        need(manifest.not_before <= manifest.not_after, "it ends before it begins")
        need(_is_tuned(header, manifest.queries), "its hashing or its image is not what its tuning says")
        need(manifest.body == body, "it is not written as this version writes it")
        return manifest


@dataclass(frozen=True)
class Signed:
    """A manifest as it travels: its bytes, the collector's signature, and signatures of witnesses by their keys.

    A witness publishes every manifest hash it signs, so a device that asks for witnesses is shown what all others are shown.
    """

    body: bytes
    signature: bytes
    witnesses: Mapping[str, bytes] = field(default_factory=dict)

    def witnessed(self, key: str, signature: bytes) -> Signed:
        """The same with one more signature, of this body."""
        if not is_signed(key, signature, self.body):
            raise InvalidValue("this is no signature of the manifest by that key.")
        seen = {**self.witnesses, key: signature}
        if len(seen) > MOST_WITNESSES:
            raise InvalidValue(f"a manifest has at most {MOST_WITNESSES} witnesses. This signature was not added.")
        return Signed(self.body, self.signature, seen)

    def __repr__(self) -> str:
        return f"Signed(hash={self.hash!r}, witnesses={len(self.witnesses)})"  # a body may have megabytes

    @cached_property
    def hash(self) -> str:
        return canonical.digest(self.body)

    def to_bytes(self) -> bytes:
        seen = {key: signature.hex() for key, signature in self.witnesses.items()}
        return canonical.DEVICE.write(
            {"manifest": self.body.decode("ascii"), "signature": self.signature.hex(), "witnesses": seen}
        )

    @classmethod
    def from_bytes(cls, text: bytes) -> Self:
        """Read what `to_bytes` wrote; whether to trust it is for `verified` to say."""
        data = canonical.DEVICE.read(text)
        fields(data, {"manifest", "signature", "witnesses"})
        need(isinstance(data["manifest"], str) and isinstance(data["witnesses"], dict), "it is not a signed manifest")
        seen = {key: _hex(signature) for key, signature in data["witnesses"].items()}
        need(len(seen) <= MOST_WITNESSES and all(map(is_key, seen)), "its witnesses are too many, or no keys")
        try:
            body = data["manifest"].encode("ascii")
        except UnicodeEncodeError:
            body = b""
        return cls(body, _hex(data["signature"]), seen)


def verified(chain: Sequence[Signed], key: str, witnesses: frozenset[str] = frozenset()) -> tuple[Manifest, ...]:
    """The manifests of rounds 1 .. r, if the pinned key signed all of them and they are one chain of one campaign.

    Everything a device can check without its own secrets. Signatures come first: bytes that nobody vouches for are not parsed.
    """
    if not chain or len(chain) > MOST_ROUNDS or not all(isinstance(one, Signed) for one in chain):
        raise ManifestError("a device needs the signed manifests of all rounds so far, the first one first.")
    for one in chain:
        if not is_signed(key, one.signature, one.body):
            raise ManifestError("a manifest is not signed by the key that this device trusts. Nothing of it was used.")
        if not all(is_signed(other, one.witnesses.get(other, b""), one.body) for other in witnesses):
            raise ManifestError("a manifest lacks the signature of a witness that this device asks for. Nothing of it was used.")
    manifests = tuple(_parsed(one.body) for one in chain)
    need(all(one.header.key == key for one in manifests), "its header names another key than the one that signed it")
    need(len({one.header.campaign for one in manifests}) == 1, "its header differs from that of an earlier round")
    need([one.number for one in manifests] == [*range(1, len(chain) + 1)], "a round is missing, or rounds are out of order")
    before = [FIRST, *(one.hash for one in chain[:-1])]
    need([one.prev for one in manifests] == before, "it does not follow from the round before")
    return manifests


def split_cohorts(shares: Sequence[float], mode: Mode = "one_round") -> tuple[tuple[int, int], ...]:
    """Inclusive ranges of 16-bit numbers, one per round, as large as the shares say; all of them for everyone in "all_rounds"."""
    if mode == "all_rounds":
        return ((0, COHORTS - 1),) * len(shares)
    ends = np.rint(np.cumsum(shares) / np.sum(shares) * COHORTS).astype(int)
    return tuple((int(low), int(high) - 1) for low, high in zip([0, *ends[:-1]], ends, strict=True))


def parse_ratio(text: Any) -> Fraction:
    """`p` or `p/q` in lowest terms, both below 10 000: a number that every device reads alike."""
    is_ratio = isinstance(text, str) and re.fullmatch(r"[0-9]{1,4}(/[1-9][0-9]{0,3})?", text) is not None
    ratio = Fraction(text) if is_ratio else None
    need(str(ratio) == text, "a number is not p or p/q in lowest terms")
    assert ratio is not None
    return ratio


def parse_epsilon(text: Any) -> Fraction:
    epsilon = parse_ratio(text)
    need(0 < epsilon <= 10, "epsilon is not above 0 and at most 10")
    return epsilon


@lru_cache(maxsize=8)  # a device meets the same past again in every round
def _parsed(body: bytes) -> Manifest:
    return Manifest.from_bytes(body)


def _privacy(data: Any) -> tuple[Mode, Fraction, tuple[Fraction, ...]]:
    """The weights must be what the device computes itself: a bound on a/b alone would let a negative b pass."""
    fields(data, {"a", "b", "eps", "mode"}, {"eps_rounds"})
    mode, epsilon = data["mode"], parse_epsilon(data["eps"])
    need(mode in get_args(Mode) and ("eps_rounds" in data) == (mode == "all_rounds"), "its mode is unknown")
    need([data["a"], data["b"]] == list(response_weights(epsilon)), "the weights a and b are not those of epsilon")
    listed = data.get("eps_rounds", [])
    need(isinstance(listed, list) and len(listed) <= MOST_ROUNDS, "eps_rounds is not a list of epsilons")
    shares = tuple(parse_epsilon(text) for text in listed)
    need(sum(shares) <= epsilon, "eps_rounds add up to more than eps")
    return mode, epsilon, shares


def _tuning(data: Any) -> Tuning:
    fields(data, {"lsh"}, {"alpha", "c"})
    alpha, c = (parse_ratio(data[name]) if name in data else None for name in ("alpha", "c"))
    need(isinstance(data["lsh"], str), "its tuning names no hashing")
    try:
        tuning = checked(Tuning(data["lsh"], alpha, c))
    except InvalidValue:
        tuning = Tuning()
    need(tuning != Tuning(), "its tuning says nothing, or is out of range")
    return tuning


def _tuning_document(tuning: Tuning) -> dict[str, Any]:
    numbers = {"alpha": tuning.alpha, "c": tuning.c}
    return {"lsh": tuning.lsh} | {name: str(value) for name, value in numbers.items() if value is not None}


def _is_tuned(header: Header, queries: Sequence[Query]) -> bool:
    """Whether queries hash, and see an image, as the header's tuning says; without one there is nothing to hold them against."""
    if header.tuning is None:
        return True
    balls = {isinstance(query.buckets.lsh, BallLattice) for query in queries if query.buckets is not None}
    maps = [one for query in queries for one in (*query.maps, *([query.buckets.map] if query.buckets else []))]
    wanted = None if header.tuning.alpha is None else image_axes(header.tuning, header.k, header.n_columns)
    return balls <= {header.tuning.lsh == "ball"} and (wanted is None or {one.n_axes for one in maps} <= {wanted})


def _cohorts(data: Any, mode: Mode) -> tuple[tuple[int, int], ...]:
    need(isinstance(data, list) and 1 <= len(data) <= MOST_ROUNDS, "cohorts is not a list of ranges, one a round")
    need(all(isinstance(pair, list) and len(pair) == 2 for pair in data), "a cohort is a pair of numbers")
    ranges = tuple((integer(low, 0, COHORTS - 1), integer(high, 0, COHORTS - 1)) for low, high in data)
    need(all(low <= high for low, high in ranges), "a cohort is empty")
    ordered = sorted(ranges)
    is_disjoint = all(before[1] < after[0] for before, after in pairwise(ordered))
    need(mode == "all_rounds" or is_disjoint, "two rounds ask the same people")
    return ranges


def _name(text: Any, most: int) -> str:
    need(isinstance(text, str) and 1 <= len(text) <= most and text.isprintable(), "a name is missing, too long or not printable")
    return str(text)


def _day(text: Any) -> date:
    need(isinstance(text, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) is not None, "a date is not YYYY-MM-DD")
    try:
        return date.fromisoformat(text)
    except ValueError:
        wrong = ManifestError("this manifest cannot be used: a date does not exist. Nothing was charged.")
    raise wrong


def _hex(text: Any) -> bytes:
    need(isinstance(text, str) and re.fullmatch(r"([0-9a-f]{2})*", text) is not None, "a signature is not hexadecimal")
    return bytes.fromhex(text)


def need(is_so: bool, otherwise: str) -> None:
    if not is_so:
        raise ManifestError(f"this manifest cannot be used: {otherwise}. No point was read and nothing was charged.")


def fields(data: Any, needed: Set[str], allowed: Set[str] = frozenset()) -> None:
    """Every needed field, and none that this version does not know: an unknown one may change what a report means."""
    need(isinstance(data, dict) and needed <= set(data), "a field is missing")
    need(set(data) <= needed | allowed, "a field is unknown to this version")


def integer(value: Any, low: int, high: int) -> int:
    need(type(value) is int and low <= value <= high, f"an integer is not in {low} .. {high}")
    return int(value)
