"""Whatever yields tables is a stream of row batches: a generator, a consumer of messages, a reader of record batches."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from kveil.errors import InvalidValue
from kveil.source import Source


def is_stream(data: Any) -> bool:
    """Whether `data` yields batches, rather than being one. A list is a table; an iterator is not."""
    if isinstance(data, Iterator):
        return True
    is_table = isinstance(data, Source) or any(hasattr(data, mark) for mark in ("__len__", "__array__", "__dataframe__", "dtype"))
    return isinstance(data, Iterable) and not is_table and not isinstance(data, str | bytes)


def batches(data: Any) -> Iterator[Any]:
    """The batches of a stream, or the one that `data` is."""
    if is_stream(data):
        yield from data
    elif (
        isinstance(data, list | tuple)
        and data
        and (isinstance(data[0], str | os.PathLike) or len(getattr(data[0], "shape", ())) == 2)
    ):
        raise InvalidValue(
            "a list is one table, with a row in each entry, and this one has tables. Pass iter(...) of it to see each."
        )
    else:
        yield data
