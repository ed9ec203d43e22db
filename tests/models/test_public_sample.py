"""A public sample helps where it fits the rows, costs little where it does not, and changes no promise."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import kveil
from kveil import Ledger, PrivateKMeans, PrivateKMedian, read, tuning
from kveil.canonical import RELEASE
from kveil.errors import KveilError
from kveil.kernel.grid import Box
from kveil.methods.tree.public import FEW_COLUMNS, TOO_SMALL
from kveil.questions.frame import Frame
from kveil.questions.public_sample import TOP, Gain, Votes
from kveil.space.bounds import public_domain
from kveil.space.euclidean import Centers
from kveil.testing import scripted

D = 6
PLACES = np.random.default_rng(0).uniform(-0.8, 0.8, (4, D))


def drawn(n, seed):
    rng = np.random.default_rng(seed)
    return np.clip(PLACES[rng.integers(4, size=n)] + 0.05 * rng.standard_normal((n, D)), -1, 1)


@pytest.fixture(scope="module")
def rows():
    return drawn(3000, 1)


@pytest.fixture(scope="module")
def sample():
    return drawn(300, 2)


def fitted(rows, public, **parameters):
    with scripted(3):
        return PrivateKMeans(**{"n_clusters": 4, "bounds": (-1, 1), "random_state": 0, **parameters}).fit(rows, public=public)


def labels_of(model):
    return [charge.label for charge in model.guarantee_.draws]


def test_votes_and_the_pair_worked_by_hand():
    """Steps of 1; a middle at 0 and a radius of 10. Rows at (3, 4), (30, 40) and 0; one centre at (3, 4), one at (0, -10)."""
    frame = Frame(None, np.zeros(2, dtype=np.int64), 10)
    centers = Centers(np.array([[3.0, 4.0], [0.0, -10.0]]), None)
    rows = np.array([[3, 4], [30, 40], [0, 0]])
    (pair,), (votes,) = Gain(frame, centers).raw(rows), Votes(frame, centers).raw(rows)
    assert votes.tolist() == [3, 0]
    of_middle = [25, 100, 0]  # squared, cut at 100
    of_centers = [0, 100, 25]
    assert pair[0] == sum(square * TOP // 100 for square in of_middle)
    assert pair[1] == pair[0] - sum(square * TOP // 100 for square in of_centers)


def test_the_pair_is_whole_and_cut_where_squares_are_largest():
    """2**20 times a square passes 2**63 here: a row at the end of the grid still adds TOP, and no more."""
    domain = Box([-1.0], [1.0], 26)
    reach = Frame.of(domain, None).radius
    frame = Frame(None, np.array([-domain.top]), 2 * reach)
    (pair,) = Gain(frame, Centers(np.array([[float(domain.top)]]), None)).raw(domain.encode([[1.0], [-1.0]]))
    assert 0.99 * TOP < pair[0] <= TOP  # the first row: almost the whole radius
    assert abs(pair[1]) <= 1


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_sample_of_the_same_kind_is_used_and_the_release_says_so(rows, sample, delta):
    model = fitted(rows, sample, delta=delta)
    told, card = model.release_.parameters["public_sample"], model.release_.card()
    assert told["used"] is True
    assert told["rows"] == 300
    assert 0.8 < told["of_rows"] < 1.1
    assert 0.8 < told["of_sample"] < 1
    assert np.sort(np.linalg.norm(model.cluster_centers_[:, None] - PLACES, axis=2).min(axis=0))[-1] < 0.05
    assert "Its rows are NOT protected" in card
    assert told["sha256"] in card
    assert "votes for prototypes" in labels_of(model)
    assert "cells of the tree" not in labels_of(model)


def test_the_digest_is_that_of_the_encoded_rows(rows, sample):
    model = fitted(rows, sample)
    domain = model.release_.domain()
    head = RELEASE.write({"shape": [300, D], **public_domain(domain)})
    digest = hashlib.sha256(head + domain.encode(sample).astype("<i8").tobytes()).hexdigest()
    assert model.release_.parameters["public_sample"]["sha256"] == digest
    assert fitted(rows, sample[::-1]).release_.parameters["public_sample"]["sha256"] != digest


def test_a_sample_that_does_not_fit_is_refused_and_the_tree_goes_on(rows):
    stranger = np.clip(-PLACES[np.arange(200) % 4] + 0.05 * np.random.default_rng(5).standard_normal((200, D)), -1, 1)
    model = fitted(rows, stranger)
    told = model.release_.parameters["public_sample"]
    assert told["used"] is False
    assert told["of_rows"] < 0.8 * told["of_sample"]
    assert any("did not fit the rows and was not used; 2 % of the budget" in note for note in model.release_.notes)
    assert "was offered and not used" in model.release_.card()
    assert "cells of the tree" in labels_of(model)


def test_where_noise_hides_whether_it_fits_nothing_is_spent_and_trust_uses_it(sample):
    few = drawn(40, 3)
    unsure, trusting = (fitted(few, sample, epsilon=0.5, tuning=t) for t in (None, tuning.Tree(trust_public=True)))
    assert unsure.release_.parameters["public_sample"]["used"] is False
    assert any("noise hides whether it fits" in note and "trust_public=True" in note for note in unsure.release_.notes)
    assert not {"votes for prototypes", "gain of public centres"} & set(labels_of(unsure))
    assert trusting.release_.parameters["public_sample"]["used"] is True
    assert "gain of public centres" not in labels_of(trusting)
    assert np.linalg.norm(trusting.cluster_centers_[:, None] - PLACES, axis=2).min(axis=0).max() < 0.1


def test_a_sample_smaller_than_the_noise_of_a_rich_budget_is_left_alone(rows, sample):
    """Eight public rows are no help to 3000 private ones with hardly any noise; with much noise they are."""
    rich, poor = (fitted(rows, sample[:8], epsilon=epsilon) for epsilon in (50.0, 0.5))
    assert TOO_SMALL in rich.release_.notes
    assert not {"votes for prototypes", "gain of public centres"} & set(labels_of(rich))
    assert TOO_SMALL not in poor.release_.notes


def test_few_columns_have_no_use_for_it(rows, sample):
    alone, offered = (fitted(rows[:, :2], public) for public in (None, sample[:, :2]))
    np.testing.assert_array_equal(alone.cluster_centers_, offered.cluster_centers_)
    assert FEW_COLUMNS in offered.release_.notes
    assert offered.release_.parameters["public_sample"]["used"] is False


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_promise_and_its_cost_are_those_without_a_sample(rows, sample, delta):
    spent = []
    for public in (None, sample, np.eye(D)):
        people = Ledger.memory("people", 5.0, 1e-5, relation="add-remove")
        model = PrivateKMeans(4, bounds=(-1, 1), delta=delta, ledger=people).fit(rows, public=public)
        asked = model.guarantee(D)
        assert (model.guarantee_.epsilon, model.guarantee_.delta) == (asked.epsilon, asked.delta)
        assert model.guarantee_.charges == asked.charges
        spent.append((people.spent().epsilon, people.spent().delta))
    assert len(set(spent)) == 1


FRAME = pd.DataFrame(drawn(50, 4), columns=list("abcdef"))


@pytest.mark.parametrize(
    ("model", "table", "public", "words"),
    [
        ({}, FRAME.to_numpy(), FRAME.to_numpy()[:3], "at least 4 are needed"),
        ({}, FRAME.to_numpy(), np.full((9, D), np.nan), "missing or infinite"),
        ({}, FRAME.to_numpy(), np.zeros((9, 5)), "5 columns and the table has 6"),
        ({}, FRAME, FRAME[list("abcdfe")], "another order"),
        ({}, FRAME, FRAME, "the table of the fit itself"),
        ({}, FRAME.to_numpy(), read(FRAME.to_numpy(), private=True), "private=True"),
        ({}, FRAME.to_numpy(), read(np.hstack([np.ones((50, 1)), FRAME.to_numpy()]), person=0), "person ids"),
        ({}, FRAME.to_numpy(), csr_array(FRAME.to_numpy()), "must be dense"),
        ({"method": "lloyd"}, FRAME.to_numpy(), FRAME.to_numpy() / 2, 'this fit uses "lloyd"'),
        ({"n_clusters": "auto"}, FRAME.to_numpy(), FRAME.to_numpy() / 2, "Pass a number"),
        ({}, csr_array(np.eye(20, 1001)), np.eye(20, 1001), "for dense rows"),
        ({"tuning": tuning.Tree(trust_public="yes")}, FRAME.to_numpy(), FRAME.to_numpy() / 2, "trust_public"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_before_anything_is_charged(model, table, public, words):
    people = Ledger.memory("people", 5.0, relation="add-remove")
    with pytest.raises(KveilError, match=words):
        PrivateKMeans(**{"n_clusters": 4, "bounds": (-1, 1), "ledger": people, **model}).fit(table, public=public)
    assert people.spent().epsilon == 0


def test_other_models_refuse_it():
    with pytest.raises(KveilError, match="PrivateKMeans"):
        PrivateKMedian(2, bounds=(-1, 1)).fit(FRAME.to_numpy(), public=FRAME.to_numpy())


def test_what_is_asked_afterwards_is_answered(rows, sample):
    release = fitted(rows, sample).release_
    assert release.recluster(3).centers.shape == (3, D)
    assert release.recluster(6).centers.shape == (6, D)
    assert release.cost_curve((2, 8)).suggested == 4
    assert release.sample(20).shape == (20, D)


def test_a_plan_tries_the_sample_and_says_what_it_did(sample):
    model = PrivateKMeans(4, epsilon=0.5, bounds=(-1, 1))
    alone = kveil.plan(model, 3000, D)
    with scripted(3):
        found = kveil.plan(model, 3000, public=sample, n_runs=1, random_state=0, epsilons=(0.4, 1.0))
    assert found.sample_rows == 150
    assert found.ratio < 1.2
    assert found.figures.noise_share < alone.figures.noise_share  # two steps share what a tree would have had
    assert any("one half of the public sample" in note for note in found.notes)
    other = kveil.plan(model, 3000, sample=drawn(200, 8), public=sample, n_runs=1, random_state=0, epsilons=(0.4, 1.0))
    assert other.sample_rows == 200
