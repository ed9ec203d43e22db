"""KMedian, the model without privacy: one answer for one universe however it is given, the contract, and refusals."""

import pickle
from itertools import chain, repeat

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from kveil import Euclidean, Graph, KMedian, Manhattan, Metric, Precomputed
from kveil.errors import InvalidType, InvalidValue
from kveil.solve.demand import Demand
from kveil.solve.kmedian import default_effort

EDGES = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6], [6, 7]])
LENGTHS = np.array([1, 1, 1, 9, 1, 1, 1])
PLACES = np.concatenate([[0], np.cumsum(LENGTHS)]).astype(float)[:, None]
WEIGHTS = [5, 0, 0, 1, 1, 1, 0, 9]  # the best two are 0 and 7: 3 + (3 + 2)

SAME = {
    "graph": lambda: Graph.from_edges(EDGES, lengths=LENGTHS),
    "sparse": lambda: Graph.from_scipy(csr_array((LENGTHS, EDGES.T), shape=(8, 8))),
    "matrix": lambda: Precomputed(np.abs(PLACES - PLACES.T)),
    "points": lambda: Euclidean(PLACES),
    "blocks": lambda: Manhattan(PLACES),
    "function": lambda: Metric(PLACES[:, 0].tolist(), lambda a, b: abs(a - b)),
}


@pytest.mark.parametrize("init", ["hst", "k-median++", "random"])
@pytest.mark.parametrize("make", SAME.values(), ids=SAME)
def test_the_centres_do_not_depend_on_how_a_universe_is_given(make, init):
    model = KMedian(2, init=init, n_restarts=3, random_state=0).fit(make(), sample_weight=WEIGHTS)
    assert sorted(model.center_indices_.tolist()) == [0, 7]
    assert model.cost_ == pytest.approx(8.0, rel=1e-3)  # points lie on a grid, distances are rounded up
    assert len(set(model.labels_[:4].tolist())) == len(set(model.labels_[4:].tolist())) == 1
    assert model.center_indices_[model.labels_].tolist() == [0] * 4 + [7] * 4


def test_squared_distances_move_a_centre_towards_those_far_away():
    line = Euclidean(np.array([[0.0], [1.0], [2.0], [9.0]]))
    weights = [3, 1, 1, 2]
    assert KMedian(1, random_state=0).fit(line, sample_weight=weights).center_indices_.tolist() == [1]
    squared = KMedian(1, objective="k-means", random_state=0).fit(line, sample_weight=weights)
    assert squared.center_indices_.tolist() == [2]
    assert squared.cost_ == pytest.approx(3 * 4 + 1 + 2 * 49, rel=1e-3)


def test_coordinates_come_along_where_there_are_some():
    rng = np.random.default_rng(0)
    points = np.repeat([[0.0, 0.0], [5.0, 5.0]], 50, axis=0) + 0.1 * rng.standard_normal((100, 2))
    model = KMedian(2, random_state=0).fit(Euclidean(points))
    assert np.array_equal(model.cluster_centers_, points[model.center_indices_])
    apart = np.linalg.norm(points[:, None] - model.cluster_centers_, axis=2)
    assert model.cost_ == pytest.approx(apart.min(axis=1).sum(), rel=1e-2)
    assert np.array_equal(model.labels_, apart.argmin(axis=1))
    assert np.array_equal(model.predict(points), model.labels_)
    assert model.predict([[4.9, 5.2], [0.0, -9.0]]).tolist() == model.labels_[[99, 0]].tolist()
    assert KMedian(2).fit(SAME["graph"]()).cluster_centers_ is None


def test_fit_predict_and_predict_by_number():
    space = SAME["graph"]()
    model = KMedian(2, random_state=0)
    labels = model.fit_predict(space)
    assert np.array_equal(model.predict(np.arange(8)), labels)
    assert model.predict([[7], [0]]).tolist() == labels[[7, 0]].tolist()


def test_weights_that_are_fractions_count_as_such():
    space = SAME["graph"]()
    whole = KMedian(2, random_state=0).fit(space, sample_weight=WEIGHTS)
    parts = KMedian(2, random_state=0).fit(space, sample_weight=np.array(WEIGHTS) / 30)
    assert sorted(parts.center_indices_) == sorted(whole.center_indices_)
    assert parts.cost_ == pytest.approx(whole.cost_ / 30, rel=1e-6)


def test_one_state_one_answer():
    space = Euclidean(np.random.default_rng(0).random((300, 2)))
    model = KMedian(9, n_perturbations=5, n_restarts=2, random_state=3)
    assert model.fit(space).center_indices_.tolist() == model.fit(space).center_indices_.tolist()
    assert KMedian(9, random_state=np.random.default_rng(1)).fit(space).cost_ > 0
    assert KMedian(9, random_state=np.random.RandomState(1)).fit(space).cost_ > 0


def test_more_steps_and_perturbations_cost_no_more():
    space = Euclidean(np.random.default_rng(0).random((400, 2)))
    once, long, shaken = (
        KMedian(15, init="random", n_restarts=1, random_state=1, **options).fit(space).cost_
        for options in ({"max_steps": 1}, {}, {"n_perturbations": 60})
    )
    assert shaken < long < once


