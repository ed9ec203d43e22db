"""Caches: what is kept from one fit to the next is bounded, and follows from public values, never from rows."""

from __future__ import annotations

import gc
import importlib
import inspect
import pkgutil
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import kveil
from kveil import PrivateKMeans, PrivateKMedian, StreamKMeans
from kveil.testing import scripted

N_ROWS = 1237  # a number that no parameter has
CANARY = 0.7182818
KEPT = type(lru_cache(len))


def caches() -> dict[str, Any]:
    """Every function of the package that keeps results, by name."""
    names = [
        name for _, name, _ in pkgutil.walk_packages(kveil.__path__, "kveil.") if "flower" not in name and "__main__" not in name
    ]
    modules = [importlib.import_module(name) for name in names]
    found = {
        f"{thing.__module__}.{thing.__qualname__}": thing
        for m in modules
        for thing in vars(m).values()
        if isinstance(thing, KEPT)
    }
    assert len(found) > 10, "none were found, so nothing would be tested"
    return found


def unbounded(kept: Any) -> bool:
    return kept.cache_parameters()["maxsize"] is None and bool(inspect.signature(kept).parameters)


def held(kept: Any) -> list[Any]:
    """Arguments and results that a cache holds, as plain numbers and texts."""
    found, todo = [], [part for part in gc.get_referents(kept) if isinstance(part, dict) and part is not vars(kept)]
    while todo and len(found) < 100_000:
        part = todo.pop()
        if isinstance(part, int | float | str):
            found.append(part)
        elif isinstance(part, np.ndarray):
            todo += [part.size, *part.ravel()[:1000].tolist()]
        elif isinstance(part, dict):
            todo += [*part.keys(), *part.values()]
        elif isinstance(part, tuple | list | frozenset | set):
            todo += list(part)
        elif type(part).__module__ == "functools" or hasattr(part, "__dict__"):
            todo += [other for other in gc.get_referents(part) if not isinstance(other, type | type(inspect))]
    return found


def tells(values: list[Any]) -> bool:
    return any(value == N_ROWS or (isinstance(value, float) and abs(value - CANARY) < 1e-12) for value in values)


def test_every_cache_is_bounded():
    assert [name for name, kept in caches().items() if unbounded(kept)] == []
    assert unbounded(lru_cache(maxsize=None)(lambda n: n)), "the twin: one that grows for ever"


@pytest.fixture
def rows():
    table = np.random.default_rng(0).uniform(-1, 1, (N_ROWS, 2))
    table[7] = CANARY
    return table


def test_no_cache_holds_rows_or_their_number(rows):
    with scripted(1):
        for method in PrivateKMeans.methods:
            options = {"metric": "cosine", "delta": 1e-6} if method == "spherical" else {"bounds": (-1, 1)}
            PrivateKMeans(2, method=method, **options).fit(rows)
        PrivateKMedian(2, bounds=(-1, 1)).fit(rows)
        StreamKMeans(2, bounds=(-1, 1)).fit(rows)
    assert [name for name, kept in caches().items() if tells(held(kept))] == []


@pytest.mark.parametrize("key", [lambda table: len(table), lambda table: float(table[7, 0])])
def test_a_cache_by_rows_is_noticed(rows, key):
    kept = lru_cache(maxsize=8)(lambda n: 0)
    kept(key(rows))
    assert tells(held(kept))
