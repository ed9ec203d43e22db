"""Principal axes: found where rows vary, paid for, and refused where all columns are seen anyway."""

import math

import numpy as np
import pytest

from kveil import Ledger, PrivateKMeans, tuning
from kveil.errors import KveilError
from kveil.testing import scripted

PCA = tuning.Tree(frame="pca")


@pytest.fixture(scope="module")
def flat():
    """Clusters in 3 of 60 directions, and some noise in all: a random frame sees a twentieth of what tells them apart."""
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(rng.standard_normal((60, 3)))[0]
    places = rng.uniform(-0.35, 0.35, (12, 3))
    rows = places[rng.integers(0, 12, 20_000)] @ directions.T + 0.03 * rng.standard_normal((20_000, 60))
    return rows, 20_000 * 60 * 0.03**2


def cost(rows, seed=0, **parameters):
    with scripted(seed):
        return -PrivateKMeans(12, radius=1.0, random_state=seed, **parameters).fit(rows).score(rows)


def test_rows_in_few_directions_are_clustered_better(flat):
    rows, floor = flat
    terms = {"epsilon": 1.0, "delta": 1e-6}
    pca, random = (
        np.mean([cost(rows, seed, tuning=tuning.Tree(frame=f), **terms) for seed in (0, 1)]) for f in ("pca", "random")
    )
    assert pca < random
    assert pca < 1.3 * floor
    assert cost(rows, tuning=PCA, epsilon=math.inf) < 1.3 * floor


def test_the_moments_are_paid_for_and_the_budget_is_used_up(flat):
    rows, _ = flat
    ledger = Ledger.memory("exact", 1.0, 1e-6, relation="add-remove")
    model = PrivateKMeans(12, delta=1e-6, radius=1.0, ledger=ledger, tuning=PCA)
    before = model.guarantee(60)
    after = model.fit(rows).guarantee_
    assert before.charges == after.charges
    assert [draw.times for draw in after.draws if draw.label == "second moments"] == [1]
    assert ledger.remaining().epsilon < 1e-3


def test_few_columns_need_no_axes():
    """Taking the option and not using it would let people believe that they had principal axes."""
    ledger = Ledger.memory("clinic", 1.0, 1e-6, relation="add-remove")
    with pytest.raises(KveilError, match="more than 16 columns"):
        PrivateKMeans(3, delta=1e-6, radius=1.0, tuning=PCA, ledger=ledger).fit(np.zeros((30, 8)))
    assert ledger.spent().epsilon == 0


@pytest.mark.filterwarnings("error", "ignore::kveil.errors.NoisyResultWarning")  # the second is by released values
@pytest.mark.parametrize("rows", [np.zeros((0, 20)), np.full((5, 20), np.nan), np.ones((500, 20))])
@pytest.mark.parametrize("epsilon", [0.5, 200.0, math.inf])
def test_no_rows_bad_rows_and_equal_rows_give_k_centres(rows, epsilon):
    model = PrivateKMeans(3, epsilon=epsilon, delta=1e-6, bounds=(-2, 2), tuning=PCA).fit(rows)
    assert model.cluster_centers_.shape == (3, 20)
    assert np.isfinite(model.cluster_centers_).all()
