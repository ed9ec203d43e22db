"""Claims about candidates and recovery, measured at small size: that the measure is right, and that what was built passes it."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from kveil import Guarantee, Ledger, private_candidates
from kveil.kernel.grid import Box
from kveil.kernel.loss import PrivacyUnit, no_guarantee
from kveil.release.candidate_set import CandidateSet
from kveil.research.candidate_claims import exchanged, median_excess, quality, sparse_excess, sparse_rows, swap_ratio
from kveil.testing import scripted
from kveil.tuning import Candidates

pytestmark = pytest.mark.research
PLACES = np.array([[-0.7, -0.7], [-0.6, 0.7], [0.7, -0.5]])
NOTHING: Guarantee = no_guarantee("add-remove", PrivacyUnit(), "curator")


@pytest.fixture(autouse=True)
def same_noise():
    """Utility is measured here, and no law: so no test fails by bad luck."""
    with scripted(0):
        yield


@pytest.fixture(scope="module")
def rows():
    return np.repeat(PLACES, 1000, axis=0) + 0.05 * np.random.default_rng(3).standard_normal((3000, 2))


def of_points(points):
    return CandidateSet(np.array(points), None, np.zeros(2), 2.0, None, NOTHING, {}, {"bounds": [[-1, -1], [1, 1]], "bits": 20})


def test_the_best_centres_are_a_candidate_set_of_alpha_1_and_far_points_are_none(rows):
    near, far = (quality(of_points(points), rows, 3) for points in ([*PLACES, [0.0, 0.0]], [[0.0, 0.0], [1.0, 1.0], [0.9, 0.9]]))
    assert 1 <= near.alpha < 1.01
    assert near.captured < 0.1
    assert far.alpha > 50
    assert far.captured > 5
    assert near.points == 4


def test_exchanging_finds_the_points_that_rows_are_near_to(rows):
    points = np.vstack([PLACES, np.random.default_rng(0).uniform(-1, 1, (40, 2))])
    assert {tuple(p) for p in exchanged(rows, points, np.array([5, 9, 20]))} <= {tuple(p) for p in points}
    kept = exchanged(rows, points, np.array([0, 1, 2]))
    assert np.allclose(kept, PLACES)


def test_private_candidates_come_near_the_optimum(rows):
    """Theorem 5, with room: alpha is far below log(n)^3, and every cluster is captured within few radii."""
    for X, k, epsilon in ((rows, 3, 1.0), (load_digits().data / 8 - 1, 10, 2.0)):
        ledger = Ledger.memory("public", epsilon, relation="add-remove")
        found = private_candidates(X, epsilon, ledger=ledger, n_clusters=k, bounds=(-1, 1), random_state=0)
        measured = quality(found, X, k, n_init=3)
        assert measured.alpha < measured.captured_bound**2 / 20
        assert measured.captured < measured.captured_bound / 2
        assert measured.points < measured.points_bound / 20


def test_swaps_among_candidates_lower_the_cost(rows):
    domain = Box([-1.0, -1.0], [1.0, 1.0], 20)
    few, many = (np.mean([swap_ratio(rows, 3, 16.0, swaps, domain, seed=seed) for seed in range(3)]) for swaps in (1, 6))
    assert many < few
    assert many < 30


def test_a_threshold_adds_less_to_the_cost_of_a_sparse_mean_than_chosen_columns():
    X = sparse_rows(4000, 2000, 1, 4, 40)
    for epsilon in (0.5, 2.0):
        chosen, kept = (
            np.mean(
                [sparse_excess(X, 4, epsilon, Candidates(nonzeros=4, recovery=way, levels=1), seed=s).above for s in range(3)]
            )
            for way in ("columns", "threshold")
        )
        assert kept < chosen


def test_theorem_11_holds_for_chosen_columns_where_rows_are_many():
    X = sparse_rows(4000, 2000, 1, 4, 40)
    for eta in (0.25, 0.5):
        found = sparse_excess(X, 4, 8.0, Candidates(nonzeros=4, recovery="columns", eta=eta, levels=1))
        assert found.ratio <= 1 / (1 - eta)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_drawn_median_is_within_the_printed_order_of_the_best(d):
    """Lemma 2 has d Lambda/epsilon without its constant; the grid of places adds to it."""
    X = np.clip(0.3 + 0.1 * np.random.default_rng(d).standard_normal((1000, d)), -1, 1)
    found = [median_excess(X, 0.5, "all", seed=seed) for seed in range(4)]
    assert all(each.above >= -1e-3 for each in found)
    assert np.mean([each.above for each in found]) < 10 * found[0].scale
