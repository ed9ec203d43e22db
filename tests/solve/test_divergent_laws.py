"""Nodes, synopses and batches draw by the divergence that they are given, data first and centre second: exact laws."""

from fractions import Fraction

import pytest
from seeding_laws import FourthPowers, defined_law, fourth_powers, realised_law

from kveil import seeding
from kveil.errors import InvalidType

ROWS = [[0.0, 1.0], [1.0, 1.0], [3.0, 0.0], [-2.0, 2.0], [4.0, 4.0]]
PLUG = FourthPowers()


@pytest.fixture
def nodes(monkeypatch):
    """The law of two centres over nodes."""

    def law(parts, **options):
        return realised_law(lambda rng: seeding.dkmeans_plusplus(parts, 2, random_state=rng, **options), monkeypatch)

    return law


@pytest.fixture
def synopsis(monkeypatch):
    """The law of two centres of a synopsis."""

    def law(points, weights, **options):
        return realised_law(lambda rng: seeding.skmeans_plusplus(points, weights, 2, random_state=rng, **options), monkeypatch)

    return law


def test_nodes_that_draw_by_divergence_are_one_table(nodes):
    expected = defined_law(ROWS, [1] * 5, 2, fourth_powers)
    assert expected != defined_law(ROWS, [1] * 5, 2)
    assert expected != defined_law(ROWS, [1] * 5, 2, lambda a, c: fourth_powers(c, a))  # the centre first
    for cut in range(1, 5):
        assert nodes([ROWS[:cut], ROWS[cut:]], divergence=PLUG) == expected


def test_forgy_nodes_are_drawn_by_their_total(nodes):
    """Nodes {0, 1} and {3}: from 0 their totals are 1 and 81, and each row of the first has half of its share."""
    law = nodes([[[0.0], [1.0]], [[3.0]]], local_pick="uniform", divergence=PLUG)
    assert law[((0.0,), (3.0,))] == Fraction(1, 3) * Fraction(81, 82)
    assert law[((0.0,), (1.0,))] == law[((0.0,), (0.0,))] == Fraction(1, 3) * Fraction(1, 82) / 2


def test_synopses_are_drawn_by_weight_times_divergence(synopsis):
    weights = [3, 1, 2, 1, 4]
    assert synopsis(ROWS, weights, divergence=PLUG) == defined_law(ROWS, weights, 2, fourth_powers)


def test_batches_give_one_centre_each_by_divergence(monkeypatch):
    def run(rng):
        seeder = seeding.OnlineSeeder(2, divergence=PLUG, random_state=rng)
        assert [seeder.update(batch) for batch in ([[0.0], [2.0]], [[1.0], [3.0], [-1.0]])] == [True, True]
        return seeder.centers

    law = realised_law(run, monkeypatch)
    for first in (0, 2):
        scores = {x: fourth_powers((x,), (first,)) for x in (1, 3, -1)}
        for x, score in scores.items():
            assert law[((float(first),), (float(x),))] == Fraction(score, 2 * sum(scores.values()))


@pytest.mark.parametrize("name", ["KullbackLeibler", "ItakuraSaito", "TotalJensen"])
def test_the_divergences_of_the_library_too(name, nodes, synopsis, monkeypatch):
    """The law of the loop over all rows; test_divergences holds the values against their definitions."""
    divergence = getattr(seeding, name)("burg" if name == "TotalJensen" else 0.1)
    rows = [[0.5, 1.0], [1.0, 1.5], [3.0, 0.2], [2.0, 2.5]]
    law = realised_law(lambda rng: seeding.kvariates(rows, 2, divergence=divergence, random_state=rng).centers, monkeypatch)
    over_nodes = nodes([rows[:3], rows[3:]], divergence=divergence)
    assert synopsis(rows, [1] * 4, divergence=divergence) == law
    assert {c: float(p) for c, p in over_nodes.items()} == pytest.approx({c: float(p) for c, p in law.items()})  # totals round


def test_a_word_is_no_divergence():
    for run in (
        lambda: seeding.dkmeans_plusplus([[[0.0]]], 1, divergence="kl"),
        lambda: seeding.skmeans_plusplus([[0.0]], [1], 1, divergence="kl"),
        lambda: seeding.OnlineSeeder(1, divergence=seeding.KullbackLeibler),
    ):
        with pytest.raises(InvalidType, match="divergence must be an object"):
            run()
