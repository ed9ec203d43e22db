"""What a release says of itself: the rule, errors by column, and that it needs nothing but the release."""

from __future__ import annotations

import json
import pickle
import warnings

import numpy as np
import pytest

import kveil
from kveil import PrivateKMeans, PrivateKMedian
from kveil.errors import NoisyResultWarning
from kveil.release.verdict import median_distance
from kveil.solve.synopsis import Distances, Step, Synopsis, UniverseSynopsis, of_steps

OUTER = 8.0 * 2.0 ** (-np.arange(40) / 4)


def bins(place=8, count=1000.0, deviation=1.0):
    """All rows at one distance."""
    return Distances(np.eye(1, 40, place).ravel() * count, deviation, OUTER, is_pure=True)


def made(make, centers, errors, *, distances=None, total=None, weights=None, **more):
    """A release whose synopsis has one step that moved nothing."""
    centers, errors = np.asarray(centers, dtype=float), np.asarray(errors, dtype=float)
    step = Step(np.full(len(centers), 100.0), 1.0, errors, centers, np.zeros_like(centers), 1.0, distances)
    synopsis = of_steps(centers.shape[1], (step,), 1000.0, 1.0, total=total, middle=centers.mean(axis=0))
    weights = np.full(len(centers), 1 / len(centers)) if weights is None else weights
    return make(centers=centers, weights=weights, errors=errors, synopsis=synopsis, features=None, **more)


SQUARE = np.array([[0.0, 0, 0, 0], [3, 0, 0, 0], [0, 3, 0, 0], [3, 3, 0, 0]])
ONE = bins().middles[8]  # the distance of every row in `bins()`


@pytest.mark.parametrize(
    ("error", "word"),
    [(0.1, "good"), (ONE * 0.2**0.5 * 0.99, "rough"), (ONE * 0.5**0.5 * 0.99, "rough"), (ONE * 0.5**0.5 * 1.01, "noise")],
)
def test_the_word_follows_from_noise_over_spread(make, error, word):
    """With a gap of 3 an error of .74 is within 5 deviations: rough, unless the cost is steady."""
    noisy = bins(count=20.0, deviation=1.0)  # a cost known to 5 %
    assert made(make, SQUARE, np.full(4, error), distances=noisy).verdict().word == word


def test_without_distances_it_is_rough_at_best_and_says_what_the_release_keeps(make):
    """A federation asks for distances on its way, and its guarantee lists them: they were released, and are not kept."""
    found = made(make, SQUARE, np.full(4, 0.001)).verdict()
    assert (found.word, found.reasons[0].split(",")[0]) == ("rough", "The release keeps no distances of rows")


def test_a_steady_cost_makes_up_for_centres_that_are_near(make):
    near = SQUARE / 4
    errors = np.full(4, ONE * 0.15)
    assert made(make, near, errors, distances=bins(count=20.0)).verdict().word == "rough"
    assert made(make, near, errors, distances=bins(count=2000.0)).verdict().word == "good"


def test_only_centres_three_errors_away_and_with_weight_are_told_apart(make):
    near = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0], [0.0, 3.2]])
    found = made(make, near, np.full(4, 0.1), distances=bins(), weights=np.array([0.4, 0.0, 0.3, 0.3])).verdict()
    assert found.told_apart.tolist() == [True, False, False, False]
    assert found.n_told_apart == 1
    assert "Centres 1, 2, 3 may be noise" in str(found)


def test_no_bin_that_stands_out_is_noise_and_one_place_for_all_too(make):
    silent = Distances(np.full(40, 0.5), 1.0, OUTER, is_pure=True)
    assert made(make, SQUARE, np.full(4, 0.1), distances=silent).verdict().word == "noise"
    assert made(make, np.ones((3, 2)), np.full(3, 0.1), distances=bins()).verdict().word == "noise"
    assert made(make, np.ones((1, 2)), np.full(1, 0.1), distances=bins()).verdict().word == "good"


