"""Starts that look at the rows: what they cost beside the steps, what they refuse, and that they repeat for any partitions."""

from fractions import Fraction

import numpy as np
import pytest

import kveil
from kveil import Ledger, PrivateKMeans, PrivateKMedian
from kveil.desk.seeds import widest
from kveil.errors import InvalidValue
from kveil.kernel.grid import Box
from kveil.kernel.loss import PrivacyUnit
from kveil.methods.lloyd import Lloyd as Method
from kveil.methods.task import Task
from kveil.testing import scripted
from kveil.tuning import Lloyd

WAYS = [
    {"init": "noisy-sample"},
    {"init": "variates"},
    {"init": "variates", "tuning": Lloyd(seeds="laplace")},
    {"init": "variates", "tuning": Lloyd(noise="coordinates")},
    {"init": "noisy-sample", "expected_rows": 3000},
]
SQUARE = {"bounds": (-5.0, 5.0)}


@pytest.mark.parametrize("way", WAYS)
class TestBudget:
    def test_start_and_steps_add_up_to_epsilon_exactly(self, way, blobs):
        model = PrivateKMeans(3, epsilon=0.7, **SQUARE, **way)
        told = model.guarantee(n_features=2)
        model.fit(blobs)
        assert model.method_ == "lloyd"
        assert (model.guarantee_.epsilon, model.guarantee_.delta) == (told.epsilon, told.delta)
        assert model.guarantee_.epsilon == pytest.approx(0.7, abs=1e-12)
        spent = {charge.label: charge.pure() for charge in model.guarantee_.charges}
        steps = spent.pop("counts") + spent.pop("sums")
        assert float(sum(spent.values())) == pytest.approx(0.7 / 4, rel=0.05)
        assert float(steps + sum(spent.values())) == pytest.approx(0.7, abs=1e-11)

    @pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
    def test_people_and_replacing_are_paid_from_the_same_budget(self, way, relation, blobs):
        table = {"id": np.arange(len(blobs)) // 2, "x": blobs[:, 0], "y": blobs[:, 1]}
        source = kveil.read(_frame(table), person="id", max_rows_per_person=2)
        ledger = Ledger.memory("people", 1.0, relation=relation, unit=source.unit)
        model = PrivateKMeans(3, epsilon=1.0, relation=relation, ledger=ledger, **SQUARE, **way).fit(source)
        assert model.guarantee_.epsilon == 1.0
        assert model.guarantee_.unit.max_rows_per_person == 2
        assert ledger.remaining().epsilon < 1e-9

    def test_a_release_can_be_saved_and_read_back(self, way, blobs, tmp_path):
        model = PrivateKMeans(3, **SQUARE, **way).fit(blobs)
        model.release_.save(tmp_path / "out")
        again = kveil.load(tmp_path / "out")
        assert again.guarantee == model.guarantee_
        assert again.parameters["init"] == way["init"]

    def test_any_order_and_partitions_give_the_same_bytes(self, way, blobs, tmp_path):
        np.savetxt(tmp_path / "rows.csv", blobs[::-1], delimiter=",", header="x,y", comments="", fmt="%.17g")
        found = []
        for table in (blobs, np.random.default_rng(0).permutation(blobs), tmp_path / "rows.csv"):
            with scripted(5):
                found.append(PrivateKMeans(3, random_state=0, **SQUARE, **way).fit(table).cluster_centers_.tobytes())
        assert found[0] == found[1] == found[2]

    @pytest.mark.parametrize("rows", [np.empty((0, 2)), np.full((4, 2), np.nan), np.full((2, 2), 1e300), np.ones((50, 2))])
    def test_what_rows_hold_never_raises_or_changes_a_shape(self, way, rows):
        centers = PrivateKMeans(3, **SQUARE, **way).fit(rows).cluster_centers_
        assert centers.shape == (3, 2)
        assert (np.abs(centers) <= 5).all()


def _frame(table):
    import pandas

    return pandas.DataFrame(table)


class TestWithDelta:
    @pytest.mark.parametrize("init", ["noisy-sample", "variates"])
    def test_a_gaussian_plan_counts_the_start_in_rho(self, init, blobs):
        model = PrivateKMeans(3, delta=1e-6, init=init, **SQUARE).fit(blobs)
        charges = model.guarantee_.charges
        assert {"pick", "discrete-gaussian"} <= {charge.mechanism for charge in charges}
        start = sum(charge.zcdp() for charge in charges if charge.rho is None)
        assert float(start / sum(charge.zcdp() for charge in charges)) == pytest.approx(0.25, rel=0.05)
        assert model.guarantee_.route == "zcdp"
        assert 0.999 < model.guarantee_.epsilon <= 1.0

    def test_a_ledger_that_adds_zcdp_is_charged_no_more(self, blobs):
        ledger = Ledger.memory("rho", 1.0, 1e-6, relation="add-remove")
        PrivateKMeans(3, delta=1e-6, init="variates", ledger=ledger, **SQUARE).fit(blobs)
        assert ledger.remaining().rho >= 0


class TestRefusals:
    def test_other_methods_and_models_say_who_takes_it(self, blobs):
        for init in ("noisy-sample", "variates"):
            with pytest.raises(InvalidValue, match='private init belongs to method="lloyd"'):
                PrivateKMeans(3, method="sample-aggregate", init=init, **SQUARE).fit(blobs)
            with pytest.raises(InvalidValue, match="init must be one of"):
                PrivateKMedian(3, init=init, **SQUARE).fit(blobs)

    def test_sparse_rows_are_refused_and_nothing_is_charged(self, blobs):
        from scipy.sparse import csr_array

        ledger = Ledger.memory("clinic", 1.0, relation="add-remove")
        with pytest.raises(InvalidValue, match="dense"):
            PrivateKMeans(3, init="variates", ledger=ledger, **SQUARE).fit(csr_array(blobs))
        assert ledger.remaining().epsilon == 1.0

    @pytest.mark.parametrize(
        "tuning",
        [
            Lloyd(start_share=0.0),
            Lloyd(start_share=1.0),
            Lloyd(start_share=True),
            Lloyd(cap=0.0),
            Lloyd(cap=1.5),
            Lloyd(sample=0),
            Lloyd(seeds="d2"),
        ],
    )
    def test_constants_outside_their_range_are_refused(self, tuning):
        with pytest.raises(InvalidValue, match=r"tuning\."):
            PrivateKMeans(3, init="variates", tuning=tuning, **SQUARE).fit(np.zeros((3, 2)))

    def test_a_budget_too_small_for_its_parts_is_refused(self):
        with pytest.raises(InvalidValue, match="too small"):
            PrivateKMeans(50, epsilon=2**-29, init="variates", **SQUARE).fit(np.zeros((3, 2)))


def test_without_noise_the_start_is_k_rows_and_the_guarantee_says_none(blobs):
    model = PrivateKMeans(3, epsilon=float("inf"), init="variates", n_steps=3, **SQUARE).fit(blobs)
    assert model.guarantee_.route == "none"
    assert model.cluster_centers_.shape == (3, 2)


def test_with_many_rows_the_seeds_find_the_clusters(blobs):
    """Scripted noise, so that this cannot fail by chance: seeds alone are within 1.5 of the places for most of three."""
    rows = np.repeat(blobs, 20, axis=0)
    places = np.array([[-3.0, -3.0], [0.0, 3.0], [3.5, -1.0]])
    with scripted(1):
        tuning = Lloyd(start_share=0.9)
        model = PrivateKMeans(3, epsilon=8.0, init="variates", n_steps=1, tuning=tuning, random_state=0, **SQUARE).fit(rows)
    apart = np.linalg.norm(model.cluster_centers_[:, None] - places[None], axis=2)
    assert apart.min(axis=1).max() < 0.5
    assert sorted(apart.argmin(axis=1)) == [0, 1, 2]


def test_the_default_cap_follows_the_number_of_clusters():
    def cap(k):
        box = Box([-5.0, -5.0], [5.0, 5.0])
        task = Task(k, Fraction(1), Fraction(0), box, None, "add-remove", PrivacyUnit(), Lloyd(), init="variates")
        return Method(task).start.mechanism.cap / widest(box, None)

    assert [cap(3), cap(4), cap(16)] == pytest.approx([1 / 4, 1 / 4, 1 / 16])
