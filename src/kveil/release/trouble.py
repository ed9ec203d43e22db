"""How a release says that it cannot be trusted: what is wrong, why it matters, what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kveil.errors import ReleaseError

T = TypeVar("T")


def damaged(what: str) -> ReleaseError:
    """The error for a release whose files are not what was saved."""
    return ReleaseError(
        f"this release is damaged: {what}. A centre or a promise read from it could be wrong without anyone noticing. "
        "Take a fresh copy from whoever saved it, or save the release again."
    )


def attempt(action: Callable[[], T], what: str) -> T:
    """What `action` returns, or `damaged(what)`; nothing of a library's own message travels along."""
    try:
        return action()
    except Exception:  # a parser fed with foreign bytes may raise anything
        failed = damaged(what)
    raise failed  # out here, so that the original is not kept as its context
