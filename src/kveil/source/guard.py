"""What a library says when it stumbles may quote rows, so its words end here and fixed ones go on in their place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from kveil.errors import KveilError, SourceError

T = TypeVar("T")

UNREADABLE = (
    "the rows could not be read to the end. Why is not told here, because a library's message may quote them. Check that the "
    "table or file has not changed since it was opened and that there is memory enough; kveil.inspect reads it openly."
)


def quietly(action: Callable[[], T], complaint: str = UNREADABLE) -> T:
    """What `action` returns, or a `SourceError` that carries nothing of the original error, which may quote rows."""
    try:
        return action()
    except BaseException as error:
        if isinstance(error, KveilError) or not _is_failure(error):
            raise
        failed = SourceError(complaint)
    raise failed  # out here, so that the original is not kept as its context


def each_quietly(items: Iterator[T], complaint: str = UNREADABLE) -> Iterator[T]:
    """The items, with `quietly` around the making of each of them and not around what is done with it."""
    while (item := quietly(lambda: next(items, None), complaint)) is not None:
        yield item


def _is_failure(error: BaseException) -> bool:
    """Whether an action failed, rather than being told to stop. A panic of polars is no `Exception`."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"
