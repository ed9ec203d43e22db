"""The noisy step of DP-Lloyd: its cost, its sensitivity, and its exact law on tiny tables."""

from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import exp, isqrt, log

import numpy as np
import pytest
from scipy import stats

from kveil.kernel.grid import Ball, Box
from kveil.kernel.ledger import Ledger
from kveil.kernel.loss import Plan, PrivacyUnit, compose, floor_delta, floor_epsilon, zcdp_rho
from kveil.privatise.cluster_sums import NoisyClusterSums
from kveil.space.euclidean import Centers
from kveil.summary.cluster_sums import cluster_sums

TINY = Box(np.array([-1.0]), np.array([1.0]), bits=3)  # codes -3 .. 3
RELATIONS = ["add-remove", "replace-one"]


def unit(m: int) -> PrivacyUnit:
    return PrivacyUnit() if m == 1 else PrivacyUnit("person", m, "id")


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("domain", [TINY, Box(np.zeros(7), np.ones(7)), Ball(np.zeros(784), 2.0)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.7])
@pytest.mark.parametrize("make", [NoisyClusterSums.pure, NoisyClusterSums.coordinates], ids=["vector", "coordinates"])
def test_pure_charges_add_up_to_epsilon_exactly(domain, epsilon, relation, m, make):
    asked = floor_epsilon(epsilon)
    noisy = make(domain, asked, 7, relation, unit(m))
    assert sum(charge.times * charge.epsilon for charge in noisy.charges) == asked
    assert compose(Plan(noisy.charges, relation, unit(m))).epsilon == float(asked)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-6), (4.0, 1e-9)])
def test_gaussian_charges_add_up_to_rho_exactly_and_never_pass_epsilon(epsilon, delta, relation):
    loss, chance = floor_epsilon(epsilon), floor_delta(delta)
    rho = zcdp_rho(loss, chance)
    noisy = NoisyClusterSums.gaussian(Box(np.zeros(5), np.ones(5)), rho, 6, relation, unit(2))
    assert sum(charge.times * charge.rho for charge in noisy.charges) == rho
    total = compose(Plan(noisy.charges, relation, unit(2), chance))
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
        pure = NoisyClusterSums.pure(box, Fraction(1), 2, relation, unit(m))
        gaussian = NoisyClusterSums.gaussian(box, Fraction(1, 10), 2, relation, unit(m))
        assert [c.sensitivity for c in pure.charges] == [counts_l1, factor * box.l2_sensitivity]
        assert [c.sensitivity for c in gaussian.charges] == [counts_l2, factor * box.l2_sensitivity]
        assert counts_l2 >= (m if relation == "add-remove" else (2 * m * m) ** 0.5)


def log_pmf(z: int, rate: float) -> float:
    q = exp(-rate)
    return log((1 - q) / (1 + q)) - abs(z) * rate


def tables(max_rows: int) -> list[tuple[int, ...]]:
    return [rows for n in range(max_rows + 1) for rows in combinations_with_replacement(range(-3, 4), n)]


def raw(rows: tuple[int, ...], centers: Centers) -> tuple[tuple[int, ...], tuple[int, ...]]:
    counts, sums = cluster_sums(np.array(rows, dtype=np.int16).reshape(-1, 1), centers)
    return tuple(counts.tolist()), tuple(sums.ravel().tolist())


def neighbours(rows: tuple[int, ...], relation: str) -> list[tuple[int, ...]]:
    added = [tuple(sorted((*rows, x))) for x in range(-3, 4)]
    replaced = [tuple(sorted((*rows[:i], x, *rows[i + 1 :]))) for i in range(len(rows)) for x in range(-3, 4)]
    return added if relation == "add-remove" else replaced


