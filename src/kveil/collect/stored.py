"""What a collector's storage keeps and finds, as plain values."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import date
from typing import NamedTuple


class StoredRound(NamedTuple):
    """A round as it is kept. state: "open", "closed" or "decoded"; signed: the manifest as devices get it; notes: JSON of the
    protocol's own few numbers for later rounds; reports: how many there were when it closed."""

    id: int
    campaign: str
    number: int
    manifest_hash: str
    state: str
    signed: bytes
    notes: str
    reports: int | None = None


class StoredCampaign(NamedTuple):
    """end_reason, end_notice: of one that ended without a result, and what was signed about it, if somebody with the key did."""

    id: int
    hash: str
    ended_day: date | None
    end_reason: str | None
    end_notice: bytes | None


class Checkpoint(NamedTuple):
    """A sum over the reports up to and including the id `watermark`."""

    watermark: bytes
    statistic: bytes
    is_done: bool


class Row(NamedTuple):
    """What is kept of a report, besides its round."""

    report_id: bytes
    query: int
    idx: int


class Taken(NamedTuple):
    """What an insert found: the round, whether it is open, and what was kept under these ids before and is now, with its round.

    None after: every row is stored as it was sent.
    """

    round_id: int
    is_open: bool
    before: Mapping[bytes, tuple[int, Row]]
    after: Mapping[bytes, tuple[int, Row]] | None


class Proofs(NamedTuple):
    """What admits reports: a key of 32 bytes by the id of its report. is_listed: only keys among the campaign's codes count.

    once_in: empty if a key is used once in a campaign; else the round, if everyone answers in every round.
    """

    keys: Mapping[bytes, bytes]
    is_listed: bool
    once_in: bytes = b""

    def spent(self, key: bytes) -> bytes:
        """What is kept of a key that was used."""
        return hashlib.sha256(self.once_in + key).digest() if self.once_in else key
