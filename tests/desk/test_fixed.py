"""A step of DP-Lloyd at a fixed desk: its cost, its sensitivity, and its exact law on tiny tables."""

from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product
from math import exp, isqrt, log

import numpy as np
import pytest
from scipy import stats

import kveil
from kveil.desk.fixed import Fixed
from kveil.desk.law import Law
from kveil.kernel.grid import Ball, Box
from kveil.kernel.ledger import Ledger
from kveil.kernel.loss import PrivacyUnit, compose, floor_delta, floor_epsilon, zcdp_rho
from kveil.methods.lloyd import step_budgets
from kveil.questions.cluster_sums import ClusterSums, sums_in
from kveil.space.euclidean import Centers

TINY = Box(np.array([-1.0]), np.array([1.0]), bits=3)  # codes -3 .. 3
LINE = Box(np.array([-127.0]), np.array([127.0]), bits=8)  # a code is its value
RELATIONS = ["add-remove", "replace-one"]
BY_COORDINATES = pytest.mark.parametrize("by_coordinates", [False, True], ids=["vector", "coordinates"])


def unit(m: int) -> PrivacyUnit:
    return PrivacyUnit() if m == 1 else PrivacyUnit("person", m, "id")


def fixed(domain, total, n_steps, relation="add-remove", m=1, *, kind="pure", by_coordinates=False, delta=Fraction(0)):
    """The budget of the steps, as `Lloyd` makes it, and what counts and sums of one step get of it."""
    law, d = Law(kind, relation, unit(m), says_one=True), domain.n_columns
    budgets = step_budgets(d, total, n_steps, is_pure=kind == "pure", by_coordinates=by_coordinates)
    return Fixed(law, law.charges(sums_in(domain, by_coordinates=by_coordinates), d, budgets, n_steps), n_steps, delta), budgets


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("domain", [TINY, Box(np.zeros(7), np.ones(7)), Ball(np.zeros(784), 2.0)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.7])
@BY_COORDINATES
def test_pure_charges_add_up_to_epsilon_exactly(domain, epsilon, relation, m, by_coordinates):
    asked = floor_epsilon(epsilon)
    budget, _ = fixed(domain, asked, 7, relation, m, by_coordinates=by_coordinates)
    assert sum(charge.times * charge.epsilon for charge in budget.charges) == asked
    assert compose(budget.plan()).epsilon == float(asked)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-6), (4.0, 1e-9)])
def test_gaussian_charges_add_up_to_rho_exactly_and_never_pass_epsilon(epsilon, delta, relation):
    chance = floor_delta(delta)
    rho = zcdp_rho(floor_epsilon(epsilon), chance)
    budget, _ = fixed(Box(np.zeros(5), np.ones(5)), rho, 6, relation, 2, kind="zcdp", delta=chance)
    assert sum(charge.times * charge.rho for charge in budget.charges) == rho
    total = compose(budget.plan())
    assert 0.99 * epsilon < total.epsilon <= epsilon
    assert total.route == "zcdp"


def test_sensitivities_are_those_of_the_docstring():
    box = Box(np.zeros(4), np.ones(4))
    for relation, m, counts_l1, counts_l2, factor in [
        ("add-remove", 1, 1, 1, 1),
        ("add-remove", 3, 3, 3, 3),
        ("replace-one", 1, 2, 2, 2),
        ("replace-one", 3, 6, 5, 6),
    ]:
        pure, _ = fixed(box, Fraction(1), 2, relation, m)
        gaussian, _ = fixed(box, Fraction(1, 10), 2, relation, m, kind="zcdp")
        assert [c.sensitivity for c in pure.charges] == [counts_l1, factor * box.l2_sensitivity]
        assert [c.sensitivity for c in gaussian.charges] == [counts_l2, factor * box.l2_sensitivity]
        assert counts_l2 >= (m if relation == "add-remove" else (2 * m * m) ** 0.5)


def drawn_rates(domain, total, n_steps, relation, *, by_coordinates=False):
    """epsilon/sensitivity of counts and sums: what the noise of one real step at a desk was drawn by, from its receipts."""
    budget, of_step = fixed(domain, total, n_steps, relation, by_coordinates=by_coordinates)
    question = ClusterSums.of(np.zeros((2, domain.n_columns)), domain, None, by_coordinates=by_coordinates)
    with Ledger.memory("one", total, relation=relation).reserve(budget.plan()) as ticket:
        budget.open(kveil.read(np.zeros((3, domain.n_columns))), domain, ticket).ask(question, *of_step)
    charges = [receipt.charge for receipt in ticket.receipts]
    assert {charge.mechanism for charge in charges} == {"discrete-laplace"}
    return [charge.epsilon / charge.sensitivity for charge in charges]


