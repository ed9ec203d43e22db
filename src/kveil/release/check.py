"""Whether what a release says of itself agrees: its parameters, its guarantee, the draws that were paid for, its receipt.

Each is only as good as whoever wrote it, and none is a signature. But a release that was saved anew with another epsilon in
one place says something else in the others.
"""

from __future__ import annotations

import math
import os
import re
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

from kveil.errors import KveilError, NotVerified
from kveil.kernel.loss import Charge, floor_delta, floor_epsilon, zcdp_epsilon, zcdp_rho
from kveil.release.folder import DOCUMENT, LARGEST_JSON, files_of, load, signature_of
from kveil.release.place import read_file
from kveil.release.release import Release
from kveil.release.signature import SIGNATURE
from kveil.release.words import printable

State = Literal["ok", "failed", "open"]
LEAST = 0.99  # of a budget: what a fit spends of it, up to rounding
ROUNDED = 1e-5  # relative; draws in notes, as older versions wrote them, have six digits
OLD_DRAW = re.compile(
    r"drawn: .*: ([a-z-]+), (l1|l2|range) sensitivity [0-9]+, ([0-9]+) x (epsilon|rho) ([0-9.e+-]+)(?:, delta [0-9.e+-]+)?"
)


class Check(NamedTuple):
    """One check: "ok", "failed", or "open" if nothing was there to be checked."""

    name: str
    state: State
    says: str

    def __str__(self) -> str:
        line = f"{self.state:<7} {self.name:<11} {self.says}"
        return printable(line, len(line))  # a name that it quotes must not steer a terminal, or add a line


def check_release(path: str | PathLike[str]) -> Release:
    """The release at `path`, if it has a valid guarantee, agrees with itself and its signature, and is alone."""
    release = load(path)
    if release.guarantee.route == "none" or not release.guarantee.valid:
        raise NotVerified("this release has no valid guarantee. Do not let it leave the house.")
    found = [*disagreements(release), *false_signature(path), *strangers(path)]
    if found:
        raise NotVerified(f"{'; '.join(found)}. Do not rely on this release. Take a fresh copy from whoever made it.")
    return release


def false_signature(path: str | PathLike[str]) -> list[str]:
    """That there is a signature, and that it does not sign this release. Nothing if it is not signed."""
    found = signature_of(path)
    holds = found is not None and found.holds_for(read_file(Path(path) / DOCUMENT, LARGEST_JSON))
    is_there = os.path.lexists(Path(path) / SIGNATURE)
    return [f"{SIGNATURE} is not a signature of this release"] if is_there and not holds else []


def strangers(path: str | PathLike[str]) -> list[str]:
    """What lies in the folder of a release and is no part of it."""
    others = sorted(set(os.listdir(path)) - files_of(path))
    return [f"the folder also holds {', '.join(map(ascii, others))}, which no promise covers"] if others else []


def disagreements(release: Release) -> list[str]:
    """Sentences that say which parts of a release contradict each other; none if it agrees with itself."""
    return [*against_parameters(release), *against_draws(release), *against_receipt(release)]


def against_parameters(release: Release) -> list[str]:
    promise, told = release.guarantee, release.parameters
    found = []
    if not _is_epsilon(release, told.get("epsilon")):
        found.append(f"its guarantee says epsilon {promise.epsilon:.6g} and its parameters {told.get('epsilon')!r}")
    if promise.delta and not _is_delta(promise.delta, told.get("delta", promise.delta)):
        found.append(f"its guarantee says delta {promise.delta:.6g} and its parameters {told.get('delta')!r}")
    if told.get("relation", promise.relation) != promise.relation:
        found.append(f"its guarantee says relation {promise.relation} and its parameters {told['relation']!r}")
    return found


def _is_epsilon(release: Release, told: Any) -> bool:
    """Whether a fit that was asked for epsilon `told` promises what this one does: that, less what rounding takes."""
    promise = release.guarantee
    try:
        asked = floor_epsilon(float(told))
        least = float(asked)
        if promise.route == "zcdp":
            least = zcdp_epsilon(zcdp_rho(asked, Fraction(promise.delta)), Fraction(promise.delta))
    except (KveilError, TypeError, ValueError, ArithmeticError):
        return False
    return LEAST * least <= promise.epsilon <= float(asked) * (1 + 1e-9)


def _is_delta(promised: float, told: Any) -> bool:
    try:
        return math.isclose(promised, floor_delta(float(told)), rel_tol=1e-9)
    except (KveilError, TypeError, ValueError, ArithmeticError):
        return False


def against_draws(release: Release) -> list[str]:
    """What was drawn from a budget that was split must add up to that budget."""
    charges = [charge for charge in release.guarantee.charges if charge.mechanism == "given"]
    if not charges:
        return []
    draws, slack = (release.guarantee.draws, 0.0) if release.guarantee.draws else (_from_notes(release.notes), ROUNDED)
    if not draws:
        return ["its guarantee rests on one charge for all draws, and no draw is listed, so nothing can be added up"]
    is_pure = all(charge.pure() is not None for charge in charges)
    paid, drawn = (float(sum((c.pure() if is_pure else c.zcdp()) or 0 for c in part)) for part in (charges, draws))
    if LEAST * paid <= drawn <= paid * (1 + slack):
        return []
    unit = "epsilon" if is_pure else "rho"
    return [f"its guarantee says that {unit} {paid:.6g} was split over its draws, and they add up to {drawn:.6g}"]


def against_receipt(release: Release) -> list[str]:
    promise, told = release.guarantee, release.receipt["charges"]
    if promise.trust not in ("curator", "stream"):  # a party answers several charges at once; a device draws one report
        return []
    draws = sum(charge.times for charge in promise.draws or _from_notes(release.notes) or promise.charges)
    return [] if told == draws else [f"its receipt says {told} draws of noise and its guarantee lists {draws}"]


def _from_notes(notes: tuple[str, ...]) -> tuple[Charge, ...]:
    """The draws of a release that an older version saved, which listed them as notes."""
    found: list[Any] = [match.groups() for note in notes if (match := OLD_DRAW.fullmatch(note))]
    try:
        return tuple(_old_draw(*groups) for groups in found)
    except (KveilError, ValueError, ArithmeticError):
        return ()


def _old_draw(mechanism: Any, norm: Any, times: str, loss: str, size: str) -> Charge:
    sizes: dict[str, Any] = {loss: Fraction(size)}
    return Charge(mechanism, "", 1, norm, times=int(times), **sizes)
