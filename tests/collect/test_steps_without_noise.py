"""Every step of LAE, LMA and refinement where answers have no noise: what comes out is worked out beside it, exactly."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from exact_answers import Exact

from kveil.collect.encoding import bases, keys_of, nearest
from kveil.collect.lae import LITE, PAPER, Lae
from kveil.collect.lma import Lma
from kveil.collect.queries import Outcome, Terms
from kveil.collect.refine import Refine
from kveil.partition.public_map import into_ball, side

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


def test_every_round_of_refinement_moves_centres_nearer_to_the_means():
    """Seven columns: two images tell places about, and means relative to pairs of seeds and to centres do the rest."""
    crowd = Exact(WIDE, WIDE_SIZES)
    protocol = Refine(Terms(sum(WIDE_SIZES), 3, 7, Fraction(4)), b"wide")
    first, second, third, fourth = played(protocol, crowd, 3)
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
