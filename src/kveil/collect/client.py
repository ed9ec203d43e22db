"""A person's device: it checks what it is asked, pays from its own ledger, randomises its point, and sends 22 bytes."""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from math import isfinite
from numbers import Rational, Real
from typing import Any, Literal, Self

import numpy as np

from kveil.arrays import Floats
from kveil.collect import device
from kveil.collect.book import Change, Spend
from kveil.collect.device_ledger import DeviceLedger
from kveil.collect.encoding import into_domain
from kveil.collect.keys import Rotation
from kveil.collect.ledger_file import LedgerFile
from kveil.collect.manifest import MOST_DAYS_AHEAD, Header, Manifest, Signed, verified
from kveil.collect.queries import MOST_COLUMNS, Query, whole
from kveil.collect.report import ID_BYTES, Report, seed
from kveil.errors import BudgetError, InvalidType, InvalidValue, KveilError, ManifestError
from kveil.kernel.grid import Ball
from kveil.signing import is_key, require_signatures

SECRET_BYTES = 32
Why = Literal["manifest", "budget", "not now", "not asked", "answered"]


@dataclass(frozen=True)
class Refusal:
    """Why a device does not answer. It says nothing of the point, nothing left the device, and nothing was charged.

    why: "manifest" (not signed, damaged, not allowed), "budget" (the cap, or the ledger itself), "not now" (the round's dates),
    "not asked" (another cohort's turn: the usual answer in most rounds), "answered" (this campaign had its one report).
    """

    why: Why
    reason: str

    def __str__(self) -> str:
        return self.reason


