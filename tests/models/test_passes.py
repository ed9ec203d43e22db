"""How often a fit reads the rows: as docs/methods.md says, and never by what rows hold."""

import numpy as np
import pytest
from scipy.sparse import random as random_sparse

import kveil
from kveil import PrivateKMeans
from kveil.source.local import LocalSource
from kveil.testing import scripted
from kveil.tuning import Candidates, Tree


def passes(monkeypatch, X, **parameters) -> int:
    """map_reduce calls of one fit."""
    calls = []
    plain = LocalSource.map_reduce
    monkeypatch.setattr(LocalSource, "map_reduce", lambda *a, **k: calls.append(1) or plain(*a, **k))
    with scripted(1):
        PrivateKMeans(3, random_state=0, **parameters).fit(kveil.read(X))
    monkeypatch.undo()
    return len(calls)


@pytest.mark.parametrize(
    ("d", "parameters", "expected"),
    [
        (2, {}, 6),
        (6, {"delta": 1e-6}, 23),
        (6, {"delta": 1e-6, "tuning": Tree(steps=2)}, 11),
        (6, {"epsilon": 8.0}, 22),
        (6, {"tuning": Tree(steps=2)}, 10),
        (30, {"delta": 1e-6, "epsilon": 1.0}, 23),
        (30, {"delta": 1e-6, "epsilon": 4.0}, 22),  # two stages, as rows are many
        (30, {"delta": 1e-6, "tuning": Tree(steps=1)}, 9),
        (30, {"epsilon": 8.0}, 22),
        (2, {"method": "grid"}, 2),
        (6, {"method": "lloyd"}, 5),
        (6, {"method": "mean"}, 1),
        (6, {"method": "sample-aggregate"}, 11),
        (6, {"method": "candidates", "epsilon": 8.0, "tuning": Candidates(levels=4, swaps=5)}, 3 + 2 * 4 + 5),
    ],
)
def test_a_fit_reads_the_rows_as_often_as_the_documentation_says(monkeypatch, d, parameters, expected):
    rng = np.random.default_rng(0)
    blobs = rng.uniform(-0.6, 0.6, (3, d))[rng.integers(0, 3, 20_000)] + 0.02 * rng.standard_normal((20_000, d))
    assert passes(monkeypatch, blobs, bounds=(-1, 1), **parameters) == expected


def test_sparse_rows_are_read_eight_times_at_most(monkeypatch):
    rows = random_sparse(4000, 1200, density=0.02, random_state=0, format="csr")
    assert passes(monkeypatch, rows, radius=1.0, delta=1e-6) <= 8
    assert passes(monkeypatch, rows, metric="cosine", delta=1e-6, epsilon=4.0) == 7


@pytest.mark.parametrize("method", ["tree", "lloyd", "grid", "candidates", "sample-aggregate", "mean"])
def test_one_row_more_does_not_change_how_often_rows_are_read(monkeypatch, method):
    """The same noise, so the same released values up to the row: whatever is decided, it is decided by those."""
    rows = np.random.default_rng(0).uniform(-1, 1, (2980, 3))  # exp(8) is 2980.96
    counts = {passes(monkeypatch, X, bounds=(-1, 1), method=method, epsilon=8.0) for X in (rows, np.vstack([rows, [[9, 9, 9]]]))}
    assert len(counts) == 1
