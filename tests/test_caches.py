"""Caches: what is kept from one fit to the next is bounded, and follows from public values, never from rows."""

from __future__ import annotations

import gc
import importlib
import inspect
import pkgutil
from collections import deque
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import kveil
import kveil.progress
from kveil import PrivateKMeans, PrivateKMedian, StreamKMeans
from kveil.testing import scripted

N_ROWS = 1237  # a number that no parameter has
CANARY = 0.7182818
KEPT = type(lru_cache(len))


def lasting() -> dict[str, Any]:
    """All that outlives a fit, by name: what stands in a module of the package, or in a class there."""
    names = [
        name for _, name, _ in pkgutil.walk_packages(kveil.__path__, "kveil.") if "flower" not in name and "__main__" not in name
    ]
    found = {}
    for name in names:
        own = vars(importlib.import_module(name))
        found |= {f"{name}.{key}": thing for key, thing in own.items()}
        classes = [thing for thing in own.values() if isinstance(thing, type) and thing.__module__ == name]
        found |= {f"{name}.{one.__qualname__}.{key}": thing for one in classes for key, thing in vars(one).items()}
    return {name: getattr(thing, "__func__", thing) for name, thing in found.items() if not name.endswith("__")}


def caches() -> dict[str, Any]:
    """Every function of the package that keeps results, by name."""
    found = {f"{thing.__module__}.{thing.__qualname__}": thing for thing in lasting().values() if isinstance(thing, KEPT)}
    assert len(found) > 10, "none were found, so nothing would be tested"
    return found


def containers() -> dict[str, Any]:
    """Every table, list or number that stands in a module or a class: a fit may have left something there."""
    kinds = dict | list | set | deque | np.ndarray | int | float
    return {name: thing for name, thing in lasting().items() if isinstance(thing, kinds)}


def unbounded(kept: Any) -> bool:
    return kept.cache_parameters()["maxsize"] is None and bool(inspect.signature(kept).parameters)


def held(kept: Any) -> list[Any]:
    """What a container holds, or the arguments and results of a cache, as plain numbers and texts."""
    is_cache = isinstance(kept, KEPT)
    inner = [part for part in gc.get_referents(kept) if isinstance(part, dict) and part is not vars(kept)] if is_cache else []
    found, todo, seen = [], inner if is_cache else [kept], {}
    while todo and len(found) < 100_000:
        part = todo.pop()
        if id(part) in seen:  # commands refer to each other
            continue
        seen[id(part)] = part  # kept, or its id could be given to another
        if isinstance(part, int | float | str):
            found.append(part)
        elif isinstance(part, np.ndarray):
            todo += [part.size, *part.ravel()[:1000].tolist()]
        elif isinstance(part, dict):
            todo += [*part.keys(), *part.values()]
        elif isinstance(part, tuple | list | frozenset | set | deque):
            todo += list(part)
        elif is_cache and (type(part).__module__ == "functools" or hasattr(part, "__dict__")):
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


def test_nothing_that_outlives_a_fit_holds_rows_or_their_number(rows):
    with scripted(1):
        for method in PrivateKMeans.methods:
            options = {"metric": "cosine", "delta": 1e-6} if method == "spherical" else {"bounds": (-1, 1)}
            PrivateKMeans(2, method=method, **options).fit(rows)
        PrivateKMedian(2, bounds=(-1, 1)).fit(rows)
        StreamKMeans(2, bounds=(-1, 1)).fit(rows)
    assert [name for name, kept in {**caches(), **containers()}.items() if tells(held(kept))] == []


def test_a_table_in_a_module_and_a_cache_in_a_class_are_noticed(monkeypatch):
    class Question:
        @staticmethod
        @lru_cache(maxsize=8)
        def kept(n):
            return n

    Question.__module__ = kveil.progress.__name__
    monkeypatch.setattr(kveil.progress, "SEEN", {N_ROWS: 0}, raising=False)
    monkeypatch.setattr(kveil.progress, "Question", Question, raising=False)
    Question.kept(N_ROWS)
    assert [name for name, kept in containers().items() if tells(held(kept))] == ["kveil.progress.SEEN"]
    assert Question.kept in [kept for kept in caches().values() if tells(held(kept))]


@pytest.mark.parametrize("key", [lambda table: len(table), lambda table: float(table[7, 0])])
def test_a_cache_by_rows_is_noticed(rows, key):
    kept = lru_cache(maxsize=8)(lambda n: 0)
    kept(key(rows))
    assert tells(held(kept))
