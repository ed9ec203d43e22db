"""The collector: it opens rounds, takes in reports once each, and turns closed rounds into the next question or the result.

It never holds a point. Every step is a transaction over `Storage`, so a collector may be killed anywhere: what it acknowledged is
there, exactly once, and whoever opens the same storage goes on and ends with the same bytes. A web service wraps these methods.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from math import isfinite, log, sqrt
from typing import Any, Literal, Self, get_args

import numpy as np

from kveil import canonical
from kveil.collect import protocols
from kveil.collect.campaign import Campaign, Result, cautions_of, promise, protocol_of
from kveil.collect.decode import CHUNK, StoredAnswers
from kveil.collect.intake import MOST_AT_ONCE, Intake, RoundTerms, Status
from kveil.collect.manifest import COHORTS, FIRST, MOST_DAYS_AHEAD, Header, Manifest, Signed
from kveil.collect.notice import EndNotice, Reason
from kveil.collect.poisoning import forged_words
from kveil.collect.queries import Outcome, Round
from kveil.collect.storage import Storage
from kveil.collect.stored import StoredRound
from kveil.errors import InvalidType, InvalidValue
from kveil.kernel.loss import response_weights
from kveil.signing import SigningKey

__all__ = ["MOST_AT_ONCE", "Collector", "State", "Status"]

State = Literal["open", "closed", "done", "ended: too few reports", "ended: withdrawn", "ended: fault"]
STATES: dict[Reason, State] = {
    "few reports": "ended: too few reports", "withdrawn": "ended: withdrawn", "fault": "ended: fault",
}  # fmt: skip


class Collector:
    """Campaigns in one storage (a path for SQLite, or a database URL), signed with one key; without one it only takes reports in.

    >>> from datetime import date, timedelta
    >>> from kveil.signing import SigningKey
    >>> collector = Collector("sqlite://", key=SigningKey(bytes(32)))
    >>> survey = Campaign("survey", n=1000, n_clusters=2, epsilon=1, center=[0, 0], radius=1.0, protocol="grid")
    >>> first = collector.open(survey, date.today(), date.today() + timedelta(days=30))
    >>> collector.submit(first.hash, b"not a report")
    <Status.MALFORMED: 422>
    """

    def __init__(
        self,
        place: str | os.PathLike[str],
        *,
        key: SigningKey | None = None,
        chunk: int = CHUNK,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        if key is not None and not isinstance(key, SigningKey):
            raise InvalidType("key must be a SigningKey, the secret half: SigningKey.load(path). Devices have the public one.")
        self._storage, self._key, self._chunk, self._clock = Storage(place), key, chunk, clock
        self._intake = Intake(self._storage)

    def open(self, campaign: Campaign, not_before: date, not_after: date) -> Signed:
        """Publish the first round of a new campaign, for answers on the days `not_before` to `not_after`: its signed manifest."""
        if not isinstance(campaign, Campaign):
            raise InvalidType("a collector opens a Campaign, which states the terms. See help(kveil.collect.Campaign).")
        self._check_dates(not_before, not_after)
        header = campaign.header(self._signing_key().public)
        if header.campaign in self._storage.campaigns():
            raise InvalidValue("this very campaign is here already. Give a new one another name.")
        first = protocol_of(header).first()
        return self._publish(None, first, Manifest(header, 1, FIRST, not_before, not_after, campaign.min_reports, first.queries))

    def campaigns(self) -> list[str]:
        """Hashes of all campaigns."""
        return self._storage.campaigns()

    def manifests(self, campaign: str) -> list[Signed]:
        """What devices need to answer: the signed manifests of all rounds so far."""
        return [Signed.from_bytes(one.signed) for one in self._rounds(campaign)]

    def witness(self, manifest_hash: str, key: str, signature: bytes) -> Signed:
        """Add a witness's signature to a manifest, for devices that ask for it. Few fit: add keys that you know."""
        while True:
            found = self._stored(manifest_hash)
            if found is None:
                raise InvalidValue("there is no such round here, so nobody can have witnessed it.")
            if key == _manifest(found).header.key:
                raise InvalidValue("a witness is somebody else than the collector: its own key cannot be one.")
            signed = Signed.from_bytes(found.signed).witnessed(key, signature)
            if self._storage.sign(found.id, found.signed, signed.to_bytes()):  # else another witness was quicker: look again
                return signed

    def submit(self, manifest_hash: str, report: bytes) -> Status:
        """Take in one report. When this says that it is stored, it is on the disk.

        `StorageUnavailable` (503): the disk is full, say, and it is not to be relied on. Sent again, it is stored once.
        """
        return self.submit_many(manifest_hash, [report])[0]

    def submit_many(self, manifest_hash: str, reports: Sequence[bytes]) -> list[Status]:
        """Take in at most 10 000 reports of one round in one transaction, with a status for each."""
        return self._intake.submit_many(manifest_hash, reports)

    def state(self, campaign: str) -> tuple[int, State]:
        """The last round, and whether it takes reports, waits for `next_manifest`, or was the end: with a result, or without."""
        last = self._rounds(campaign)[-1]
        if last.state in ("open", "closed"):
            return last.number, "open" if last.state == "open" else "closed"
        reason = self._end_reason(campaign)
        return last.number, "done" if reason is None else STATES[reason]

    def close(self, campaign: str) -> None:
        """End the round that is open: no report comes in any more. Closing twice is closing once.

        A round with fewer reports than `min_reports` stays open until its days are over. Closed after them it ends the campaign:
        nothing is decoded, nobody is asked again, and `state` says "ended: too few reports" (see `end`).
        """
        last = self._rounds(campaign)[-1]
        if last.state == "closed":
            self._storage.tidy()  # whoever closed it may have been stopped before this
        if last.state != "open":
            return
        manifest = _manifest(last)
        if self._storage.close(last.id, manifest.min_reports):
            return
        if self._today() <= manifest.not_after:
            raise InvalidValue(
                "the round has fewer reports than its manifest promises to wait for (min_reports). Leave it open until its last "
                f"day, {manifest.not_after}; closed after that with too few, it ends the campaign without a result."
            )
        self.end(campaign, "few reports")

    def end(self, campaign: str, reason: Reason) -> int:
        """End a campaign that is under way without a result; how many reports were deleted.

        Nothing is decoded and nobody is asked again. With the campaign's key a signed notice says so to devices (`end_notice`);
        without it the campaign ends all the same, and whoever has the key may call this again to sign. What devices have spent
        stays spent: their reports were sent.
        """
        if reason not in get_args(Reason):
            raise InvalidValue(f"reason must be one of {', '.join(map(repr, get_args(Reason)))}.")
        last = self._rounds(campaign)[-1]
        ended = self._end_reason(campaign)
        if last.state == "decoded" and ended is None:
            raise InvalidValue("this campaign has a result, so it is over already. `delete` removes its reports.")
        if ended not in (None, reason):
            raise InvalidValue(f"this campaign has ended already, with the reason {ended!r}.")
        notice = None
        if self._key is not None:
            if self._key.public != _manifest(last).header.key:
                raise InvalidValue("a notice is signed by the campaign's own key. Use that key, or none.")
            notice = EndNotice.make(self._key, campaign, last.number, reason, self._today()).to_bytes()
        return self._storage.end(campaign, reason, self._today(), notice)

    def end_notice(self, campaign: str) -> EndNotice | None:
        """What was signed about a campaign that ended without a result; None if there is nothing."""
        self._rounds(campaign)
        stored = self._storage.campaign(campaign)
        return None if stored is None or stored.end_notice is None else EndNotice.from_bytes(stored.end_notice)

    def delete(self, campaign: str, *, everything: bool = False) -> None:
        """Delete the reports of a campaign that is over; with `everything`, its manifests and its result, too.

        Deleted from the storage: logs, archives, replicas and backups of a database are the operator's.
        """
        if self._rounds(campaign)[-1].state != "decoded":
            raise InvalidValue("this campaign is under way: its reports are needed. End it first, or wait for its result.")
        if everything:
            self._storage.forget(campaign)
        else:
            self._storage.delete_reports(campaign)

    def last_round(self, campaign: str) -> tuple[RoundTerms, int]:
        """The terms of the last round, and how many reports it has; for its operator."""
        last = self._rounds(campaign)[-1]
        return RoundTerms.of(last), self._storage.count(last.id) if last.reports is None else last.reports

    def epsilon(self, campaign: str) -> str:
        """What one person's report may give away over the campaign, as its header states it."""
        return RoundTerms.of(self._rounds(campaign)[-1]).epsilon

    def add_codes(self, campaign: str, digests: Sequence[bytes]) -> None:
        """Keep digests of one-time codes, each of which admits one report where a service asks for codes."""
        self._rounds(campaign)
        self._storage.add_codes(campaign, digests)

    def ended_day(self, campaign: str) -> date | None:
        """The day on which it had a result, or ended without one."""
        stored = self._storage.campaign(campaign) if canonical.is_digest(campaign) else None
        return None if stored is None else stored.ended_day

    def next_manifest(self, campaign: str, not_before: date | None = None, not_after: date | None = None) -> Signed | None:
        """Decode the closed round and publish the next one, from today on for 30 days if not said otherwise; None at the end.

        Killed before it has published, it may be called again: sums go on where they were. Afterwards the new round is `state`'s,
        and the last of `manifests`; calling again raises until that one is closed, so nothing is published twice.
        """
        rounds = self._rounds(campaign)
        done, manifest = rounds[-1], _manifest(rounds[-1])
        if done.state == "open":
            raise InvalidValue(
                f"round {done.number} is still open: the last of `manifests` asks for its reports. Close it first; only then are "
                "they final."
            )
        if done.state == "decoded":
            self._check_outcome(campaign)
            return None
        first = self._today() if not_before is None else not_before
        dates = (first, first + timedelta(days=30) if not_after is None and isinstance(first, date) else not_after)
        if done.number < manifest.header.n_rounds:  # after the last round nobody is asked again
            self._check_dates(*dates)
        self._storage.tidy()  # as in `close`: nothing is published while the order of reports can still be read
        answers = StoredAnswers(self._storage, done, manifest, self._chunk)
        asked = Round(done.number, manifest.queries, json.loads(done.notes))
        following = protocol_of(manifest.header).next(asked, answers, bytes.fromhex(manifest.hash))
        if isinstance(following, Outcome):
            self._storage.add_result(done.id, self._result(manifest.header, rounds, following).to_json(), self._today())
            return None
        terms = (manifest.header, following.number, manifest.hash, *dates, manifest.min_reports, following.queries)
        return self._publish(done.id, following, Manifest(*terms))

    def result(self, campaign: str) -> Result:
        """What the campaign found, once `next_manifest` has said that no round follows."""
        self._rounds(campaign)  # says so if there is no such campaign
        self._check_outcome(campaign)
        text = self._storage.result(campaign)
        if text is None:
            raise InvalidValue("this campaign has no result yet: close each round, and ask for the next until there is none.")
        return Result.from_json(text)

    def dispose(self) -> None:
        """Let go of the storage."""
        self._storage.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.dispose()

    def _rounds(self, campaign: str) -> list[StoredRound]:
        rounds = self._storage.rounds(campaign) if canonical.is_digest(campaign) else []
        if not rounds:
            raise InvalidValue("there is no such campaign here; `campaigns` lists those that are.")
        return rounds

    def _stored(self, manifest_hash: str) -> StoredRound | None:
        """A stranger says which round; what is no hash is not looked for."""
        return self._storage.round(manifest_hash) if canonical.is_digest(manifest_hash) else None

    def _publish(self, done: int | None, asked: Round, manifest: Manifest) -> Signed:
        """Sign and store; `done` is the round before. What devices would refuse is not published."""
        signed = manifest.signed(self._signing_key())
        Manifest.from_bytes(Signed.from_bytes(signed.to_bytes()).body)
        notes = json.dumps(dict(asked.state), sort_keys=True)
        row = StoredRound(0, manifest.header.campaign, manifest.number, manifest.hash, "open", signed.to_bytes(), notes)
        self._storage.add_round(done, row)
        return signed

    def _check_dates(self, first: Any, last: Any) -> None:
        """Before anything is computed: dates on which nobody could answer would be signed for ever."""
        if not all(isinstance(day, date) and not isinstance(day, datetime) for day in (first, last)):
            raise InvalidType("a round begins and ends on days: pass datetime.date objects, not text and not times.")
        if last < first or last < self._today():
            raise InvalidValue(f"a round from {first} to {last} is over before a device can answer. Pass a later last day.")
        if (last - self._today()).days > MOST_DAYS_AHEAD:
            raise InvalidValue(
                f"a round until {last} ends more than {MOST_DAYS_AHEAD} days ahead, and devices refuse it. Pass an earlier day."
            )

    def _end_reason(self, campaign: str) -> Reason | None:
        stored = self._storage.campaign(campaign)
        return None if stored is None else stored.end_reason  # type: ignore[return-value]

    def _check_outcome(self, campaign: str) -> None:
        reason = self._end_reason(campaign)
        if reason is not None:
            why = "(min_reports of its manifest). " if reason == "few reports" else ""
            raise InvalidValue(
                f"this campaign has {STATES[reason]} {why}".rstrip(" .") + ". Nothing was decoded, no round follows, and what "
                "devices have spent stays spent. Open a new campaign, for fewer people or for longer."
            )

    def _today(self) -> date:
        """Days are counted in UTC, as manifests and devices do."""
        return self._clock().astimezone(UTC).date()

    def _signing_key(self) -> SigningKey:
        if self._key is None:
            raise InvalidValue(
                "publishing a round takes the campaign's signing key: Collector(place, key=SigningKey.load(path))."
            )
        return self._key

    def _result(self, header: Header, rounds: list[StoredRound], outcome: Outcome) -> Result:
        a, b = response_weights(header.epsilon_of(1))
        received = [self._storage.received(one.id) for one in rounds]
        reports = [sum(told.values()) for told in received]
        manifests = [_manifest(one) for one in rounds]
        return Result(
            campaign=header.campaign,
            protocol=protocols.read(header.method),
            manifests=tuple(one.manifest_hash for one in rounds),
            centers=header.center.astype(np.float64) + header.radius * outcome.centres,
            counts=outcome.counts,
            count_sd=outcome.count_sd if outcome.count_sd is not None and isfinite(outcome.count_sd) else None,
            sd=None if outcome.sd is None else header.radius * outcome.sd,
            reports=tuple(
                tuple(told.get(query.id, 0) for query in one.queries) for told, one in zip(received, manifests, strict=True)
            ),
            epsilon=log(a / b) * (header.n_rounds if header.mode == "all_rounds" else 1),
            padded=outcome.padded,
            warnings=(*outcome.notes, *_few(header, reports), *_warnings(manifests[-1], outcome)),
            guarantee=promise(header, reports),
            forgery=forged_words(manifests, reports, is_admitted=self._storage.admitted(header.campaign) >= sum(reports) > 0),
        )


