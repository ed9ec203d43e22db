"""PrivateKMedian on a universe: what it finds, what it lets out, what it refuses, and what rows hold, which never matters."""

import copy
import math
import pickle
import warnings

import networkx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

import kveil
from kveil import Euclidean, Graph, KMedian, Ledger, Manhattan, Metric, Precomputed, PrivateKMeans, PrivateKMedian
from kveil.errors import KveilError, NoisyResultWarning
from kveil.methods.universe.task import PUBLIC_UNIVERSE
from kveil.testing import scripted
from kveil.tuning import Counts, LocalSearch
from kveil.tuning import KMedian as KMedianTuning

SIDE = 20
CORNERS = np.array([[2, 2], [17, 3], [3, 17], [16, 16]])
PLACES = np.array([[x, y] for x in range(SIDE) for y in range(SIDE)], dtype=float)
STREETS = [[u, u + 1] for u in range(SIDE * SIDE) if u % SIDE < SIDE - 1] + [[u, u + SIDE] for u in range(SIDE * (SIDE - 1))]
GRID = Graph.from_edges(STREETS)
PLANE = Euclidean(PLACES)


def homes(n=4000, seed=0):
    """People around four corners of a small town, by the index of their junction."""
    rng = np.random.default_rng(seed)
    places = np.clip(np.rint(CORNERS[rng.integers(0, 4, n)] + rng.normal(0, 1.2, (n, 2))), 0, SIDE - 1).astype(int)
    return places[:, 0] * SIDE + places[:, 1]


def fitted(demand, seed=1, **parameters):
    with scripted(seed):
        return PrivateKMedian(**{"n_clusters": 4, "universe": GRID, "random_state": 0, **parameters}).fit(demand)


def off(model):
    """How far, at worst, a corner is from the nearest centre."""
    return np.abs(PLACES[model.center_indices_][:, None] - CORNERS).sum(axis=2).min(axis=0).max()


# --- what it finds ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"objective": "k-means"},
        {"relation": "replace-one"},
        {"expected_rows": 4000},
        {"tuning": Counts(cells=60)},
        {"tuning": Counts(partition="hst")},
        {"delta": 1e-6},
        {"epsilon": math.inf},
        {"universe": PLANE},
        {"universe": Manhattan(PLACES)},
        {"universe": Precomputed(GRID.distances(np.arange(400)))},
        {"universe": Metric(PLACES, lambda a, b: float(np.abs(a - b).max()))},
        {"method": "local-search", "epsilon": 400.0, "n_steps": 8},
        {"method": "local-search", "epsilon": 400.0, "init": "k-median++", "objective": "k-means"},
        {"method": "local-search", "epsilon": 400.0, "init": "random", "n_steps": 12},
        {"method": "local-search", "epsilon": 400.0, "init": [0, 1, 2, 3], "n_steps": 12},
        {"method": "local-search", "epsilon": math.inf, "n_steps": 8},
    ],
    ids=str,
)
def test_it_finds_the_four_corners(parameters):
    model = fitted(homes(), **parameters)
    assert off(model) <= 2
    assert len(np.unique(model.center_indices_)) == 4
    if model.method_ == "counts":
        assert np.allclose(model.cluster_weights_, 0.25, atol=0.1)


def test_the_default_costs_little_more_than_no_privacy_and_local_search_much_more():
    """Town of 400 junctions, 500 people in two of four corners: mean of 8 scripted fits at epsilon 1."""
    demand = homes(1000)
    demand = demand[PLACES[demand, 0] < 10][:500]
    free = -fitted(demand, epsilon=math.inf).score(demand)
    counts = np.mean([-fitted(demand, seed).score(demand) for seed in range(8)])
    swaps = np.mean([-fitted(demand, seed, method="local-search").score(demand) for seed in range(8)])
    assert counts < 1.15 * free
    assert swaps > 1.3 * free


@pytest.mark.parametrize("objective", ["k-median", "k-means"])
def test_local_search_starts_where_the_noisy_counts_of_the_tree_are_high(objective):
    """Eight of 64 places, all as far from each other, hold everybody, and one swap is all there is.

    Without the tree's seeds seven of the eight would have to be there by luck: 449 of C(64, 8) starts, a chance of 1e-7.
    """
    crowded = np.arange(3, 64, 8)
    apart = Precomputed(1 - np.eye(64, dtype=np.int32))
    terms = {"method": "local-search", "objective": objective, "universe": apart, "n_clusters": 8, "n_steps": 1}
    found = fitted(np.repeat(crowded, 100), epsilon=20.0, **terms).center_indices_
    assert sorted(found.tolist()) == crowded.tolist()


