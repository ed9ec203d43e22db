"""Centres of rows that several parties hold: good ones, with a promise known beforehand; and what does not fit is told."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from federate_tools import Recorded, mixture, party, plan, told
from scipy.sparse import csr_array
from sklearn.base import clone

import kveil
from kveil import FederatedKMeans, Ledger
from kveil.errors import BoundsRequired, BudgetExceeded, FederationError, InvalidType, InvalidValue
from kveil.federate import InProcess, Lost, Party, Policy
from kveil.federate.coordinator import Coordinator
from kveil.federate.plan import RunPlan
from kveil.federate.protocols import RUNS
from kveil.federate.questions import CellsMessage
from kveil.kernel.loss import Guarantee
from kveil.testing import scripted

PLACES = np.array([[-0.6, -0.5], [0.1, 0.7], [0.6, -0.2]])


def parts(n_parties=3, n_rows=6000, seed=1):
    return np.array_split(mixture(n_rows, PLACES, 0.04, seed), n_parties)


def farthest(model, places=PLACES):
    """How far the worst place is from its nearest centre."""
    return np.linalg.norm(places[:, None] - model.cluster_centers_, axis=2).min(axis=1).max()


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({"epsilon": 1.0}, 0.02),
        ({"epsilon": 1.0, "n_steps": 0}, 0.1),
        ({"epsilon": 1.0, "n_steps": 3}, 0.05),
        ({"epsilon": None}, 0.005),
        ({"epsilon": None, "protocol": "dk", "n_steps": 4}, 0.8),
        ({"epsilon": 50.0, "protocol": "pdk"}, 0.7),
        ({"epsilon": 50.0, "protocol": "sample"}, 0.3),
    ],
    ids=str,
)
def test_centres_are_near_the_places(options, limit):
    with scripted(4):
        model = FederatedKMeans(3, bounds=(-1, 1), random_state=0, **options).fit(parts())
    assert farthest(model) < limit
    assert model.cluster_centers_.shape == (3, 2)
    assert np.isfinite(model.cluster_centers_).all()
    assert (np.abs(model.cluster_centers_) <= 1).all()
    assert model.cluster_weights_.sum() == pytest.approx(1)
    assert set(model.receipts_) == {"party0", "party1", "party2"}
    assert not model.guarantee_.valid or options["epsilon"] is None


def test_many_columns_and_a_ball_and_gaussian_noise():
    places = np.array([[0.5, 0, 0, 0, 0, 0], [0, -0.5, 0, 0, 0, 0.3], [0, 0, 0.4, 0.4, 0, 0]])
    rows = mixture(9000, places, 0.03)
    with scripted(2):
        for delta, route in ((0.0, "pure"), (1e-6, "zcdp")):
            model = FederatedKMeans(3, epsilon=1.0, delta=delta, radius=1.0, random_state=0).fit(np.array_split(rows, 2))
            assert farthest(model, places) < 0.05
            assert model.guarantee_.route == route
            assert model.guarantee_.epsilon <= 1.0


def test_the_promise_is_known_beforehand_and_the_same_for_any_number_of_parties():
    model = FederatedKMeans(3, epsilon=0.5, bounds=(-1, 1), random_state=0)
    before = model.guarantee(2)
    for n_parties in (1, 4):
        model.fit(parts(n_parties, 800))
        assert (model.guarantee_.epsilon, model.guarantee_.trust, model.guarantee_.valid) == (0.5, "federation", True)
        assert model.guarantee_.charges == before.charges
        assert model.guarantee_.recompute() == model.guarantee_ == Guarantee.from_json(model.guarantee_.to_json())
    assert any("more than one party" in text for text in model.guarantee_.assumptions)
    assert "any message" in str(model.guarantee_)


@pytest.mark.parametrize("protocol", ["cells", "sample", "pdk"])
def test_parties_pay_what_the_guarantee_says(protocol):
    rows = parts(2)
    ledgers = [Ledger.memory(f"p{i}", 2.0, relation="add-remove") for i in range(2)]
    policy = Policy(protocols=("cells", "sample", "pdk"))
    held = [Party(rows[i], bounds=(-1, 1), name=f"p{i}", ledger=ledgers[i], policy=policy) for i in range(2)]
    model = FederatedKMeans(3, epsilon=1.0, protocol=protocol, random_state=0).fit(held)
    assert model.guarantee_.epsilon == 1.0
    assert all(0 < ledger.spent().epsilon <= 1.0 for ledger in ledgers)
    if protocol == "cells":  # with so many rows cells stand out at every level but the last, and all rounds are asked
        assert [ledger.spent().epsilon for ledger in ledgers] == [1.0, 1.0]
    model.fit(held)
    with pytest.raises(BudgetExceeded, match="budget"):
        model.fit(held)
    assert all(ledger.spent().epsilon <= 2.0 for ledger in ledgers)


def test_without_privacy_the_guarantee_says_none():
    for options in ({}, {"protocol": "dk"}):
        model = FederatedKMeans(3, bounds=(-1, 1), random_state=0, **options)
        assert model.guarantee(2).route == "none"
        assert model.fit(parts()).guarantee_.route == "none"
        assert "No privacy guarantee" in str(model.guarantee_)
    with pytest.raises(FederationError, match="policy"):  # a party with a policy of its own does not give that away
        FederatedKMeans(3).fit([party(parts()[0], quick=False)])


def test_an_empty_party_few_rows_and_broken_values_change_no_shape():
    rows = parts(2, 300)
    empty, odd = np.empty((0, 2)), np.array([[np.nan, 0.0], [np.inf, 9.0], [1e300, -1e300]])
    for others in ([empty], [odd], [empty, empty], [np.zeros((1, 2))]):
        model = FederatedKMeans(20, epsilon=1.0, bounds=(-1, 1), random_state=0).fit([*rows, *others])
        assert model.cluster_centers_.shape == (20, 2)
        assert np.isfinite(model.cluster_centers_).all()
    for protocol in ("cells", "sample", "pdk"):
        model = FederatedKMeans(4, epsilon=1.0, bounds=(-1, 1), protocol=protocol).fit([empty, empty])
        assert model.cluster_centers_.shape == (4, 2)
    model = FederatedKMeans(4, bounds=(-1, 1), protocol="dk").fit([rows[0][:2], empty])  # k above the number of rows
    assert model.cluster_centers_.shape == (4, 2)


def test_parties_that_do_not_fit_together_are_told_before_anything_is_charged():
    good = party(parts()[0], name="good", quick=False)
    for other, what, shown in (
        (party(np.zeros((3, 3)), name="wide", quick=False), "number of columns", ": 2 and 3."),
        (party(name="far", bounds=(-2, 2)), "bounds", "bounds [[-2.0, -2.0], [2.0, 2.0]]"),
        (party(name="ball", bounds=None, radius=1.0), "bounds", "radius 1.0"),
        (party(pd.DataFrame({"x": [0.1], "y": [0.2]}), name="named", quick=False), "columns", "no names and 'x', 'y'"),
        (party(name="other", dataset="visits"), "name of the data", "'rows' and 'visits'"),
    ):
        with pytest.raises(FederationError, match=f"differ in the {what}.*{re.escape(shown)}"):
            FederatedKMeans(2, epsilon=1.0).fit([good, other])
    with pytest.raises(FederationError, match="other bounds"):
        FederatedKMeans(2, epsilon=1.0, bounds=(-3, 3)).fit([good])
    with pytest.raises(InvalidValue, match="two parties"):
        FederatedKMeans(2, epsilon=1.0).fit([good, good])
    assert good.ledger.spent().epsilon == 0
    with pytest.raises(FederationError, match="number of columns"):
        FederatedKMeans(2, epsilon=1.0, bounds=(-1, 1)).fit([np.zeros((4, 2)), np.zeros((4, 3))])


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"n_clusters": 0}, InvalidValue), ({"epsilon": -1.0}, InvalidValue), ({"epsilon": "1"}, InvalidValue),
        ({"delta": 2.0, "epsilon": 1.0}, InvalidValue), ({"protocol": "ring"}, InvalidValue), ({"n_steps": -1}, InvalidValue),
        ({"n_steps": 1.5}, InvalidValue), ({"timeout": 0}, InvalidValue), ({"timeout": "long"}, InvalidValue),
        ({"bounds": None}, BoundsRequired), ({"bounds": (1, -1)}, InvalidValue), ({"protocol": "pdk"}, InvalidValue),
        ({"protocol": "dk", "epsilon": 1.0}, InvalidValue), ({"protocol": "dk", "n_steps": 0}, InvalidValue),
        ({"protocol": "sample"}, InvalidValue), ({"protocol": "pdk", "epsilon": 1.0, "delta": 1e-6}, InvalidValue),
        ({"epsilon": 2.0**-30}, InvalidValue),
    ],
    ids=str,
)  # fmt: skip
def test_bad_parameters_are_refused(options, error):
    with pytest.raises(error):
        FederatedKMeans(**{"n_clusters": 2, "bounds": (-1, 1)} | options).fit([[[0.0, 0.0]]])


def test_bad_lists_of_parties_are_refused():
    model = FederatedKMeans(2, epsilon=1.0, bounds=(-1, 1))
    for parties in ("north", np.zeros((3, 2)), None, 5):
        with pytest.raises(InvalidType, match="list of parties"):
            model.fit(parties)
    with pytest.raises(InvalidValue, match="at least one"):
        model.fit([])
    with pytest.raises(InvalidValue, match="transport"):
        model.fit(["https://127.0.0.1:8443"])
    with pytest.raises(InvalidType, match="cannot read rows"):
        model.fit([object()])
    with pytest.raises(InvalidValue, match="dense rows"):
        model.fit([csr_array(np.eye(2))])
    with pytest.raises(InvalidType, match="where the rows are"):
        model.fit_predict(parts())


def test_people_may_be_protected_instead_of_records():
    frame = pd.DataFrame({"id": np.arange(900) // 3, "x": mixture(900, [[0.0]])[:, 0], "y": 0.5})
    source = kveil.read(frame, columns=["x", "y"], person="id", max_rows_per_person=3)
    model = FederatedKMeans(2, epsilon=1.0, bounds={"x": (-1, 1), "y": (0, 1)}).fit([source])
    assert (model.guarantee_.unit.kind, model.guarantee_.unit.max_rows_per_person) == ("person", 3)
    assert model.guarantee_.charges[0].sensitivity == 3
    assert list(model.feature_names_in_) == ["x", "y"]


class Failing:
    """A link whose parties leave, lie or answer late, each at its own message."""

    def __init__(self, link, trouble):
        self.link, self.trouble, self.parties, self.asked = link, trouble, link.parties, 0

    def ask(self, requests, timeout, largest=None):
        self.asked += 1
        replies = self.link.ask(requests, timeout)
        for name, (when, what) in self.trouble.items():
            if name in replies and self.asked >= when:
                replies[name] = what(replies[name]) if callable(what) else what
        return replies

    def close(self):
        pass


def test_a_party_that_was_given_up_is_told_that_the_run_is_over():
    """So that it is free for the next one, without waiting."""
    held = [party(name=name, budget=9.0) for name in ("north", "south")]
    run = Coordinator(Failing(InProcess(held), {}), 5.0)
    layout, first = held[0].layout, plan(held[0])
    run.open(RunPlan.read(first))
    run.link.trouble, run.link.asked = {"north": (1, Lost("did not answer in time"))}, 0
    assert set(run.ask("cells", CellsMessage(2), layout)) == {"south"}
    run.link.trouble = {}
    assert set(run.done()) == {"south"}
    assert told(held[0], 0, "plan", first, "cd" * 16).refused is None


def run_with(trouble, n_parties=4):
    """A fit whose link makes trouble."""
    model = FederatedKMeans(3, epsilon=1.0, random_state=0)
    held = [party(rows, name=f"p{i}", quick=False) for i, rows in enumerate(parts(n_parties))]
    model._link = lambda _: Failing(InProcess(held), trouble)
    return model.fit(held), held


@pytest.mark.parametrize(
    ("what", "why"),
    [
        (Lost("did not answer in time"), "did not answer in time"),
        (b"garbage", "garbage"),
        (lambda reply: reply.replace(b'"p3"', b'"p1"'), "another message"),
        (lambda reply: reply.replace(b'"seq":4', b'"seq":5'), "another message"),
        (lambda reply: reply.replace(b'"noise"', b'"poise"'), "not asked"),
        (lambda reply: reply.replace(b'"count":[', b'"count":[1,'), "not asked"),
        (lambda reply: reply.replace(b'"count":[', b'"count":[0.5,'), "garbage"),
    ],
    ids=["late", "garbage", "another name", "another number", "another kind", "one more", "a fraction"],
)
def test_a_party_that_leaves_or_lies_is_left_out_and_the_promise_stays(what, why):
    """From the sixth message on, the fourth of the run itself: the sums."""
    with scripted(3):
        model, _ = run_with({"p3": (6, what)})
    assert farthest(model) < 0.05
    assert set(model.receipts_) == {"p0", "p1", "p2"}
    assert (model.guarantee_.epsilon, model.guarantee_.trust) == (1.0, "federation")
    assert any("party p3 left the run" in note and why in note for note in model.release_.notes)


def test_when_all_parties_leave_the_run_ends_and_says_so():
    with pytest.raises(FederationError, match="no party is left"):
        run_with({f"p{i}": (4 + i, Lost("did not answer in time")) for i in range(4)})


def test_a_party_that_is_silent_at_the_start_stops_everything_before_a_charge():
    with pytest.raises(FederationError, match="Nothing was drawn"):
        run_with({"p2": (1, Lost("cannot be reached"))})
    with pytest.raises(FederationError, match="Nothing was drawn"):
        run_with({"p2": (2, b"{}")})


@pytest.mark.parametrize(
    ("told", "instead"),
    [
        (rb'"radius":"0x[^"]*"', b'"radius":"0x1.0p+9999"'),
        (rb'"ends":\[\["[^"]*"', b'"ends":[["0x1.0p+9999"'),
        (rb'"columns":\[\]', b'"columns":["a"]'),
        (rb'"bits":[0-9]+', b'"bits":32'),
    ],
)
def test_a_party_that_tells_nonsense_about_itself_is_named(told, instead):
    with pytest.raises(FederationError, match="p2"):
        run_with({"p2": (1, lambda reply: re.sub(told, instead, reply))})


def test_a_run_id_is_used_once():
    held = party(parts()[0], quick=False, budget=9.0)
    model = FederatedKMeans(3, epsilon=1.0)
    coordinator = Coordinator(InProcess([held]), 5.0)
    _, _, layout = model._agreed(coordinator.hello())
    coordinator.open(model._plan(layout, "rows", ["north"]))
    coordinator.abort()
    again = Coordinator(InProcess([held]), 5.0, coordinator.run)
    with pytest.raises(FederationError, match="conflict"):
        again.open(model.set_params(n_clusters=4)._plan(layout, "rows", ["north"]))


def test_releases_are_saved_and_answer_as_the_model_does(tmp_path):
    model = FederatedKMeans(3, epsilon=1.0, bounds=(-1, 1), random_state=0).fit(parts())
    release = kveil.load(model.release_.save(tmp_path / "centres"))
    rows = parts()[0]
    assert np.array_equal(release.predict(rows), model.predict(rows))
    assert release.guarantee == model.guarantee_
    assert "federation" in release.card()
    assert "ledger: none here: every party keeps its own" in release.card()
    assert model.score(rows) < 0
    assert sum("receipt" in note for note in release.notes) == 3


def test_it_is_an_estimator_and_keeps_nothing_raw():
    model = FederatedKMeans(3, epsilon=1.0, bounds=(-1, 1), random_state=0)
    assert clone(model).get_params() == model.get_params()
    assert repr(model) == "FederatedKMeans(bounds=(-1, 1), epsilon=1.0, n_clusters=3, random_state=0)"
    rows = parts()
    rows[0][0] = 0.123456789
    model.fit(rows)
    stored = pickle.dumps(model)
    assert rows[0][0].tobytes() not in stored
    assert np.array_equal(pickle.loads(stored).cluster_centers_, model.cluster_centers_)


@pytest.mark.parametrize("protocol", ["cells", "sample", "pdk"])
def test_the_coordinator_asks_by_public_values_and_replies_alone(protocol):
    """Neighbours with the noise fixed: wherever the replies are equal so far, the requests are equal bytes."""
    rows = mixture(400, PLACES)
    talks = []
    for table in (rows, rows[1:]):
        held = party(table, quick=False, name="north", budget=9.0)
        link = Recorded(InProcess([held]))
        coordinator = Coordinator(link, 5.0, "ab" * 16)
        model = FederatedKMeans(3, epsilon=1.0, random_state=0, protocol=protocol)
        with scripted(5):
            _, _, layout = model._agreed(coordinator.hello())
            plan = model._plan(layout, "rows", ["north"])
            coordinator.open(plan)
            RUNS[protocol](coordinator, layout, plan, np.random.default_rng(0)).run()
        talks.append((link.requests, link.replies))
    (mine, answers), (theirs, other_answers) = talks
    same = next((i for i, (a, b) in enumerate(zip(answers, other_answers, strict=True)) if a[1] != b[1]), len(answers))
    assert 2 <= same < len(answers)  # they part somewhere
    assert mine[: same + 1] == theirs[: same + 1]
    assert len(mine) == len(theirs)
