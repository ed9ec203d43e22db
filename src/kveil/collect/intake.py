"""Taking reports in: what a service needs of the storage, and nothing of decoding.

A process that only takes in loads neither numba nor scipy: it reads the terms of a round from the manifest that the storage
keeps, which `manifest.Manifest` wrote and checked before it was published.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Any

from kveil import canonical
from kveil.collect.report import BYTES, LAYOUT, VERSION
from kveil.collect.storage import Storage
from kveil.collect.stored import Row, StoredRound, Taken
from kveil.errors import InvalidValue

MOST_AT_ONCE = 10_000
COHORTS = 2**16


class Status(Enum):
    """What became of a report; the number is the HTTP status that would say so of one alone."""

    NEW = 201  # stored, durably
    SAME = 200  # these very bytes were here already
    NOT_ADMITTED = 401  # the round asks for a proof, and there was none, or it was used before
    UNKNOWN = 404  # no such round
    DIFFERENT = 409  # another report of the campaign has this id: it was altered, or belongs to another round
    CLOSED = 410  # too late: not stored, and what the device has spent stays spent
    MALFORMED = 422  # no report of this round: length, version, flags, query or index
    FULL = 507  # the round has as many reports as its collector takes

    @property
    def is_stored(self) -> bool:
        return self in (Status.NEW, Status.SAME)


@dataclass(frozen=True)
class RoundTerms:
    """What a collector needs of a manifest to take reports in, and to tell people about the round.

    values: how many values each query has. people: about how many the round asks. least: reports without which it is not decoded.
    """

    round_id: int
    manifest_hash: str
    campaign: str
    name: str
    number: int
    n_rounds: int
    not_before: date
    not_after: date
    least: int
    people: int
    epsilon: str
    key: str
    values: tuple[int, ...]
    is_every: bool = False

    @classmethod
    def of(cls, stored: StoredRound) -> RoundTerms:
        body = json.loads(json.loads(stored.signed)["manifest"])  # our own: checked before it was published
        header = body["header"]
        low, high = header["cohorts"][body["round"] - 1]
        return cls(
            round_id=stored.id, manifest_hash=stored.manifest_hash, campaign=stored.campaign, name=header["name"],
            number=body["round"], n_rounds=len(header["cohorts"]), not_before=date.fromisoformat(body["not_before"]),
            not_after=date.fromisoformat(body["not_after"]), least=body["min_reports"],
            people=max(1, round(header["n"] * (high - low + 1) / COHORTS)), epsilon=header["privacy"]["eps"], key=header["key"],
            values=tuple(query["M"] for query in body["queries"]), is_every=header["privacy"]["mode"] == "all_rounds",
        )  # fmt: skip


class Intake:
    """Reports into one storage."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._known: dict[str, RoundTerms] = {}  # rounds never change

    def known(self, manifest_hash: str) -> RoundTerms | None:
        """Of a round that was asked for before."""
        return self._known.get(manifest_hash)

    def terms(self, manifest_hash: str) -> RoundTerms | None:
        """Of a round. A stranger says which; what is no hash is not looked for."""
        known = self._known.get(manifest_hash) if isinstance(manifest_hash, str) else None
        if known is None and canonical.is_digest(manifest_hash) and (found := self.storage.round(manifest_hash)) is not None:
            known = self._known[manifest_hash] = RoundTerms.of(found)
        return known

    def is_ended(self, campaign: str) -> bool:
        """Whether a campaign ended without a result."""
        found = self.storage.campaign(campaign)
        return found is not None and found.end_reason is not None

    def submit_many(self, manifest_hash: str, reports: Sequence[bytes]) -> list[Status]:
        """Take in at most 10 000 reports of one round in one transaction, with a status for each."""
        if len(reports) > MOST_AT_ONCE:
            raise InvalidValue(f"at most {MOST_AT_ONCE} reports are taken in at once. None of these was stored.")
        terms = self.terms(manifest_hash)
        if terms is None:
            return [Status.UNKNOWN] * len(reports)
        rows = [read_report(report, terms.values) for report in reports]
        return statuses(rows, self.storage.insert(manifest_hash, [row for row in rows if row is not None]))


def read_report(report: bytes, values: tuple[int, ...]) -> Row | None:
    """What is stored of a report; None if it is none of a round whose queries have so many values."""
    if not isinstance(report, bytes) or len(report) != BYTES:
        return None
    return _checked(LAYOUT.unpack(report), values)


def read_reports(body: bytes, values: tuple[int, ...]) -> list[Row | None]:
    """The same for whole reports, one after another."""
    return [_checked(fields, values) for fields in LAYOUT.iter_unpack(body)]


def statuses(rows: Sequence[Row | None], taken: Taken) -> list[Status]:
    """What became of each row; of rows that repeat the first one is new and the others are the same."""
    seen, told = set(taken.before), []
    for row in rows:
        told.append(_status(row, seen, taken))
        if row is not None:
            seen.add(row.report_id)
    return told


def _checked(fields: tuple[Any, ...], values: tuple[int, ...]) -> Row | None:
    version, flags, query, report_id, index = fields
    fits = version == VERSION and not flags and query < len(values) and index < values[query]
    return Row(report_id, query, index) if fits else None


def _status(row: Row | None, seen: set[bytes], taken: Taken) -> Status:
    if row is None:
        return Status.MALFORMED
    if taken.after is not None:
        if row.report_id not in taken.after:
            return Status.NOT_ADMITTED if taken.is_open else Status.CLOSED
        if taken.after[row.report_id] != (taken.round_id, row):
            return Status.DIFFERENT
    return Status.SAME if row.report_id in seen else Status.NEW
