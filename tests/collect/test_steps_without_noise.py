"""Every step of LAE, LMA and refinement where answers have no noise: what comes out is worked out beside it, exactly."""

from dataclasses import replace
from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from exact_answers import Exact

from kveil.collect.bitstogram import folded, heavy_keys
from kveil.collect.centres import moved
from kveil.collect.descent import descend
from kveil.collect.encoding import bases, keys_of, nearest
from kveil.collect.lae import LITE, PAPER, Lae
from kveil.collect.lma import Lma
from kveil.collect.one_grid import GridProtocol, cell_query
from kveil.collect.queries import SHARE_OF_POINT, Outcome, Query, Sums, Terms
from kveil.collect.refine import Refine
from kveil.collect.vector import SHIFT, codebook
from kveil.partition.lsh import RotatedGrid
from kveil.partition.public_map import PublicMap, into_ball, side

LARGE, SMALL = 20_000, 3_000  # of 41 000 people: heavy on all four levels, and on all but the last
PLACES = np.array([[-0.52, -0.13], [0.11, 0.62], [0.57, -0.31], [-0.21, 0.29], [0.18, -0.64]])
SIZES = [LARGE, LARGE // 2, *[SMALL] * 3]
N, CROWD = sum(SIZES), Exact(PLACES, SIZES)
BEGUN = {"lae": LITE, "balls": replace(LITE, lsh="ball"), "paper": replace(PAPER, repeats=2, scales=1, guesses=2)}


def played(protocol, answers, n_rounds):
    """Rounds 1, 2, ... as they are asked, the last of them the one that follows n_rounds closed ones."""
    rounds = [protocol.first()]
    for number in range(n_rounds):
        rounds.append(protocol.next(rounds[-1], answers, b"round %d" % number))
    return rounds


def apart(points, others):
    """How far each point is from the nearest of the others."""
    return np.linalg.norm(points[:, None] - others, axis=2).min(axis=1)


def lae(preset=LITE, k=5):
    return Lae(Terms(N, k, 2, Fraction(4)), b"steps", preset)


@pytest.mark.parametrize("name", BEGUN)
def test_the_mean_of_every_heavy_bucket_is_a_candidate(name):
    """Small groups are light cells below heavy ones on the last level: no middle of a cell is near them, their own mean is."""
    *_, second, third = played(lae(BEGUN[name]), CROWD, 2)
    candidates, one = third.queries[0].centres[0].astype(float), third.queries[0].maps[0]
    heavy = {(query.buckets.level, key) for query in second.queries for key in query.buckets.here.tolist()}
    middles = into_ball(np.vstack([one.middles(np.array([key], dtype=np.uint64), 2 * level) for level, key in sorted(heavy)]))
    assert apart(PLACES[2:], middles).min() > 0.02
    assert apart(PLACES[2:], candidates).max() < 1e-5
    assert apart(middles, candidates).max() < 1e-6, "and the middle of every heavy cell"


def test_heavy_cells_are_those_that_hold_enough_people_of_their_level():
    second = played(lae(), CROWD, 1)[-1]
    one = second.queries[0].buckets.map
    by_level = {query.buckets.level: query.buckets for query in second.queries}
    assert sorted(by_level) == [1, 2, 3, 4]
    for level, places in ((1, PLACES), (2, PLACES), (3, PLACES), (4, PLACES[:2])):
        cells = np.unique(one.cells(places, 2 * level))
        assert by_level[level].here.tolist() == cells.tolist()
        assert by_level[level].above.tolist() == np.unique(one.cells(PLACES, 2 * (level - 1))).tolist()
    assert [by_level[level].top for level in (1, 2, 3, 4)] == [0, 0, 1, 2]  # 1.5 lg 2 is 2 levels up


def test_every_guess_of_the_optimum_marks_its_own_cells():
    """The second guess is twice the first: 16 sqrt(n) in a cell of the last level but two is heavy under one of them alone."""
    protocol = lae(replace(PAPER, guesses=3, scales=1, repeats=1))
    second = played(protocol, CROWD, 1)[-1]
    one, found = second.queries[0].buckets.map, {}
    for guess, level, *_, first, _ in second.state["families"]:
        found[guess, level] = second.queries[first].buckets.here.tolist()
    for (guess, level), here in found.items():
        cells, at = np.unique(one.cells(PLACES, 2 * level), return_inverse=True)
        people = np.bincount(at, SIZES)
        least = sqrt(N) * 2**guess / side(level) ** 2  # k sqrt(n) 2**f / (k side**2)
        assert here == cells[people >= least].tolist()
    assert found[0, 4] != found[2, 4]


def test_a_bucket_s_mean_stays_in_its_large_cell():
    """Sums a hundred times too long, as noise may make them: candidates lie at the edge of the cell that holds the bucket."""
    protocol, loud = lae(), Exact(PLACES, SIZES, loudness=100.0)
    second = played(protocol, CROWD, 1)[-1]
    found = protocol.next(second, loud, b"").queries[0].centres[0]
    for *part, first, n_counts in second.state["families"]:
        queries = second.queries[first : first + n_counts + 1]
        buckets = queries[0].buckets
        means = protocol._bucket_means(loud, type(next(protocol.parts()))(*part), queries)
        cells = buckets.map.middles(buckets.large, 2 * buckets.top)
        inside = np.abs(means[:, None] - cells).max(axis=2).min(axis=1)
        assert (inside <= side(buckets.top) / 2 + 1e-9).all()
    assert np.linalg.norm(found, axis=1).max() <= 1 + 1e-6


def test_candidates_count_by_the_people_who_are_nearest_to_them():
    """One centre: the mean of all candidates, each weighted by its people."""
    *_, third, fourth = played(lae(k=1), CROWD, 3)
    candidates = third.queries[0].centres[0].astype(float)
    people = np.bincount(nearest(PLACES, candidates), SIZES, minlength=len(candidates))
    assert len(candidates) > 5
    assert fourth.queries[0].centres[0][0] == pytest.approx(people @ candidates / N, abs=1e-5)


def test_four_rounds_without_noise_end_at_the_places():
    outcome = played(lae(), CROWD, 4)[-1]
    assert apart(PLACES, outcome.centres).max() < 1e-5
    assert sorted(outcome.counts) == pytest.approx(sorted(SIZES), rel=1e-5)


WIDE = np.array(
    [[0.5, -0.1, 0.3, 0.2, -0.4, 0.1, 0.2], [-0.4, 0.2, -0.3, -0.1, 0.3, -0.2, 0.4], [0.0, 0.4, 0.5, -0.5, 0.1, 0.3, -0.3]]
)
WIDE_SIZES = [9_000, 7_000, 4_000]


@pytest.mark.parametrize("d", [5, 7])
def test_one_round_in_many_columns_gives_the_mean_of_every_cluster(d):
    """Three places in coarse cells of their own, whose sums are exact: so are the means, and the counts."""
    places = WIDE[:, :d]
    first, outcome = played(Lma(Terms(sum(WIDE_SIZES), 3, d, Fraction(4)), b"wide"), Exact(places, WIDE_SIZES), 1)
    coarse = first.queries[-1]
    assert (coarse.kind, coarse.depth) == ("vec", 4)
    assert len(set(coarse.maps[0].cells(places, 4).tolist())) == 3, "each place has a coarse cell of its own"
    assert isinstance(outcome, Outcome)
    assert apart(places, outcome.centres).max() < 1e-4
    assert outcome.counts[nearest(places, outcome.centres)] == pytest.approx(WIDE_SIZES, rel=1e-4)


def test_one_round_in_many_columns_clusters_cells_by_their_people():
    """Two near places of many people and a far one of few: two centres part the near ones, as the cost with weights asks."""
    places, sizes = np.array([[-0.3, 0.0], [0.2, 0.1], [0.95, -0.3]]) @ WIDE[:2], [9_000, 7_000, 400]
    first, outcome = played(Lma(Terms(sum(sizes), 2, 7, Fraction(4)), b"wide"), Exact(places, sizes), 1)
    assert len(set(first.queries[-1].maps[0].cells(places, 4).tolist())) == 3
    order = outcome.counts.argsort()
    assert outcome.counts[order] == pytest.approx([7_400, 9_000], rel=1e-5)
    assert outcome.centres[order] == pytest.approx(
        np.vstack([(7_000 * places[1] + 400 * places[2]) / 7_400, places[0]]), abs=1e-5
    )


def test_every_round_of_refinement_moves_centres_nearer_to_the_means():
    """Seven columns: two images tell places about, and means relative to pairs of seeds and to centres do the rest."""
    crowd = Exact(WIDE, WIDE_SIZES)
    protocol = Refine(Terms(sum(WIDE_SIZES), 3, 7, Fraction(4)), b"wide")
    _, second, third, fourth = played(protocol, crowd, 3)
    pairs = second.queries[0]
    found = [bases(pairs, keys_of(pairs, WIDE), 7), *(one.queries[0].centres[0] for one in (third, fourth))]
    away = [apart(WIDE, some).max() for some in found]
    assert away[0] > 2 * away[1] > 0.1 > 1e-6 > away[2]
    moved = replace(fourth.queries[0], centres=(WIDE.astype(np.float32) + np.float32(0.01),))
    outcome = protocol.next(replace(fourth, queries=(moved,)), crowd, b"")
    assert outcome.centres == pytest.approx(WIDE, abs=1e-6), "the last round moves them, too"
    assert outcome.counts == pytest.approx(WIDE_SIZES, rel=1e-5)


def test_residuals_choose_among_too_many_centres_by_their_people():
    """Of five centres of round 3 two hold nobody and one a tenth of what others do: weights decide which k of them are kept."""
    sizes = [9_000, 7_000, 800]
    crowd, terms = Exact(WIDE, sizes), Terms(sum(sizes), 1, 7, Fraction(4))
    protocol = Refine(terms, b"wide")
    third = played(protocol, crowd, 2)[-1]
    five = np.vstack([WIDE, [[0.0] * 6 + [-0.9], [0.9] + [0.0] * 6]]).astype(np.float32)
    asked = replace(third.queries[0], centres=(five,))
    fourth = protocol.next(replace(third, queries=(asked,)), crowd, b"")
    assert fourth.queries[0].centres[0][0] == pytest.approx(np.array(sizes) @ WIDE / sum(sizes), abs=1e-6)


class Noisy(Exact):
    """The same, with so much noise in every column of a sum as reports would show by their squares."""

    def __init__(self, *given, deviation, **more):
        super().__init__(*given, **more)
        self.deviation = deviation

    def sums(self, query, keys, start=0):
        told = super().sums(query, keys, start)
        m = codebook(query.length(self.points.shape[1]), self.epsilon).m
        square = (self.deviation * m * 2.0**24) ** 2 / 2.0**SHIFT
        return Sums(told.sums, np.full(told.sums.shape[1], round(square), dtype=np.int64))


def residual_round(**more):
    """Three centres, each off its place by 0.03 in the first column, and what a round of residuals makes of them."""
    book = codebook(8, Fraction(4))
    centres = (WIDE + 0.03 * np.eye(7)[0]).astype(np.float32)
    query = Query(id=0, kind="vec", M=book.M, kappa=book.kappa, key_rule="nearest", centres=(centres,), rho=0.25)
    crowd = Noisy(WIDE, WIDE_SIZES, **more)
    return centres, moved(crowd, query, np.arange(3, dtype=np.uint64), Terms(sum(WIDE_SIZES), 3, 7, Fraction(4)))


def test_a_step_is_pulled_back_by_as_much_as_noise_explains():
    """James and Stein: a step over 1 - d sd**2/|sum|**2 of its length, and none at all where noise is longer than the sum."""
    sums = 0.03 / 0.25 * sqrt(SHARE_OF_POINT) * np.array(WIDE_SIZES)  # lengths, over rho
    for deviation in (0.0, 20.0, 80.0, 5e3):
        centres, found = residual_round(deviation=deviation)
        kept = np.maximum(0, 1 - 7 * deviation**2 / sums**2)
        assert centres - found.places == pytest.approx(0.03 * kept[:, None] * np.eye(7)[0], abs=2e-5)
    centres, loud = residual_round(deviation=0.0, loudness=1e3)  # counts grow, too
    assert centres - loud.places == pytest.approx(np.tile(0.03 * np.eye(7)[0], (3, 1)), abs=2e-5)
    centres, found = residual_round(deviation=0.0, loudness=1e-3)  # counts are taken for a twentieth of an equal share at least
    assert np.linalg.norm(centres - found.places, axis=1).max() < 0.003


def test_a_step_is_at_most_rho_long():
    """Sums that are ten times as long as their counts allow."""

    class Long(Exact):
        def sums(self, query, keys, start=0):
            told = super().sums(query, keys, start)
            return Sums(told.sums * np.array([10] * 7 + [1]), told.squares)

    book = codebook(8, Fraction(4))
    query = Query(id=0, kind="vec", M=book.M, kappa=book.kappa, key_rule="nearest", centres=(0.5 * WIDE.astype("f4"),), rho=0.25)
    found = moved(Long(WIDE, WIDE_SIZES), query, np.arange(3, dtype=np.uint64), Terms(20_000, 3, 7, Fraction(4)))
    assert np.linalg.norm(found.places - 0.5 * WIDE, axis=1) == pytest.approx([0.25] * 3, rel=1e-5)


def test_refinement_keeps_half_as_many_centres_again_until_residuals_have_told():
    _, _, third, fourth = played(Refine(Terms(20_000, 3, 7, Fraction(4)), b"wide"), Exact(WIDE, WIDE_SIZES), 3)
    assert [len(one.queries[0].centres[0]) for one in (third, fourth)] == [5, 3]


@pytest.mark.parametrize(("n", "d", "depth"), [(20_000, 1, 6), (500, 2, 8), (10**8, 2, 10), (20_000, 3, 12)])
def test_a_grid_is_as_deep_as_its_columns_and_people_allow(n, d, depth):
    assert GridProtocol(Terms(n, 3, d, Fraction(4)), b"").first().queries[0].depth == depth


def test_one_grid_clusters_cells_by_their_people_and_says_what_is_filling():
    places, sizes = np.array([[-0.3, 0.0], [0.3, 0.0], [0.95, 0.0]]), [9_000, 7_000, 900]
    crowd = Exact(places, sizes)
    _, outcome = played(GridProtocol(Terms(sum(sizes), 2, 2, Fraction(4)), b"grid"), crowd, 1)
    assert sorted(outcome.counts) == pytest.approx([7_900, 9_000], rel=1e-5)
    assert outcome.padded == 0
    _, outcome = played(GridProtocol(Terms(sum(sizes), 5, 2, Fraction(4)), b"grid"), crowd, 1)
    assert outcome.padded == 2


def test_what_stands_out_of_no_child_stays_with_the_parent():
    """A cell of 1000 people of whom 625 are in one child; the others are 25 each in 15, and none of those stands out."""
    one = PublicMap(np.eye(2, dtype=np.float32), np.zeros(2, dtype=np.float32))
    spots = one.middles(np.arange(256, dtype=np.uint64)[192:208], 8)  # the 16 cells below cell 12 of depth 4
    crowd, terms = Exact(spots, [625, *[25] * 15]), Terms(1_000, 2, 2, Fraction(4))
    proxy = descend(crowd, [cell_query(i, one, depth, terms) for i, depth in enumerate((4, 8))], terms, z=3.0, cap=9)
    assert proxy.points == pytest.approx(np.vstack([one.middles(np.array([12], dtype=np.uint64), 4), spots[:1]]))
    assert proxy.weights == pytest.approx([375.0, 625.0])


def test_a_cell_outside_the_ball_is_no_candidate():
    """Answers that put most people into a corner of the root cell, where nobody can be: only noise could say so."""

    class Astray(Exact):
        def support(self, query, keys):
            return super().support(query, keys) + np.where(keys == 0, 500, 0)

    one, terms = PublicMap(np.eye(2, dtype=np.float32), np.zeros(2, dtype=np.float32)), Terms(1_000, 1, 2, Fraction(4))
    answers, queries = Astray(PLACES[:1], [1_000]), [cell_query(0, one, 8, terms)]
    true = one.middles(one.cells(PLACES[:1], 8), 8)
    assert descend(answers, queries, terms, z=3.0, cap=9).points == pytest.approx(true)
    assert len(descend(answers, queries, terms, z=3.0, cap=9, is_bounded=False).points) == 2


def test_seeds_in_the_same_cluster_are_merged_to_the_mean_of_its_people():
    """Three places, two of them in neighbouring cells, and two centres: more seeds than centres, then the exact means."""
    places, sizes = np.array([[-0.5, 0.1], [-0.28, 0.12], [0.6, -0.2]]), [6_000, 2_000, 4_000]
    crowd, protocol = Exact(places, sizes), Refine(Terms(12_000, 2, 2, Fraction(4)), b"merge")
    _, second, outcome = played(protocol, crowd, 2)
    assert len(second.queries[0].centres[0]) == 3
    assert second.state["people"] == pytest.approx([sizes[i] for i in nearest(second.queries[0].centres[0], places)], rel=1e-5)
    means = np.array([(6_000 * places[0] + 2_000 * places[1]) / 8_000, places[2]])
    order = outcome.counts.argsort()[::-1]
    assert outcome.centres[order] == pytest.approx(means, abs=1e-5)
    assert outcome.counts[order] == pytest.approx([8_000, 4_000], rel=1e-5)
    assert outcome.padded == 0


def test_more_seeds_than_centres_mend_what_cells_put_together():
    """Places nearer to each other than cells are wide: version 1 joins the wrong ones, and residuals cannot part them again."""
    places = np.array([[-0.3, 0.0], [-0.22, 0.05], [-0.12, 0.0], [0.3, 0.0], [0.6, 0.1], [0.0, 0.8]])
    sizes = [5_000, 3_000, 5_000, 2_000, 2_000, 3_000]
    terms, crowd, costs = Terms(sum(sizes), 4, 2, Fraction(4)), Exact(places, sizes), []
    for version in (1, 2):
        centres = played(Refine(terms, b"b", version=version), crowd, 2)[-1].centres
        costs.append(float(sizes @ apart(places, centres) ** 2))
    assert costs == pytest.approx([117.53, 87.0], abs=0.01)


def test_bits_that_fit_together_are_no_key_unless_it_stands_out():
    """Two keys of a thousand and of three people are put together bit by bit; three people are fewer than noise may show."""
    one = PublicMap(np.eye(2, dtype=np.float32), np.zeros(2, dtype=np.float32))
    places, terms = np.array([[0.31, 0.3], [-0.4, 0.1]]), Terms(1_003, 2, 2, Fraction(4))
    base = Query(id=0, kind="olh", M=2, kappa=1, key_rule="cell", maps=(one,), depth=14)
    found, people, _ = heavy_keys(Exact(places, [1_000, 3]), folded(base, 1_003, terms, seed=9), terms, z=3.5)
    assert found.tolist() == one.cells(places[:1], 14).tolist()
    assert people == pytest.approx([1_000])


def test_buckets_double_from_scale_to_scale_and_halve_from_level_to_level():
    protocol = Lae(Terms(10**6, 8, 4, Fraction(1)), b"", PAPER)
    assert [protocol.width(2, m + 1) / protocol.width(2, m) for m in range(1, 6)] == pytest.approx([2] * 5)
    assert protocol.width(2, 1) == pytest.approx(2 * protocol.width(3, 1))
    assert protocol.width(1, 1) == pytest.approx(4 * 2 * 1.5 / (4 * sqrt(6)))  # 4 times 2**m t_l/(d sqrt(L))


def test_a_grid_of_cubes_is_shifted():
    eye = np.eye(2, dtype=np.float32)
    lines = [np.array([x, 0.0]) for x in (0.1, 0.3)]
    plain, shifted = (RotatedGrid(eye, np.array([shift, 0.0], dtype=np.float32), 0.5) for shift in (0.0, 0.5))
    assert len(set(plain.buckets(np.array(lines), 1.0).tolist())) == 1
    assert len(set(shifted.buckets(np.array(lines), 1.0).tolist())) == 2
