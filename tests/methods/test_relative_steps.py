"""How many relative steps there are, what each may spend, and how far it goes."""

import numpy as np
import pytest

from kveil import PrivateKMeans
from kveil.methods.steps import step
from kveil.methods.tree.growth import Leaves, joined
from kveil.questions.base import Noisy
from kveil.questions.frame import Frame
from kveil.solve.placed import Placed
from kveil.tuning import Tree


def blobs(n, d, k=3):
    rng = np.random.default_rng(0)
    places = np.random.default_rng(1).uniform(-0.7, 0.7, (k, d))
    return np.clip(places[rng.integers(k, size=n)] + 0.05 * rng.standard_normal((n, d)), -1, 1)


def spent(model, rows, label):
    """What each draw whose label begins so was charged, one after the other: epsilon, or rho."""
    draws = [draw for draw in model.fit(rows).guarantee_.draws if draw.label.startswith(label)]
    return [float(draw.epsilon or draw.rho) for draw in draws for _ in range(draw.times)]


@pytest.mark.parametrize(("delta", "d"), [(0.0, 5), (1e-6, 5), (1e-6, 18)])
def test_small_noise_means_more_steps_and_a_last_one_as_good_as_with_few(delta, d):
    rows, fewest = blobs(4000, d), 2 if d < 16 else 4
    models = [PrivateKMeans(3, epsilon=50.0, delta=delta, bounds=(-1, 1), random_state=0, tuning=Tree(steps=steps))
              for steps in (None, fewest)]  # fmt: skip
    many, few = (spent(model, rows, "residuals") for model in models)
    assert len(many) == len(few) + 8 - fewest
    assert many[-1] == pytest.approx(few[-1], rel=0.05)
    assert many[-8:-1] == pytest.approx([many[-2]] * 7, rel=0.05)
    assert many[-2] < 0.8 * many[-1]


def test_noise_that_is_not_small_leaves_the_fewest_steps():
    model = PrivateKMeans(3, epsilon=1.0, delta=1e-6, bounds=(-1, 1), random_state=0)
    assert len(spent(model, blobs(500, 5), "distances")) == 1 + 2  # the radius of all rows, and two steps


def test_where_noise_is_long_few_centres_are_asked_for_with_all_steps():
    model = PrivateKMeans(8, epsilon=0.25, delta=1e-6, bounds=(0, 1), random_state=0)
    assert len(spent(model, np.random.default_rng(0).random((1500, 64)), "distances")) == 1 + 4
    assert len(np.unique(model.cluster_centers_, axis=0)) in (2, 3)
    assert "centres apart, not 8" in model.release_.notes[0]


@pytest.mark.parametrize("n", [600, 20_000])
def test_every_centre_has_a_radius_of_its_own_where_rows_are_many(n):
    model = PrivateKMeans(3, epsilon=4.0, delta=1e-6, bounds=(-1, 1), random_state=0).fit(blobs(n, 5))
    labels = {draw.label for draw in model.guarantee_.draws}
    assert ("distances by centre" in labels) == (n > 600)


class Told:
    """A desk that answers with given counts and sums."""

    def __init__(self, counts, sums, noise):
        self.counts, self.sums, self.noise = np.asarray(counts, float), np.asarray(sums, float), noise

    def ask(self, question, *shares):
        self.radii = question.radii
        return Noisy(self.counts, 1.0), Noisy(self.sums, self.noise)


@pytest.mark.parametrize(("is_plain", "times"), [(True, 1.0), (False, 1.5)])
def test_a_step_goes_half_as_far_again_unless_it_is_plain(is_plain, times):
    frame = Frame(None, np.zeros(4, dtype=np.int64), 1000)
    placed = Placed(np.zeros((2, 4)), np.ones(2), np.ones(2))
    desk = Told([100, 100], [[1000, 0, 0, 0], [0, 500, 0, 0]], 0.0)
    after, how = step(desk, frame, placed, np.array([50.0, 80.5]), 1, 1, is_plain=is_plain)
    assert after.centers == pytest.approx(times * np.array([[10, 0, 0, 0], [0, 5, 0, 0]]))
    assert how.moves == pytest.approx(after.centers)
    assert desk.radii.tolist() == [50, 81]


