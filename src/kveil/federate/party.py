"""One holder of rows: it keeps its own books and budget, trusts nobody, and answers what its plan and policy allow, once.

    idle --plan--> open(next=1) --answer seq=next--> open(next+1) ... --done, abort, expiry, conflict--> closed, for ever

A round is paid for when it is asked: its own reservation on the ledger, durable before a row is read for it, so that a run that
breaks off costs what was asked and no more, and a restarted party goes on where it was. At the plan the party checks that the
whole run fits into what is left; nothing is held for it, so whoever else draws on the ledger may make a later round refused.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any

from kveil.errors import BudgetError, InvalidType, InvalidValue, KveilError, LedgerMismatch
from kveil.federate.journal import Journal, Run
from kveil.federate.kinds import EXACT, NOISY, QUESTIONS
from kveil.federate.layout import layout_of
from kveil.federate.limits import largest_request, of_request
from kveil.federate.messages import Reply, Request, VersionError, kind_asked
from kveil.federate.plan import ORDERED, STEPS, RunPlan, roster_of
from kveil.federate.policy import Policy
from kveil.federate.promise import check_cost, law_of
from kveil.federate.questions import Terms, check_size
from kveil.federate.sealed import check_secret
from kveil.federate.wire import HEX64, WireError, decode, digest, encode, fields
from kveil.kernel.ledger import Ledger
from kveil.kernel.loss import Plan, floor_epsilon
from kveil.source import Source, read

NOBODY = "0" * 32

log = logging.getLogger("kveil.federate")  # for the owner of the rows; never what rows hold


class Refused(KveilError):
    """A party says no, for a reason that follows from public things."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Party:
    """A holder of rows in a federation.

    data: anything `kveil.read` takes.
    bounds, or center and radius: the public domain that rows are clipped to; all parties of a run must have the same.
    name: what the coordinator calls this party; letters, digits, "_", "-" and ".".
    dataset: what the rows are called in plans.
    ledger: a Ledger, or the path of one: the budget over all runs. Its unit is that of the data. Default: one in memory, of
        `policy.epsilon_per_run`, for a party that lives as long as this process. Every charge notes its run, its round, the
        dataset, and what the ledger states (`Ledger.stating`).
    journal: the file of runs and answers; default: "<ledger>.runs" beside a ledger in a file, else memory. Ledger and journal
        belong together: a copy or an older backup of either is refused where it can be told, and must not be used where not.
    policy: what is answered at all.
    secret: random bytes that all parties share and the coordinator does not know; "dk" alone needs them.

    Private:      the rows and their number.  Public: everything that is sent; each answer was charged before it was drawn.
    Neighbours:   add or remove one record of this party, or everything of one person (`kveil.read(..., person=...)`).
    Sensitivity:  of counts and sums: `kveil.desk.law.Law`, since what may be asked is checked to be disjoint cells;
                  of noisy rows: `kveil.desk.noisy_sample.NoisySample` and `kveil.desk.bounded_share.BoundedShare`.
    Cost:         per run at most the epsilon of its plan and `policy.epsilon_per_run`; in all at most the ledger's.
    Not covered:  running time (`reply_every` of the transports helps); whoever reads this machine's memory or disk.

    >>> party = Party([[0.0], [1.0]], bounds=(0, 1), name="clinic")
    >>> party
    Party('clinic', 1 column(s), Ledger('clinic', epsilon=1, delta=0, rule='pure'))
    """

    def __init__(
        self,
        data: Any,
        *,
        bounds: Any = None,
        center: Any = None,
        radius: Any = None,
        name: str = "party",
        dataset: str = "rows",
        ledger: Ledger | str | os.PathLike[str] | None = None,
        journal: str | os.PathLike[str] | None = None,
        policy: Policy = Policy(),
        secret: bytes | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        for what, value in (("name", name), ("dataset", dataset)):
            if not (isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", value)):
                raise InvalidValue(f'the {what} of a party must be 1 to 64 letters, digits, "_", "-" or ".", got {value!r}.')
        self.name, self.dataset, self.policy, self._secret = name, dataset, policy, check_secret(secret)
        if policy.parties and name not in policy.parties:
            raise InvalidValue(f"the policy lists the parties of a run, and this one, {name!r}, is not among them.")
        self.source: Source = read(data)
        if self.source.is_sparse:
            raise InvalidValue("a federation takes dense rows: make a dense table of the sparse one, or use PrivateKMeans.")
        self.layout = layout_of(self.source, bounds, center, radius)
        account, path = _open_ledger(ledger, name, policy, self.source)
        self.ledger = account.stating(**{"data_name": dataset, **account.stated})
        self._journal = Journal(journal if journal is not None or path is None else f"{os.fspath(path)}.runs", name)
        if not self._journal.tokens() <= {entry.token for entry in self.ledger.charges()}:
            raise BudgetError(
                "the ledger lacks charges that the journal of this party knows. It is another one, or an older copy that has "
                "forgotten what was spent. Use the ledger that belongs to the journal; do not answer from this one."
            )
        self._lock, self._clock = threading.Lock(), clock
        self._heard: dict[str, float] = {}  # run -> when it last asked something, since this party was started

    def __repr__(self) -> str:
        return f"Party({self.name!r}, {self.source.n_columns} column(s), {self.ledger!r})"

    def close(self) -> None:
        self._journal.close()

    @property
    def largest_request(self) -> int:
        """Bytes of the longest message that is read."""
        return largest_request(self.layout, self.policy)

    @property
    def is_in_a_run(self) -> bool:
        return bool(self._journal.open_runs())

    def answer(self, request: bytes, coordinator: str | None = None) -> bytes | None:
        """The reply to a request, as bytes; None where the answer failed for a reason that may lie in the rows.

        The same bytes asked again get the same bytes back, also after a restart. `coordinator`: who asks, if the transport
        knows it.
        """
        try:
            asked = Request.from_bytes(request, of_request(kind_asked(request), self.layout, self.policy))
        except KveilError as error:
            code = "version" if isinstance(error, VersionError) else "payload"
            return Reply(NOBODY, 0, self.name, digest(request), refused=code).to_bytes()
        with self._lock:
            log.info("party %s: run %s, message %d, %s", self.name, asked.run[:8], asked.seq, asked.kind)
            try:
                return self._answer(asked, request, coordinator)
            except Refused as refusal:
                log.info("party %s: refused (%s)", self.name, refusal.code)
                return self._reply(asked, request, refused=refusal.code)
            except Exception as error:
                # Rows may be the reason: unreadable, or too many for the memory. Whoever asked learns nothing but silence.
                log.error("party %s: an answer failed (%s); it is lost", self.name, type(error).__name__)
                return None

    def _answer(self, asked: Request, request: bytes, coordinator: str | None) -> bytes:
        if self.policy.coordinators and coordinator not in self.policy.coordinators:
            raise Refused("policy")
        if asked.kind == "hello":
            return self._hello(asked, request)
        known = self._journal.answer(asked.run, asked.seq)
        if known is not None and known.request == digest(request):
            if known.reply is None:
                raise Refused("lost")
            return known.reply
        run = self._journal.run(asked.run)
        if asked.kind == "abort":
            return self._abort(asked, request, run)
        if known is not None:
            self._journal.shut(asked.run)
            raise Refused("conflict")
        if asked.kind == "plan":
            return self._open(asked, request)
        if run is None or not run.is_open:
            raise Refused("order")
        if self._clock() >= run.expires:
            self._journal.shut(asked.run)
            raise Refused("expired")
        if asked.seq != run.next:
            raise Refused("order")
        return self._done(asked, request, run) if asked.kind == "done" else self._round(asked, request, run)

    def _hello(self, asked: Request, request: bytes) -> bytes:
        """What is public about the data: its name, columns, domain and unit."""
        _read(asked.body, {})
        names = list(self.source.names or ())
        return self._reply(asked, request, {"data": self.dataset, "columns": names, "layout": self.layout.described()})

    def _open(self, asked: Request, request: bytes) -> bytes:
        """Agree to a plan, if it is within the policy and the budget and no other run is open."""
        if asked.seq != 0:
            raise Refused("order")
        plan = _plan(asked.body)
        self._check(plan)
        now = self._clock()
        for run in self._journal.open_runs():
            left = self._held_for(run) - now
            if left > 0:
                log.info("party %s: run %s is open and keeps others out for %d more seconds", self.name, run.id[:8], left)
                raise Refused("busy")
            self._journal.shut(run.id)
        reply = self._reply(asked, request, {"accept": 1})
        hold = min(plan.expires, self.policy.longest_hold)
        self._journal.open(asked.run, encode(asked.body), int(now) + hold, request, digest(request), reply)
        self._heard = {asked.run: now}
        return reply

    def _held_for(self, run: Run) -> float:
        """Until when an open run keeps others out: not after a long silence, nor if it broke off before this party was started.

        Closing a run is always safe: it is closed for ever, and what it has spent stays spent.
        """
        if run.id not in self._heard:
            return 0.0
        return min(run.expires, self._heard[run.id] + min(self.policy.longest_silence, _agreed(run.plan).longest_silence))

    def _check(self, plan: RunPlan) -> None:
        self._allow(plan)
        if plan.epsilon is not None and self._left(plan) < sum(part.times * part.budget for part in plan.rounds):
            raise Refused("budget")

    def _allow(self, plan: RunPlan) -> None:
        """Refuse what the policy and the domain of this party, as they are now, do not allow."""
        policy, epsilon = self.policy, plan.epsilon
        kinds = {part.kind for part in plan.rounds}
        allowed = {
            "dataset": plan.data == self.dataset,
            "parties": not policy.parties or plan.roster == roster_of(policy.parties),
            "protocols": plan.protocol in policy.protocols and plan.keeps_to_protocol(),
            "max_clusters": plan.n_clusters <= policy.max_clusters,
            "max_rounds": sum(part.times for part in plan.rounds) <= policy.max_rounds,
        }
        if epsilon is None:
            allowed["allow_exact"] = policy.allow_exact and not kinds & NOISY
            # Exact sums about centres of the coordinator's choice show rows: not under "dk", unless exact cells do so anyway.
            allowed["protocols"] &= plan.protocol != "dk" or "cells" in policy.protocols or not kinds & STEPS
        else:
            allowed["allow_exact"] = not kinds & EXACT
            allowed["epsilon_per_run"] = epsilon <= _floored(policy.epsilon_per_run)
            allowed["delta_per_run"] = plan.delta <= Fraction(policy.delta_per_run)
        if not all(allowed.values()):
            log.info(
                "party %s: the plan is beyond %s", self.name, ", ".join(what for what, is_so in allowed.items() if not is_so)
            )
            raise Refused("policy")
        if plan.domain != self.layout.digest or plan.rows_per_person != self.source.unit.max_rows_per_person:
            raise Refused("domain")

    def _left(self, plan: RunPlan) -> Fraction:
        """What the ledger has left, in the loss that the plan counts; 0 if it counts another one."""
        left = self.ledger.remaining()
        if plan.loss == "zcdp":
            return Fraction(left.rho or 0) if self.ledger.rule == "zcdp" else Fraction(0)
        return Fraction(left.epsilon) if self.ledger.rule == "pure" else Fraction(0)

    def _round(self, asked: Request, request: bytes, run: Run) -> bytes:
        """Charge, then draw, then keep the bytes: in this order a crash never leaves an answer that could be drawn again."""
        plan = _agreed(run.plan)
        self._allow(plan)  # again: the owner may have started this party anew with another policy or other bounds
        place = self._place(asked, plan)
        terms = Terms(
            self.layout, plan.rounds[place], plan.n_clusters, self.policy, law_of(plan, self.layout), asked.run, self.name,
            self._secret,
        )  # fmt: skip
        try:
            question = QUESTIONS[asked.kind].read(asked.body, terms)
            charges = question.charges(terms)
            check_cost(charges, plan, terms.round)
            check_size(question, self.layout)
        except (KveilError, ArithmeticError):  # decided from the message alone, before anything is charged
            raise Refused("payload") from None
        self._journal.ask(asked.run, asked.seq, digest(request), place)
        ticket = None
        if charges:
            try:
                ticket = self.ledger.reserve(
                    Plan(charges, "add-remove", self.source.unit, plan.delta), run=asked.run, round=asked.kind
                )
            except BudgetError:  # nothing was charged: somebody else has drawn on this ledger since the plan
                reply = self._reply(asked, request, refused="budget")
                self._journal.store(asked.run, asked.seq, request, reply)
                return reply
            self._journal.charge(asked.run, asked.seq, ticket.token)
        with ticket or nullcontext():
            released = question.answer(self.source, terms, ticket)
        noise = "none" if ticket is None else "system" if ticket.secure else "scripted"
        numbers = {name: array.tolist() for name, array in zip(question.names, released, strict=True)}
        reply = self._reply(asked, request, {**numbers, "noise": noise})
        self._journal.store(asked.run, asked.seq, request, reply)
        self._heard[asked.run] = self._clock()
        return reply

    def _place(self, asked: Request, plan: RunPlan) -> int:
        """Which part of the plan a message uses up. Parts may be left out, and then cost nothing; none is used too often."""
        if asked.kind not in QUESTIONS:
            raise Refused("payload")
        used = self._journal.used(asked.run)
        first = max(used, default=0) if plan.protocol in ORDERED else 0
        for place, part in enumerate(plan.rounds):
            is_meant = part.kind == asked.kind and part.level == asked.body.get("level", 0)
            if place >= first and is_meant and used.get(place, 0) < part.times:
                return place
        raise Refused("order")

    def _done(self, asked: Request, request: bytes, run: Run) -> bytes:
        """Close the run; the reply holds the receipt as this party has it."""
        _read(asked.body, {"receipt": HEX64})
        self._journal.ask(asked.run, asked.seq, digest(request))
        reply = self._reply(asked, request, {"receipt": run.chain})
        self._journal.store(asked.run, asked.seq, request, reply, closes=True)
        spent, left = self.ledger.spent(), self.ledger.remaining()
        log.info(
            "party %s: run %s is done; %s spent, %s left on its ledger. Waiting for the next run.",
            self.name, asked.run[:8], spent, left,
        )  # fmt: skip
        return reply

    def _abort(self, asked: Request, request: bytes, run: Run | None) -> bytes:
        """Close the run, wherever it is; nothing is charged, and asking again changes nothing."""
        _read(asked.body, {})
        if run is None:
            raise Refused("order")
        self._journal.shut(asked.run)
        return self._reply(asked, request, {"receipt": run.chain})

    def _reply(self, asked: Request, request: bytes, body: Any = None, refused: str | None = None) -> bytes:
        return Reply(asked.run, asked.seq, self.name, digest(request), body, refused).to_bytes()


def _open_ledger(ledger: Any, name: str, policy: Policy, source: Source) -> tuple[Ledger, str | os.PathLike[str] | None]:
    """The ledger and, if it was named by one, its path."""
    if ledger is None:
        return Ledger.memory(name, policy.epsilon_per_run, policy.delta_per_run, relation="add-remove", unit=source.unit), None
    path = None if isinstance(ledger, Ledger) else ledger
    if path is not None and not isinstance(path, str | os.PathLike):
        raise InvalidType("ledger must be a kveil Ledger, the path of one, or None.")
    found = ledger if path is None else Ledger.open(path)
    mine, theirs = ((unit.kind, unit.max_rows_per_person) for unit in (source.unit, found.unit))
    if found.relation != "add-remove" or mine != theirs:
        raise LedgerMismatch(
            f'ledger "{found.name}" protects {found.unit} under {found.relation}, and this party {source.unit} under add-remove. '
            "Make a ledger for these rows: Ledger.create(..., unit=...)."
        )
    return found, path


@lru_cache(maxsize=16)
def _floored(epsilon: float) -> Fraction:
    return floor_epsilon(epsilon) if epsilon else Fraction(0)


@lru_cache(maxsize=16)
def _agreed(plan: bytes) -> RunPlan:
    """A plan that was agreed to, from the journal."""
    return RunPlan.read(decode(plan))


def _plan(body: Any) -> RunPlan:
    try:
        return RunPlan.read(body)
    except WireError:
        raise Refused("payload") from None


def _read(body: Any, readers: Any) -> dict[str, Any]:
    try:
        return fields(body, readers)
    except WireError:
        raise Refused("payload") from None