def test_where_most_of_the_weight_lies_at_the_edge_the_bounds_may_be_too_narrow(make):
    """Bounds are -4 and 4; the errors of a column are half of 0.3."""
    near, errors = np.array([[3.95, 0, 0, 0], [3.9, 0, 0, 0.1]]), np.full(2, 0.3)
    found = made(make, near, errors).verdict()
    assert found.word == "noise"
    assert "Are the bounds too narrow?" in found.reasons[0]
    assert "narrower bounds" not in str(found)
    for inside in (
        made(make, near / 2, errors),
        made(make, near, np.full(2, 4.0)),  # noise may have moved them there
        made(make, np.concatenate([near, near / 2]), np.full(4, 0.3), weights=np.array([0.1, 0.1, 0.4, 0.4])),
    ):
        assert inside.verdict().reasons[0].endswith("delta > 0 or narrower bounds.")


def test_what_is_noise_is_not_compared_with_one_mean(make):
    for error, is_said in ((0.1, True), (5.0, False)):
        found = made(make, SQUARE, np.full(4, error), distances=bins(), total=bins(place=1)).verdict()
        assert found.explained > 0.9
        assert ("Compared with one mean for all rows, they lower the cost by" in str(found)) == is_said


def test_without_distances_nothing_is_good(make):
    assert made(make, SQUARE, np.full(4, 0.01)).verdict().word == "rough"
    assert made(make, SQUARE, np.full(4, 5.0)).verdict().word == "noise"
    near = made(make, SQUARE, np.full(4, 1.0)).verdict()  # 3 / sqrt(2) errors apart
    assert (near.word, near.n_told_apart) == ("rough", 0)
    assert near.reasons[0] == "A quarter of the centres lie within 2.1 standard errors of another one."
    assert make(errors=None).verdict().word == "rough"
    assert made(make, SQUARE, np.full(4, 0.01), distances=bins(), method=_used("candidates")).verdict().word == "rough"


def _used(name):
    return {"asked": "auto", "used": name, "why": ""}


def test_what_the_centres_explain_is_measured_against_one_mean(make):
    far = bins(place=0)  # rows lie 4 times as far from the middle: 16 times the cost
    assert made(make, SQUARE, np.full(4, 0.1), distances=bins(), total=far).verdict().explained == pytest.approx(15 / 16)
    told = made(make, SQUARE, np.full(4, 0.1), distances=bins(), total=bins()).verdict()
    assert (told.is_better_than_one_mean, "not shown" in str(told)) == (False, True)


def test_errors_and_intervals_are_in_the_unit_of_each_column():
    """Widths 1 and 1000 with scaling="bounds": the noise is round in half-widths, so errors scale with the widths."""
    rng = np.random.default_rng(0)
    rows = rng.uniform([0, 0], [1, 1000], (5000, 2))
    model = PrivateKMeans(3, epsilon=1.0, bounds=([0, 0], [1, 1000]), scaling="bounds", random_state=0).fit(rows)
    errors, verdict = model.cluster_column_errors_, model.verdict_
    assert errors[:, 1] == pytest.approx(1000 * errors[:, 0])
    assert (verdict.high - verdict.low)[:, 1] == pytest.approx(1000 * (verdict.high - verdict.low)[:, 0])
    assert np.sqrt((errors**2).sum(axis=1)) == pytest.approx(model.cluster_errors_)  # the same figure, in other units
    assert (verdict.high - verdict.low >= 4 * errors - 1e-12).all()


def test_an_interval_also_holds_rows_beyond_the_radius_and_steps_that_go_on(make):
    """Error .1, a move of .3, and all rows .68 beyond a radius of 1: sqrt(.01 + .09 + .68^2), twice, over root 4."""
    centers, errors = SQUARE - 2.0, np.full(4, 0.1)
    moves = np.tile([0.3, 0.0, 0.0, 0.0], (4, 1))
    step = Step(np.full(4, 100.0), 1.0, errors, centers - moves, moves, 1.0, bins())
    synopsis = of_steps(4, (step,), 1000.0, 1.0)
    found = make(centers=centers, weights=np.full(4, 0.25), errors=errors, synopsis=synopsis, features=None).verdict()
    assert found.high - centers == pytest.approx(2 * np.sqrt(0.01 + 0.09 + (ONE - 1) ** 2) / 2)
    assert found.column_errors == pytest.approx(0.05)