@pytest.mark.parametrize(("d", "away"), [(12, 10.0), (13, 20.0)])
def test_what_clipping_cut_off_is_given_back_with_more_than_twelve_columns(d, away):
    frame, sums = Frame(None, np.zeros(d, dtype=np.int64), 1000), np.zeros((1, d))
    sums[0, 0] = 1000
    after, _ = step(Told([100], sums, 0.0), frame, Placed(np.zeros((1, d)), np.ones(1), np.ones(1)), 50.0, 1, 1, kept=0.5)
    assert after.centers[0].tolist() == pytest.approx([away] + [0] * (d - 1))


def test_a_move_that_is_mostly_noise_goes_hardly_further():
    frame = Frame(None, np.zeros(4, dtype=np.int64), 1000)
    placed = Placed(np.zeros((1, 4)), np.ones(1), np.ones(1))
    moved = [step(Told([100], [[1000, 0, 0, 0]], 100 * 9.9 / 50), frame, placed, 50.0, 1, 1, is_plain=last)[1].moves
             for last in (True, False)]  # fmt: skip
    assert np.linalg.norm(moved[1]) < 1.01 * np.linalg.norm(moved[0])


def test_a_step_is_averaged_with_what_steps_before_it_said_and_not_with_where_they_went():
    """What is known is at 10, a longer move went to 16, and the mean is told at 14, with noise that explains half of the 16
    that it is off what is known, squared."""
    frame = Frame(None, np.zeros(4, dtype=np.int64), 1000)
    placed, known = Placed(np.array([[16.0, 0, 0, 0]]), np.ones(1), np.ones(1)), np.array([[10.0, 0, 0, 0]])
    desk = Told([100], [[-200, 0, 0, 0]], 100 * 8**0.5 / 50)
    after, how = step(desk, frame, placed, 50.0, 1, 1, known=known)
    assert after.centers[0] == pytest.approx([12, 0, 0, 0])
    assert how.known == pytest.approx(after.centers)
    further, how = step(desk, frame, placed, 50.0, 1, 1, known=known, is_plain=False)
    assert how.known[0] == pytest.approx([12, 0, 0, 0])
    assert further.centers[0, 0] < 12  # a longer move from 16
    weak, _ = step(Told([0], [[-200, 0, 0, 0]], 1.0), frame, placed, 50.0, 1, 1, known=known)
    assert weak.centers[0] == pytest.approx([10, 0, 0, 0])


def test_joined_leaves_hold_all_cells_that_they_stand_for():
    rng = np.random.default_rng(0)
    points, halves = rng.uniform(-100, 100, (60, 3)), rng.uniform(1, 5, (60, 3))
    leaves = Leaves(points, rng.uniform(1, 9, 60), np.sqrt((halves**2).sum(axis=1)), halves)
    found = joined(leaves, 10, rng)
    assert len(found.points) == 10
    assert found.weights.sum() == pytest.approx(leaves.weights.sum())
    owner = ((points[:, None] - found.points) ** 2).sum(axis=2).argmin(axis=1)
    corners = points[:, None] + halves[:, None] * np.array([[a, b, c] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)])
    away = np.abs(corners - found.points[owner][:, None])
    assert (away <= found.halves[owner][:, None] + 1e-9).all()
    assert (np.linalg.norm(away, axis=2) <= found.reaches[owner][:, None] + 1e-9).all()
    assert joined(leaves, 60, rng) is leaves


def test_a_step_in_some_columns_leaves_the_others_as_they_are():
    frame = Frame(None, np.zeros(4, dtype=np.int64), 1000, columns=np.array([1, 3]))
    placed = Placed(np.array([[5.0, 0, 7, 0]]), np.ones(1), np.ones(1))
    after, how = step(Told([100], [[1000, 500]], 0.0), frame, placed, 50.0, 1, 1)
    assert after.centers[0] == pytest.approx([5, 10, 7, 5])
    assert how.moves[0] == pytest.approx([0, 10, 0, 5])