def test_fewer_steps_and_a_public_start_leave_more_to_each_choice():
    terms = {"method": "local-search"}
    draws = {init: fitted(homes(50), init=init, **terms).guarantee_.draws for init in ("hst", "random")}
    assert sum(draw.times for draw in draws["random"] if draw.label == "swap") == 5
    assert draws["random"][-1].label == "which centres"
    assert draws["hst"][0].label == "tree"
    assert all(float(draw.epsilon) == pytest.approx(1 / 6) for draw in draws["random"])
    assert all(float(draw.epsilon) == pytest.approx(1 / 12) for draw in draws["hst"][1:])


def test_many_swaps_add_up_as_zcdp_where_that_leaves_more_to_each():
    few, many = (fitted(homes(50), method="local-search", init="random", delta=1e-6, n_steps=t) for t in (2, 40))
    assert few.guarantee_.route == "pure"
    assert many.guarantee_.route == "zcdp"
    assert many.guarantee_.epsilon <= 1.0
    assert many.guarantee_.draws[0].epsilon > 1 / 41


def test_large_universes_offer_candidates_only():
    model = fitted(homes(), method="local-search", epsilon=100.0, tuning=LocalSearch(candidates=40), n_steps=3, init="random")
    assert len(model.center_indices_) == 4


def test_repeating_the_noise_and_the_public_choices_repeats_the_centres():
    for parameters in ({}, {"method": "local-search"}, {"tuning": Counts(partition="hst")}):
        one, other = (fitted(homes(), **parameters).center_indices_ for _ in range(2))
        assert (one == other).all()
    assert not (fitted(homes(), 2).cluster_weights_ == fitted(homes(), 3).cluster_weights_).all()


# --- a demand from anywhere -------------------------------------------------------------------------------------------


def as_given(kind, demand, folder):
    frame = pd.DataFrame({"home": demand})
    if kind == "csv":
        frame.to_csv(folder / "homes.csv", index=False)
        return folder / "homes.csv"
    return {
        "flat": demand,
        "list": demand.tolist(),
        "column": demand[:, None],
        "floats": demand.astype(float),
        "series": pd.Series(demand, name="home"),
        "nullable": pd.Series(demand).astype("Int64"),
        "polars": pl.Series("home", demand),
        "frame": frame,
        "source": kveil.read(frame),
        "masked": np.ma.masked_array(demand, mask=np.zeros(len(demand), dtype=bool)),
    }[kind]


@pytest.mark.parametrize(
    "kind", ["flat", "list", "column", "floats", "series", "nullable", "polars", "frame", "source", "masked", "csv"]
)
def test_indices_may_come_in_any_table(kind, tmp_path):
    demand = homes(300)
    model = fitted(as_given(kind, demand, tmp_path))
    assert (model.center_indices_ == fitted(demand).center_indices_).all()


def test_coordinates_stand_for_the_nearest_point():
    demand = homes(300)
    moved = PLACES[demand] + np.random.default_rng(0).uniform(-0.3, 0.3, (300, 2))
    by_place, by_index = fitted(moved, universe=PLANE), fitted(demand, universe=PLANE)
    assert (by_place.center_indices_ == by_index.center_indices_).all()
    assert by_place.n_features_in_ == 2
    assert by_index.n_features_in_ == 1
    assert (by_place.predict(moved) == by_index.predict(demand)).all()


def test_people_are_bounded_and_pay_for_their_rows():
    frame = pd.DataFrame({"who": np.repeat(np.arange(1000), 4), "home": homes(4000)})
    model = fitted(kveil.read(frame, person="who", max_rows_per_person=3))
    assert [charge.sensitivity for charge in model.guarantee_.charges] == [3, 3]
    assert model.guarantee_.unit.max_rows_per_person == 3


