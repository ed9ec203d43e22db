"""Campaigns that go on by themselves, under a clock of the test's: closed when they are over, ended, and deleted at last."""

import io
import json
from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta

import pytest
from serving import KEY, reports

from kveil.collect.campaign import Campaign
from kveil.collect.collector import Collector
from kveil.collect.manifest import Manifest
from kveil.collect.report import Report
from kveil.collect.storage import Storage
from kveil.service import tend
from kveil.service.tend import Rules, Tend
from kveil.service.views import overview

FIRST = date(2030, 1, 1)


class Days:
    """A clock that the test turns."""

    def __init__(self):
        self.today = FIRST

    def __call__(self):
        return self.today

    def noon(self):
        return datetime.combine(self.today, datetime.min.time(), UTC)


@pytest.fixture
def key(tmp_path):
    KEY.save(tmp_path / "c.key")
    return str(tmp_path / "c.key")


def tended(place, rules, days, do=None):
    def taken(step):
        tend.take(step)
        return True

    return Tend(Storage(place), str(place), rules, do=do or taken, today=days)


def opened(place, days, **terms):
    stated = {"name": "s", "n": 300, "n_clusters": 2, "epsilon": 4, "center": [0, 0], "radius": 1.0, "protocol": "refine"}
    with Collector(place, key=KEY, clock=days.noon) as collector:
        collector.open(Campaign(**{**stated, "min_reports": 5, **terms}), days.today, days.today + timedelta(days=9))
        return collector.campaigns()[-1]


def answer(place, days, campaign, n):
    with Collector(place, clock=days.noon) as collector:
        manifest = Manifest.from_bytes(collector.manifests(campaign)[-1].body)
        told = [
            Report(manifest.queries[i % len(manifest.queries)].id, one[4:20], 0).to_bytes() for i, one in enumerate(reports(n))
        ]
        assert all(status.is_stored for status in collector.submit_many(manifest.hash, told))


def test_a_campaign_goes_to_its_result_without_a_hand_and_is_deleted_at_last(place, key):
    days, rules = Days(), Rules(key, days=10, grace=2, keep_reports=30)
    campaign = opened(place, days)
    with Collector(place, clock=days.noon) as collector:
        n_rounds = 0
        while collector.state(campaign)[1] != "done":
            n_rounds += 1
            answer(place, days, campaign, 20)
            days.today += timedelta(days=11)
            assert tended(place, rules, days).look() == 0, "reports that were sent on the last day may still come"
            days.today += timedelta(days=1)
            steps = []

            def one_then_killed(step, steps=steps):
                steps.append(step.action)
                tend.take(step)
                return False  # whoever looked is gone after every step

            for _ in range(2):
                tended(place, rules, days, one_then_killed).look()
            assert steps == ["close", "next"]
        assert n_rounds > 1
        assert collector.result(campaign).reports[0]
        days.today += timedelta(days=30)
        assert tended(place, rules, days).next_step() is None
        days.today += timedelta(days=1)
        assert tended(place, rules, days).next_step().action == "delete"
        tend.take(tended(place, rules, days).next_step())
        assert tended(place, rules, days).next_step() is None
        assert collector.result(campaign)


def test_a_round_with_too_few_is_stuck_or_ends_as_the_operator_says(place, key):
    days = Days()
    campaign = opened(place, days)
    answer(place, days, campaign, 4)
    days.today += timedelta(days=12)
    assert tended(place, Rules(key), days).look() == 0
    storage = Storage(place)
    assert [one["stuck"] for one in overview(storage, days.today)] == [1]
    assert tended(place, Rules(key, end_if_few=True), days).look() == 1
    with Collector(place, clock=days.noon) as collector:
        assert collector.state(campaign) == (1, "ended: too few reports")
        assert collector.end_notice(campaign).verified(KEY.public)["date"] == "2030-01-13"
    assert [one["stuck"] for one in overview(storage, days.today)] == [0]
    storage.dispose()


def test_only_who_holds_the_lease_does_anything(place, key):
    days, rules = Days(), Rules(key, end_if_few=True)
    opened(place, days)
    days.today += timedelta(days=40)
    storage = Storage(place)
    storage.take_lease("tend", "somebody else", 60)
    assert tended(place, rules, days).look() == 0
    storage.take_lease("tend", "somebody else", -1)
    assert tended(place, rules, days).look() == 1
    storage.dispose()


def test_a_fault_of_a_child_is_told_by_its_kind_alone(monkeypatch, capfd):
    def fails(step):
        raise RuntimeError("MARKED7f3a")

    step = tend.Step("MARKED7f3a.db", "ab" * 32, "close", "MARKED7f3a.key", 10, "2030-01-01")
    monkeypatch.setattr(tend, "take", fails)
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(asdict(step))))
    with pytest.raises(SystemExit):
        tend.main()
    said = capfd.readouterr()
    assert json.loads(said.err)["fault"] == "RuntimeError"
    assert "MARKED7f3a" not in said.err + said.out


def test_a_child_does_the_step_and_alone_reads_the_key(tmp_path, key, capfd):
    days, place = Days(), tmp_path / "collector.db"
    campaign = opened(place, days, protocol="grid")
    answer(place, days, campaign, 20)
    days.today += timedelta(days=13)
    storage = Storage(place)
    real = Tend(storage, str(place), Rules(key), today=days)
    assert real.look() == 2
    with Collector(place) as collector:
        assert collector.state(campaign) == (1, "done")
    (told,) = overview(storage, days.today)
    assert len(told["result"]["centers"]) > 1
    said = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [one["event"] for one in said] == ["closed", "published"]
    opened(place, days, name="other", protocol="refine", min_reports=0)
    days.today += timedelta(days=13)
    failing = Tend(storage, str(place), Rules(str(tmp_path / "no.key")), today=days)
    tend.take(failing.next_step())  # closing takes no key
    assert failing.look() == 0
    assert '"event": "refused"' in capfd.readouterr().err
    storage.dispose()
