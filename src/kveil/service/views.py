"""What everyone may read: campaigns, manifests, results and ends. All of it is public, and no count of an open round is in it.

A live count would tell the moment at which somebody answered.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from kveil import canonical
from kveil.collect.intake import RoundTerms
from kveil.collect.storage import Storage
from kveil.collect.stored import StoredRound
from kveil.service import problems
from kveil.service.problems import Problem
from kveil.service.settings import MEDIA


@dataclass(frozen=True)
class Page:
    """An answer that may be kept for so many seconds."""

    body: bytes
    media: str
    seconds: int

    @property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.body).hexdigest()}"'


def campaigns(storage: Storage) -> Page:
    return _json({"campaigns": [_described(storage, name) for name in storage.campaigns()]}, 60)


def campaign(storage: Storage, name: str) -> Page | Problem:
    known = canonical.is_digest(name) and storage.campaign(name) is not None
    return _json(_described(storage, name), 60) if known else problems.NOT_FOUND


def manifest(storage: Storage, name: str) -> Page | Problem:
    stored = storage.round(name) if canonical.is_digest(name) else None
    if stored is None:
        return problems.UNKNOWN_ROUND
    return Page(bytes(stored.signed), f"{MEDIA};message=signed-manifest", 300)


def result(storage: Storage, name: str) -> Page | Problem:
    stored = storage.campaign(name) if canonical.is_digest(name) else None
    if stored is None:
        return problems.NOT_FOUND
    if stored.end_reason is not None:
        return problems.ENDED
    text = storage.result(name)
    return problems.NO_RESULT if text is None else Page(text.encode(), "application/json", 3600)


def end(storage: Storage, name: str) -> Page | Problem:
    stored = storage.campaign(name) if canonical.is_digest(name) else None
    if stored is None or stored.end_notice is None:
        return problems.NOT_FOUND
    return Page(bytes(stored.end_notice), f"{MEDIA};message=end-notice", 300)


def rotations(storage: Storage) -> Page:
    statements = [base64.b64encode(one).decode("ascii") for one in storage.rotations()]
    return _json({"rotations": statements}, 300)


def state_of(storage: Storage, name: str, rounds: list[StoredRound]) -> str:
    """ "open", "closed", "done" or "ended"."""
    if rounds[-1].state != "decoded":
        return rounds[-1].state
    stored = storage.campaign(name)
    return "done" if stored is None or stored.end_reason is None else "ended"


def overview(storage: Storage, today: date | None = None) -> list[dict[str, Any]]:
    """For the operator: every campaign with its last round, how many reports it has, and what it waits for."""
    day, told = today or datetime.now(UTC).date(), []
    for name in storage.campaigns():
        rounds = storage.rounds(name)
        last, terms = rounds[-1], RoundTerms.of(rounds[-1])
        count = storage.count(last.id) if last.reports is None else last.reports
        state = state_of(storage, name, rounds)
        is_over, text = day > terms.not_after, storage.result(name)
        told.append(
            {
                "campaign": name, "name": terms.name, "state": state, "round": terms.number, "rounds": terms.n_rounds,
                "not_before": terms.not_before.isoformat(), "not_after": terms.not_after.isoformat(),
                "days_left": max(0, (terms.not_after - day).days + 1) if state == "open" else 0,
                "reports": count, "least": terms.least, "laid_out_for": terms.people, "epsilon": terms.epsilon,
                "stuck": int(state == "open" and is_over and count < terms.least), "admitted": storage.admitted(name),
                **({} if text is None else {"result": json.loads(text)}),
            }
        )  # fmt: skip
    return told


def _described(storage: Storage, name: str) -> dict[str, Any]:
    rounds = storage.rounds(name)
    terms = RoundTerms.of(rounds[-1])
    return {
        "campaign": name, "name": terms.name, "state": state_of(storage, name, rounds), "round": terms.number,
        "not_before": terms.not_before.isoformat(), "not_after": terms.not_after.isoformat(),
        "manifests": [one.manifest_hash for one in rounds],
    }  # fmt: skip


def _json(value: Any, seconds: int) -> Page:
    return Page(json.dumps(value, sort_keys=True).encode(), "application/json", seconds)