class LocalClient:
    """The client on one device, with its ledger at `path` (None: in memory, for tests; or a `LedgerFile` that several share).

    Private:      the point.  Public: that and when the device answers, its cohort and sub-query, and all parameters.
    Neighbours:   any two points of the same person.
    Sensitivity:  see `kernel.response.subset_select`: the point only decides which values a report prefers.
    Cost:         epsilon of the round, on the ledger before a report leaves; at most `cap` in any 365 days (`collect.book`).
                  A campaign is begun only if all of its epsilon fits, and a later round that no longer fits is refused.
    Not covered:  who sends, from where and when; running time; a ledger file that is copied, restored or edited; a report that
                  is sent after its `send_at`; a clock that runs ahead, by which what was spent seems older than it is.

    key: the collector's public key, pinned: shipped with the application or given out of band.
    witnesses: keys that must have signed every manifest too, so that all devices are shown the same one.
    is_first: a missing file is a new device's. Otherwise it counts as lost, and the client stays quiet for 365 days.
    device_name: tells people apart who share a file; each has a cap and a cohort of their own.

    >>> from kveil.signing import SigningKey
    >>> client = LocalClient(None, n_features=2, key=SigningKey(bytes(32)).public, is_first=True)
    >>> print(client.answer([], [0.5, 0.5]))
    a device needs the signed manifests of all rounds so far, the first one first.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | LedgerFile | None,
        *,
        n_features: int,
        key: str,
        cap: float | Fraction = 4,
        witnesses: Collection[str] = (),
        is_first: bool = False,
        device_name: str = "",
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        if isinstance(witnesses, str) or not isinstance(witnesses, Collection):
            raise InvalidType("witnesses must be a list of public keys, [other.public, ...], or empty.")
        if not all(map(is_key, [key, *witnesses])):
            raise InvalidValue("key and witnesses are Ed25519 public keys, 64 hexadecimal digits; SigningKey.public is one.")
        if key in witnesses:
            raise InvalidValue("a witness is somebody else than the collector: its own key cannot be one.")
        if not isinstance(device_name, str):
            raise InvalidType(f"device_name must be text, got {device_name!r}: it tells people apart who share a file.")
        require_signatures()
        self.n_features, self.cap = whole("n_features", n_features, 1, MOST_COLUMNS), _exact_cap(cap)
        self.witnesses = frozenset(witnesses)
        self._key, self._clock = key, clock
        file = path if isinstance(path, LedgerFile) else LedgerFile(path)
        secret = device.secret_bytes(SECRET_BYTES)
        self._ledger = DeviceLedger(file, device_name, secret, self._day(), is_first=is_first)

    def answer(self, manifests: Sequence[Signed], point: Any | Callable[[], Any]) -> bytes | Refusal:
        """The report for the last of these rounds: stored first, and the same bytes however often it is asked for.

        manifests: of rounds 1 .. r, in order. point: n_features numbers, or a function that loads them, which is called only
        after everything was checked. From then on nothing raises and the message has the same size: a point that is no
        vector of finite numbers counts as the centre of the domain.

        Send it at `Spend.send_at` (see `pending`), a time that was drawn beforehand, and not when it happens to be ready.
        """
        try:
            manifest, domain = self._checked(manifests)
            with self._ledger.file.transaction() as db:
                spend, is_new = self._paid(manifest, domain, point)
                if is_new:
                    self._ledger.insert(db, spend)
            return spend.report
        except _Refused as no:
            return no.refusal
        except BudgetError as error:
            return Refusal("budget", str(error))
        except KveilError as error:
            return Refusal("manifest", str(error))

    def pending(self) -> list[Spend]:
        """Reports that no collector has acknowledged, oldest first; each says when to send it."""
        return [spend for spend in self.history() if spend.state != "acked"]

    def sent(self, manifest_hash: str) -> None:
        """Note that the report for this manifest has left."""
        self._ledger.move(manifest_hash, "sent")

    def acknowledged(self, manifest_hash: str) -> None:
        """Note that the collector has it, or said that the round is closed: what was spent stays spent."""
        self._ledger.move(manifest_hash, "acked")

    def history(self) -> list[Spend]:
        """Every report that this device has made."""
        return list(self._ledger.book().spends)

    def remaining(self) -> Fraction:
        """Epsilon that may be spent today."""
        return max(Fraction(0), self._ledger.book().left(self.cap, self._day()))

    @property
    def key(self) -> str:
        """The key that is trusted now: the pinned one, or what has followed it."""
        return self._ledger.book().key(self._key)

    def rotate(self, statement: Rotation) -> None:
        """Trust a new key, if the old one and the new one say so. A campaign that is under way keeps its key and ends here."""
        new, serial = statement.verified(old := self.key)
        self._ledger.rotate(Change(serial, old, new))

    def close(self) -> None:
        """Close the ledger's file, for everyone who shares it."""
        self._ledger.file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def cohort(self, header: Header) -> int:
        """This device's place in a campaign: unpredictable to the collector, which knows the campaign and not the secret."""
        digest = hmac.digest(self._ledger.secret, bytes.fromhex(header.campaign), "sha256")
        return int.from_bytes(digest[:2])  # 16 bits, as many as there are cohorts

    def _checked(self, chain: Sequence[Signed]) -> tuple[Manifest, Ball]:
        """Everything that can be refused without a lock on the ledger; the point is not here, so it cannot matter."""
        listed = list(chain) if isinstance(chain, Sequence) else []  # one manifest that is in no list is refused in words, too
        book = self._ledger.book()
        manifest = verified(listed, book.key(self._key), self.witnesses)[-1]
        header, today = manifest.header, book.today(self._day())
        if header.n_columns != self.n_features:
            raise ManifestError("the campaign asks for points of another number of features than this device has.")
        if (manifest.not_after - today).days > MOST_DAYS_AHEAD:
            raise ManifestError(
                f"the round is open until {manifest.not_after}, and no device answers a round that ends more than "
                f"{MOST_DAYS_AHEAD} days ahead. Its report might leave years from now. Nothing was charged."
            )
        if not manifest.not_before <= today <= manifest.not_after:
            when = f"from {manifest.not_before} to {manifest.not_after}"
            raise _Refused("not now", f"the round is open {when}. Nothing was charged.")
        low, high = header.cohorts[manifest.number - 1]
        if not low <= self.cohort(header) <= high:
            raise _Refused("not asked", "another part of the devices answers in this round. Nothing was charged.")
        return manifest, Ball(header.center.astype(np.float64), header.radius)

    def _paid(self, manifest: Manifest, domain: Ball, point: Any) -> tuple[Spend, bool]:
        """The report that was made for this very manifest, or a new one if that can be paid; and whether it is new."""
        header, book = manifest.header, self._ledger.book()
        day = self._day()
        kept = book.find(header.campaign, manifest.number, header.mode)
        if kept is not None and kept.manifest_hash != manifest.hash:
            raise _Refused("answered", "this device has had its one say in this campaign (or round). Nothing was charged.")
        if kept is not None:
            return kept, False
        book.check(header.campaign, manifest.epsilon, header.epsilon, self.cap, day)  # if it is behind, more rows count
        send_at = self._moment(manifest.not_after)
        report, secure = _drawn(manifest, domain, point)
        terms = (header.campaign, manifest.number, header.mode, manifest.epsilon, manifest.hash)
        return Spend(*terms, report, "prepared", book.today(day), send_at, secure), True

    def _moment(self, last: date) -> datetime:
        """A uniform second of what is left of the round."""
        now = self._clock().astimezone(UTC).replace(microsecond=0)
        end = datetime.combine(last, time(23, 59, 59), UTC)  # the day after may be one that no calendar has
        return now + timedelta(seconds=device.secret_below(max(1, int((end - now).total_seconds()) + 1)))

    def _day(self) -> date:
        """The clock's day where manifests count days: in UTC."""
        return self._clock().astimezone(UTC).date()


