"""Whether a release may be believed: one check after the other, each with a line that says what was found.

Files, signature, guarantee, parameters, draws, card, other files in the folder, and the row of the ledger that paid for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

from kveil.errors import KveilError
from kveil.kernel.ledger import Amount, Entry, Ledger
from kveil.kernel.loss import Guarantee
from kveil.release.check import against_draws, against_parameters, against_receipt, strangers
from kveil.release.document import CARD
from kveil.release.folder import DOCUMENT, LARGEST_JSON, load, signature_of
from kveil.release.odds import SOMEBODY, in_words
from kveil.release.place import read_file
from kveil.release.release import Release
from kveil.release.signature import SIGNATURE
from kveil.release.words import escaped
from kveil.signing import public_key

State = Literal["ok", "failed", "open"]
SUMS = 1e-9  # relative: amounts of a ledger are whole units, rounded up


class Check(NamedTuple):
    """One check: "ok", "failed", or "open" if nothing was there to be checked."""

    name: str
    state: State
    says: str

    def __str__(self) -> str:
        return f"{self.state:<7} {self.name:<11} {self.says}"


class Verified(NamedTuple):
    """Every check of one release, in order."""

    checks: tuple[Check, ...]

    @property
    def is_good(self) -> bool:
        """Whether no check failed. A release that is not signed can be good; who made it is then open."""
        return all(check.state != "failed" for check in self.checks)

    def __str__(self) -> str:
        return "\n".join(map(str, self.checks))


def verify(
    path: str | PathLike[str], *, key: str | PathLike[str] | None = None, ledger: Ledger | str | PathLike[str] | None = None
) -> Verified:
    """Check the release at `path`. Nothing in it is executed, and nothing is charged.

    key: the public key of whoever you expect to have signed it, or its file. Without one a signature is checked, but anybody
        may have made the key.
    ledger: the ledger that paid for it (of a federated release: that of one party), for whoever may read it.
    """
    wanted = None if key is None else public_key(key)
    account = ledger if isinstance(ledger, Ledger) or ledger is None else Ledger.open(ledger)
    try:
        release = load(path)
    except KveilError as error:
        return Verified((Check("files", "failed", str(error)),))
    whole = Check("files", "ok", f"every file is the one that {DOCUMENT} names, and its digest is right")
    promise = f"epsilon {release.guarantee.epsilon:.6g}, delta {release.guarantee.delta:.3g}"
    checks = [
        whole,
        _signature(path, wanted),
        _check("guarantee", _guarantee(release), f"{promise} follow from its charges"),
        _check("parameters", against_parameters(release), "they ask for what the guarantee promises"),
        _check("draws", [*against_draws(release), *against_receipt(release)], "they add up to what was charged"),
        _check("card", _card(release, path), "it states the promise of the guarantee"),
        _check("other files", strangers(path), "none in the folder"),
    ]
    return Verified((*checks, *(() if account is None else [_ledger(release, account)])))


def _check(name: str, found: Iterable[str], good: str) -> Check:
    trouble = "; ".join(found)
    return Check(name, "failed" if trouble else "ok", trouble or good)


def _signature(path: str | PathLike[str], wanted: str | None) -> Check:
    found = signature_of(path)
    if found is None:
        says = f"not signed{', and a signature by a given key was asked for' if wanted else ': it does not tell who made it'}"
        return Check("signature", "failed" if wanted else "open", says)
    if not found.holds_for(read_file(Path(path) / DOCUMENT, LARGEST_JSON)):
        return Check("signature", "failed", f"{SIGNATURE} is not a signature of this release")
    if wanted is None:
        return Check("signature", "open", f"signed by the key {found.key}; pass the key that you trust to know whose it is")
    if found.key != wanted:
        return Check("signature", "failed", f"signed by another key, {found.key}")
    return Check("signature", "ok", f"signed by the key {found.key}")


def _guarantee(release: Release) -> list[str]:
    is_sound = release.guarantee.route != "none" and release.guarantee.valid
    return [] if is_sound else ["this release has no valid guarantee; it must not leave the house"]


def _card(release: Release, path: str | PathLike[str]) -> list[str]:
    """The page that people read must state the promise; its other words changed from version to version."""
    text = read_file(Path(path) / CARD, LARGEST_JSON).decode(errors="replace")
    promises, odds = ([line for line in text.splitlines() if line.startswith(start)] for start in ("epsilon = ", SOMEBODY))
    stated = [escaped(line) for line in str(release.guarantee).splitlines() if line.startswith("epsilon = ")]
    agrees = promises == stated and odds in ([], [escaped(in_words(release.guarantee))])  # older cards have no such sentence
    return [] if agrees else [f"{CARD} states another promise than the guarantee"]


def _ledger(release: Release, ledger: Ledger) -> Check:
    token = release.receipt["token"]
    paid = [entry for entry in ledger.charges() if token and (entry.token == token or ("run", token) in entry.notes)]
    if not paid:
        return Check("ledger", "failed", f'ledger "{ledger.name}" has no charge of this release\'s token')
    found = [*_wrong_charges(release, ledger, paid), *_wrong_notes(release, paid)]
    if found:
        return Check("ledger", "failed", "; ".join(found))
    filed = any(name == "release" for entry in paid for name, _ in entry.notes)
    return Check(
        "ledger", "ok", f'on "{ledger.name}", {_day(paid)}: {"the same release" if filed else "charged; no digest was noted"}'
    )


def _day(paid: list[Entry]) -> str:
    return paid[0].reserved_at[:10]


def _wrong_charges(release: Release, ledger: Ledger, paid: list[Entry]) -> list[str]:
    """What was reserved must be what is promised; of a federated run no more than that, since rounds may be left out."""
    promise = release.guarantee
    told: dict[str, Any] = json.loads(promise.to_json())
    plans = [json.loads(entry.plan) for entry in paid]
    found = []
    if any((plan["relation"], plan["unit"]) != (told["relation"], told["unit"]) for plan in plans):
        found.append("the ledger charged for another relation or unit than the guarantee names")
    if promise.trust == "federation":
        found += [] if _fits(promise, [entry.amount for entry in paid]) else ["the ledger charged more than the guarantee says"]
    else:
        if release.receipt["ledger"] != ledger.name:
            found.append("its receipt names another ledger")
        if [plan["charges"] for plan in plans] != [told["charges"]]:
            found.append("the ledger charged something else than the guarantee lists")
    if promise.valid and not all(entry.secure for entry in paid):
        found.append("the ledger says that the noise was scripted")
    return found


def _fits(promise: Guarantee, amounts: list[Amount]) -> bool:
    if promise.route == "zcdp":
        rho = float(sum(charge.zcdp() or 0 for charge in promise.charges))
        return sum(amount.rho or 0.0 for amount in amounts) <= rho * (1 + SUMS)
    return sum(amount.epsilon for amount in amounts) <= promise.epsilon * (1 + SUMS)


def _wrong_notes(release: Release, paid: list[Entry]) -> list[str]:
    """What the ledger noted, where it noted anything, must be true of this release."""
    own = {"release": release.fingerprint(), "purpose": release.purpose, "data_name": release.data_name}
    says = {
        "release": "the ledger paid for another release under this token: this one was changed, or clustered again, afterwards",
        "purpose": "the ledger states another purpose",
        "data_name": "the ledger states another name of the data",
    }
    if release.guarantee.trust == "federation":  # every party states its own, and none sees the release
        return []
    noted = {name: [text for entry in paid for known, text in entry.notes if known == name] for name in own}
    return [says[name] for name, texts in noted.items() if texts and own[name] not in texts]
