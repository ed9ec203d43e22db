"""k-variates++ as one loop, and its k-means++ instance by exact law."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from kveil.errors import FewerDistinctPoints, InvalidType, InvalidValue
from kveil.solve.densities import Dirac
from kveil.solve.divergences import Mahalanobis
from kveil.solve.instances import kmeans_plusplus
from kveil.solve.kmeans import weighted_kmeans
from kveil.solve.seeding import kvariates


class Served:
    """A public generator whose uniforms are chosen by the test."""

    def __init__(self, uniforms):
        self.uniforms = iter(uniforms)

    def random(self):
        return next(self.uniforms)


def law_of_kmeans_plusplus(points, weights, k):
    """Probability of every sequence of anchors, by the definition."""
    law = {}
    for anchors in product(range(len(points)), repeat=k):
        p = 1.0
        for t, anchor in enumerate(anchors):
            scores = [
                w * (1 if t == 0 else min((x - points[a]) ** 2 for a in anchors[:t]))
                for x, w in zip(points, weights, strict=True)
            ]
            scores = scores if sum(scores) else weights
            p *= scores[anchor] / sum(scores)
        law[anchors] = p
    return law


def test_seeds_follow_the_law_of_weighted_kmeans_plusplus():
    """False alarm 1e-7 (chi-square); uniform seeding is caught, see the twin."""
    points, weights, k, runs = [0.0, 1.0, 5.0], [1.0, 2.0, 1.0], 2, 20_000
    law = {anchors: p for anchors, p in law_of_kmeans_plusplus(points, weights, k).items() if p > 0}
    rng = np.random.default_rng(11)
    seen = [tuple(kvariates([[x] for x in points], k, weights=weights, random_state=rng).anchors.tolist()) for _ in range(runs)]

    def distance(observed):
        return sum((observed.count(a) - runs * p) ** 2 / (runs * p) for a, p in law.items())

    limit = stats.chi2.isf(1e-7, len(law) - 1)
    assert set(seen) <= set(law)
    assert distance(seen) < limit
    uniform = [tuple(rng.choice(3, 2, replace=False).tolist()) for _ in range(runs)]
    assert distance(uniform) > limit


def test_four_points_by_hand(monkeypatch):
    points = np.array([[0.0], [1.0], [10.0], [11.0]])
    monkeypatch.setattr(np.random, "default_rng", lambda seed: seed)
    # u = 0.1 picks the first of four equal weights; then scores 0, 1, 100, 121 of 222: u = 0.5 is 111, the last row.
    seeding = kvariates(points, 2, random_state=Served([0.1, 0.5]))
    assert seeding.anchors.tolist() == [0, 3]
    assert seeding.centers.ravel().tolist() == [0.0, 11.0]


def test_a_row_of_weight_zero_is_never_an_anchor():
    weights = [0.0, 1.0, 0.0, 1.0, 0.0]
    for seed in range(200):
        anchors = kvariates(np.arange(5.0)[:, None], 2, weights=weights, random_state=seed).anchors
        assert set(anchors.tolist()) == {1, 3}


def test_duplicates_fall_back_to_weights_and_still_give_k_centres():
    with pytest.warns(FewerDistinctPoints, match=r"1 distinct place\(s\) for 5 centres"):
        assert kmeans_plusplus(np.zeros((3, 2)), 5, random_state=0).tolist() == [[0.0, 0.0]] * 5


def test_other_plugs_are_used():
    class Shifted:
        def draw(self, points, anchor, rng):
            return points[anchor] + 100.0

    class Halves:
        is_fixed = False

        def apply(self, t, points, centers):
            return points / 2

    class Absolute:
        def to_center(self, points, center):
            return np.abs(points - center).sum(axis=1)

    class Last:
        def pick(self, weights, distances, rng):
            self.seen = distances
            return len(weights) - 1

    chooser = Last()
    found = kvariates([[0.0], [4.0]], 2, density=Shifted(), probe=Halves(), divergence=Absolute(), chooser=chooser)
    assert found.centers.ravel().tolist() == [104.0, 104.0]
    assert chooser.seen.tolist() == [104.0, 102.0]


@pytest.mark.parametrize(
    ("points", "k", "weights"),
    [
        ([], 1, None),
        ([[0.0]], 0, None),
        ([[0.0]], 1.5, None),
        ([[np.nan]], 1, None),
        ([0.0, 1.0], 1, None),
        ([[0.0], [1.0]], 1, [1.0]),
        ([[0.0], [1.0]], 1, [0.0, 0.0]),
        ([[0.0], [1.0]], 1, [-1.0, 2.0]),
    ],
)
def test_bad_input_is_refused_in_words(points, k, weights):
    with pytest.raises(InvalidValue, match="must be"):
        kvariates(points, k, weights=weights)


def test_weighted_kmeans_finds_three_heavy_places():
    points = np.array([[0.0], [0.1], [5.0], [5.1], [9.0], [7.0]])
    weights = np.array([10.0, 10.0, 10.0, 10.0, 20.0, 0.0])
    centers = weighted_kmeans(points, weights, 3, np.random.default_rng(0))
    assert np.allclose(np.sort(centers.ravel()), [0.05, 5.05, 9.0])


def test_weighted_kmeans_returns_k_centres_of_fewer_points():
    assert weighted_kmeans(np.array([[1.0]]), np.array([1.0]), 4, np.random.default_rng(0)).shape == (4, 1)


@pytest.mark.parametrize(
    ("points", "options", "says"),
    [
        ("rows.parquet", {}, "table of numbers"),
        ([1.0, 2.0], {}, "reshape"),
        ([[0.0, 1.0]], {"density": "laplace"}, "density must be an object"),
        ([[0.0, 1.0]], {"density": Dirac}, "density must be an object"),
        ([[0.0, 1.0]], {"divergence": "kl"}, "divergence must be an object"),
        ([[0.0, 1.0]], {"divergence": Mahalanobis(np.eye(3))}, r"for 3 column\(s\), and these points have 2"),
    ],
)
def test_what_cannot_be_seeded_is_refused_with_a_reason(points, options, says):
    with pytest.raises((InvalidValue, InvalidType), match=says):
        kvariates(points, 1, **options)