def _exact_cap(cap: Any) -> Fraction:
    """Epsilon in 365 days, exactly what was given. Text is refused rather than read: nobody should guess a promise."""
    if isinstance(cap, bool) or not isinstance(cap, Real):
        raise InvalidType(f"cap must be a number, got {cap!r}: epsilon that this device may spend in 365 days. Pass cap=4, say.")
    if not isfinite(cap) or cap <= 0:
        raise InvalidValue(f"cap must be finite and above 0, got {cap!r}: epsilon that this device may spend in 365 days.")
    return Fraction(cap) if isinstance(cap, Rational) else Fraction(float(cap))


class _Refused(KveilError):
    """Carries a refusal out of a transaction, which it undoes."""

    def __init__(self, why: Why, reason: str) -> None:
        super().__init__(reason)
        self.refusal = Refusal(why, reason)


def _drawn(manifest: Manifest, domain: Ball, point: Any) -> tuple[bytes, bool]:
    """A new report, and whether its noise was real. Sub-query and id are drawn before the point is read."""
    query, report_id = _choose(manifest.queries), device.secret_bytes(ID_BYTES)
    seeds = np.array([seed(manifest.hash, report_id)], dtype=np.uint64)
    value, receipt = device.reports(query, _read(point, domain), seeds, manifest.epsilon)
    return Report(query.id, report_id, int(value[0])).to_bytes(), receipt.secure


def _choose(queries: tuple[Query, ...]) -> Query:
    """One query, as likely as its weight says; from the vault's bits, like everything that is drawn here."""
    ends = np.cumsum([query.weight for query in queries])
    return queries[int(np.searchsorted(ends, device.secret_below(int(ends[-1])), side="right"))]


def _read(point: Any, domain: Ball) -> Floats:
    """The point relative to the domain, (1, D). From here on nothing may raise: silence would tell what the point was."""
    with suppress(Exception), np.errstate(all="ignore"):
        given = np.asarray(point() if callable(point) else point)
        if given.dtype.kind != "c":  # a cast of complex numbers would warn
            return into_domain(given.astype(np.float64).reshape(1, domain.n_columns), domain)
    return np.zeros((1, domain.n_columns))