@pytest.mark.parametrize("parameters", [{}, {"method": "local-search"}, {"tuning": Counts(partition="hst")}], ids=str)
def test_whatever_rows_hold_nothing_raises_or_warns(parameters):
    wild = np.array([np.nan, np.inf, -np.inf, -1, 0.5, 400, 1e300, 3])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", NoisyResultWarning)  # by released values
        for demand in (wild, np.array([]), wild[:0, None], wild[:, None], np.array([7]), []):
            model = fitted(demand, **parameters)
            assert len(np.unique(model.center_indices_)) == 4
            assert model.guarantee_.epsilon == 1.0
        places = np.array([[np.nan, 1.0], [1e300, -1e300], [np.inf, 0.0]])
        for demand in (places, places[:0]):
            assert len(fitted(demand, universe=PLANE, **parameters).center_indices_) == 4


@pytest.mark.parametrize("method", ["counts", "local-search"])
@pytest.mark.parametrize(
    ("universe", "k"),
    [
        (Precomputed([[0]]), 1),
        (Precomputed(np.zeros((5, 5))), 3),
        (Graph.from_edges([[0, 1]]), 2),
        (Precomputed([[0, 0, 4], [0, 0, 4], [4, 4, 0]]), 3),
        (Graph.from_edges([[0, 1], [2, 3]], truncate=5), 2),
        (Euclidean(np.ones((4, 2))), 2),
    ],
    ids=["one point", "one place", "as many as points", "more than places", "in pieces", "equal points"],
)
def test_degenerate_universes_give_distinct_points_and_are_paid_for_in_full(universe, k, method):
    for demand in (np.array([], dtype=int), np.zeros(50, dtype=int), np.arange(50) % universe.n_points):
        ledger = Ledger.memory("all", 1.0, relation="add-remove")
        model = fitted(demand, universe=universe, n_clusters=k, method=method, ledger=ledger)
        assert len(np.unique(model.center_indices_)) == k
        assert ledger.remaining().epsilon == 0


def test_a_demand_too_small_to_be_seen_gives_the_centres_of_the_universe_and_says_so():
    model = fitted(np.full(3, 399), epsilon=0.1)
    assert "cannot be told from noise" in model.release_.notes[0]
    assert np.allclose(model.cluster_weights_, 0.25, atol=0.1)


# --- what leaves the house --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["parquet", "csv"])
@pytest.mark.parametrize("parameters", [{}, {"method": "local-search"}], ids=str)
def test_a_release_is_indices_and_comes_back_whole(parameters, format, tmp_path):
    model = fitted(homes(), **parameters)
    release = kveil.load(model.release_.save(tmp_path / "out", format=format))
    assert release.centers.dtype == np.int64
    assert (release.centers == model.center_indices_).all()
    assert release.parameters["universe"] == GRID.identity()
    assert set(release.parameters["universe"]) == {"kind", "n_points", "sha256"}
    assert release.features is None
    assert (release.weights is None) == (model.method_ == "local-search")
    assert "points of a public universe" in release.card()
    with pytest.raises(KveilError, match="universe"):
        release.predict([[3]])
    if format == "csv":
        assert (tmp_path / "out" / "centers.csv").read_text().startswith('"index"')


@pytest.mark.parametrize("parameters", [{}, {"method": "local-search"}], ids=str)
def test_centres_that_have_names_are_released_with_them(parameters, tmp_path):
    stops = ["\ud800", "harbour", "school", "zoo"]
    graph = Graph.from_networkx(networkx.path_graph(stops))
    model = fitted(np.repeat(graph.find(["harbour", "zoo"]), 200), universe=graph, n_clusters=2, **parameters)
    release = kveil.load(model.release_.save(tmp_path / "out"))
    assert release.names == tuple(str(graph.names[place]) for place in model.center_indices_)
    assert set(release.names) == {"harbour", "zoo"}
    assert "| zoo |" in release.card()
    everywhere = fitted(np.arange(4), universe=graph, n_clusters=4, **parameters)
    assert "\\ud800" in kveil.load(everywhere.release_.save(tmp_path / "odd")).names


def test_the_names_of_columns_stay_with_the_demand():
    model = fitted(pd.DataFrame({"home": homes(100)}))
    assert model.feature_names_in_.tolist() == ["home"]
    assert model.release_.features is None


