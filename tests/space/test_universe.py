"""What every universe promises, checked on each kind against its own distances."""

import copy
import pickle

import networkx
import numpy as np
import pytest
from sklearn.base import clone

import kveil
from kveil import Graph, KMedian, seeding
from kveil.errors import InvalidType, InvalidValue
from kveil.models.private_kmedian import PrivateKMedian
from kveil.partition.hst import Hst


def table(universe):
    return universe.distances(np.arange(universe.n_points))


def two_least(apart: np.ndarray) -> tuple[np.ndarray, ...]:
    """Owner, first, second, runner of rows of distances; ties to the lowest row."""
    order, ranked = np.argsort(apart, axis=0, kind="stable"), np.sort(apart, axis=0)
    return order[0], ranked[0], ranked[1], order[1]


def test_distances_are_a_pseudometric_in_int32_below_the_diameter(universe):
    apart = table(universe)
    assert apart.dtype == np.int32
    assert (apart == apart.T).all()
    assert (np.diagonal(apart) == 0).all()
    assert apart.min() >= 0
    assert apart.max() <= universe.diameter < 2**31 - 1
    assert (apart[:, None, :] <= apart[:, :, None] + apart[None, :, :]).all()


def test_a_distance_depends_on_its_pair_alone(universe):
    whole, rng = table(universe), np.random.default_rng(0)
    for n_sources, n_targets in [(1, 1), (1, 9), (3, 40), (9, 1), (17, 5)]:
        sources, targets = rng.integers(0, 40, n_sources), rng.integers(0, 40, n_targets)
        assert np.array_equal(universe.distances(sources, targets), whole[np.ix_(sources, targets)])
    assert universe.distances(3).shape == (1, 40)
    assert universe.distances([]).shape == (0, 40)
    assert universe.distances([1, 2], []).shape == (2, 0)


@pytest.mark.parametrize("centers", [[0, 1], [5, 9, 30, 2], [7, 7, 3, 7], list(range(39, -1, -1))])
def test_nearest_and_second_nearest_go_to_the_lowest_position_in_a_tie(universe, centers):
    found = universe.nearest(centers)
    assert all(array.dtype == np.int32 for array in found)
    for one, other in zip(found, two_least(table(universe)[centers]), strict=True):
        assert np.array_equal(one, other)


def test_one_centre_has_the_diameter_for_a_second(universe):
    owner, first, second, runner = universe.nearest([4])
    assert np.array_equal(first, table(universe)[4])
    assert (second == universe.diameter).all()
    assert not owner.any()
    assert not runner.any()


@pytest.mark.parametrize("sites", [[0], [3, 20, 3, 11], list(range(0, 40, 3))])
def test_claims_one_after_the_other_make_the_partition_of_nearest(universe, sites):
    best, owner = np.full(40, universe.diameter + 1, dtype=np.int32), np.full(40, -1, dtype=np.int32)
    for label, site in enumerate(sites):
        universe.claim(site, label, best, owner)
        assert owner.min() == 0  # the first site claims everybody, those out of reach too
    expected, first, _, _ = universe.nearest(sites)
    assert np.array_equal(owner, expected)
    assert np.array_equal(best, first)


def test_duplicates_share_the_smallest_of_them(universe):
    places = universe.locations()
    assert places.dtype == np.int64
    assert np.array_equal(places, (table(universe) == 0).argmax(axis=1))
    assert len(np.unique(places)) < 40


def test_what_is_no_point_number_is_point_0_and_never_raises(universe):
    rows = np.array([3, 39, 40, -1, 2**62, -(2**63)])
    assert universe.locate(rows).tolist() == [3, 39, 0, 0, 0, 0]
    broken = np.array([3.0, 0.5, np.nan, np.inf, -np.inf, -2.0, 1e300, 39.0])
    assert universe.locate(broken).tolist() == [3, 0, 0, 0, 0, 0, 0, 39]
    assert universe.locate(np.array([], dtype=np.int64)).tolist() == []
    assert universe.locate(np.array([True, False])).tolist() == [1, 0]
    if universe.points is None:
        assert universe.locate(rows[:, None]).tolist() == [3, 39, 0, 0, 0, 0]


def test_a_universe_is_shared_by_its_copies_and_by_clones_of_models(universe):
    assert copy.copy(universe) is universe
    assert copy.deepcopy(universe) is universe
    assert clone(PrivateKMedian(universe=universe)).universe is universe


def test_pickling_keeps_every_answer_and_the_seal(universe):
    fresh = len(pickle.dumps(universe))
    other = pickle.loads(pickle.dumps(universe))
    assert all(not value.flags.writeable for value in vars(other).values() if isinstance(value, np.ndarray))
    assert other.identity() == universe.identity()
    assert np.array_equal(table(other), table(universe))
    universe.locate(np.zeros((1, 3)) if universe.points is not None else [0])
    assert len(pickle.dumps(universe)) == fresh  # what was computed on the way does not travel


def test_identity_names_kind_size_and_content(universe):
    identity = universe.identity()
    assert identity["kind"] in ("euclidean", "manhattan", "precomputed", "graph", "metric")
    assert identity["n_points"] == 40
    assert len(identity["sha256"]) == 64
    assert kveil.Precomputed(2 * table(universe)).identity()["sha256"] != kveil.Precomputed(table(universe)).identity()["sha256"]


def test_repr_is_one_short_line(universe):
    assert len(repr(universe)) < 80
    assert repr(universe).startswith(type(universe).__name__ + "(n_points=40, ")


@pytest.mark.parametrize("numbers", [[40], [-1], [0, 99]])
def test_points_that_do_not_exist_are_refused(universe, numbers):
    best, owner = np.zeros(40, dtype=np.int32), np.zeros(40, dtype=np.int32)
    for ask in (universe.distances, universe.nearest, lambda n: universe.distances([0], n)):
        with pytest.raises(InvalidValue, match="numbers of points, 0 to 39"):
            ask(numbers)
    with pytest.raises(InvalidValue, match="site"):
        universe.claim(numbers[-1], 0, best, owner)


def test_arguments_of_another_type_or_shape_are_refused(universe):
    fits, short = np.zeros(40, dtype=np.int32), np.zeros(39, dtype=np.int32)
    for numbers in ([0.5], [[0, 1]], ["a"], None):
        with pytest.raises(InvalidType, match="point numbers"):
            universe.distances(numbers)
    with pytest.raises(InvalidValue, match="at least one"):
        universe.nearest([])
    for best, owner in [(short, fits), (fits, short), (fits.astype(np.int64), fits)]:
        with pytest.raises(InvalidValue, match="int32"):
            universe.claim(0, 0, best, owner)
    with pytest.raises((InvalidType, InvalidValue), match="demand"):
        universe.locate(np.zeros((2, 7)))


def test_universes_are_sealed(universe):
    for value in vars(universe).values():
        if isinstance(value, np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                value[...] = 1


@pytest.mark.parametrize("thing", [np.zeros((5, 2)), networkx.path_graph(5), [[0.0], [1.0]], None], ids=type)
@pytest.mark.parametrize("use", [Hst.of, lambda x: seeding.hst(x, 2), lambda x: seeding.kmedian_plusplus(x, 2), KMedian(2).fit])
def test_what_is_no_universe_is_refused_with_the_ways_to_make_one(use, thing):
    with pytest.raises(InvalidType, match=r"Graph.from_networkx\(graph\)"):
        use(thing)


def test_a_graph_is_not_made_by_its_name_alone():
    with pytest.raises(InvalidType, match="from_networkx"):
        Graph(networkx.path_graph(3))
