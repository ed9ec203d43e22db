"""Sums of sparse rows: which noise they get, and that a threshold finds the columns that matter."""

from fractions import Fraction
from math import isqrt

import numpy as np
import pytest

from kveil.desk.base import Held
from kveil.desk.pool import Pool
from kveil.kernel.ledger import Ledger
from kveil.kernel.loss import PrivacyUnit, floor_delta
from kveil.methods.tree.sparse_sums import FALSE_COLUMNS, SparseSums, standing_out
from kveil.questions.base import Part
from kveil.questions.cells import Residuals
from kveil.questions.frame import Frame
from kveil.space.euclidean import Centers
from kveil.testing import scripted

D, S, N, TOP = 10_000, 5, 20_000, 2**16


def opened(kind, epsilon=1.0, relation="add-remove", unit=PrivacyUnit()):
    pool = Pool(Fraction(epsilon), floor_delta(1e-6), relation, unit, is_pure=kind == "pure")
    ledger = Ledger.memory("outer", epsilon, pool.delta, relation=relation, unit=unit)
    pool.begin(ledger.reserve(pool.plan()))
    return pool


def desk_of(pool, raw, nonzeros, *, is_laplace=False):
    """Behind it: sums (cells, columns) of the rows near some centres, as the question of a sparse fit has them."""
    cells, d = raw.shape
    frame, zeros = Frame(None, np.zeros(d, dtype=np.int64), TOP, nonzeros=nonzeros), np.zeros((cells, d), dtype=np.int64)
    terms = ("measured", "measured", zeros, np.full(cells, TOP), ("cells", "sums"))
    question = Residuals(frame, Centers(zeros.astype(np.float64), None), *terms, by_coordinates=is_laplace, in_steps=False)
    return Held(question, (np.zeros(cells, dtype=np.int64), raw), pool)


def released(pool, raw, nonzeros, share):
    """The law of the sums, and the sums with that noise."""
    law = SparseSums(desk_of(pool, raw, nonzeros), TOP, raw.shape[1], nonzeros, share)
    return law, desk_of(pool, raw, nonzeros, is_laplace=law.is_laplace).show(1, share).values


@pytest.mark.parametrize("kind", ["pure", "zcdp"])
def test_the_law_is_the_narrower_one(kind):
    pool = opened(kind)
    desk = desk_of(pool, np.zeros((1, 100), dtype=np.int64), None)
    laws = {s: SparseSums(desk, TOP, 100, s, 0.5) for s in (1, 5, 50, 51, 100, 10**9)}
    assert [law.is_laplace for law in laws.values()] == [kind == "pure"] * 3 + [False] * 3
    vector = pool.spread(100, TOP, 0.5) / 100
    assert all(law.deviation**2 <= vector * (1 + 1e-9) for law in laws.values())
    assert laws[100].cutoff == laws[10**9].cutoff


@pytest.mark.parametrize(("relation", "rows", "factor"), [("add-remove", 1, 1), ("add-remove", 3, 3), ("replace-one", 3, 6)])
def test_what_is_charged_is_the_share_at_the_stated_sensitivity(relation, rows, factor):
    unit = PrivacyUnit() if rows == 1 else PrivacyUnit("person", rows, "id")
    with scripted(0):
        pool = opened("pure", relation=relation, unit=unit)
        law, noisy = released(pool, np.zeros((2, D), dtype=np.int64), S, 0.5)
    charge = pool._ticket.receipts[-1].charge
    assert (charge.mechanism, charge.sensitivity, charge.norm) == ("discrete-laplace", factor * isqrt(S * TOP**2), "l1")
    assert pool.spent == charge.epsilon == Fraction(1, 2)
    assert np.std(noisy) == pytest.approx(law.deviation, rel=0.05)


@pytest.mark.parametrize("kind", ["pure", "zcdp"])
@pytest.mark.parametrize("nonzeros", [S, D])
def test_few_columns_of_pure_noise_stand_out(kind, nonzeros):
    """FALSE_COLUMNS are expected in a sum, so 40 sums have 2 or so; noise that is half as wide again would have hundreds."""
    with scripted(1):
        law, noisy = released(opened(kind), np.zeros((40, 1000), dtype=np.int64), nonzeros, 1.0)
    assert np.count_nonzero(standing_out(noisy, law.cutoff)) <= 40 * FALSE_COLUMNS + 10
    assert np.count_nonzero(standing_out(1.5 * noisy, law.cutoff)) > 15


@pytest.fixture(scope="module")
def raw_sum():
    """A row has S of 60 columns, the first ones more often, and norm TOP."""
    rng = np.random.default_rng(0)
    chance = 0.9 ** np.arange(60)
    columns = np.argsort(rng.random((N, 60)) ** (1 / chance), axis=1)[:, -S:]
    return np.bincount(columns.ravel(), minlength=D)[None] * int(TOP / S**0.5)


def algorithm_5(means, epsilon, rng, eta=0.5):
    """The algorithm that this replaces, as its paper has it, in floats: 2 s/eta columns, chosen and released one by one."""
    found, scale = np.zeros(D), 4 * S / (eta * epsilon * N)
    log_weights = np.abs(means) / scale
    for _ in range(int(np.ceil(2 * S / eta))):
        column = int(np.argmax(log_weights + rng.gumbel(size=D)))
        found[column], log_weights[column] = means[column] + rng.laplace(scale=scale), -np.inf
    return found


@pytest.mark.parametrize("kind", ["pure", "zcdp"])
@pytest.mark.parametrize("epsilon", [0.125, 0.5, 1.0, 2.0])
def test_a_threshold_costs_less_than_dense_noise_and_than_choosing_columns(raw_sum, kind, epsilon):
    means = raw_sum[0] / TOP / N
    excess = {"kept": [], "laplace or gaussian": [], "k-norm": [], "algorithm 5": []}
    for seed in range(3):
        with scripted(seed):
            law, noisy = released(opened(kind, epsilon), raw_sum, S, 1.0)
            dense = opened(kind, epsilon).release(Part("sums", "vectors", TOP), raw_sum, 1.0)
        rng = np.random.default_rng(seed)
        excess["kept"].append(((standing_out(noisy, law.cutoff)[0] / TOP / N - means) ** 2).sum())
        excess["laplace or gaussian"].append(((noisy[0] / TOP / N - means) ** 2).sum())
        excess["k-norm"].append(((dense[0] / TOP / N - means) ** 2).sum())
        # Its entries are bounded by 1 each, ours by their norm: with entries of 1/sqrt(s) it is given the smaller bound.
        excess["algorithm 5"].append(((algorithm_5(means * S**0.5, epsilon, rng) / S**0.5 - means) ** 2).sum())
    mean = {name: np.mean(values) for name, values in excess.items()}
    assert all(mean["kept"] <= mean[name] for name in mean), mean