@pytest.mark.parametrize("parameters", [{}, {"method": "local-search"}, {"delta": 1e-6}, {"relation": "replace-one"}], ids=str)
def test_every_guarantee_says_that_the_universe_is_public(parameters):
    model = fitted(homes(100), **parameters)
    before = PrivateKMedian(4, universe=GRID, **parameters).guarantee()
    for given in (model.guarantee_, before):
        assert PUBLIC_UNIVERSE in given.assumptions
        assert PUBLIC_UNIVERSE in str(given)
        assert PUBLIC_UNIVERSE in kveil.Guarantee.from_json(given.to_json()).assumptions
    assert before.charges == model.guarantee_.charges
    assert before.epsilon == model.guarantee_.epsilon == 1.0
    assert PUBLIC_UNIVERSE not in PrivateKMeans(4, bounds=(0, 1)).guarantee(n_features=2).assumptions


def test_without_noise_it_promises_nothing_and_says_so():
    model = fitted(homes(), epsilon=math.inf)
    assert model.guarantee_.route == "none"
    assert model.release_.receipt["charges"] == 0


def test_a_zcdp_ledger_pays_for_gaussian_counts():
    for parameters in ({}, {"tuning": Counts(partition="hst")}, {"method": "local-search"}):
        ledger = Ledger.memory("all", 1.0, 1e-6, relation="add-remove")
        model = fitted(homes(), delta=1e-6, ledger=ledger, **parameters)
        assert model.guarantee_.route == "zcdp"
        assert off(model) <= 3 or parameters.get("method") == "local-search"
        assert ledger.remaining().rho == pytest.approx(0.0, abs=1e-9)


def test_nothing_raw_is_on_a_fitted_object():
    demand = homes(3000)
    model = fitted(demand)
    held = pickle.dumps(model)
    assert np.bincount(demand, minlength=400).tobytes() not in held
    assert demand.tobytes() not in held
    shown = {name for name in vars(model) if name.endswith("_")}
    assert shown <= {
        "center_indices_",
        "cluster_weights_",
        "cluster_errors_",
        "method_",
        "guarantee_",
        "release_",
        "n_features_in_",
    }


# --- answers for whoever holds the rows -------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["k-median", "k-means"])
def test_answers_are_distances_of_the_universe(objective):
    demand = homes(200)
    model = fitted(demand, universe=Graph.from_edges(STREETS, lengths=np.full(len(STREETS), 0.25)), objective=objective)
    apart = model.transform(demand)
    assert apart.shape == (200, 4)
    assert (model.predict(demand) == apart.argmin(axis=1)).all()
    streets = np.abs(PLACES[demand][:, None] - PLACES[model.center_indices_]).sum(axis=2)
    assert np.allclose(apart, 0.25 * streets)
    assert model.score(demand) == pytest.approx(-(apart.min(axis=1) ** (2 if objective == "k-means" else 1)).sum())
    assert model.predict(np.empty((0, 1))).shape == (0,)
    assert model.transform(demand[:0]).shape == (0, 4)
    assert (model.predict([-7, 1e9]) == model.predict([0, 0])).all()
    assert model.get_feature_names_out().tolist() == [f"privatekmedian{i}" for i in range(4)]


def test_centres_have_coordinates_where_points_do():
    model = fitted(homes(), universe=PLANE)
    assert (model.cluster_centers_ == PLACES[model.center_indices_]).all()
    assert not hasattr(fitted(homes()), "cluster_centers_")


def test_fitting_again_without_a_universe_leaves_nothing_behind():
    model = fitted(homes(), universe=PLANE)
    model.set_params(universe=None, bounds=(0, SIDE)).fit(PLACES)
    assert not hasattr(model, "center_indices_")
    assert model.cluster_centers_.shape == (4, 2)
    assert model.predict(PLACES).shape == (400,)


def test_it_can_be_cloned_pickled_and_printed():
    model = PrivateKMedian(4, universe=GRID, random_state=0)
    assert clone(model).universe is GRID
    assert copy.deepcopy(model).universe is GRID
    again = pickle.loads(pickle.dumps(fitted(homes(), universe=PLANE)))
    assert (again.predict(homes()) == fitted(homes(), universe=PLANE).predict(homes())).all()
    assert "Graph(n_points=400" in repr(model)


# --- what is refused, before anything is charged ----------------------------------------------------------------------