def test_cells_tell_the_cost_of_few_columns(make):
    points = np.array([[0.0, 0.0], [0.0, 2.0], [9.0, 1.0]])
    synopsis = Synopsis("cells", points, [50.0, 50, 100], np.ones(3, dtype=bool), np.full((3, 2), 0.3), 1.0, 200.0, 1.0)
    found = make(
        centers=[[0.0, 1.0], [9.0, 1.0]], weights=[0.5, 0.5], errors=[0.1, 0.1], synopsis=synopsis, features=None
    ).verdict()
    inside = 2 * 0.09 / 3
    cost, whole = 0.5 + inside, (4.5**2 + 0.5) + inside
    assert found.explained == pytest.approx(1 - cost / whole)
    assert found.noise_share == pytest.approx(0.01 / cost)


def test_an_interval_ends_at_the_bounds(make):
    """Error 9 in bounds of -4 to 4: rows were clipped to these, so their mean lies between."""
    found = made(make, np.zeros((1, 2)), np.full(1, 9.0), distances=bins()).verdict()
    assert (found.low.tolist(), found.high.tolist()) == ([[-4.0, -4.0]], [[4.0, 4.0]])


@pytest.mark.parametrize(
    ("hidden", "branch", "word"),
    [
        (0.05, "kept", "good"),
        (0.3, "projected", "rough"),
        (0.7, "kept", "noise"),
        (0.05, "public", "noise"),
        (np.inf, "kept", "noise"),
    ],
)
def test_a_universe_is_judged_by_what_noise_could_hide(make, hidden, branch, word):
    synopsis = UniverseSynopsis([1, 2], [5.0, 6.0], [3, 4], 1.0, hidden, branch)
    assert make(centers=[1, 2], errors=None, features=None, synopsis=synopsis).verdict().word == word
    assert make(centers=[1, 2], errors=None, features=None).verdict().word == "rough"


def test_the_median_distance_is_read_off_released_counts():
    counts = np.zeros(40)
    counts[[4, 8, 12]] = 100, 300, 100
    told = Distances(counts, 1.0, OUTER, is_pure=True)
    assert median_distance(told) == told.middles[8]
    assert median_distance(Distances(np.zeros(40), 1.0, OUTER, is_pure=True)) is None


@pytest.mark.parametrize(("share", "word"), [(0.2, "good"), (0.5, "rough"), (0.8, "noise")])
def test_medians_are_judged_by_the_typical_distance(make, share, word):
    terms = {"kind": "PrivateKMedian", "parameters": {"bounds": [-100, 100]}}
    assert made(make, 10 * SQUARE, np.full(4, share * ONE), distances=bins(), **terms).verdict().word == word


@pytest.fixture(scope="module")
def lost():
    """20 000 rows, 9 columns, k = 10, epsilon 0.02: ten plausible centres, and all of it noise."""
    rng = np.random.default_rng(1)
    places = rng.uniform(-0.8, 0.8, (10, 9))
    return places[rng.integers(10, size=20_000)] + 0.1 * rng.standard_normal((20_000, 9))


def test_a_result_that_is_noise_warns_and_is_kept_if_the_warning_is_an_error(lost):
    model = PrivateKMeans(10, epsilon=0.02, bounds=(-1, 1), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(NoisyResultWarning, match="fewer centres"):
            model.fit(lost)
    assert model.verdict_.word == "noise"
    assert model.release_.notes[-1] == model.verdict_.note
    assert model.guarantee_.valid


def test_one_mean_of_many_rows_is_not_noise(lost, recwarn):
    model = PrivateKMeans(1, epsilon=1.0, bounds=(-1, 1), random_state=0).fit(lost)
    assert (model.verdict_.word, len(recwarn)) == ("good", 0)


def test_a_verdict_needs_neither_rows_nor_ledger(lost, tmp_path):
    model = PrivateKMeans(4, epsilon=1.0, bounds=(-1, 1), random_state=0).fit(lost[:5000])
    loaded = kveil.load(model.release_.save(tmp_path / "out"))  # all that there is: rows and budget stayed elsewhere
    assert json.dumps(loaded.verdict().to_dict()) == json.dumps(model.verdict_.to_dict())
    assert pickle.loads(pickle.dumps(model)).verdict_.word == model.verdict_.word


def test_every_model_has_a_verdict():
    rows = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    for model in (
        PrivateKMedian(2, epsilon=5.0, bounds=(-1, 1)),
        kveil.StreamKMeans(2, epsilon=5.0, bounds=(-1, 1)),
        kveil.LocalKMeans(2, epsilon=4.0, radius=2.0),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert model.fit(rows).verdict_.word in ("good", "rough", "noise")
        assert any(note.startswith("verdict: ") for note in model.release_.notes)
