"""The tree: what it finds, what it spends, and that no branch of it looks at rows."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from kveil import Ledger, PrivateKMeans
from kveil.errors import KveilError
from kveil.methods.base import Facts
from kveil.methods.tree.growth import boxes
from kveil.methods.tree.method import LEAN_RECOVERY, OF_RECOVERY, Tree, _Fit
from kveil.solve.wkmeans import thorough_kmeans
from kveil.testing import scripted


def ratio(X, k, floor, seeds=3, **parameters):
    """Mean cost over the cost without privacy."""
    costs = []
    for seed in range(seeds):
        with scripted(seed):
            costs.append(-PrivateKMeans(k, method="tree", random_state=seed, **parameters).fit(X).score(X))
    return np.mean(costs) / floor


@pytest.fixture(scope="module")
def mixture():
    """15 Gaussians in the unit ball of 8 dimensions."""
    rng = np.random.default_rng(5)
    places = rng.standard_normal((15, 8))
    places *= 0.7 / np.linalg.norm(places, axis=1, keepdims=True)
    rows = places[rng.integers(0, 15, 30_000)] + 0.05 * rng.standard_normal((30_000, 8))
    return rows, KMeans(15, init=places, n_init=1).fit(rows).inertia_


@pytest.mark.parametrize(
    ("lean", "full", "borne", "share"),
    [(10, 10, 10, OF_RECOVERY), (10, 10, 11, LEAN_RECOVERY), (25, 25, 11, LEAN_RECOVERY), (20, 25, 11, OF_RECOVERY)],
)
def test_the_recovery_is_lean_where_noise_bears_more_than_k_and_more_would_tell_no_more_apart(lean, full, borne, share):
    """Where noise bears k at most, more budget makes their means better, though there are no more of them."""
    told_apart = {2 * LEAN_RECOVERY: lean, 2 * OF_RECOVERY: full}
    fit = SimpleNamespace(
        k=10,
        desk=SimpleNamespace(left=2.0),
        n_groups=lambda leaves, seen, share, n_steps: told_apart[share],
        n_borne=lambda seen, share, n_steps, most: borne,
    )
    assert _Fit._recovery_share(fit, None, None, 4) == 2 * share


@pytest.mark.parametrize(("epsilon", "delta", "limit"), [(1.0, 1e-6, 1.05), (4.0, 1e-6, 1.01), (4.0, 0.0, 1.05)])
def test_well_separated_clusters_are_found(mixture, epsilon, delta, limit):
    rows, floor = mixture
    assert ratio(rows, 15, floor, radius=1.0, epsilon=epsilon, delta=delta) < limit


def test_digits_cost_little_more_than_without_privacy():
    rows = load_digits().data / 16
    floor = min(KMeans(10, n_init=1, random_state=seed).fit(rows).inertia_ for seed in range(5))
    assert ratio(rows, 10, floor, bounds=(0, 1), epsilon=4.0, delta=1e-6) < 1.15
    assert ratio(rows, 10, floor, bounds=(0, 1), epsilon=1.0, delta=1e-6) < 1.48


def test_it_beats_dp_lloyd_in_two_dimensions():
    rng = np.random.default_rng(1)
    places = rng.uniform(0.1, 0.9, (12, 2))
    rows = places[rng.integers(0, 12, 20_000)] + 0.03 * rng.standard_normal((20_000, 2))
    costs = {}
    for method in ("tree", "lloyd"):
        found = []
        for seed in range(5):
            with scripted(seed):
                found.append(-PrivateKMeans(12, method=method, bounds=(0, 1), random_state=seed).fit(rows).score(rows))
        costs[method] = np.mean(found)
    assert costs["tree"] < costs["lloyd"]


def test_without_noise_it_clusters_like_anyone(mixture):
    rows, floor = mixture
    assert ratio(rows, 15, floor, seeds=1, radius=1.0, epsilon=math.inf) < 1.01


def test_too_little_budget_gives_one_mean_and_says_so():
    rows = np.random.default_rng(0).random((500, 60))
    model = PrivateKMeans(6, epsilon=0.01, bounds=(0, 1)).fit(rows)
    assert np.ptp(model.cluster_centers_, axis=0).max() == 0
    assert "one private mean" in model.release_.notes[0]


def test_where_the_budget_tells_fewer_centres_apart_the_others_repeat_them():
    rng = np.random.default_rng(0)
    places = rng.choice([-0.5, 0.5], (3, 60))
    rows = places[rng.integers(0, 3, 6000)] + 0.05 * rng.standard_normal((6000, 60))
    with scripted(2):
        model = PrivateKMeans(40, epsilon=0.1, delta=1e-6, bounds=(-1, 1), random_state=0).fit(rows)
    assert "tells 5 centres apart" in model.release_.notes[0]
    assert model.cluster_centers_.shape == (40, 60)
    assert 2 <= len(np.unique(model.cluster_centers_, axis=0)) < 40
    assert (model.cluster_weights_[5:] == 0).all()
    assert -model.score(rows) < 0.5 * ((rows - rows.mean(axis=0)) ** 2).sum()


def test_the_budget_is_used_up_and_never_passed():
    rng = np.random.default_rng(2)
    for d, delta in [(2, 0.0), (2, 1e-6), (6, 0.0), (6, 1e-6), (40, 0.0), (40, 1e-6)]:
        rows = 0.2 * rng.standard_normal((4000, d))
        ledger = Ledger.memory("exact", 1.0, delta if delta and d > 3 else 0.0, relation="add-remove")
        model = PrivateKMeans(4, epsilon=1.0, delta=delta, bounds=(-1, 1), ledger=ledger).fit(rows)
        charge = model.guarantee_.charges[0]
        assert sum(draw.times for draw in model.guarantee_.draws) == model.release_.receipt["charges"]
        assert ledger.remaining().epsilon < 1e-3
        assert (charge.epsilon or charge.rho) <= 1
        assert model.guarantee_.valid


def test_auto_says_what_it_picked_and_why():
    rows = np.random.default_rng(0).random((200, 2))
    picked = {"tree": PrivateKMeans(3, bounds=(0, 1)), "lloyd": PrivateKMeans(3, bounds=(0, 1), n_steps=2)}
    for name, model in picked.items():
        method = model.fit(rows).release_.method
        assert (method["asked"], method["used"], model.method_) == ("auto", name, name)
        assert method["why"]


@pytest.mark.filterwarnings("ignore::kveil.errors.ScaleWarning")  # the case in question
def test_a_narrow_column_keeps_its_mean_beside_a_wide_one():
    rng = np.random.default_rng(0)
    income = np.r_[rng.normal(2e5, 1e4, 3000), rng.normal(8e5, 1e4, 3000)]
    is_member = np.r_[np.ones(3000), np.zeros(3000)]
    with scripted(1):
        model = PrivateKMeans(2, epsilon=5.0, bounds=([0, 0], [1e6, 1]), method="tree").fit(np.c_[income, is_member])
    centers = model.cluster_centers_[model.cluster_centers_[:, 0].argsort()]
    assert np.allclose(centers[:, 0], [2e5, 8e5], rtol=0.05)


def test_boxes_of_cells():
    """Halvings of x, y: code 2 is the right half of x, the lower half of y."""
    middles, halves = boxes(np.array([2]), np.array([0, 1]), np.array([8, 4]))
    assert (middles.tolist(), halves.tolist()) == ([[4.0, -2.0]], [[4.0, 2.0]])


@pytest.mark.parametrize("d", [1, 2, 16, 100, 784, 5000, 100_000])
def test_the_grid_is_as_fine_as_exact_distances_and_sums_allow(d):
    bits = Tree.bits(Facts(d, 1.0, None, 2**40))
    assert 4 * d * 4 ** (bits - 1) <= 2**53
    assert bits + 40 <= 63


def test_thorough_kmeans_finds_what_plain_starts_miss_and_pads_what_is_too_little():
    rng = np.random.default_rng(0)
    places = rng.uniform(0, 100, (20, 2))
    points = np.repeat(places, 30, axis=0) + 0.1 * rng.standard_normal((600, 2))
    centers = thorough_kmeans(points, np.ones(600), 20, rng)
    assert max(np.linalg.norm(centers - place, axis=1).min() for place in places) < 1
    assert thorough_kmeans(np.array([[1.0, 2.0]]), np.array([-3.0]), 4, rng).shape == (4, 2)
    assert thorough_kmeans(np.zeros((9, 1)), np.ones(9), 3, rng).tolist() == [[0.0]] * 3


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("method", ["tree", "lloyd", "mean", "grid", "candidates"])
def test_a_ledger_of_exactly_the_fits_budget_is_enough(d, method):
    if method == "grid" and d > 3:
        return
    rows = np.random.default_rng(0).random((300, d))
    for epsilon, delta in [(1.0, 0.0), (1.0, 1e-6), (0.1, 1e-6)]:
        ledger = Ledger.memory("exact", epsilon, delta, relation="add-remove")
        model = PrivateKMeans(2, epsilon=epsilon, delta=delta, bounds=(0, 1), ledger=ledger, method=method)
        before = model.guarantee(n_features=d)
        after = model.fit(rows).guarantee_
        assert (before.epsilon, before.delta, before.route) == (after.epsilon, after.delta, after.route)
        assert after.epsilon <= epsilon


@pytest.mark.parametrize(("epsilon", "delta", "d"), [(2**-30, 0.0, 4), (2**-22, 1e-6, 4), (1e-5, 1e-12, 17), (2**-30, 1e-6, 2)])
def test_a_budget_too_small_for_the_tree_is_refused_before_it_is_spent(epsilon, delta, d):
    ledger = Ledger.memory("untouched", 1.0, 1e-3 if delta else 0.0, relation="add-remove")
    with pytest.raises(KveilError, match=r"too small|wider"):
        PrivateKMeans(2, epsilon=epsilon, delta=delta, bounds=(-1, 1), method="tree", ledger=ledger).fit(np.zeros((5, d)))
    assert ledger.spent().epsilon == 0


@pytest.mark.parametrize("steps", [0, -1, 2.5, "a", True])
def test_a_number_of_steps_that_is_none_is_refused_before_anything_is_charged(steps):
    from kveil.tuning import Tree

    ledger = Ledger.memory("untouched", 1.0, relation="add-remove")
    with pytest.raises(KveilError, match="steps must be"):
        PrivateKMeans(2, bounds=(-1, 1), tuning=Tree(steps=steps), ledger=ledger).fit(np.zeros((5, 30)))
    assert ledger.spent().epsilon == 0


def test_noise_too_wide_for_any_of_its_releases_is_refused_before_anything_is_charged():
    """A coarse grid has short rows, but residuals and squares are as long as ever."""
    import kveil
    from kveil.tuning import Tree

    source = kveil.read(np.zeros((5, 7)), person=6, max_rows_per_person=10**6)
    unit = source.unit
    ledger = Ledger.memory("untouched", 1.0, 1e-5, relation="add-remove", unit=unit)
    with pytest.raises(KveilError, match="too small"):
        PrivateKMeans(2, epsilon=0.02, delta=1e-6, bounds=(-1, 1), tuning=Tree(bits=3), ledger=ledger).fit(source)
    assert ledger.spent().epsilon == 0


def test_a_source_of_noise_changed_during_a_fit_is_refused():
    from kveil.progress import listen

    ledger = Ledger.memory("mine", 1.0, relation="add-remove")
    inside = []

    def change(label, number, total):
        if number == 2 and not inside:
            inside.append(scripted(1))
            inside[0].__enter__()

    try:
        with listen(change), pytest.raises(KveilError, match="source of noise was changed"):
            PrivateKMeans(2, bounds=(-1, 1), ledger=ledger, epsilon=0.5).fit(np.zeros((50, 2)))
    finally:
        inside[0].__exit__(None, None, None)
    assert PrivateKMeans(2, bounds=(-1, 1), ledger=ledger, epsilon=0.5).fit(np.zeros((50, 2))).guarantee_.valid


def test_options_of_another_method_are_refused_and_those_of_one_point_at_it():
    from kveil import tuning

    for parameters in ({"n_steps": 3}, {"init": np.zeros((2, 1))}, {"tuning": tuning.Lloyd()}):
        for method in ("tree", "grid", "mean"):
            with pytest.raises(KveilError, match=r"belongs to method|tuning must be"):
                PrivateKMeans(2, bounds=(-1, 1), method=method, **parameters).fit(np.zeros((5, 1)))
        assert PrivateKMeans(2, bounds=(-1, 1), **parameters).fit(np.zeros((5, 1))).method_ == "lloyd"
    assert PrivateKMeans(2, bounds=(-1, 1), tuning=tuning.Grid()).fit(np.zeros((5, 1))).method_ == "grid"


def test_the_guarantee_of_a_sparse_fit_can_be_asked_for():
    from scipy.sparse import csr_array

    for d, delta in [(2, 1e-6), (3, 1e-6), (20, 1e-6), (20, 0.0)]:
        model = PrivateKMeans(2, epsilon=1.0, delta=delta, radius=1.0)
        before = model.guarantee(d, is_sparse=True)
        assert model.fit(csr_array(np.eye(d))).guarantee_.charges == before.charges


def test_a_table_declared_larger_gets_a_coarser_grid():
    import kveil

    assert PrivateKMeans(2, bounds=(0, 1)).fit(kveil.read(np.zeros((5, 2)), max_rows=2**50)).method_ == "tree"