SECRET = 7919


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_clusters": 401},
        {"n_clusters": 0},
        {"n_clusters": 2.5},
        {"universe": PLACES},
        {"universe": "city"},
        {"universe": csr_array(np.eye(3))},
        {"bounds": (0, 1)},
        {"radius": 1.0},
        {"center": 0.0},
        {"method": "tree"},
        {"method": "candidates"},
        {"method": "weiszfeld"},
        {"method": "partition"},
        {"objective": "k-center"},
        {"init": "hst", "method": "counts"},
        {"n_steps": 3, "method": "counts"},
        {"init": "packing"},
        {"init": [0, 1, 2, 400]},
        {"init": [0, 1, 2, -1]},
        {"init": [0, 1, 2, 2]},
        {"init": [0.0, 1.0, 2.0, 3.0]},
        {"init": [[0, 1, 2, 3]]},
        {"n_steps": 0},
        {"n_steps": 2**40, "method": "local-search"},
        {"epsilon": 2**-29, "method": "local-search"},
        {"epsilon": 0},
        {"delta": 1.0},
        {"expected_rows": 0},
        {"expected_rows": math.nan},
        {"relation": "swap"},
        {"tuning": KMedianTuning()},
        {"tuning": Counts(partition="cubes")},
        {"tuning": Counts(cells=0)},
        {"tuning": LocalSearch(seeds=0.0)},
        {"tuning": LocalSearch(seeds=True)},
        {"tuning": LocalSearch(candidates=0)},
        {"tuning": LocalSearch(), "method": "counts"},
    ],
    ids=str,
)
def test_bad_parameters_are_refused_before_anything_is_charged(parameters):
    ledger = Ledger.memory("clinic", 1.0, relation="add-remove")
    with pytest.raises(KveilError) as caught:
        PrivateKMedian(**{"n_clusters": 4, "universe": GRID, "ledger": ledger, **parameters}).fit(np.full(SECRET, 3))
    assert ledger.spent().epsilon == 0
    says_what_to_do(caught.value)


@pytest.mark.parametrize(
    ("demand", "universe"),
    [
        (csr_array(np.eye(4)), GRID),
        (np.zeros((SECRET, 2)), GRID),
        (np.zeros((SECRET, 3)), PLANE),
        (np.zeros((SECRET, 1, 1)), GRID),
        (np.array(["a"] * SECRET), GRID),
        (["a"] * SECRET, GRID),
        (np.array([1 + 2j]), GRID),
        (np.zeros((SECRET, 0)), GRID),
        (np.full(SECRET, 0.5), Euclidean(np.arange(9.0)[:, None])),
        (object(), GRID),
        ("no such file.csv", GRID),
    ],
    ids=["sparse", "two columns", "three columns", "three dimensions", "text", "list of text", "complex", "no column",
         "places on a line", "no table", "no file"],
)  # fmt: skip
def test_demands_of_the_wrong_kind_are_refused_before_anything_is_charged(demand, universe):
    ledger = Ledger.memory("clinic", 1.0, relation="add-remove")
    with pytest.raises(KveilError) as caught:
        PrivateKMedian(4, universe=universe, ledger=ledger).fit(demand)
    assert ledger.spent().epsilon == 0
    says_what_to_do(caught.value)


def says_what_to_do(error):
    while error is not None:
        text = str(error)
        assert str(SECRET) not in text
        assert "\n" not in text
        assert len(text) > 30
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("method", ["counts", "local-search"])
def test_these_methods_need_a_universe(method):
    with pytest.raises(KveilError, match="universe"):
        PrivateKMedian(4, bounds=(0, 1), method=method).fit(PLACES)


def test_places_on_a_line_are_taken_by_locating_them():
    line = Euclidean(np.arange(0.0, 40.0)[:, None])
    places = np.repeat([3.2, 30.4], 500)
    model = fitted(line.locate(places[:, None]), universe=line, n_clusters=2)
    assert np.abs(np.sort(model.cluster_centers_[:, 0]) - [3, 30]).max() <= 2


def test_a_refused_budget_charges_nothing():
    ledger = Ledger.memory("clinic", 0.5, relation="add-remove")
    with pytest.raises(kveil.errors.BudgetExceeded):
        PrivateKMedian(4, universe=GRID, ledger=ledger).fit(homes(10))
    assert ledger.spent().epsilon == 0


def test_without_privacy_kmedian_agrees():
    demand = homes()
    free = KMedian(4, init="k-median++", n_restarts=3, random_state=0).fit(GRID, sample_weight=np.bincount(demand, minlength=400))
    ours = fitted(demand, epsilon=math.inf)
    nearest = GRID.nearest(free.center_indices_)[1][demand].sum()
    assert -ours.score(demand) <= 1.02 * nearest