def test_graphs_and_small_universes_are_searched_with_perturbations():
    points = Euclidean(np.random.default_rng(0).random((200, 2)))
    whole = KMedian(12, random_state=5).fit(points)
    asked = KMedian(12, n_restarts=1, n_perturbations=50, random_state=5).fit(points)
    assert np.array_equal(whole.center_indices_, asked.center_indices_)
    assert whole.cost_ < KMedian(12, n_restarts=1, random_state=5).fit(points).cost_
    shaken, once = (KMedian(12, n_perturbations=1, n_restarts=n, random_state=5).fit(points) for n in (None, 1))
    assert np.array_equal(shaken.center_indices_, once.center_indices_)
    large, everyone = Euclidean(np.zeros((4097, 1))), Demand.of(np.arange(4097))
    assert [default_effort(large, everyone, k) for k in (49, 50)] == [(1, 0), (2, 0)]
    assert default_effort(large, Demand.of(np.arange(4095)), 50) == (1, 50)
    assert default_effort(Graph.from_edges([[i, i + 1] for i in range(4096)]), everyone, 8) == (1, 50)
    assert default_effort(Graph.from_edges([[i, i + 1] for i in range(9000)]), Demand.of(np.arange(9001)), 8) == (3, 0)
    assert default_effort(Euclidean(np.zeros((9001, 1))), Demand.of(np.arange(9001)), 50) == (1, 0)  # candidates stand in


def plain_fasterpam(apart, centers):
    """Eager swaps as FasterPAM makes them, each cost computed from scratch."""
    centers, last = list(centers), None
    for y in chain.from_iterable(repeat(range(len(apart)))):
        if y == last:
            return apart[centers].min(axis=0).sum()
        costs = [apart[[*centers[:i], y, *centers[i + 1 :]]].min(axis=0).sum() for i in range(len(centers))]
        if min(costs) < apart[centers].min(axis=0).sum():
            centers[int(np.argmin(costs))], last = y, y
        elif last is None:
            last = y


def test_a_fit_costs_no_more_than_plain_fasterpam_on_average():
    """Of the model as it comes, on 30 random metrics."""
    ours, theirs = [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        space = Euclidean(rng.random((60, 2)))
        apart = space.distances(np.arange(60))
        theirs.append(plain_fasterpam(apart, rng.choice(60, 6, replace=False)))
        ours.append(KMedian(6, random_state=seed).fit(space).cost_ / space.step)
    assert np.mean(np.divide(ours, theirs)) <= 1.0


def test_parameters_clone_pickle_and_repr():
    model = KMedian(2, init="random", random_state=1)
    assert model.get_params()["init"] == "random"
    assert repr(model) == "KMedian(init='random', n_clusters=2, random_state=1)"
    fitted = clone(model).set_params(n_clusters=3).fit(SAME["graph"]())
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.center_indices_, fitted.center_indices_)
    assert np.array_equal(again.predict([0, 7]), fitted.predict([0, 7]))
    with pytest.raises(NotFittedError):
        clone(fitted).predict([0])


@pytest.mark.parametrize("k", [1, 3, 5])
@pytest.mark.parametrize("init", ["hst", "k-median++", "random"])
def test_universes_with_nothing_to_choose(k, init):
    same = KMedian(k, init=init).fit(Euclidean(np.ones((5, 2))))
    assert len(set(same.center_indices_.tolist())) == k
    assert same.cost_ == 0
    assert KMedian(1, init=init).fit(Precomputed([[0]])).center_indices_.tolist() == [0]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"n_clusters": 9}, "from 1 to 8"),
        ({"n_clusters": 0}, "n_clusters"),
        ({"n_clusters": 2.5}, "n_clusters"),
        ({"init": "k-means++"}, "init"),
        ({"init": None}, "init"),
        ({"objective": "k-center"}, "objective"),
        ({"n_perturbations": -1}, "n_perturbations"),
        ({"n_perturbations": 1.5}, "n_perturbations"),
        ({"n_perturbations": False}, "n_perturbations"),
        ({"n_restarts": 0}, "n_restarts"),
        ({"max_steps": 0}, "max_steps"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(options, word):
    with pytest.raises(InvalidValue, match=word):
        KMedian(**{"n_clusters": 2, **options}).fit(SAME["graph"]())


@pytest.mark.parametrize("weights", [[1, 2], np.ones((8, 1)), [-1] + [1] * 7, [np.nan] + [1] * 7, [0] * 8, ["a"] * 8])
def test_weights_that_make_no_sense_are_refused(weights):
    with pytest.raises(InvalidValue, match="sample_weight"):
        KMedian(2).fit(SAME["graph"](), sample_weight=weights)


def test_a_plain_array_is_no_universe():
    with pytest.raises(InvalidType, match="Euclidean"):
        KMedian(2).fit(np.ones((5, 2)))


@pytest.mark.parametrize("rows", [[8], [-1], [0.5], [np.nan], [[np.nan, 0.0]], [[1.0, np.inf]]])
def test_rows_that_stand_for_no_point_are_refused(rows):
    model = KMedian(2, random_state=0).fit(Euclidean(np.random.default_rng(0).random((8, 2))))
    with pytest.raises(InvalidValue, match="numbers of points"):
        model.predict(rows)
