"""Sample and aggregate as a method: what it finds, what it spends, and how many blocks there are."""

import math

import numpy as np
import pandas as pd
import pytest

import kveil
from kveil import Ledger, PrivateKMeans
from kveil.errors import KveilError
from kveil.testing import scripted
from kveil.tuning import SampleAggregate


def fitted(X, **parameters):
    with scripted(2):
        given = {"n_clusters": 3, "bounds": (-5, 5), "random_state": 0, "method": "sample-aggregate", **parameters}
        return PrivateKMeans(**given).fit(X)


@pytest.mark.parametrize("domain", [{}, {"bounds": None, "radius": 7.0}, {"scaling": "bounds"}])
def test_with_much_budget_it_finds_three_places(blobs, domain):
    model = fitted(blobs, epsilon=400.0, **domain)
    for place in blobs.reshape(3, 1000, 2).mean(axis=1):
        assert np.linalg.norm(model.cluster_centers_ - place, axis=1).min() < 0.3
    assert model.cluster_weights_ is None
    assert model.release_.card()  # a release without weights reads well, too


def test_without_noise_it_is_the_average_of_blocks(blobs):
    model = fitted(blobs, epsilon=math.inf)
    assert model.guarantee_.route == "none"
    assert model.cluster_errors_.tolist() == [0.0] * 3
    for place in blobs.reshape(3, 1000, 2).mean(axis=1):
        assert np.linalg.norm(model.cluster_centers_ - place, axis=1).min() < 0.05


def test_one_block_without_noise_is_lloyd(blobs):
    start = np.array([[-1.0, -1.0], [0.0, 1.0], [1.0, 0.0]])
    one = fitted(blobs, epsilon=math.inf, init=start, tuning=SampleAggregate(blocks=1, n_steps=6))
    lloyd = fitted(blobs, epsilon=math.inf, init=start, method="lloyd", n_steps=6)
    assert np.allclose(one.cluster_centers_, lloyd.cluster_centers_, atol=2e-3)  # rounded to the grid at every step


@pytest.mark.parametrize(
    ("parameters", "blocks", "draws"),
    [
        ({"expected_rows": 100_000}, 100, 1),
        ({"tuning": SampleAggregate(blocks=7)}, 7, 1),
        ({"epsilon": 50.0}, 25, 2),
        ({"expected_rows": 1e300, "n_clusters": 1000, "tuning": SampleAggregate(n_steps=1)}, 2**22 // 2000, 1),
    ],
    ids=["told", "fixed", "noisy count", "held to memory"],
)
def test_the_number_of_blocks_is_public_or_noisy(blobs, parameters, blocks, draws):
    model = fitted(blobs[::100] if "n_clusters" in parameters else blobs, **parameters)
    assert model.release_.notes[0].startswith(f"average of {blocks} blocks")
    assert model.release_.receipt["charges"] == draws


@pytest.mark.parametrize("rule", ["pure", "zcdp"])
@pytest.mark.parametrize(("d", "delta"), [(1, 0.0), (2, 1e-6), (70, 1e-6), (70, 0.0)])
def test_the_guarantee_before_equals_the_one_after_and_the_whole_budget_is_spent(d, delta, rule):
    if rule == "zcdp" and not delta:
        return
    ledger = Ledger.memory("exact", 1.0, delta, relation="add-remove", rule=rule if delta == 0 or rule == "zcdp" else "auto")
    model = PrivateKMeans(2, delta=delta, bounds=(0, 1), ledger=ledger, method="sample-aggregate")
    before = model.guarantee(n_features=d)
    after = model.fit(np.random.default_rng(0).random((300, d))).guarantee_
    assert (before.epsilon, before.delta, before.route) == (after.epsilon, after.delta, after.route)
    assert 0.999 < after.epsilon <= 1.0
    assert ledger.remaining().epsilon < 1e-3
    with pytest.raises(KveilError):
        model.fit(np.zeros((3, d)))


def test_more_numbers_ask_for_gaussian_noise_if_delta_allows():
    kinds = {}
    for d in (1, 50):
        model = PrivateKMeans(2, delta=1e-6, bounds=(0, 1), method="sample-aggregate").fit(np.zeros((9, d)))
        kinds[d] = model.guarantee_.route
    assert kinds == {1: "pure", 50: "zcdp"}


def test_a_person_may_be_in_as_many_blocks_as_rows(blobs):
    frame = pd.DataFrame(blobs, columns=["x", "y"]).assign(id=np.arange(3000) // 10)
    moved = {}
    for m in (1, 4):
        source = kveil.read(frame, person="id", max_rows_per_person=m)
        model = PrivateKMeans(3, bounds=(-5, 5), method="sample-aggregate", expected_rows=1000).fit(source)
        moved[m] = model.guarantee_.draws[-1].sensitivity
    assert moved[4] == 4 * moved[1]
    replaced = PrivateKMeans(3, bounds=(-5, 5), method="sample-aggregate", expected_rows=1000, relation="replace-one").fit(blobs)
    assert replaced.guarantee_.draws[-1].sensitivity == 2 * moved[1]


def test_sparse_rows_are_refused_and_init_alone_still_means_lloyd(blobs):
    from scipy.sparse import csr_array

    with pytest.raises(KveilError, match="takes dense rows"):
        PrivateKMeans(3, bounds=(-5, 5), method="sample-aggregate").fit(csr_array(blobs))
    assert PrivateKMeans(3, bounds=(-5, 5), init="packing").fit(blobs).method_ == "lloyd"
    assert PrivateKMeans(3, bounds=(-5, 5), tuning=SampleAggregate()).fit(blobs).method_ == "sample-aggregate"
