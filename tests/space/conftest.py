"""A small universe of every kind."""

import numpy as np
import pytest

import kveil


@pytest.fixture(params=["euclidean", "manhattan", "precomputed", "graph", "graph in pieces", "metric"])
def universe(request):
    """A universe of 40 points with ties and duplicates."""
    rng = np.random.default_rng(7)
    points = rng.integers(0, 4, (40, 3))
    if request.param in ("euclidean", "manhattan"):
        return {"euclidean": kveil.Euclidean, "manhattan": kveil.Manhattan}[request.param](points)
    if request.param == "precomputed":
        return kveil.Precomputed(np.abs(points[:, None] - points).sum(axis=2))
    if request.param == "metric":
        return kveil.Metric(points, lambda a, b: float(np.abs(a - b).max()))
    ring = np.column_stack([np.arange(40), np.roll(np.arange(40), 1)])
    chords = rng.integers(0, 40, (20, 2))
    edges, lengths = np.concatenate([ring, chords]), np.concatenate([rng.integers(0, 3, 40), rng.integers(1, 9, 20)])
    if request.param == "graph":
        return kveil.Graph.from_edges(edges, lengths=lengths)
    return kveil.Graph.from_edges(edges[:12], lengths=lengths[:12], n_points=40, truncate=4)
