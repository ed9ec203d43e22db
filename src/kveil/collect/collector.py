"""The collector: it opens rounds, takes in reports once each, and turns closed rounds into the next question or the result.

It never holds a point. Every step is a transaction over `Storage`, so a collector may be killed anywhere: what it acknowledged is
there, exactly once, and whoever opens the same storage goes on and ends with the same bytes. A web service wraps these methods.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from math import isfinite, log, sqrt
from typing import Any, Final, Literal, Self

import numpy as np

from kveil import canonical
from kveil.collect import protocols
from kveil.collect.campaign import Campaign, Result, cautions_of, promise, protocol_of
from kveil.collect.decode import CHUNK, StoredAnswers
from kveil.collect.manifest import COHORTS, FIRST, MOST_DAYS_AHEAD, Header, Manifest, Signed
from kveil.collect.queries import Outcome, Round
from kveil.collect.report import Report
from kveil.collect.storage import Row, Storage, StoredRound
from kveil.errors import InvalidType, InvalidValue
from kveil.kernel.loss import response_weights
from kveil.signing import SigningKey

MOST_AT_ONCE = 10_000
TOO_FEW: Final = "ended: too few reports"  # in the place of a result: nothing was decoded, and no round follows


class Status(Enum):
    """What became of a report; the number is the HTTP status that says so."""

    NEW = 201  # stored, durably
    SAME = 200  # these very bytes were here already
    UNKNOWN = 404  # no such round
    DIFFERENT = 409  # another report of the campaign has this id: it was altered, or belongs to another round
    CLOSED = 410  # too late: not stored, and what the device has spent stays spent
    MALFORMED = 422  # no report of this round: length, version, flags, query or index

    @property
    def is_stored(self) -> bool:
        return self in (Status.NEW, Status.SAME)


State = Literal["open", "closed", "done", "ended: too few reports"]


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
        self._asked: dict[str, tuple[int, tuple[int, ...]]] = {}  # rounds never change: their id, and M of each query

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
        if len(reports) > MOST_AT_ONCE:
            raise InvalidValue(f"at most {MOST_AT_ONCE} reports are taken in at once. None of these was stored.")
        asked = self._round(manifest_hash)
        if asked is None:
            return [Status.UNKNOWN] * len(reports)
        rows = [_read(report, *asked) for report in reports]
        before, after = self._storage.insert(asked[0], [row for row in rows if row is not None], self._today())
        seen: set[bytes] = set(before)
        statuses = []
        for row in rows:
            statuses.append(_status(row, seen, after))
            seen |= set() if row is None else {row.report_id}
        return statuses

    def state(self, campaign: str) -> tuple[int, State]:
        """The last round, and whether it takes reports, waits for `next_manifest`, or was the end: with a result, or without."""
        last = self._rounds(campaign)[-1]
        if last.state in ("open", "closed"):
            return last.number, "open" if last.state == "open" else "closed"
        return last.number, TOO_FEW if self._storage.result(campaign) == TOO_FEW else "done"

    def close(self, campaign: str) -> None:
        """End the round that is open: no report comes in any more. Closing twice is closing once.

        A round with fewer reports than `min_reports` stays open until its days are over. Closed after them it ends the campaign:
        nothing is decoded, nobody is asked again, and `state` says "ended: too few reports".
        """
        last = self._rounds(campaign)[-1]
        if last.state != "open":
            return
        manifest = _manifest(last)
        is_over = self._today() > manifest.not_after
        if not self._storage.close(last.id, manifest.min_reports, TOO_FEW if is_over else None):
            raise InvalidValue(
                "the round has fewer reports than its manifest promises to wait for (min_reports). Leave it open until its last "
                f"day, {manifest.not_after}; closed after that with too few, it ends the campaign without a result."
            )

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
            self._check_outcome(self._storage.result(campaign))
            return None
        first = self._today() if not_before is None else not_before
        dates = (first, first + timedelta(days=30) if not_after is None and isinstance(first, date) else not_after)
        if done.number < manifest.header.n_rounds:  # after the last round nobody is asked again
            self._check_dates(*dates)
        answers = StoredAnswers(self._storage, done, manifest, self._chunk)
        asked = Round(done.number, manifest.queries, json.loads(done.notes))
        following = protocol_of(manifest.header).next(asked, answers, bytes.fromhex(manifest.hash))
        if isinstance(following, Outcome):
            self._storage.add_result(done.id, self._result(manifest.header, rounds, following).to_json())
            return None
        terms = (manifest.header, following.number, manifest.hash, *dates, manifest.min_reports, following.queries)
        return self._publish(done.id, following, Manifest(*terms))

    def result(self, campaign: str) -> Result:
        """What the campaign found, once `next_manifest` has said that no round follows."""
        text = self._storage.result(campaign)
        self._check_outcome(text)
        if text is None:
            self._rounds(campaign)  # says so if there is no such campaign
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

    def _round(self, manifest_hash: str) -> tuple[int, tuple[int, ...]] | None:
        """Id of a round, and how many values each of its queries has."""
        known = self._asked.get(manifest_hash) if isinstance(manifest_hash, str) else None
        if known is None and (found := self._stored(manifest_hash)) is not None:
            known = self._asked[manifest_hash] = found.id, tuple(query.M for query in _manifest(found).queries)
        return known

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

    def _check_outcome(self, text: str | None) -> None:
        if text == TOO_FEW:
            raise InvalidValue(
                "this campaign has ended: too few reports (min_reports of its manifest). Nothing was decoded, no round follows, "
                "and what devices have spent stays spent. Open a new campaign, for fewer people or for longer."
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


def _read(report: bytes, round_id: int, values: tuple[int, ...]) -> Row | None:
    """What is stored of a report; None if it is none of a round whose queries have so many values."""
    try:
        read = Report.from_bytes(report)
    except InvalidValue:
        return None
    fits = read.query < len(values) and read.index < values[read.query]
    return Row(round_id, read.report_id, read.query, read.index) if fits else None


def _status(row: Row | None, seen: set[bytes], stored: dict[bytes, Row]) -> Status:
    if row is None:
        return Status.MALFORMED
    if row.report_id not in stored:
        return Status.CLOSED
    if stored[row.report_id] != row:
        return Status.DIFFERENT
    return Status.SAME if row.report_id in seen else Status.NEW
