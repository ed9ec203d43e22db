"""Dk-means++: rows that go to every other party, sealed so that the coordinator in between cannot read them. Not private.

Sealing hides seeds from the coordinator and from nobody else: every party reads every seed, and one that colludes opens all.
Exact totals leak what they may, and the sum over a cluster of one row is that row; `RunPlan.keeps_to_protocol` bounds what is
asked. The shared secret goes to the parties out of band and never through the coordinator.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kveil.arrays import Integers
from kveil.desk.fixed import FixedDesk
from kveil.desk.row_places import RowPlaces, Score
from kveil.errors import InvalidValue, MissingExtra
from kveil.federate.layout import Layout
from kveil.federate.questions import Message, Terms
from kveil.federate.wire import NAME, WireError, fields, many, whole
from kveil.kernel.ledger import Ticket
from kveil.kernel.loss import Charge
from kveil.questions.cells import Residuals
from kveil.source import Source
from kveil.space.euclidean import Centers

NONCE, TAG = 12, 16
LEAST_SECRET = 16  # bytes
SCORE_ROWS = 2**32  # at most so many rows at a party, so that their scores add up in 64 bits


def sealed(code: Integers, terms: Terms, sender: str, t: int) -> Integers:
    """A row's code, sealed for the other parties of this run: the nonce, then ciphertext and tag, as numbers below 256."""
    nonce = os.urandom(NONCE)
    box = _cipher(terms).encrypt(nonce, code.astype("<i8").tobytes(), _about(terms.run, t, sender))
    return np.frombuffer(nonce + box, dtype=np.uint8).astype(np.int64)


def sealed_size(n_columns: int) -> int:
    """How many numbers a sealed row is."""
    return NONCE + TAG + 8 * n_columns


def opened(message: Sequence[int], terms: Terms, sender: str, t: int) -> Integers:
    """What `sealed` was given. Another run, round, sender or secret opens nothing."""
    from cryptography.exceptions import InvalidTag

    data = bytes(message)
    try:
        plain = _cipher(terms).decrypt(data[:NONCE], data[NONCE:], _about(terms.run, t, sender))
    except InvalidTag:
        raise WireError("a sealed row does not open: it is of another run, round or sender, or the secrets differ.") from None
    return np.frombuffer(plain, dtype="<i8").astype(np.int64)


@dataclass(frozen=True, eq=False)
class SealedSeeds:
    """The seeds so far, as they travel: sealed, with who sent each. Only parties can read `codes`."""

    messages: tuple[tuple[int, ...], ...]
    senders: tuple[str, ...]
    codes: Integers | None = None

    @classmethod
    def read(cls, body: Any, terms: Terms, least: int) -> SealedSeeds:
        d = terms.layout.domain.n_columns
        size = sealed_size(d)
        found = fields(body, {
            "sealed": many(many(whole(0, 255), size, size), least, terms.n_clusters),
            "senders": many(NAME, least, terms.n_clusters),
        })  # fmt: skip
        if len(found["sealed"]) != len(found["senders"]):
            raise WireError("every sealed row needs its sender.")
        rows = [opened(m, terms, s, t) for t, (m, s) in enumerate(zip(found["sealed"], found["senders"], strict=True))]
        codes = np.array(rows, dtype=np.int64).reshape(-1, d)
        if codes.size and not -terms.layout.domain.top <= codes.min() <= codes.max() <= terms.layout.domain.top:
            raise WireError("a sealed row lies outside the domain.")
        return cls(tuple(map(tuple, found["sealed"])), tuple(found["senders"]), codes)

    def body(self) -> dict[str, Any]:
        return {"sealed": [list(message) for message in self.messages], "senders": list(self.senders)}

    def places(self, source: Source, layout: Layout) -> RowPlaces:
        """Rows by their squared distance to the seeds; alike before there is any, and where all are seeds."""
        assert self.codes is not None
        key = np.frombuffer(os.urandom(16), dtype=np.uint64)
        if len(self.codes):
            cap = 4 * layout.frame.radius**2
            centers = Centers.of(layout.domain.decode(self.codes), layout.domain)
            found = RowPlaces(source, layout.domain, Score(centers, cap, Score.shift_for(cap, SCORE_ROWS)), key)
            if found.total:
                return found
        return RowPlaces(source, layout.domain, Score(), key)


class SealedMessage(Message):
    """A question about sealed seeds. It costs nothing and promises nothing: plans without noise alone may ask it."""

    seeds: SealedSeeds

    def body(self) -> dict[str, Any]:
        return self.seeds.body()

    def charges(self, terms: Terms) -> tuple[Charge, ...]:
        return ()


