"""A choice in every group for one charge: its law is one selection among tuples."""

from fractions import Fraction
from itertools import product

import numpy as np
from vault_choices import realised_law

from kveil.kernel.choice import selections
from kveil.kernel.exact import SystemEntropy

SYSTEM = SystemEntropy()
COSTS = np.array([[0, 3, 7], [5, 5, 1]])


def exponents(costs, measurement, monkeypatch):
    """Of every tuple. Groups are drawn one after the other from fresh bits, so their exponents add up."""
    laws = [realised_law(lambda group=group: int(measurement.draw(SYSTEM, group[None, :])[0]), monkeypatch) for group in costs]
    return {(i, j): laws[0][i] + laws[1][j] for i, j in product(laws[0], laws[1])}


def test_the_law_is_that_of_one_selection_among_all_tuples(monkeypatch):
    """By enumeration: the exponent of a tuple is the rate times its summed cost, up to one constant."""
    law = exponents(COSTS, selections("each", 4, Fraction(2)), monkeypatch)
    assert sorted(law) == list(product(range(3), range(3)))
    assert len({law[i, j] - Fraction(1, 2) * int(COSTS[0, i] + COSTS[1, j]) for i, j in law}) == 1


def test_ranges_add_up_over_groups_and_that_is_what_is_paid(monkeypatch):
    """Costs that differ by ranges 3 and 1 move the log-ratio of two tuples by exactly epsilon at cost_range 4, not less."""
    epsilon, moved = Fraction(2), np.array([[0, 3, 0], [0, 1, 0]])
    measurement = selections("each", 4, epsilon)
    with_person, without = (exponents(costs, measurement, monkeypatch) for costs in (COSTS + moved, COSTS))
    differences = [with_person[pair] - without[pair] for pair in without]
    assert max(differences) - min(differences) == epsilon
    assert (measurement.charge.mechanism, measurement.charge.sensitivity, measurement.charge.epsilon) == ("select", 4, epsilon)
