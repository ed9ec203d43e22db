"""The grid over few columns is fine where rows are: wide bounds and rows in few places cost little."""

from dataclasses import replace

import numpy as np
import pytest

from kveil import PrivateKMeans
from kveil.methods.tree.counting import _inside
from kveil.methods.tree.loose import crowded_block, densest
from kveil.methods.tree.zooming import Zoomed, _kept, _looser
from kveil.partition.tiling import Tiling
from kveil.questions.midpoint_cells import TileCounts
from kveil.solve.evidence import by_chance, sure_sum
from kveil.testing import scripted

PLACES = np.array([[0.2, 0.2], [0.8, 0.2], [0.5, 0.8]])


def three(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    return PLACES[rng.integers(0, 3, n)] + 0.03 * rng.standard_normal((n, 2))


def with_a_small_one():
    """The three clusters, and one of 150 rows far away."""
    return np.vstack([three(), 7.0 + 0.03 * np.random.default_rng(1).standard_normal((150, 2))])


def fitted(rows, half, k=3, seed=3, **options):
    with scripted(seed):
        return PrivateKMeans(k, bounds=(-half, half), random_state=0, **({"epsilon": 1.0} | options)).fit(rows)


def looks(model):
    """Charges for cells of the tree: the looks, and the grid."""
    draws = [draw for draw in model.guarantee_.draws if draw.label == "cells of the tree"]
    return [float(draw.epsilon) for draw in draws for _ in range(draw.times)]


@pytest.mark.parametrize("half", [1, 10, 1000])
def test_loose_bounds_cost_little(half):
    """Cells of one size over bounds 1000 times too wide would all be wider than the table."""
    rows = three()
    model = fitted(rows, half)
    best = float(((rows[:, None] - PLACES) ** 2).sum(axis=2).min(axis=1).sum())
    assert -model.score(rows) < 1.1 * best
    assert sum(float(draw.epsilon) * draw.times for draw in model.guarantee_.draws) <= 1.0


def test_looks_come_out_of_the_share_of_the_grid():
    assert sum(looks(fitted(three(), 1000))) == pytest.approx(0.9) == sum(looks(fitted(three(), 1)))
    assert len(looks(fitted(three(), 1000))) == 4  # three looks and the grid
    assert len(looks(fitted(np.random.default_rng(0).uniform(-1, 1, (6000, 2)), 1))) == 2  # even rows: one look decides
    assert looks(fitted(three(50), 1000)) == pytest.approx([0.9])  # a look at 50 rows would show noise alone


@pytest.mark.parametrize("d", [1, 2, 3])
def test_few_rows_in_loose_bounds_are_found_block_by_block(d):
    """A grid over bounds 100 times too wide has all of them in a few cells: some hundred times the cost."""
    rng = np.random.default_rng(4)
    rows = rng.uniform(-0.5, 0.5, (3, d))[rng.integers(0, 3, 450)] + 0.03 * rng.standard_normal((450, d))
    even = -fitted(rows, 1, epsilon=np.inf).score(rows)
    costs = [-fitted(rows, 100, seed=seed).score(rows) / even for seed in range(7)]
    assert np.median(costs) < 60  # one grid alone: 6000 and more
    assert len(looks(fitted(rows, 100))) == 4


def test_a_look_for_few_rows_has_what_makes_a_block_clear_and_decides_alone_where_rows_lie_everywhere():
    spread = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    first, grid = looks(fitted(spread, 1))
    assert 0.04 < first < 0.14
    assert first + grid == pytest.approx(0.9)
    assert looks(fitted(spread[:150], 1)) == pytest.approx([0.9])  # too dear


def test_the_densest_block_is_found_by_hand():
    """Sixteen cells of a square; three rows lie in its middle, in three cells, and two together in a corner."""
    tiling = Tiling.whole(np.array([8, 8])).divided(np.array([4]))
    rows = np.array([[-1, -1], [1, 1], [1, -1], [7, 7], [7, 7]])
    is_in, held = densest(tiling, np.bincount(tiling.find(rows), minlength=16).astype(float), np.ones(16, dtype=bool))
    assert held == 3
    assert sorted(tiling.boxes(is_in)[0].tolist()) == [[-2, -2], [-2, 2], [2, -2], [2, 2]]


class Says:
    """A desk that answers looks one after the other by what each is given: a table of counts by cell."""

    kind = "pure"

    def __init__(self, *answers, deviation=10.0):
        self.answers, self.asked, self.deviation = list(answers), [], deviation

    def ask(self, question, share):
        self.asked.append(len(question.tiling.levels))
        return ((self.answers.pop(0)(question.tiling), self.deviation),)


def seen(part, n=1000.0):
    """Noise left so much of a crowd on the corner of four cells."""
    crowd = np.array([[-1, -1], [-1, 0], [0, -1], [0, 0]]) * 10 + 5
    return lambda tiling: np.bincount(tiling.find(crowd), minlength=len(tiling.levels)) * part * n / 4


@pytest.mark.parametrize(("first", "asked"), [(0.6, [64, 64, 124]), (0.9, [64, 124, 184]), (0.4, [64])])
def test_a_block_that_noise_may_have_hidden_is_looked_for_once_more(first, asked):
    """Two looks at the same cells count as their mean: 0.6 and 0.9 of all rows are found. With 0.4 rows lie everywhere."""
    desk = Says(seen(first), seen(0.9), seen(0.9))
    block = crowded_block(desk, None, np.array([1024, 1024]), 0.05, 1000.0, 20)
    assert desk.asked == asked
    assert block.spent == pytest.approx(0.05 * len(asked))
    assert block.tiling.depth == (0 if first == 0.4 else 10 if first == 0.6 else 14)


@pytest.mark.parametrize(("part", "is_found"), [(0.9, True), (0.5, False)])
def test_rows_that_show_in_no_cell_of_the_first_look_show_in_its_block(part, is_found):
    """Each of the four cells has less than the 2 deviations that a cell needs. Later looks have a region, and keep it."""
    asked = TileCounts(None, Tiling.whole(np.array([1024, 1024])).divided(np.array([6])))
    every = np.ones(64, dtype=bool)
    kept = _kept(Says(seen(part), deviation=120.0), asked, every, 0.04, 1000.0)
    assert (kept is not None) == is_found
    assert kept is None or (kept > 0).sum() == 4
    assert _kept(Says(seen(part), deviation=120.0), asked, np.arange(64) < 63, 0.04, 1000.0) is None


@pytest.mark.parametrize("is_rough", [False, True])
def test_cells_count_alike_where_many_rows_lie_outside_a_rough_region(is_rough):
    tiling, region = Tiling.whole(np.array([8, 8])).divided(np.array([2])), np.array([True, False, False, False])
    plan = Zoomed(tiling, region, np.zeros(4, dtype=np.int64), 0.1, is_rough)
    everywhere = _inside(plan, np.array([90.0, 40.0, 0.0, 0.0]), 1.0, is_pure=True)
    assert everywhere.tolist() == ([True] * 4 if is_rough else [True, False, False, False])
    assert _inside(plan, np.array([90.0, 20.0, 0.0, 0.0]), 1.0, is_pure=True).tolist() == [True, False, False, False]


def test_a_small_cluster_far_from_the_others_keeps_a_centre():
    nearest = np.linalg.norm(fitted(with_a_small_one(), 10, k=4).cluster_centers_ - 7.0, axis=1).min()
    assert nearest < 0.3


@pytest.mark.parametrize("where", [0.3131, 9.0])
@pytest.mark.parametrize("options", [{}, {"delta": 1e-6}, {"epsilon": np.inf}])
def test_rows_in_one_point_or_beyond_the_bounds_have_a_centre_there(where, options):
    """Cells end where they are one step of the fixed-point grid wide."""
    model = fitted(np.full((5000, 2), where), 1.0, k=2, **options)
    assert np.abs(model.cluster_centers_ - min(where, 1.0)).min() < 1e-3
    assert np.isfinite(model.cluster_errors_).all()


def test_a_release_with_cells_of_different_sizes_answers_as_others_do():
    rows = with_a_small_one()
    release = fitted(rows, 10, k=4).release_
    assert len(np.unique(release.synopsis.half[:, 0])) > 1
    again = release.recluster(2, random_state=0)
    assert again.centers.shape == (2, 2)
    assert np.abs(again.centers - 7.0).max(axis=1).min() < 0.3
    assert np.abs(release.sample(2000, random_state=0).mean(axis=0) - rows.mean(axis=0)).max() < 0.3
    verdict = release.verdict()
    assert verdict.word == "good"
    assert verdict.explained == pytest.approx(1 - 2 * 0.03**2 / rows.var(axis=0).sum(), abs=0.002)


def test_a_verdict_weighs_the_width_of_a_cell_by_its_rows():
    """One wide cell with few rows: if its width were that of all cells, centres would explain far less."""
    release = fitted(with_a_small_one(), 10, k=4).release_
    synopsis, first = release.synopsis, int(np.argmax(release.synopsis.kept))
    order = np.r_[first, np.delete(np.arange(synopsis.n_points), first)]
    half = synopsis.half[order]
    half[0] = 1.0
    parts = {name: getattr(synopsis, name)[order] for name in ("points", "counts", "kept")}
    assert replace(release, synopsis=replace(synopsis, half=half, **parts)).verdict().explained > 0.95


def crowds_and_few():
    """Three crowds in tight clusters and five wide clusters of 100 rows: rows, and the places of the five."""
    rng = np.random.default_rng(5)
    crowds = np.repeat([[-0.7, -0.3], [-0.64, -0.24], [-0.58, -0.3]], 2000, axis=0)
    places = np.array([[-0.12, -0.2], [-0.12, -0.4], [0.08, -0.2], [0.08, -0.4], [-0.02, -0.3]])
    wide = np.repeat(places, 100, axis=0)
    return np.vstack([crowds + 0.006 * rng.standard_normal((6000, 2)), wide + 0.02 * rng.standard_normal((500, 2))]), places


def test_few_rows_in_wide_clusters_beside_crowds_are_not_taken_for_noise():
    """The crowds make the mean cost small; errors of the wide clusters are small beside their own rows."""
    assert fitted(crowds_and_few()[0], 1, k=8, seed=1).release_.verdict().word != "noise"


def test_few_rows_in_wide_clusters_beside_crowds_have_their_centres():
    """In cells as small as those of the crowds, rows of a wide cluster would be taken for noise, and its centre lost."""
    rows, places = crowds_and_few()
    models = [fitted(rows, 1, k=8, seed=seed) for seed in range(20)]
    off = np.array([np.linalg.norm(places[:, None] - model.cluster_centers_, axis=2).min(axis=1).max() for model in models])
    assert (off < 0.03).sum() >= 17


@pytest.mark.parametrize("log", [3.0, 8.0])
def test_a_sure_sum_is_passed_as_rarely_as_it_says(log):
    """Of one Laplace count of scale b, and of two: P(X > t b) = exp(-t) / 2, and (2 + t) exp(-t) / 4."""
    one, two = sure_sum(np.array([1, 2]), log, is_pure=True) * 2**0.5
    assert np.exp(-one) / 2 == pytest.approx(np.exp(-log))
    assert 0.01 * np.exp(-log) < (2 + two) * np.exp(-two) / 4 <= np.exp(-log)


@pytest.mark.parametrize("is_pure", [True, False])
def test_a_sure_sum_is_that_of_its_size_whatever_stands_beside_it(is_pure):
    sizes = np.array([16.0, 0.0, 3.0, 16.0, 2**20])
    alone = [float(sure_sum(np.array([size]), 5.0, is_pure=is_pure)[0]) for size in sizes]
    assert sure_sum(sizes, 5.0, is_pure=is_pure).tolist() == alone
    assert sure_sum(sizes[:0], 5.0, is_pure=is_pure).tolist() == []


@pytest.mark.parametrize("is_pure", [True, False])
def test_what_noise_adds_to_kept_counts_is_known(is_pure):
    """By a sum over a fine grid of the noise's density."""
    x = np.arange(2.5, 60, 1e-3)
    density = np.exp(-(2**0.5) * x) / 2**0.5 if is_pure else np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    assert by_chance(2.5, is_pure=is_pure) == pytest.approx((x * density).sum() * 1e-3, rel=2e-3)


@pytest.mark.parametrize(("halvings", "bits", "more"), [(11, 8, 0), (14, 8, 3), (14, 14, 2), (20, 17, 0)])
def test_cells_outside_are_finer_in_loose_bounds_alone(halvings, bits, more):
    """The region is one cell of 2**-halvings of the box: up to 2**-11 one grid is fine enough, and 2**16 cells are the most."""
    tiling = Tiling.whole(np.array([1 << 11, 1 << 11])).divided(np.array([2]))
    tiling = tiling.divided(np.array([halvings - 2, 0, 0, 0]))
    region = np.arange(len(tiling.levels)) == 0
    assert tiling.levels[region].tolist() == [halvings]
    assert _looser(tiling, region, bits) == more
    assert _looser(tiling, np.ones(len(region), dtype=bool), bits) == 0


def test_small_clusters_in_loose_bounds_keep_their_centres():
    """Four clusters of 150 rows beside three of 2000. A cell as wide as in a grid over these bounds, 19, holds all four."""
    rng = np.random.default_rng(2)
    few = np.array([[8.0, 8.0], [8.0, 12.0], [12.0, 8.0], [12.0, 12.0]])
    rows = np.vstack([three(), np.repeat(few, 150, axis=0) + 0.02 * rng.standard_normal((600, 2))])
    models = [fitted(rows, 300, k=7, seed=seed) for seed in range(8)]
    off = [np.linalg.norm(few[:, None] - model.cluster_centers_, axis=2).min(axis=1).max() for model in models]
    assert np.median(off) < 0.2


def test_in_three_columns_rows_are_looked_for_block_by_block_longer():
    """A crowd on a corner of cells lies in eight of them. Cell by cell, such rows cost 7 times as much."""
    rng = np.random.default_rng(4)
    rows = rng.uniform(-0.5, 0.5, (6, 3))[rng.integers(0, 6, 3000)] + 0.03 * rng.standard_normal((3000, 3))
    even = -fitted(rows, 1, k=6, epsilon=np.inf).score(rows)
    assert np.median([-fitted(rows, 100, k=6, seed=seed).score(rows) / even for seed in range(5)]) < 3
