"""Small universes; and the tests of seeding share a module that lies beside them, `seeding_laws`."""

import sys
from pathlib import Path

import numpy as np
import pytest

from kveil import Graph, Precomputed

sys.path.insert(0, str(Path(__file__).parent))


def points_on_a_grid(rng, n):
    """L1 distances of n points, some of them in one place."""
    places = rng.integers(0, 9, (n, 2))
    return Precomputed(np.abs(places[:, None] - places).sum(axis=2))


def pieces_with_ties(rng, n):
    """A graph with edges of length 0, ties, loops and often several pieces, its distances cut off."""
    edges = rng.integers(0, n, (int(rng.integers(1, 3 * n)), 2))
    return Graph.from_edges(edges, lengths=rng.integers(0, 6, len(edges)), n_points=n, truncate=int(rng.integers(1, 15)))


@pytest.fixture(params=[points_on_a_grid, pieces_with_ties], ids=["points", "graph"])
def make(request):
    """Makes small universes: make(rng, n)."""
    return request.param


@pytest.fixture
def make_graph():
    return pieces_with_ties
