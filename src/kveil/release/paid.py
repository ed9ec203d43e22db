"""Whether a ledger paid for a release: its rows of the release's token, and what they say, held against the release."""

from __future__ import annotations

import json
from typing import Any

from kveil.kernel.ledger import Amount, Entry, Ledger
from kveil.kernel.loss import Guarantee
from kveil.release.check import Check
from kveil.release.recluster import is_reclustered
from kveil.release.release import Release

SUMS = 1e-9  # relative: amounts of a ledger are whole units, rounded up


def payments(release: Release, ledger: Ledger) -> list[Entry]:
    """The charges of the release's token, of a federated run each of its rounds."""
    token = release.receipt["token"]
    return [entry for entry in ledger.charges() if token and (entry.token == token or ("run", token) in entry.notes)]


def against_ledger(release: Release, ledger: Ledger) -> Check:
    """Whether this ledger paid for this very release."""
    paid = payments(release, ledger)
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
        "release": f"the ledger paid for another release under this token: {_what_changed(release)}",
        "purpose": "the ledger states another purpose",
        "data_name": "the ledger states another name of the data",
    }
    if release.guarantee.trust == "federation":  # every party states its own, and none sees the release
        return []
    noted = {name: [text for entry in paid for known, text in entry.notes if known == name] for name in own}
    return [says[name] for name, texts in noted.items() if texts and own[name] not in texts]


def _what_changed(release: Release) -> str:
    """A forger can write that note, too, so it changes what is advised, and never whether the check fails."""
    if not is_reclustered(release):
        return "this one was changed afterwards"
    return (
        "this one says that it was clustered again from it, which nothing here proves. Check the release that it was made from, "
        "or make it again by `kveil recluster --ledger`, which notes it"
    )
