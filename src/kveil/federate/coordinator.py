"""The side that asks: one run, its parties, and a receipt of every conversation. It never sees a row.

Everything here is post-processing of replies that parties have already paid for. A party that is silent, refuses or answers
garbage after the start is left out from then on: what it said before stays in use, its spend stays in its books, and the run
goes on with the others. A run is never started again by itself: that would spend twice.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kveil.arrays import Integers
from kveil.errors import BudgetExceeded, FederationError, InvalidValue, KveilError
from kveil.federate.layout import Layout
from kveil.federate.limits import HELLO, SHORT, Limit, of_reply
from kveil.federate.link import Link, Lost
from kveil.federate.messages import FIRST_LINK, Reply, Request, next_link
from kveil.federate.plan import RunPlan
from kveil.federate.questions import Message, read_reply
from kveil.federate.wire import HEX64, NAME, WireError, digest, fields, many, text, whole

GRACE = 2.0  # seconds to say goodbye to a party that was given up


class Hello(NamedTuple):
    """What a party tells about itself: all of it public."""

    data: str
    columns: tuple[str, ...]
    layout: Layout


@dataclass
class Seat:
    """One party in a run: where the conversation stands."""

    seq: int = 0
    chain: str = FIRST_LINK
    lost: str | None = None


@dataclass
class Coordinator:
    """One run over the parties of a link."""

    link: Link
    timeout: float = 60.0
    run: str = field(default_factory=lambda: secrets.token_hex(16))

    def __post_init__(self) -> None:
        self.seats = {name: Seat() for name in self.link.parties}
        self.noise: set[str] = set()  # where parties say that their noise came from
        self.notes: list[str] = []

    @property
    def present(self) -> tuple[str, ...]:
        return tuple(name for name, seat in self.seats.items() if seat.lost is None)

    def hello(self) -> dict[str, Hello]:
        """What the parties hold; all must answer, and nothing is charged."""
        request = Request(self.run, 0, "hello", {}).to_bytes()
        found, trouble = {}, {}
        for name, reply in self.link.ask(dict.fromkeys(self.seats, request), self.timeout, HELLO.size).items():
            try:
                found[name] = _hello(self._read(name, request, 0, reply, HELLO).body)
            except KveilError as error:
                trouble[name] = str(error)
        if trouble:
            raise FederationError(
                f"not all parties can be asked: {_listed(trouble)}. Nothing was drawn and nothing was charged. Their own logs "
                "tell more; if they do not know the caller, use folders of keys that were made together."
            )
        return found

    def open(self, plan: RunPlan) -> None:
        """Have all parties agree to the plan, or none."""
        request = Request(self.run, 0, "plan", plan.described()).to_bytes()
        trouble: dict[str, str] = {}
        replies = self.link.ask(dict.fromkeys(self.seats, request), self.timeout, SHORT.size)
        for name, reply in replies.items():
            try:
                answer = self._read(name, request, 0, reply)
                fields(answer.body, {"accept": whole(1, 1)})
                self._step(name, request, reply)
            except KveilError as error:
                trouble[name] = str(error)
        if trouble:
            self._abort(set(self.seats) - set(trouble))
            text_ = f"the plan was not agreed to: {_listed(trouble)}. Nothing was drawn and nothing was charged."
            if all(why == "refused (budget)" for why in trouble.values()):
                raise BudgetExceeded(f"{text_} Ask for less, or agree a new budget with the owners of the rows.")
            raise FederationError(" ".join([text_, *(advice for code, advice in _ADVICE.items() if _has(trouble, code))]))

    def ask(
        self, kind: str, question: Message, layout: Layout, parties: Iterable[str] | None = None
    ) -> dict[str, list[Integers]]:
        """The released arrays of every party that answers; the others have left the run."""
        asked = tuple(self.present if parties is None else parties)
        shapes = question.shapes(layout)
        found: dict[str, list[Integers]] = {}
        for name, body in self.ask_raw(kind, question.body(), asked, of_reply(shapes)).items():
            try:
                found[name], source = read_reply(body, question.names, shapes)
                self.noise.add(source)
            except KveilError:
                self._lose(name, kind, "answered what was not asked")
        self._check_left()
        return found

    def ask_raw(self, kind: str, body: Any, parties: Iterable[str], limit: Limit) -> dict[str, Any]:
        """The bodies of the replies, each within the limit; parties without one have left the run."""
        requests = {name: Request(self.run, self.seats[name].seq, kind, body).to_bytes() for name in parties}
        found = {}
        for name, reply in self.link.ask(requests, self.timeout, limit.size).items():
            try:
                found[name] = self._read(name, requests[name], self.seats[name].seq, reply, limit).body
                self._step(name, requests[name], reply)
            except KveilError as error:
                self._lose(name, kind, str(error))
        return found

    def done(self) -> dict[str, str]:
        """Close the run; the receipt of every party that is still there. Parties that were given up are told, too."""
        receipts = {}
        for name in self.present:
            seat = self.seats[name]
            request = Request(self.run, seat.seq, "done", {"receipt": seat.chain}).to_bytes()
            reply = self.link.ask({name: request}, self.timeout, SHORT.size)[name]
            try:
                theirs = fields(self._read(name, request, seat.seq, reply).body, {"receipt": HEX64})["receipt"]
                receipts[name] = seat.chain
                if theirs != seat.chain:
                    self.notes.append(f"party {name} has another receipt: what it sent is not what arrived.")
            except KveilError as error:
                self.notes.append(f"party {name} did not confirm the end of the run ({error}).")
        self._abort(name for name, seat in self.seats.items() if seat.lost is not None)
        return receipts

    def abort(self) -> None:
        """Leave the run: parties close it and keep what they have spent."""
        self._abort(self.seats)

    def _abort(self, names: Iterable[str]) -> None:
        requests = {name: Request(self.run, self.seats[name].seq, "abort", {}).to_bytes() for name in names}
        if requests:
            self.link.ask(requests, min(self.timeout, GRACE), SHORT.size)

    def _read(self, name: str, request: bytes, seq: int, reply: Any, limit: Limit = SHORT) -> Reply:
        """The reply, if it is one to this very request from this very party."""
        if isinstance(reply, Lost):
            raise FederationError(reply.why)
        try:
            answer = Reply.from_bytes(reply, limit)
        except InvalidValue:
            raise FederationError("answered garbage") from None
        if answer.refused and answer.request == digest(request):
            raise FederationError(f"refused ({answer.refused})")
        if (answer.run, answer.seq, answer.party, answer.request) != (self.run, seq, name, digest(request)):
            raise FederationError("answered another message")
        return answer

    def _step(self, name: str, request: bytes, reply: bytes | Lost) -> None:
        assert isinstance(reply, bytes)  # `_read` has seen to it
        seat = self.seats[name]
        seat.seq, seat.chain = seat.seq + 1, next_link(seat.chain, request, reply)

    def _lose(self, name: str, kind: str, why: str) -> None:
        self.seats[name].lost = why
        self.notes.append(f"party {name} left the run at {kind!r}: {why}. The result rests on the others from there on.")

    def _check_left(self) -> None:
        if not self.present:
            raise FederationError(
                "no party is left in the run. What they drew stays charged in their own books; a new run is charged again. "
                + "; ".join(self.notes)
            )


_ADVICE = {  # by the code of a refusal
    "policy": "policy: more than the party allows (by default epsilon 1, no delta, 4096 clusters); its log names the limit.",
    "domain": "domain: bounds, grid or unit differ.",
    "budget": "budget: the ledger of the party has too little left; ask for less.",
    "busy": "busy: another run goes on there, or broke off just now; its log says for how long, `kveil federate free` ends it.",
    "conflict": "conflict: the run was seen before; start a new one.",
    "version": "version: the party speaks another version of the protocol; install the same kveil.",
}


def _hello(body: Any) -> Hello:
    found = fields(body, {"data": NAME, "columns": many(text("[^\x00-\x1f\x7f]{1,256}"), 0, 2**16), "layout": Layout.read})
    if len(found["columns"]) not in (0, found["layout"].domain.n_columns):
        raise WireError("a party must name all of its columns, or none.")
    return Hello(found["data"], tuple(found["columns"]), found["layout"])


def _has(trouble: dict[str, str], code: str) -> bool:
    return f"refused ({code})" in trouble.values()


def _listed(trouble: dict[str, str]) -> str:
    return ", ".join(f"{name} ({why})" for name, why in sorted(trouble.items()))
