"""Whether a release may be believed: one check after the other, each with a line that says what was found.

Files, signature, guarantee, parameters, draws, card, other files in the folder, and the row of the ledger that paid for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from kveil.errors import InvalidValue, KveilError, NotVerified
from kveil.kernel.ledger import Ledger
from kveil.release.check import Check, against_draws, against_parameters, against_receipt, false_signature, strangers
from kveil.release.document import CARD
from kveil.release.folder import DOCUMENT, LARGEST_JSON, load, signature_of
from kveil.release.odds import SOMEBODY, in_words
from kveil.release.paid import against_ledger
from kveil.release.place import read_file
from kveil.release.release import Release
from kveil.release.words import escaped
from kveil.signing import public_key

TOLD = "Do not rely on it; `kveil verify RELEASE` shows every check."
COMPARE = "Whoever receives it compares this key with the one that they were given by another way."


class Verified(NamedTuple):
    """Every check of one release, in order. `print` shows one line per check, and one about those that are open.

    Attributes
    ----------
    checks : tuple of Check
        Each has a `name`, a `state` ("ok", "open" or "failed") and a sentence.

    Examples
    --------
    >>> Verified((Check("files", "ok", "all there"),)).is_good
    True
    """

    checks: tuple[Check, ...]

    @property
    def is_good(self) -> bool:
        """Whether no check failed. A release that is not signed can be good; who made it is then open."""
        return all(check.state != "failed" for check in self.checks)

    @property
    def left_open(self) -> tuple[str, ...]:
        """Names of the checks that were not made, or not to the end: a forgery that they would find is not seen."""
        return tuple(check.name for check in self.checks if check.state == "open")

    def __str__(self) -> str:
        missed = f"Left open: {', '.join(self.left_open)}. What was not checked would not be seen."
        return "\n".join([*map(str, self.checks), *([missed] if self.left_open else [])])


def verify(
    path: str | PathLike[str], *, key: str | PathLike[str] | None = None, ledger: Ledger | str | PathLike[str] | None = None
) -> Verified:
    """Check the release at `path`. Nothing in it is executed, and nothing is charged.

    Parameters
    ----------
    path : path
        The folder of the release.
    key : str or path, optional
        The public key of whoever you expect to have signed it, or its file. Without one a signature is checked, but
        anybody may have made the key.
    ledger : Ledger or path, optional
        The ledger that paid for it (of a federated release: that of one party), for whoever may read it.

    Returns
    -------
    Verified
        One check after the other; `is_good` if none failed.

    Examples
    --------
    >>> from kveil import PrivateKMeans
    >>> import tempfile
    >>> release = PrivateKMeans(2, bounds=(0, 10)).fit([[1.0], [9.0]] * 500).release_
    >>> with tempfile.TemporaryDirectory() as place:
    ...     verify(release.save(place + "/out")).is_good
    True
    """
    wanted = None if key is None else public_key(key)
    account = ledger if isinstance(ledger, Ledger) or ledger is None else _opened(ledger)
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
    return Verified((*checks, *_ledger(release, account)))


def check_good(path: str | PathLike[str], ledger: Ledger | str | PathLike[str] | None = None) -> None:
    """Raise NotVerified if a check of the release at `path` fails: nothing that vouches for it may be made of it."""
    failed = [f"{check.name} ({check.says})" for check in verify(path, ledger=ledger).checks if check.state == "failed"]
    if failed:
        raise NotVerified(f"this release fails a check: {'; '.join(failed)}. {TOLD}")


def check_signed(path: str | PathLike[str]) -> None:
    """Raise NotVerified if there is a signature that does not hold, or a file in its place that is none."""
    if false_signature(path):
        raise NotVerified(f"this release fails a check: signature ({'; '.join(false_signature(path))}). {TOLD}")


def signer(path: str | PathLike[str]) -> str:
    """Who signed the release at `path`, for its report; whether the signature holds is checked elsewhere."""
    found = signature_of(path)
    return "not signed: nothing here tells who made it" if found is None else f"signed by {found.key}. {COMPARE}"


def _opened(path: str | PathLike[str]) -> Ledger:
    """The ledger that paid. A new one would not help whoever checks a release, so nothing of making one is said."""
    if not Path(path).is_file():
        raise InvalidValue(
            f"no ledger at {str(Path(path))!r}, so it was not asked who paid. Pass the file that the release was charged to, or "
            "leave the ledger out: the other checks need none."
        )
    return Ledger.open(path)


def _ledger(release: Release, account: Ledger | None) -> list[Check]:
    """Of a release that names no ledger, none is missed."""
    if account is not None:
        return [against_ledger(release, account)]
    payer = release.receipt["ledger"]
    return [Check("ledger", "open", f'it names "{payer}" as payer; pass --ledger to ask it')] if payer else []


def _check(name: str, found: Iterable[str], good: str) -> Check:
    trouble = "; ".join(found)
    return Check(name, "failed" if trouble else "ok", trouble or good)


def _signature(path: str | PathLike[str], wanted: str | None) -> Check:
    found = signature_of(path)
    if found is None:
        says = f"not signed{', and a signature by a given key was asked for' if wanted else ': it does not tell who made it'}"
        return Check("signature", "failed" if wanted else "open", says)
    if trouble := false_signature(path):
        return Check("signature", "failed", "; ".join(trouble))
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
