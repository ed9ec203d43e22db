"""Whole campaigns: cost against k-means without privacy, one report a person, and what a transcript tells of a point."""

from dataclasses import dataclass
from fractions import Fraction
from math import log, sqrt

import numpy as np
import pytest

from kveil.collect import device
from kveil.collect import simulate as simulation
from kveil.collect.answers import FromLaw
from kveil.collect.documents import query_document, read_query
from kveil.collect.encoding import preferred
from kveil.collect.lae import PAPER, Lae
from kveil.collect.manifest import split_cohorts
from kveil.collect.protocols import PROTOCOLS, build
from kveil.collect.queries import MOST_QUERIES, Outcome, Round, Terms
from kveil.collect.simulate import COHORTS, cohort_ends, simulate
from kveil.errors import InvalidValue
from kveil.kernel.loss import response_weights
from kveil.testing import scripted


def mixture(n, k, d, seed):
    """k round clusters in the unit ball, well apart."""
    rng = np.random.default_rng(seed)
    places = np.empty((0, d))
    while len(places) < k:
        place = rng.standard_normal(d)
        place *= 0.7 * rng.random() ** (1 / d) / np.linalg.norm(place)
        if not len(places) or np.linalg.norm(places - place, axis=1).min() >= 0.35:
            places = np.vstack([places, place])
    owner = rng.choice(k, n, p=rng.dirichlet(np.full(k, 5.0)))
    return places[owner] + 0.12 / sqrt(d) * rng.standard_normal((n, d)), places


def cost(points, centres):
    return float(np.min([((points - centre) ** 2).sum(axis=1) for centre in centres], axis=0).mean())


def ran(name, points, k, epsilon, seed, devices="fast"):
    epsilon = Fraction(epsilon)
    protocol = build(name, Terms(len(points), k, points.shape[1], epsilon), b"campaign %d" % seed)
    return simulate(points, protocol, epsilon, np.random.default_rng(seed), devices)


@pytest.mark.parametrize(
    ("name", "most"), [("refine", 1.05), ("grid", 1.05), ("zoom", 1.03), ("lma", 1.15), ("lae", 1.6), ("lae-ball", 1.6)]
)
def test_a_hundred_thousand_people_in_two_columns_are_enough_for_every_protocol(name, most):
    points, places = mixture(100_000, 4, 2, 1)
    found = ran(name, points, 4, 4, 1)
    assert cost(points, found.outcome.centres) <= most * cost(points, places)
    assert found.outcome.padded == 0
    assert sum(found.reports) == len(points)


@pytest.mark.parametrize("d", [1, 3, 4, 6, 9])
def test_refinement_works_for_any_number_of_columns(d):
    points, places = mixture(60_000, 2 if d == 1 else 3, d, d + 1)
    found = ran("refine", points, len(places), 4, 2)
    assert found.outcome.centres.shape == places.shape
    assert cost(points, found.outcome.centres) <= 1.35 * cost(points, places)
    assert found.outcome.counts.sum() == pytest.approx(len(points), rel=0.1)


def test_the_paper_s_constants_run_and_stay_within_what_a_manifest_may_hold():
    points, places = mixture(30_000, 3, 2, 1)
    terms = Terms(30_000, 3, 2, Fraction(4))
    protocol = Lae(terms, b"paper", PAPER)
    asked = []

    class Watching:
        shares, name = protocol.shares, protocol.name
        first = staticmethod(protocol.first)

        @staticmethod
        def next(done, answers, seed):
            asked.append(done)
            return protocol.next(done, answers, seed)

    found = simulate(points, Watching(), Fraction(4), np.random.default_rng(0))
    assert cost(points, found.outcome.centres) < 3 * cost(points, places)
    assert [len(done.queries) <= MOST_QUERIES for done in asked] == [True] * 4
    assert len(asked[1].queries) > 100


def test_devices_that_are_run_one_by_one_give_centres_as_good():
    points, places = mixture(20_000, 3, 2, 5)
    for name in ("grid", "zoom", "refine"):
        with scripted(3):
            found = ran(name, points, 3, 4, 1, "exact")
        assert cost(points, found.outcome.centres) <= 1.1 * cost(points, places)
        assert not any(receipt.secure for receipt in found.receipts)


def test_the_same_public_seed_and_noise_give_the_same_bits():
    points, _ = mixture(4_000, 3, 5, 5)
    results = []
    for _ in range(2):
        with scripted(11):
            results.append(ran("refine", points, 3, 4, 1, "exact").outcome.centres)
    assert (results[0] == results[1]).all()


@pytest.mark.parametrize("d", [2, 6])
def test_one_centre_is_the_mean(d):
    """Within 4.5 deviations by the campaign's own account, in a run with a fixed seed."""
    points = mixture(60_000, 4, d, 3)[0]
    found = ran("refine", points, 1, 4, 4).outcome
    away = np.linalg.norm(found.centres[0] - points.mean(axis=0))
    assert away <= 4.5 * sqrt(d) * found.sd[0]


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("n", [0, 1, 7])
@pytest.mark.parametrize("d", [1, 3, 7])
def test_hardly_anyone_answers_and_there_are_k_centres_all_the_same(name, n, d):
    if name in ("grid", "zoom") and d > 3:
        with pytest.raises(InvalidValue, match="at most 3 columns"):
            build(name, Terms(10, 4, d, Fraction(1)), b"")
        return
    points = np.zeros((n, d))
    protocol = build(name, Terms(max(1, n), 4, d, Fraction(1)), b"few")
    for devices in ("fast", "exact"):
        found = simulate(points, protocol, Fraction(1), np.random.default_rng(0), devices).outcome
        assert found.centres.shape == (4, d)
        assert np.isfinite(found.centres).all()
        assert np.linalg.norm(found.centres, axis=1).max() <= 1 + 1e-9