def _few(header: Header, reports: list[int]) -> list[str]:
    """Rounds that had less than half of the reports that everything was laid out for; counts are public."""
    parts = [(high - low + 1) / COHORTS for low, high in header.cohorts]
    rounds = enumerate(zip(reports, parts, strict=False), start=1)
    return [
        f"few reports: round {number} had {came} of about {header.n * part:.0f}; the forecast was for n = {header.n} people."
        for number, (came, part) in rounds
        if came < header.n * part / 2
    ]


def _warnings(last: Manifest, outcome: Outcome) -> list[str]:
    """What was to be expected beforehand, and what the noise in the result itself says; functions of reports."""
    header, rho = last.header, last.queries[0].rho
    told = [f"expected: {text}" for text in cautions_of(header)]
    if outcome.sd is not None and rho is not None:
        lost = np.count_nonzero(outcome.sd * sqrt(header.n_columns) > rho / 2)
        told += (
            [f"noise_dominated: {lost} of the centres, whose noise is more than half of their clusters' radius."] if lost else []
        )
    return told + ([f"padded: {outcome.padded} of the centres are mere filling."] if outcome.padded else [])


def _manifest(stored: StoredRound) -> Manifest:
    return Manifest.from_bytes(Signed.from_bytes(stored.signed).body)