def log_pmf(z: int, rate: float) -> float:
    q = exp(-rate)
    return log((1 - q) / (1 + q)) - abs(z) * rate


def tables(max_rows: int) -> list[tuple[int, ...]]:
    return [rows for n in range(max_rows + 1) for rows in combinations_with_replacement(range(-3, 4), n)]


@cache
def raw(rows: tuple[int, ...], places: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    question = ClusterSums(TINY, Centers(np.array(places, dtype=np.float64)[:, None], None))
    counts, sums = question.raw(np.array(rows, dtype=np.int16).reshape(-1, 1))
    return tuple(counts.tolist()), tuple(sums.ravel().tolist())


def neighbours(rows: tuple[int, ...], relation: str) -> list[tuple[int, ...]]:
    added = [tuple(sorted((*rows, x))) for x in range(-3, 4)]
    replaced = [tuple(sorted((*rows[:i], x, *rows[i + 1 :]))) for i in range(len(rows)) for x in range(-3, 4)]
    return added if relation == "add-remove" else replaced


def worst_ratio_of_one_step(rates: list[Fraction], relation: str, k: int, max_rows: int) -> float:
    """The largest log-ratio of P(output) over neighbouring tables, centres and outputs, by enumeration.

    Beyond the window every |z - s| - |z - s'| is constant in z, so outputs there add no new ratio.
    """
    window = range(-3 * max_rows - 1, 3 * max_rows + 2)

    @cache
    def farthest(s, t, rate):
        return max(abs(log_pmf(z - s, rate) - log_pmf(z - t, rate)) for z in window)

    worst = 0.0
    for places in combinations_with_replacement(range(-3, 4), k):
        for rows in tables(max_rows):
            for other in neighbours(rows, relation):
                # Coordinates are independent, so the worst output is the worst of each.
                total = sum(
                    farthest(s, t, float(rate))
                    for rate, mine, theirs in zip(rates, raw(rows, places), raw(other, places), strict=True)
                    for s, t in zip(mine, theirs, strict=True)
                )
                worst = max(worst, total)
    return worst


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("k", [1, 2])
@BY_COORDINATES
def test_every_output_of_one_step_on_every_tiny_table_is_within_e_to_the_epsilon(k, relation, by_coordinates):
    """k = 1, 2 and d = 1: all tables of at most 2 rows on 7 codes, all neighbours, all centres, all outputs. The bound is met."""
    rates = drawn_rates(TINY, Fraction(1), 1, relation, by_coordinates=by_coordinates)
    worst = worst_ratio_of_one_step(rates, relation, k, max_rows=2)
    assert worst <= 1 + 1e-9
    if relation == "add-remove":
        assert worst > 1 - 1e-9  # the budget is used, not wasted


@pytest.mark.parametrize("shape", ["box", "ball"])
def test_noise_by_coordinates_covers_every_row_of_two_columns(shape):
    """The worst log-ratio of discrete Laplace noise is its rate times the L1 move. In a box the corner row meets epsilon."""
    domain = Box(-np.ones(2), np.ones(2), bits=4) if shape == "box" else Ball(np.zeros(2), 1.0, bits=4)
    of_counts, of_sums = drawn_rates(domain, Fraction(1), 1, "add-remove", by_coordinates=True)
    codes = domain.encode(np.array(list(product(np.linspace(-1, 1, 41), repeat=2)))).astype(int)
    losses = [of_counts + of_sums * int(np.abs(code).sum()) for code in codes]
    assert max(losses) <= 1
    assert max(losses) == 1 if shape == "box" else max(losses) > Fraction(8, 10)


@pytest.mark.parametrize("d", [1, 2, 17, 64])
def test_noise_by_coordinates_splits_a_step_as_su_et_al_do(d):
    box = Box(np.zeros(d), np.ones(d))
    by_coordinates, of_step = fixed(box, Fraction(1), 1, by_coordinates=True)
    c = (4 * d * 0.225**2) ** (1 / 3)
    assert float(of_step[0]) == pytest.approx(c / (d + c), rel=1e-3)
    assert by_coordinates.charges[1].sensitivity == d * (2**15 - 1)
    as_vector, of_vector_step = fixed(box, Fraction(1), 1)
    wide = by_coordinates.law.variance(sums_in(box, by_coordinates=True)[1], d, of_step[1])
    assert d == 1 or as_vector.law.variance(sums_in(box)[1], d, of_vector_step[1]) < wide


def test_the_enumeration_catches_a_sensitivity_that_is_too_small():
    twin = drawn_rates(Box(np.array([-1.0]), np.array([1.0]), bits=2), Fraction(1), 1, "add-remove")
    assert worst_ratio_of_one_step(twin, "add-remove", 1, max_rows=1) > 1.5  # calibrated for codes -1 .. 1, fed -3 .. 3


def test_two_adaptive_steps_on_tiny_tables_are_within_e_to_the_epsilon():
    """k = 2, d = 1: the centres of step two follow from the noisy output of step one; every transcript is checked."""
    rates = [float(rate) for rate in drawn_rates(TINY, Fraction(1), 2, "add-remove")]

    @cache
    def log_ratio(rows, other, places, output):
        mine, theirs = raw(rows, places), raw(other, places)
        return sum(
            log_pmf(z - s, rates[part]) - log_pmf(z - t, rates[part])
            for part in (0, 1)
            for z, s, t in zip(output[part], mine[part], theirs[part], strict=True)
        )

    outputs = [((a, b), (c, d)) for a, b in product(range(-1, 3), repeat=2) for c, d in product((-4, -1, 0, 1, 4), repeat=2)]
    worst = 0.0
    for rows in [(), (-3,), (3,), (0, 3), (-3, 3)]:
        for other in neighbours(rows, "add-remove"):
            for first in outputs:
                places = tuple(round(np.clip(s / max(c, 1), -3, 3)) for c, s in zip(*first, strict=True))
                one = log_ratio(rows, other, (-2, 2), first)
                two = [log_ratio(rows, other, places, second) for second in outputs[:: max(1, len(outputs) // 40)]]
                worst = max(worst, *(abs(one + x) for x in two))
    assert 0.9 < worst <= 1 + 1e-9


@pytest.mark.statistical
def test_released_counts_tell_neighbours_apart_no_better_than_epsilon():
    """Black box, real entropy: P(count > 0) of a centre with one row and of one without, 6000 releases each.

    An upper limit of one side and a lower limit of the other, each with error 5e-7 (Clopper-Pearson), so a false alarm has
    probability at most 1e-6. A twin with eight times the stated budget is caught with probability above 0.999999.
    """
    runs, error = 6000, 5e-7
    places = np.arange(-100.0, 100.0, 2.0)[:, None]
    question = ClusterSums.of(places, LINE, None)

    def hits(epsilon, table):
        budget, of_step = fixed(LINE, Fraction(epsilon), 1)
        source, found = kveil.read(table), 0
        for _ in range(runs // 100):
            with Ledger.memory("audit", 2 * epsilon, relation="add-remove").reserve(budget.plan()) as ticket:
                (counts, _), _ = budget.open(source, LINE, ticket).ask(question, *of_step)
            found += int((counts > 0).sum())
        return found

    def least_loss(epsilon):
        with_row, without = hits(epsilon, places), hits(epsilon, places[:0])
        low = stats.beta.ppf(error, with_row, runs - with_row + 1)
        high = stats.beta.ppf(1 - error, without + 1, runs - without)
        return log(low / high)

    assert question.raw(LINE.encode(places))[0].tolist() == [1] * 100
    share = float(fixed(LINE, Fraction(1), 1)[1][0])
    assert least_loss(1) <= share
    assert least_loss(8) > share


def test_empty_clusters_are_released_too():
    budget, of_step = fixed(TINY, Fraction(1), 1)
    with Ledger.memory("one", 1, relation="add-remove").reserve(budget.plan()) as ticket:
        desk = budget.open(kveil.read(np.empty((0, 1))), TINY, ticket)
        counts, sums = desk.draw(ClusterSums.of(np.zeros((5, 1)), TINY, None), *of_step)
    assert counts.shape == (5,)
    assert sums.shape == (5, 1)
    assert len(ticket.receipts) == 2


def test_replaced_counts_move_by_the_square_root_of_two():
    budget, _ = fixed(TINY, Fraction(1, 10), 1, "replace-one", kind="zcdp")
    assert budget.charges[0].sensitivity == isqrt(2) + 1