class Transcript:
    """What everyone sees of a campaign, and, for this test, whose report it was."""

    def __init__(self, monkeypatch):
        self.seen = []
        real = device.reports

        def watched(query, points, seeds, epsilon):
            values, receipt = real(query, points, seeds, epsilon)
            self.seen.append((query, points.copy(), seeds.copy(), values))
            return values, receipt

        monkeypatch.setattr(device, "reports", watched)


@pytest.mark.parametrize("name", ["grid", "zoom", "refine", "lae", "lma"])
def test_no_report_of_a_transcript_tells_two_points_apart_by_more_than_epsilon(name, monkeypatch):
    """Every report's chance is computed anew from query and seed alone, as anyone could, for its own point and for 50 others."""
    d, epsilon = (3 if name in ("grid", "zoom") else 5), Fraction(2)
    points, _ = mixture(1_500, 3, d, 9)
    points += np.arange(len(points))[:, None] * 1e-12  # no two are alike
    transcript = Transcript(monkeypatch)
    ran(name, points, 3, epsilon, 1, "exact")
    told = np.vstack([some for _, some, _, _ in transcript.seen])
    assert len(told) == len(points) == len(np.unique(told, axis=0)), "everyone sends exactly one report"
    a, b = response_weights(epsilon)
    others = np.random.default_rng(0).uniform(-0.6, 0.6, (50, d))
    worst = 0.0
    for query, some, seeds, values in transcript.seen:
        query = read_query(query_document(query), d)  # what a manifest carries is all it takes
        for point, seed, value in list(zip(some, seeds, values, strict=True))[:40]:
            candidates = np.vstack([point, others])
            liked = preferred(query, candidates, np.full(51, seed, dtype=np.uint64))
            weights = np.where((liked == value).any(axis=1), a, b) / (query.kappa * a + (query.M - query.kappa) * b)
            worst = max(worst, np.abs(np.log(weights / weights[0])).max())
    assert 0 < worst <= log(a / b) + 1e-12 <= float(epsilon) + 1e-12


@pytest.mark.parametrize("name", PROTOCOLS)
def test_everyone_is_asked_in_one_round_and_nobody_in_two(name):
    shares = PROTOCOLS[name](Terms(1000, 3, 2, Fraction(1)), b"shares").shares
    assert sum(map(Fraction, map(str, shares))) == 1
    ends = cohort_ends(shares)
    assert (np.diff(ends) > 0).all()
    assert ends[-1] == COHORTS
    assert split_cohorts(shares) == tuple(zip([0, *ends[:-1]], ends - 1, strict=True))


@dataclass(frozen=True)
class Shown:
    """What a protocol may see of answers, and nothing of what they are made of."""

    _of: FromLaw

    def received(self, query):
        return self._of.received(query)

    def support(self, query, keys):
        return self._of.support(query, keys)

    def sums(self, query, keys, start=0):
        return self._of.sums(query, keys, start)


@pytest.mark.parametrize("name", ["grid", "zoom", "refine", "lae", "lma"])
def test_rounds_follow_from_what_answers_say_and_not_from_the_points_behind_a_simulation(name, monkeypatch):
    points, _ = mixture(5_000, 3, 2, 4)
    plain = ran(name, points, 3, 2, 1)
    monkeypatch.setattr(simulation, "FromLaw", lambda *given: Shown(FromLaw(*given)))
    shown = ran(name, points, 3, 2, 1)
    assert shown.outcome.centres.tobytes() == plain.outcome.centres.tobytes()


def test_protocols_are_functions_of_terms_seed_and_answers():
    """A collector that lost its memory gets the same queries from storage."""
    points, _ = mixture(5_000, 3, 6, 2)
    terms, epsilon = Terms(5_000, 3, 6, Fraction(4)), Fraction(4)

    def again(number):
        protocol = build("refine", terms, b"same")
        now = protocol.first()
        for step in range(number):
            theirs = np.array_split(points, 4)[step]
            parts = np.array_split(theirs, len(now.queries))
            answers = FromLaw(dict(enumerate(parts)), epsilon, np.random.default_rng(step))
            stored = Round(now.number, tuple(read_query(query_document(q), 6) for q in now.queries), dict(now.state))
            now = build("refine", terms, b"same").next(stored, answers, b"hash %d" % step)
        return now

    for number in range(4):
        one, two = again(number), again(number)
        assert [query_document(q) for q in one.queries] == [query_document(q) for q in two.queries]
    assert isinstance(again(4), Outcome)
    assert (again(4).centres == again(4).centres).all()


def test_cohorts_fill_all_of_sixteen_bits():
    assert cohort_ends((0.2, 0.3, 0.25, 0.25)).tolist() == [13107, 32768, 49152, 65536]


def test_an_unknown_protocol_is_refused():
    with pytest.raises(InvalidValue, match="there are grid"):
        build("naive", Terms(10, 2, 2, Fraction(1)), b"")
    with pytest.raises(InvalidValue, match="whole number from 1"):
        Terms(0, 2, 2, Fraction(1))


def test_an_outcome_says_when_its_centres_are_mostly_noise():
    points, _ = mixture(60_000, 3, 5, 2)
    assert ran("refine", points, 3, 4, 1).outcome.notes == ()
    (note,) = ran("refine", points[:300], 3, "1/10", 1).outcome.notes
    assert note.startswith("noise_dominated: 3 of the centres")
