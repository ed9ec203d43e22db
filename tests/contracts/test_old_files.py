"""Files that earlier revisions wrote are read, and used, by this one. `old/` holds them; databases lie there as text.

first_*: by the very first revision. The others: by one of the next day, when there were streams, parties and campaigns.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from benchmarks.fuzz.kept import PLAN

from kveil import FederatedKMeans, Ledger, StreamKMeans, load, verify
from kveil.collect import Collector, LocalClient
from kveil.errors import BudgetError
from kveil.federate import Party, Policy
from kveil.filing.tables import to_csv, to_html
from kveil.signing import SigningKey

OLD = Path(__file__).with_name("old")
KEY = SigningKey(bytes(range(32)))
ROWS = np.repeat([[-0.5, 0.5], [0.5, 0.0]], 30, axis=0)


def restored(name: str, path: str) -> str:
    """The database whose text is in `old/`."""
    with closing(sqlite3.connect(path)) as db:
        db.executescript((OLD / f"{name}.sql").read_text(encoding="utf-8"))
    return path


def noon() -> datetime:
    return datetime(2030, 1, 5, 12, tzinfo=UTC)


def test_a_release_and_the_ledger_that_paid_for_it_fit_together():
    ledger = restored("first_ledger", "ledger.db")
    release = load(OLD / "first_release")
    assert (release.kind, release.centers.shape, release.guarantee.epsilon) == ("PrivateKMeans", (2, 2), 1.0)
    assert "epsilon" in release.card()
    told = str(verify(OLD / "first_release", ledger=ledger))
    assert "ok      ledger" in told
    assert "failed" not in told


def test_a_release_on_a_graph_is_read_and_clustered_anew():
    release = load(OLD / "graph_release")
    assert release.kind == "PrivateKMedian"
    assert release.synopsis is not None
    assert "failed" not in str(verify(OLD / "graph_release"))


@pytest.mark.parametrize(("name", "spent", "whole"), [("first_ledger", 1.0, 2.0), ("party_ledger", 1.0, 4.0)])
def test_a_ledger_remembers_what_was_spent_and_goes_on(name, spent, whole):
    ledger = Ledger.open(restored(name, "l.db"))
    assert ledger.spent().epsilon == pytest.approx(spent, abs=1e-9)
    ledger.stating(purpose="beds").reserve(PLAN)
    assert ledger.remaining().epsilon == pytest.approx(whole - spent - 0.125, abs=1e-9)
    assert "beds" in to_csv([ledger])
    assert "beds" in to_html([ledger])


def test_a_party_goes_on_with_its_ledger_and_its_journal():
    restored("party_ledger", "party.db")
    restored("party_journal", "party.db.runs")
    party = Party(ROWS, bounds=(-1, 1), name="north", ledger="party.db", policy=Policy(epsilon_per_run=1.0))
    FederatedKMeans(2, epsilon=1.0, bounds=(-1, 1), random_state=0).fit([party])
    assert 1.0 < party.ledger.spent().epsilon < 2.0 + 1e-9, "a party pays for the rounds that it is asked for"
    party.close()


def test_a_party_without_the_charges_of_its_journal_is_refused():
    """Else an old copy of a ledger would forget what was spent."""
    restored("party_journal", "party.db.runs")
    Ledger.create("party.db", "north", 4.0, relation="add-remove")
    with pytest.raises(BudgetError, match="lacks charges"):
        Party(ROWS, bounds=(-1, 1), name="north", ledger="party.db")


@pytest.mark.parametrize("name", ["private.stream", "plain.stream"])
def test_a_stream_is_resumed_and_finished(name):
    shutil.copy(OLD / name, "state")
    stream = StreamKMeans.resume("state").partial_fit(ROWS)
    assert stream.finish().cluster_centers_.shape == (2, 2)


def test_a_device_remembers_its_report_and_a_collector_goes_on_with_its_campaign():
    restored("device", "device.db")
    restored("campaign", "campaign.db")
    with Collector("sqlite:///campaign.db", key=KEY, clock=noon) as collector:
        (name,) = collector.campaigns()
        with LocalClient("device.db", n_features=2, key=KEY.public, clock=noon) as device:
            (spend,) = device.history()
            assert device.answer(collector.manifests(name), [0.9, 0.9]) == spend.report, "another point, the same report"
        assert collector.submit(spend.manifest_hash, spend.report).name == "SAME"
        with LocalClient(None, n_features=2, key=KEY.public, is_first=True, clock=noon) as new:
            assert collector.submit(spend.manifest_hash, new.answer(collector.manifests(name), [0.1, 0.2])).name == "NEW"
        collector.close(name)
        assert collector.next_manifest(name) is None
        assert sum(map(sum, collector.result(name).reports)) == 4