@dataclass(frozen=True, eq=False)
class SeedMessage(SealedMessage):
    """One row, drawn by its squared distance to the seeds, sealed."""

    seeds: SealedSeeds
    party: str = ""
    names: ClassVar[tuple[str, ...]] = ("sealed",)

    @classmethod
    def read(cls, body: Any, terms: Terms) -> SeedMessage:
        return cls(SealedSeeds.read(body, terms, 0), terms.party)

    @classmethod
    def blank(cls, terms: Terms) -> SeedMessage:
        return cls(SealedSeeds((), ()))

    def shapes(self, layout: Layout) -> tuple[tuple[int, ...], ...]:
        return ((sealed_size(layout.domain.n_columns),),)

    def answer(self, source: Source, terms: Terms, ticket: Ticket | None) -> Sequence[Integers]:
        places = self.seeds.places(source, terms.layout)
        place = secrets.randbelow(max(1, places.total))
        return (sealed(places.at([place])[0], terms, self.party, len(self.seeds.messages)),)


@dataclass(frozen=True, eq=False)
class UpdateMessage(SealedMessage):
    """The exact total of squared distances to the seeds."""

    seeds: SealedSeeds
    names: ClassVar[tuple[str, ...]] = ("total",)

    @classmethod
    def read(cls, body: Any, terms: Terms) -> UpdateMessage:
        return cls(SealedSeeds.read(body, terms, 1))

    @classmethod
    def blank(cls, terms: Terms) -> UpdateMessage:
        return cls(SealedSeeds((), ()))

    def shapes(self, layout: Layout) -> tuple[tuple[int, ...], ...]:
        return ((1,),)

    def answer(self, source: Source, terms: Terms, ticket: Ticket | None) -> Sequence[Integers]:
        places = self.seeds.places(source, terms.layout)
        total = 0 if places.score.centers is None else places.total  # all rows are seeds: nothing is left to draw from
        return (np.array([total], dtype=np.int64),)


@dataclass(frozen=True, eq=False)
class FirstMessage(SealedMessage):
    """Exact counts and sums of the rows nearest to each seed, from the middle of the domain: the step by which the coordinator,
    who cannot read the seeds, gets centres."""

    seeds: SealedSeeds
    n_clusters: int
    names: ClassVar[tuple[str, ...]] = ("count", "sum")

    @classmethod
    def read(cls, body: Any, terms: Terms) -> FirstMessage:
        return cls(SealedSeeds.read(body, terms, terms.n_clusters), terms.n_clusters)

    @classmethod
    def blank(cls, terms: Terms) -> FirstMessage:
        return cls(SealedSeeds((), ()), terms.n_clusters)

    def shapes(self, layout: Layout) -> tuple[tuple[int, ...], ...]:
        return (self.n_clusters,), (self.n_clusters, layout.domain.n_columns)

    def answer(self, source: Source, terms: Terms, ticket: Ticket | None) -> Sequence[Integers]:
        assert self.seeds.codes is not None
        layout = terms.layout
        centers = Centers(layout.frame.measured(self.seeds.codes).astype(np.float64), None)
        middles = np.zeros(self.seeds.codes.shape, dtype=np.int64)
        radii = np.full(self.n_clusters, layout.frame.radius, dtype=np.int64)
        question = Residuals(layout.frame, centers, "measured", "measured", middles, radii)
        return FixedDesk(source, layout.domain, None, ticket).draw(question)  # exact: it promises nothing


def check_secret(secret: bytes | None) -> bytes | None:
    if secret is not None and (not isinstance(secret, bytes) or len(secret) < LEAST_SECRET):
        raise InvalidValue(f"the secret that parties share must be at least {LEAST_SECRET} random bytes.")
    return secret


def _cipher(terms: Terms) -> Any:
    """AES-256-GCM with a key of this run: HKDF-SHA256 of the shared secret, salted with the run."""
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF
    except ImportError:
        raise MissingExtra("sealed rows need the extra: pip install 'kveil[service]'.") from None
    if terms.secret is None:
        raise WireError("this party has no secret to open sealed rows with.")
    return AESGCM(HKDF(SHA256(), 32, terms.run.encode(), b"kveil dk-means++").derive(terms.secret))


def _about(run: str, t: int, sender: str) -> bytes:
    """What a sealed row is bound to, so that it cannot be replayed elsewhere."""
    return json.dumps([run, t, sender]).encode()
