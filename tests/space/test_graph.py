"""Searches on graphs against Floyd and Warshall: ties, zero lengths, loops, parallels, pieces, with and without truncation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kveil import Graph
from kveil.errors import InvalidValue


def every_pair(n_points: int, edges: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Shortest paths of all pairs by Floyd and Warshall; infinity where there is none."""
    apart = np.full((n_points, n_points), np.inf)
    for (u, v), length in zip(edges, lengths, strict=True):
        apart[u, v] = apart[v, u] = min(apart[u, v], length)
    np.fill_diagonal(apart, 0)
    for via in range(n_points):
        apart = np.minimum(apart, apart[:, via, None] + apart[via])
    return apart


@st.composite
def graphs(draw):
    """A graph and its distances; sparse ones fall into several pieces."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 30))
    edges = rng.integers(0, n, (int(rng.integers(0, 3 * n)), 2))  # loops, parallels, both directions
    lengths = rng.choice(draw(st.sampled_from([[1], [0, 1], [0, 1, 1, 2, 5], [3, 1000]])), len(edges))
    truncate = draw(st.one_of(st.none(), st.integers(1, 12)))
    apart = every_pair(n, edges, lengths)
    if truncate is None and np.isinf(apart).any():
        truncate = 2 * int(apart[np.isfinite(apart)].max()) + 1
    graph = Graph.from_edges(edges, lengths=lengths, n_points=n, truncate=truncate)
    return graph, np.minimum(apart, np.inf if truncate is None else truncate).astype(np.int64), rng


@settings(max_examples=250, deadline=None)
@given(graphs())
def test_distances_nearest_claims_and_places_equal_brute_force(case):
    graph, apart, rng = case
    n = graph.n_points
    assert np.array_equal(graph.distances(np.arange(n)), apart)
    assert apart.max() <= graph.diameter
    some, others = rng.integers(0, n, 5), rng.integers(0, n, 2)
    assert np.array_equal(graph.distances(some, others), apart[np.ix_(some, others)])
    assert np.array_equal(graph.distances(others, some), apart[np.ix_(others, some)])
    centers = rng.integers(0, n, int(rng.integers(2, n + 3)))  # with repetitions
    owner, first, second, runner = graph.nearest(centers)
    order = np.argsort(apart[centers], axis=0, kind="stable")
    assert np.array_equal(owner, order[0])
    assert np.array_equal(runner, order[1])
    assert np.array_equal(np.stack([first, second]), np.sort(apart[centers], axis=0)[:2])
    best, label = np.full(n, graph.diameter + 1, dtype=np.int32), np.full(n, -1, dtype=np.int32)
    for position, center in enumerate(centers):
        graph.claim(center, position, best, label)
    assert np.array_equal(label, owner)
    assert np.array_equal(best, first)
    assert np.array_equal(graph.locations(), (apart == 0).argmax(axis=1))


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_reach_finds_exactly_whom_a_candidate_would_serve_and_what_swaps_cost(case):
    """cost(F - F[i] + y) = constant part + what those within their second distance gain: equal to brute force for all i, y."""
    graph, apart, rng = case
    n = graph.n_points
    centers, weights = rng.integers(0, n, int(rng.integers(1, 5))), rng.integers(0, 4, n)
    owner, first, second, _ = graph.nearest(centers)
    for y in range(n):
        served, away = graph.reach(y, second)
        assert sorted(served.tolist()) == np.flatnonzero(apart[y] < second).tolist()
        assert np.array_equal(away, apart[y][served])
        assert (np.diff(away) >= 0).all()
        for i in range(len(centers)):
            cost = np.where(owner == i, second, first).astype(np.int64)
            cost[served] = np.minimum(cost[served], away)
            left = np.delete(centers, i)
            expected = np.minimum(apart[left].min(axis=0) if len(left) else graph.diameter, apart[y])
            assert cost @ weights == expected @ weights


def test_distances_are_a_function_of_the_pair_on_a_graph_of_500_vertices_in_pieces():
    rng = np.random.default_rng(0)
    edges, lengths = rng.integers(0, 500, (600, 2)), rng.choice([0, 1, 2, 7], 600)
    apart = np.minimum(every_pair(500, edges, lengths), 25).astype(np.int64)
    graph = Graph.from_edges(edges, lengths=lengths, n_points=500, truncate=25)
    assert np.array_equal(graph.distances(np.arange(500)), apart)
    centers = rng.choice(500, 12, replace=False)
    assert np.array_equal(graph.nearest(centers)[2], np.sort(apart[centers], axis=0)[1])


def test_a_large_graph_is_searched_without_a_matrix():
    """A ring of 200 000 vertices: a matrix would hold 40 000 000 000 distances."""
    n = 200_000
    ring = np.column_stack([np.arange(n), (np.arange(n) + 1) % n])
    graph = Graph.from_edges(ring)
    owner, first, second, runner = graph.nearest([0, n // 2])
    assert graph.diameter == n  # twice the radius
    assert (first + second == n // 2).all()
    assert np.bincount(owner).tolist() == [n // 2 + 1, n // 2 - 1]
    assert (owner + runner == 1).all()
    assert graph.distances([5], [4, 6, n // 2 + 5]).tolist() == [[1, 1, n // 2]]
    served, _ = graph.reach(7, np.full(n, 10, dtype=np.int32))
    assert sorted(served) == [*range(17), n - 2, n - 1]


def test_the_diameter_bound_of_a_path_is_its_length():
    path = np.column_stack([np.arange(100), np.arange(1, 101)])
    graph = Graph.from_edges(path, lengths=np.full(100, 3))
    assert graph.diameter == 300
    assert Graph.from_edges(path, lengths=np.full(100, 3), truncate=1000).diameter == 300
    assert Graph.from_edges(path, lengths=np.full(100, 3), truncate=50).diameter == 50


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([1e-290, 1e-5, 1.0, 1e7, 1e200]), st.integers(0, 2**32 - 1))
def test_fractional_lengths_are_rounded_up_to_a_step_and_stay_a_metric(scale, seed):
    rng = np.random.default_rng(seed)
    edges = np.concatenate([np.column_stack([np.arange(29), np.arange(1, 30)]), rng.integers(0, 30, (20, 2))])
    lengths = rng.random(49) * scale
    graph = Graph.from_edges(edges, lengths=lengths)
    true, apart = every_pair(30, edges, lengths), graph.distances(np.arange(30)).astype(np.int64)
    assert (apart[:, None, :] <= apart[:, :, None] + apart[None, :, :]).all()
    assert (apart * graph.step >= true * (1 - 1e-12)).all()
    assert (apart * graph.step <= true + 30 * graph.step).all()
    assert true.max() / graph.step > 2**20
    assert graph.diameter < 2**26


def test_long_thin_graphs_get_a_step_that_suits_an_edge():
    path = np.column_stack([np.arange(100_000), np.arange(1, 100_001)])
    graph = Graph.from_edges(path, lengths=np.full(100_000, 0.3))
    assert abs(graph.distances([0], [100_000])[0, 0] * graph.step / 30_000 - 1) < 0.01


def test_whole_lengths_past_the_range_get_a_coarser_step():
    graph = Graph.from_edges([[0, 1], [1, 2]], lengths=[2**40, 2**40 + 1])
    assert graph.step > 1
    assert abs(graph.diameter * graph.step / 2**41 - 1) < 1e-5


def test_edges_that_nobody_needs_do_not_matter():
    plain = Graph.from_edges([[0, 1], [1, 2]], lengths=[2, 3])
    cluttered = Graph.from_edges([[1, 0], [0, 1], [2, 2], [2, 1], [1, 2], [1, 1]], lengths=[9, 2, 0, 3, 4, 7])
    assert cluttered.identity() == plain.identity()


def test_paths_of_length_0_beside_a_fraction():
    graph = Graph.from_edges([[0, 1], [1, 2], [0, 2]], lengths=[0.0, 0.0, 0.5])
    assert graph.diameter == 0
    assert graph.nearest([2, 1])[0].tolist() == [0, 0, 0]


def test_pieces_need_a_truncation_that_a_step_can_measure():
    with pytest.raises(InvalidValue, match=r"falls into pieces.*Pass truncate"):
        Graph.from_edges([[0, 1], [2, 3]])
    with pytest.raises(InvalidValue, match="falls into pieces"):
        Graph.from_edges([[0, 1]], n_points=3)
    with pytest.raises(InvalidValue, match=r"too large.*Use at most 1.07e\+09"):
        Graph.from_edges([[0, 1], [2, 3]], truncate=1e12)
    graph = Graph.from_edges([[0, 1], [2, 3]], truncate=2.5)  # rounded up to a step
    assert graph.distances([0]).tolist() == [[0, 1, 3, 3]]
    assert graph.nearest([1])[1].tolist() == [1, 0, 3, 3]


def test_a_generous_truncation_of_a_connected_graph_changes_nothing():
    edges = [[0, 1], [1, 2]]
    assert Graph.from_edges(edges, truncate=1e300).identity() == Graph.from_edges(edges).identity()


def test_reach_checks_what_compiled_code_would_not():
    graph = Graph.from_edges([[0, 1]])
    for site, limit in [(2, np.ones(2, dtype=np.int32)), (0, np.ones(1, dtype=np.int32)), (0, np.ones(2))]:
        with pytest.raises(InvalidValue):
            graph.reach(site, limit)
