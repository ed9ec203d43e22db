"""A private candidate set: where its points are, what it costs, what it refuses."""

import numpy as np
import pandas as pd
import pytest
from refusals import says_what_to_do
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

import kveil
from kveil import Ledger, private_candidates
from kveil.errors import BudgetExceeded, KveilError
from kveil.methods import candidate_search
from kveil.source.local import LocalSource
from kveil.testing import scripted
from kveil.tuning import Candidates, Tree

PLACES = np.array([[-0.7, -0.7], [-0.6, 0.7], [0.7, -0.5]])


@pytest.fixture(scope="module")
def rows():
    return np.repeat(PLACES, 1500, axis=0) + 0.03 * np.random.default_rng(3).standard_normal((4500, 2))


def ledger(epsilon=1.0, delta=0.0, **terms):
    return Ledger.memory("candidates", epsilon, delta, **{"relation": "add-remove", **terms})


def found_in(rows, epsilon=4.0, seed=0, **options):
    with scripted(seed):
        return private_candidates(
            rows, epsilon, **{"ledger": ledger(epsilon), "bounds": (-1, 1), "n_clusters": 3, "random_state": seed, **options}
        )


def test_there_is_a_point_near_every_cluster(rows):
    found = found_in(rows)
    assert cdist(PLACES, found.points).min(axis=1).max() < 0.15
    assert found.axes is None
    assert (np.abs(found.points) <= 1).all()


def test_without_rows_there_are_points_but_none_that_tells_of_rows():
    assert 1 <= len(found_in(np.zeros((0, 2)), 0.5).points) < 20


def test_many_columns_are_projected_and_rows_can_be_put_where_the_points_are(rows):
    wide = np.hstack([rows] * 5)
    found = found_in(wide, 16.0, tuning=Candidates(dimension=3))
    assert found.axes.shape == (10, 3)
    assert found.points.shape[1] == 3
    image = found.project(np.tile(PLACES, 5))
    assert cdist(image, found.points).min(axis=1).max() < 0.3 * cdist(image, image).max()
    assert np.linalg.norm(found.points, axis=1).max() <= found.radius * (1 + 1e-9)
    assert np.allclose(found.project(pd.DataFrame(wide[:5])), found.project(wide[:5]))


def test_a_projection_of_rows_is_the_one_that_the_search_saw(monkeypatch):
    """Row by row, but for whole steps: so a cost that is measured by `project` is about the same rows."""
    seen = {}
    ordinary = candidate_search.CandidateSearch.candidates
    monkeypatch.setattr(
        candidate_search.CandidateSearch, "candidates", lambda self, *a: seen.setdefault("found", ordinary(self, *a))
    )
    for make in (np.asarray, csr_array):
        rng = np.random.default_rng(0)
        table = make(rng.uniform(-3, 3, (50, 20)) * (rng.random((50, 20)) < 0.5))
        found = found_in(table, bounds=None, radius=2.0, tuning=Candidates(dimension=4))
        domain, frame = kveil.kernel.grid.Ball([0.0] * 20, 2.0, found.parameters["bits"]), seen.pop("found").frame
        codes = domain.encode(table) if isinstance(table, np.ndarray) else domain.encode_sparse(table)
        assert np.allclose(found.project(table), frame.projected(frame.centred(codes)) * domain.step[0], atol=1e-4)


@pytest.mark.parametrize(("d", "delta"), [(2, 0.0), (2, 1e-6), (8, 1e-6)])
def test_it_is_charged_once_before_it_looks_and_all_of_it_is_spent(d, delta, monkeypatch):
    account = ledger(1.0, delta)
    found = private_candidates(np.zeros((500, d)), 1.0, delta=delta, ledger=account, bounds=(-1, 1))
    assert account.remaining().epsilon < 1e-3
    assert found.guarantee.valid
    assert found.guarantee.epsilon <= 1
    assert {draw.label for draw in found.guarantee.draws} == {"number of rows", "active cubes"}
    assert sum(draw.times for draw in found.guarantee.draws) == found.receipt["charges"]
    assert found.receipt["ledger"] == "candidates"
    monkeypatch.setattr(LocalSource, "map_reduce", lambda *_, **__: pytest.fail("rows were read"))
    with pytest.raises(BudgetExceeded):
        private_candidates(np.zeros((500, d)), 1.0, delta=delta, ledger=account, bounds=(-1, 1))


def test_people_and_replacement_are_charged_for():
    source = kveil.read(np.c_[np.arange(60) // 3, np.zeros((60, 2))], columns=[1, 2], person=0, max_rows_per_person=3)
    account = ledger(1.0, relation="replace-one", unit=source.unit)
    found = private_candidates(source, 1.0, ledger=account, bounds=(-1, 1), expected_rows=100)
    assert {(draw.label, draw.sensitivity) for draw in found.guarantee.draws} == {("active cubes", 6)}


def test_what_it_is_says_itself(rows):
    found = found_in(rows)
    n = len(found.points)
    assert repr(found) == f"CandidateSet({n} points, 2 features, epsilon=4, delta=0, NOT VALID)"
    assert found.parameters["epsilon"] == 4.0


@pytest.mark.parametrize("given", [
    {"epsilon": 0}, {"epsilon": True}, {"epsilon": float("inf")}, {"epsilon": 2**-29}, {"delta": -1.0}, {"n_clusters": 0},
    {"bounds": None}, {"bounds": (1, 0)}, {"radius": 1.0}, {"expected_rows": 0}, {"expected_rows": True},
    {"tuning": Candidates(levels=31)}, {"tuning": Candidates(recovery="columns")}, {"tuning": Tree()},
    {"random_state": True}, {"ledger": None},
])  # fmt: skip
def test_bad_input_is_refused_and_nothing_is_charged(rows, given):
    account = ledger(1.0, 1e-3, rule="approx")
    with pytest.raises((KveilError, TypeError)) as refusal:
        private_candidates(rows, **{"epsilon": 0.5, "ledger": account, "bounds": (-1, 1), **given})
    says_what_to_do(refusal.value)
    assert account.charges() == ()