def worst_ratio_of_one_step(noisy: NoisyClusterSums, relation: str, k: int, max_rows: int) -> float:
    """The largest log-ratio of P(output) over neighbouring tables, centres and outputs, by enumeration.

    Beyond the window every |z - s| - |z - s'| is constant in z, so outputs there add no new ratio.
    """
    rates = [float(charge.epsilon / charge.sensitivity) for charge in noisy.charges]
    window = range(-3 * max_rows - 1, 3 * max_rows + 2)
    worst = 0.0
    for places in combinations_with_replacement(range(-3, 4), k):
        centers = Centers(np.array(places, dtype=np.float64)[:, None], None)
        for rows in tables(max_rows):
            mine = [*raw(rows, centers)[0], *raw(rows, centers)[1]]
            for other in neighbours(rows, relation):
                theirs = [*raw(other, centers)[0], *raw(other, centers)[1]]
                # Coordinates are independent, so the worst output is the worst of each.
                total = 0.0
                for i, (s, t) in enumerate(zip(mine, theirs, strict=True)):
                    rate = rates[i // k]
                    total += max(abs(log_pmf(z - s, rate) - log_pmf(z - t, rate)) for z in window)
                worst = max(worst, total)
    return worst


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("make", [NoisyClusterSums.pure, NoisyClusterSums.coordinates], ids=["vector", "coordinates"])
def test_every_output_of_one_step_on_every_tiny_table_is_within_e_to_the_epsilon(k, relation, make):
    """k = 1, 2 and d = 1: all tables of at most 2 rows on 7 codes, all neighbours, all centres, all outputs. The bound is met."""
    noisy = make(TINY, Fraction(1), 1, relation, unit(1))
    worst = worst_ratio_of_one_step(noisy, relation, k, max_rows=2)
    assert worst <= 1 + 1e-9
    if relation == "add-remove":
        assert worst > 1 - 1e-9  # the budget is used, not wasted


@pytest.mark.parametrize("shape", ["box", "ball"])
def test_noise_by_coordinates_covers_every_row_of_two_columns(shape):
    """The worst log-ratio of discrete Laplace noise is its rate times the L1 move. In a box the corner row meets epsilon."""
    domain = Box(-np.ones(2), np.ones(2), bits=4) if shape == "box" else Ball(np.zeros(2), 1.0, bits=4)
    noisy = NoisyClusterSums.coordinates(domain, Fraction(1), 1, "add-remove", unit(1))
    of_counts, of_sums = (charge.epsilon / charge.sensitivity for charge in noisy.charges)
    codes = domain.encode(np.array(list(product(np.linspace(-1, 1, 41), repeat=2)))).astype(int)
    losses = [of_counts + of_sums * int(np.abs(code).sum()) for code in codes]
    assert max(losses) <= 1
    assert max(losses) == 1 if shape == "box" else max(losses) > Fraction(8, 10)


@pytest.mark.parametrize("d", [1, 2, 17, 64])
def test_noise_by_coordinates_splits_a_step_as_su_et_al_do(d):
    noisy = NoisyClusterSums.coordinates(Box(np.zeros(d), np.ones(d)), Fraction(1), 1, "add-remove", unit(1))
    c = (4 * d * 0.225**2) ** (1 / 3)
    assert float(noisy.counts.charge.epsilon) == pytest.approx(c / (d + c), rel=1e-3)
    assert noisy.sums.charge.sensitivity == d * (2**15 - 1)
    vector = NoisyClusterSums.pure(Box(np.zeros(d), np.ones(d)), Fraction(1), 1, "add-remove", unit(1))
    assert d == 1 or vector.sum_variance < noisy.sum_variance


def test_the_enumeration_catches_a_sensitivity_that_is_too_small():
    twin = NoisyClusterSums.pure(Box(np.array([-1.0]), np.array([1.0]), bits=2), Fraction(1), 1, "add-remove", unit(1))
    assert worst_ratio_of_one_step(twin, "add-remove", 1, max_rows=1) > 1.5  # calibrated for codes -1 .. 1, fed -3 .. 3


def test_two_adaptive_steps_on_tiny_tables_are_within_e_to_the_epsilon():
    """k = 2, d = 1: the centres of step two follow from the noisy output of step one; every transcript is checked."""
    noisy = NoisyClusterSums.pure(TINY, Fraction(1), 2, "add-remove", unit(1))
    rates = [float(charge.epsilon / charge.sensitivity) for charge in noisy.charges]

    def log_ratio(rows, other, centers, output):
        mine, theirs = raw(rows, centers), raw(other, centers)
        return sum(
            log_pmf(z - s, rates[part]) - log_pmf(z - t, rates[part])
            for part in (0, 1)
            for z, s, t in zip(output[part], mine[part], theirs[part], strict=True)
        )

    outputs = [((a, b), (c, d)) for a, b in product(range(-1, 3), repeat=2) for c, d in product((-4, -1, 0, 1, 4), repeat=2)]
    start = Centers(np.array([[-2.0], [2.0]]), None)
    worst = 0.0
    for rows in [(), (-3,), (3,), (0, 3), (-3, 3)]:
        for other in neighbours(rows, "add-remove"):
            for first in outputs:
                moved = [[np.clip(s / max(c, 1), -3, 3)] for c, s in zip(*first, strict=True)]
                one = log_ratio(rows, other, start, first)
                centers = Centers(np.rint(np.array(moved)), None)
                two = [log_ratio(rows, other, centers, second) for second in outputs[:: max(1, len(outputs) // 40)]]
                worst = max(worst, *(abs(one + x) for x in two))
    assert 0.9 < worst <= 1 + 1e-9


@pytest.mark.statistical
def test_released_counts_tell_neighbours_apart_no_better_than_epsilon():
    """Black box, real entropy: P(count > 0) on {x} and on the empty table, 6000 releases each.

    An upper limit of one side and a lower limit of the other, each with error 5e-7 (Clopper-Pearson), so a false alarm has
    probability at most 1e-6. A twin with twice the stated budget is caught with probability above 0.999999.
    """
    runs, error = 6000, 5e-7

    def hits(epsilon, count):
        noisy = NoisyClusterSums.pure(TINY, Fraction(epsilon), 1, "add-remove", unit(1))
        found = 0
        for _ in range(runs // 100):
            raw_counts = np.full(100, count, dtype=np.int64)
            with Ledger.memory("audit", 2 * epsilon, relation="add-remove").reserve(Plan(noisy.charges, "add-remove")) as ticket:
                found += int((noisy.release(raw_counts, np.zeros((100, 1), dtype=np.int64), ticket)[0] > 0).sum())
        return found

    def least_loss(epsilon):
        with_row, without = hits(epsilon, 1), hits(epsilon, 0)
        low = stats.beta.ppf(error, with_row, runs - with_row + 1)
        high = stats.beta.ppf(1 - error, without + 1, runs - without)
        return log(low / high)

    share = float(NoisyClusterSums.pure(TINY, Fraction(1), 1, "add-remove", unit(1)).counts.charge.epsilon)
    assert least_loss(1) <= share
    assert least_loss(8) > share


def test_empty_clusters_are_released_too():
    noisy = NoisyClusterSums.pure(TINY, Fraction(1), 1, "add-remove", unit(1))
    with Ledger.memory("one", 1, relation="add-remove").reserve(Plan(noisy.charges, "add-remove")) as ticket:
        counts, sums = noisy.release(np.zeros(5, dtype=np.int64), np.zeros((5, 1), dtype=np.int64), ticket)
    assert counts.shape == (5,)
    assert sums.shape == (5, 1)
    assert len(ticket.receipts) == 2


def test_replaced_counts_move_by_the_square_root_of_two():
    noisy = NoisyClusterSums.gaussian(TINY, Fraction(1, 10), 1, "replace-one", unit(1))
    assert noisy.counts.charge.sensitivity == isqrt(2) + 1
