"""What a collector promises: a report counts once, in its own round; decoding ends with the same bytes however it goes."""

import dataclasses
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from campaigns import KEY, OPEN, Unread, make_campaign, make_collector, make_device, noon

from kveil import Ledger, canonical, testing
from kveil.collect.answers import Drawn
from kveil.collect.campaign import Result
from kveil.collect.collector import MOST_AT_ONCE, Collector, Status
from kveil.collect.decode import StoredAnswers
from kveil.collect.manifest import MOST_WITNESSES, Manifest, Signed
from kveil.collect.rehearse import rehearse
from kveil.collect.report import Report, seeds
from kveil.collect.stored import Checkpoint
from kveil.errors import InvalidType, InvalidValue, StorageUnavailable
from kveil.signing import SigningKey


def a_report(place=0, query=0, index=0):
    return Report(query, place.to_bytes(16, "big"), index).to_bytes()


def stored(collector):
    """Everything that was taken in."""
    with collector._storage._reading() as db:
        return db.exec_driver_sql("SELECT round_id, report_id, query, idx FROM report ORDER BY 1, 2").all()


def test_a_report_is_stored_once_however_often_it_comes(collector, signed):
    report = a_report(1)
    assert collector.submit(signed.hash, report) is Status.NEW
    assert collector.submit(signed.hash, report) is Status.SAME
    before = stored(collector)
    assert collector.submit(signed.hash, a_report(1, index=1)) is Status.DIFFERENT
    assert stored(collector) == before == [(1, bytes(15) + b"\1", 0, 0)]
    assert Status.NEW.is_stored
    assert Status.SAME.is_stored
    assert not any(status.is_stored for status in Status if status.value >= 400)


MALFORMED = {
    "empty": b"", "one byte short": a_report()[:-1], "one byte more": a_report() + b"\0", "oversized": a_report() * 10_000,
    "version 0": b"\0" + a_report()[1:], "a future version": b"\2" + a_report()[1:], "a flag": b"\1\1" + a_report()[2:],
    "an unknown query": a_report(query=1), "an index that no device sends": a_report(index=4), "text": "a" * 22, "nothing": None,
    "an array": bytearray(a_report()),
}  # fmt: skip


@pytest.mark.parametrize("report", MALFORMED.values(), ids=MALFORMED)
def test_what_is_no_report_of_this_round_is_not_stored(collector, signed, report):
    assert collector.submit(signed.hash, report) is Status.MALFORMED
    assert stored(collector) == []


def test_a_round_that_does_not_exist_takes_nothing(collector, signed):
    for name in ("ab" * 32, "", signed.hash.upper(), "' OR 1=1 --", "\ud800", "a\0b", None, 5, [1], b"x" * 64, "a" * 10**6):
        assert collector.submit(name, a_report()) is Status.UNKNOWN
        with pytest.raises(InvalidValue, match="no such campaign"):
            collector.manifests(name)
    assert stored(collector) == []


def test_a_batch_says_what_became_of_each(collector, signed):
    batch = [a_report(1), a_report(2), a_report(1), a_report(2, index=3), b"x", a_report(3)]
    expected = [Status.NEW, Status.NEW, Status.SAME, Status.DIFFERENT, Status.MALFORMED, Status.NEW]
    assert collector.submit_many(signed.hash, batch) == expected
    again = collector.submit_many(signed.hash, batch[::-1])
    assert again == [Status.SAME, Status.MALFORMED, Status.DIFFERENT, Status.SAME, Status.SAME, Status.SAME]
    assert len(stored(collector)) == 3
    assert collector.submit_many(signed.hash, []) == []
    with pytest.raises(InvalidValue, match="at once"):
        collector.submit_many(signed.hash, [b""] * (MOST_AT_ONCE + 1))


def test_the_order_in_which_reports_come_does_not_matter(tmp_path):
    results = []
    reports = [a_report(place, index=place % 4) for place in range(50)]
    for order in (reports, reports[::-1], [report for report in reports for _ in range(2)]):
        collector = make_collector()
        signed = collector.open(make_campaign(), *OPEN)
        for report in order:
            collector.submit(signed.hash, report)
        (campaign,) = collector.campaigns()
        collector.close(campaign)
        assert collector.next_manifest(campaign) is None
        results.append(collector.result(campaign).to_json())
        collector.dispose()
    assert len(set(results)) == 1


def test_a_closed_round_takes_nothing_new_and_still_knows_what_it_has(collector, signed):
    collector.submit(signed.hash, a_report(1))
    (campaign,) = collector.campaigns()
    collector.close(campaign)
    collector.close(campaign)
    assert collector.state(campaign) == (1, "closed")
    assert collector.submit(signed.hash, a_report(1)) is Status.SAME
    assert collector.submit(signed.hash, a_report(1, index=2)) is Status.DIFFERENT
    assert collector.submit(signed.hash, a_report(2)) is Status.CLOSED
    assert collector.submit(signed.hash, b"") is Status.MALFORMED
    assert len(stored(collector)) == 1
    collector.next_manifest(campaign)
    assert collector.submit(signed.hash, a_report(2)) is Status.CLOSED


def test_a_report_that_was_sent_to_another_round_of_the_campaign_is_not_stored_again(collector):
    first = collector.open(make_campaign(protocol="refine", epsilon=4), *OPEN)
    (campaign,) = collector.campaigns()
    collector.submit_many(first.hash, [a_report(1), a_report(2)])
    collector.close(campaign)
    second = collector.next_manifest(campaign, *OPEN)
    assert collector.submit(second.hash, a_report(1)) is Status.DIFFERENT
    assert collector.submit(first.hash, a_report(1)) is Status.SAME
    assert collector.submit(first.hash, a_report(3)) is Status.CLOSED
    assert collector.submit(second.hash, a_report(3)) is Status.NEW
    assert len(stored(collector)) == 3
    other = collector.open(make_campaign(name="another"), *OPEN)
    assert collector.submit(other.hash, a_report(1)) is Status.NEW, "another campaign: there it is noise, as anyone could send"


def test_witnesses_are_kept_with_the_manifest(collector, signed):
    witness = SigningKey(bytes([5] * 32))
    with pytest.raises(InvalidValue, match="no signature"):
        collector.witness(signed.hash, witness.public, b"x" * 64)
    with pytest.raises(InvalidValue, match="no such round"):
        collector.witness("ab" * 32, witness.public, witness.sign(signed.body))
    with pytest.raises(InvalidValue, match="somebody else"):
        collector.witness(signed.hash, KEY.public, KEY.sign(signed.body))
    collector.witness(signed.hash, witness.public, witness.sign(signed.body))
    chain = collector.manifests(collector.campaigns()[0])
    assert isinstance(make_device(witnesses=[witness.public]).answer(chain, [0, 0]), bytes)


def test_two_witnesses_at_once_are_both_kept(collector, signed):
    first, second = (SigningKey(bytes([i] * 32)) for i in (5, 6))
    look = collector._storage.round

    def slow(name):
        found = look(name)
        collector._storage.round = look
        collector.witness(name, second.public, second.sign(signed.body))  # after the first has looked, before it writes
        return found

    collector._storage.round = slow
    collector.witness(signed.hash, first.public, first.sign(signed.body))
    (seen,) = collector.manifests(collector.campaigns()[0])
    assert set(seen.witnesses) == {first.public, second.public}


def test_strangers_cannot_make_a_manifest_too_large_to_read(collector, signed):
    keys = [SigningKey(bytes([i] * 32)) for i in range(MOST_WITNESSES + 1)]
    for key in keys[:-1]:
        collector.witness(signed.hash, key.public, key.sign(signed.body))
    with pytest.raises(InvalidValue, match="at most"):
        collector.witness(signed.hash, keys[-1].public, keys[-1].sign(signed.body))
    (seen,) = collector.manifests(collector.campaigns()[0])
    assert len(seen.witnesses) == MOST_WITNESSES
    more = Signed(seen.body, seen.signature, {**seen.witnesses, keys[-1].public: b"x" * 64})
    for envelope in (more, Signed(seen.body, seen.signature, {"no key": b"x" * 64})):
        with pytest.raises(InvalidValue, match="witnesses"):
            Signed.from_bytes(envelope.to_bytes())


def test_a_manifest_that_fits_but_whose_envelope_does_not_is_not_published(collector, monkeypatch):
    """Quotes are escaped in the envelope, so it is longer than what it carries; devices and collectors read the envelope."""
    longest = len(Manifest.from_bytes(make_collector().open(make_campaign(), *OPEN).body).body)
    monkeypatch.setattr(canonical, "DEVICE", replace(canonical.DEVICE, most_bytes=longest))
    with pytest.raises(InvalidValue, match="at most"):
        collector.open(make_campaign(), *OPEN)
    assert collector.campaigns() == []


@pytest.mark.parametrize(("protocol", "columns"), [("grid", 2), ("zoom", 2), ("refine", 5), ("lma", 5), ("lae", 2)])
def test_a_campaign_that_nobody_answers_ends_with_centres_and_plain_json(protocol, columns):
    collector = make_collector()
    collector.open(make_campaign(protocol=protocol, center=[0] * columns, min_reports=0), *OPEN)
    (campaign,) = collector.campaigns()
    while collector.state(campaign)[1] != "done":
        collector.close(campaign)
        collector.next_manifest(campaign, *OPEN)
    result = collector.result(campaign)
    assert np.isfinite(result.centers).all()
    assert "Infinity" not in result.to_json()
    assert "NaN" not in result.to_json()
    collector.dispose()


def test_a_round_waits_for_the_reports_that_its_manifest_promises(collector):
    signed = collector.open(make_campaign(min_reports=3), *OPEN)
    (campaign,) = collector.campaigns()
    for place in range(2):
        collector.submit(signed.hash, a_report(place))
    with pytest.raises(InvalidValue, match="fewer reports"):
        collector.close(campaign)
    assert collector.submit(signed.hash, a_report(2)) is Status.NEW, "it is open still"
    collector.close(campaign)


def test_a_round_that_missed_its_reports_ends_the_campaign_once_its_days_are_over(tmp_path):
    place, now = tmp_path / "collector.db", [datetime(2030, 1, 31, 23, 59, tzinfo=UTC)]
    with Collector(place, key=KEY, clock=lambda: now[0]) as collector:
        first = collector.open(make_campaign(min_reports=40, protocol="refine"), *OPEN)
        (campaign,) = collector.campaigns()
        for person in range(17):
            collector.submit(first.hash, a_report(person))
        with pytest.raises(InvalidValue, match="until its last day, 2030-01-31"):
            collector.close(campaign)
        now[0] = datetime(2030, 2, 1, 8, tzinfo=timezone(timedelta(hours=13)))  # 31 January in UTC
        with pytest.raises(InvalidValue, match="last day"):
            collector.close(campaign)
        assert collector.state(campaign) == (1, "open")
        now[0] = datetime(2030, 2, 1, tzinfo=UTC)
        collector.close(campaign)
        collector.close(campaign)
    with Collector(place, key=KEY, clock=lambda: now[0]) as collector:
        assert collector.state(campaign) == (1, "ended: too few reports")
        for step in (collector.next_manifest, collector.result):
            with pytest.raises(InvalidValue, match="ended: too few reports") as told:
                step(campaign)
            assert "17" not in str(told.value), "how many there were stays inside"
        assert collector.manifests(campaign) == [first], "no device is asked again"
        assert collector.submit(first.hash, a_report(99)) is Status.CLOSED
        assert collector.submit(first.hash, a_report(1)) is Status.CLOSED, "it was deleted: nothing will be decoded"
        assert stored(collector) == []
        told = collector.end_notice(campaign).verified(KEY.public)
        assert told == {"campaign": campaign, "date": "2030-02-01", "reason": "few reports", "round": 1, "schema": "kveil.end/1"}
        assert make_device(clock=lambda: now[0]).answer([first], Unread()).why == "not now"


def test_a_round_with_enough_reports_is_closed_after_its_days_as_before_them(tmp_path):
    with Collector(tmp_path / "collector.db", key=KEY, clock=noon()) as collector:
        first = collector.open(make_campaign(min_reports=2), *OPEN)
        (campaign,) = collector.campaigns()
        collector.submit_many(first.hash, [a_report(1), a_report(2)])
    with Collector(tmp_path / "collector.db", key=KEY, clock=noon(month=3)) as collector:
        collector.close(campaign)
        assert collector.state(campaign) == (1, "closed")
        assert collector.next_manifest(campaign) is None
        assert collector.state(campaign) == (1, "done")


def test_a_locked_storage_is_said_in_words_and_what_is_sent_again_is_stored_once(tmp_path, monkeypatch):
    monkeypatch.setattr("kveil.collect.engine.PATIENCE", 1)
    with make_collector(tmp_path / "collector.db") as collector:
        signed = collector.open(make_campaign(), *OPEN)
        (campaign,) = collector.campaigns()
        with closing(sqlite3.connect(tmp_path / "collector.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            steps = [
                lambda: collector.submit(signed.hash, a_report(1)), lambda: collector.close(campaign),
                lambda: collector.open(make_campaign(name="other"), *OPEN),
            ]  # fmt: skip
            for step in steps:
                with pytest.raises(StorageUnavailable, match="locked, full") as told:
                    step()
                assert told.value.status == 503
                assert told.value.__cause__ is None
                assert told.value.__suppress_context__, "a traceback would quote what was to be stored"
        assert stored(collector) == []
        assert collector.submit(signed.hash, a_report(1)) is Status.NEW
        assert collector.submit(signed.hash, a_report(1)) is Status.SAME
        assert len(stored(collector)) == 1
        collector.close(campaign)
        with closing(sqlite3.connect(tmp_path / "collector.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StorageUnavailable):
                collector.next_manifest(campaign)
        assert collector.state(campaign) == (1, "closed")
        assert collector.next_manifest(campaign) is None
        assert collector.result(campaign).reports == ((1,),)


def test_a_full_disk_loses_no_report_and_counts_none_twice(tmp_path):
    """Batches until nothing fits; then there is room again, and all of them are sent once more."""
    with make_collector(tmp_path / "collector.db", chunk=100) as collector:
        signed = collector.open(make_campaign(n=3000), *OPEN)
        (campaign,) = collector.campaigns()
        limit(collector, 3)
        batches = [[a_report(place, index=place % 4) for place in range(start, start + 300)] for start in range(0, 3000, 300)]
        taken, refused = [], []
        for batch in batches:
            try:
                assert set(collector.submit_many(signed.hash, batch)) == {Status.NEW}
                taken.append(batch)
            except StorageUnavailable:
                refused.append(batch)
        assert taken
        assert refused
        assert len(stored(collector)) == 300 * len(taken), "a batch is stored as a whole or not at all"
        limit(collector, 10_000)
        assert {status for batch in taken for status in collector.submit_many(signed.hash, batch)} == {Status.SAME}
        assert {status for batch in refused for status in collector.submit_many(signed.hash, batch)} == {Status.NEW}
        collector.close(campaign)
        assert collector.next_manifest(campaign) is None
        assert collector.result(campaign).reports == ((3000,),)


def limit(collector, pages):
    """Let the storage grow by so many pages and no further, as a disk that is nearly full does."""
    with collector._storage._reading() as db:
        n_pages = db.exec_driver_sql("PRAGMA page_count").scalar()
        assert db.exec_driver_sql(f"PRAGMA max_page_count={n_pages + pages}").scalar() == n_pages + pages


def test_steps_out_of_order_are_refused_and_change_nothing(collector, signed):
    (campaign,) = collector.campaigns()
    with pytest.raises(InvalidValue, match="still open"):
        collector.next_manifest(campaign)
    with pytest.raises(InvalidValue, match="no result yet"):
        collector.result(campaign)
    with pytest.raises(InvalidValue, match="already"):
        collector.open(make_campaign(), *OPEN)
    for step in (collector.close, collector.manifests, collector.state, collector.next_manifest, collector.result):
        for unknown in ("x", "ab" * 32, None):
            with pytest.raises(InvalidValue, match="no such campaign"):
                step(unknown)
    assert collector.state(campaign) == (1, "open")
    assert collector.manifests(campaign) == [signed]
    assert collector.campaigns() == [Manifest.from_bytes(signed.body).header.campaign]


BAD = [
    {"epsilon": 0}, {"epsilon": 11}, {"epsilon": "1/3333333"}, {"epsilon": float("nan")}, {"epsilon": -1}, {"n": 0},
    {"n_clusters": 0}, {"radius": 0}, {"radius": float("inf")}, {"center": [float("nan"), 0]}, {"center": []}, {"name": ""},
    {"protocol": "best"}, {"name": "\n"}, {"min_reports": -1}, {"mode": "twice"}, {"center": [0] * 5},
]  # fmt: skip


@pytest.mark.parametrize("wrong", BAD, ids=repr)
def test_a_campaign_that_devices_would_refuse_is_not_opened(collector, wrong):
    with pytest.raises(InvalidValue):
        collector.open(make_campaign(**wrong), *OPEN)
    with pytest.raises(InvalidValue):
        collector.open(make_campaign(), *OPEN[::-1])
    assert collector.campaigns() == []


NONSENSE = [
    ("n", 0), ("n", "400"), ("n", 1e3), ("n", None), ("n", True), ("n", 2**32), ("n_clusters", 0), ("n_clusters", "2"),
    ("n_clusters", 2.0), ("n_clusters", 5000), ("epsilon", None), ("epsilon", "x"), ("epsilon", 11), ("center", "a"),
    ("center", None), ("center", []), ("center", [[0, 0], [0, 0]]), ("center", [1e50, 0]), ("center", [[0], [0, 0]]),
    ("center", np.zeros(70_000)), ("radius", 0), ("radius", -1), ("radius", "5"), ("radius", None), ("radius", True),
    ("radius", 1e50), ("radius", np.nan), ("name", ""), ("name", None), ("name", 5), ("name", "a\nb"), ("name", "x" * 201),
    ("protocol", "gird"), ("protocol", None), ("mode", None), ("min_reports", "a"), ("min_reports", 101),
]  # fmt: skip


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("name", "wrong"), NONSENSE, ids=lambda value: repr(value)[:30])
def test_nonsense_is_refused_where_it_is_written_and_by_its_name(name, wrong):
    with pytest.raises(InvalidValue, match=rf"^{name}\b.* must be "):
        make_campaign(**{name: wrong})


def test_numbers_of_numpy_are_numbers(collector):
    terms = {"n": np.int64(100), "n_clusters": np.int32(2), "radius": np.float32(1), "center": np.zeros(2)}
    assert collector.open(make_campaign(**terms), *OPEN) == make_collector().open(make_campaign(), *OPEN)


def test_dates_on_which_nobody_could_answer_are_not_published(collector):
    first, last = OPEN
    for days in ((last, first), (first.replace(year=2029), last.replace(year=2029))):
        with pytest.raises(InvalidValue, match="over before a device can answer"):
            collector.open(make_campaign(), *days)
    for days in (("2030-01-01", "2030-01-31"), (noon()(), noon()()), (first, None)):
        with pytest.raises(InvalidType, match=r"datetime\.date"):
            collector.open(make_campaign(), *days)
    assert collector.campaigns() == []
    collector.open(make_campaign(protocol="refine", min_reports=0), first, last)
    (campaign,) = collector.campaigns()
    collector.close(campaign)
    with pytest.raises(InvalidType, match="days"):
        collector.next_manifest(campaign, "2030-01-10")
    with pytest.raises(InvalidValue, match="over before"):
        collector.next_manifest(campaign, last, first)
    assert collector.state(campaign) == (1, "closed")
    collector.next_manifest(campaign, first, last)
    collector.close(campaign)
    assert collector.next_manifest(campaign, last, first) is None, "no round follows, so dates do not matter"


def test_what_is_no_campaign_key_or_place_is_refused_in_words(collector):
    with pytest.raises(InvalidType, match="opens a Campaign"):
        collector.open({"n": 100}, *OPEN)
    with pytest.raises(InvalidType, match="SigningKey, the secret half"):
        Collector("sqlite://", key=KEY.public)
    for place in (None, 3):
        with pytest.raises(InvalidType, match="path of a file"):
            Collector(place)


def test_a_round_with_far_fewer_reports_than_planned_says_so(collector):
    told = []
    for came in (30, 60):
        signed = collector.open(make_campaign(name=f"of {came}"), *OPEN)
        campaign = collector.campaigns()[-1]
        collector.submit_many(signed.hash, [a_report(place) for place in range(came)])
        collector.close(campaign)
        collector.next_manifest(campaign)
        told.append([text for text in collector.result(campaign).warnings if "few reports" in text])
    assert told == [["few reports: round 1 had 30 of about 100; the forecast was for n = 100 people."], []]


def test_a_result_is_told_in_words_whatever_is_known(collector, signed):
    (campaign,) = collector.campaigns()
    collector.submit(signed.hash, a_report(1))
    collector.close(campaign)
    collector.next_manifest(campaign)
    result = collector.result(campaign)
    told = str(result)
    assert told.count(f" +- {result.count_sd:.0f} people\n") == 2
    assert "warning: few reports" in told
    assert told.endswith(f"\n\n{result.guarantee}")
    assert str(dataclasses.replace(result, count_sd=None)).count(" people\n") == 2
    assert " people\n" not in str(dataclasses.replace(result, counts=None, warnings=()))
    assert len(repr(signed)) < 120


@pytest.mark.parametrize("text", ["", "junk", "{}", "[]", "null", '{"centers": 3}'])
def test_what_is_no_result_is_refused_in_words(text):
    with pytest.raises(InvalidValue, match="no result of a campaign"):
        Result.from_json(text)


def test_only_the_key_of_a_campaign_goes_on_with_it(tmp_path):
    place = tmp_path / "collector.db"
    make_collector(place).open(make_campaign(protocol="refine", min_reports=0), *OPEN)
    intake = Collector(place, clock=noon())
    (campaign,) = intake.campaigns()
    with pytest.raises(InvalidValue, match="signing key"):
        intake.open(make_campaign(name="other"), *OPEN)
    intake.close(campaign)
    for key in (None, SigningKey(bytes(32))):
        with pytest.raises(InvalidValue, match="key"):
            Collector(place, key=key, clock=noon()).next_manifest(campaign)
    assert intake.state(campaign) == (1, "closed")
    signed = make_collector(place).next_manifest(campaign)
    again = Manifest.from_bytes(signed.body)
    assert (again.number, str(again.not_before), str(again.not_after)) == (2, "2030-01-05", "2030-02-04")


def test_a_collector_that_died_right_after_publishing_finds_the_round_and_publishes_no_other(tmp_path):
    place = tmp_path / "collector.db"
    first = make_collector(place)
    first.open(make_campaign(protocol="refine", min_reports=0), *OPEN)
    (campaign,) = first.campaigns()
    first.close(campaign)
    published = first.next_manifest(campaign, *OPEN)  # whoever asked dies before this comes back
    again = make_collector(place)
    assert again.state(campaign) == (2, "open")
    with pytest.raises(InvalidValue, match="round 2 is still open: the last of `manifests`"):
        again.next_manifest(campaign, *OPEN)
    assert again.manifests(campaign)[-1] == published


def test_two_collectors_on_one_storage_publish_a_round_once(tmp_path):
    place = tmp_path / "collector.db"
    first, second = make_collector(place), make_collector(place)
    first.open(make_campaign(protocol="refine", min_reports=0), *OPEN)
    (campaign,) = second.campaigns()
    first.close(campaign)
    done = second._rounds(campaign)
    first.next_manifest(campaign, *OPEN)
    second._rounds = lambda name: done  # as if it had looked before the first one was ready
    with pytest.raises(InvalidValue, match="quicker"):
        second.next_manifest(campaign, *OPEN)
    assert len(first.manifests(campaign)) == 2


class Stopped(BaseException):
    """A process that ends without a word."""


def made_up(manifest, rng):
    """Reports of nobody."""
    asked = [manifest.queries[i] for i in rng.integers(len(manifest.queries), size=40)]
    return [Report(query.id, rng.bytes(16), int(rng.integers(query.M))).to_bytes() for query in asked]


def run(place, protocol, columns, stop_after=None, chunk=7):
    """A campaign of made-up reports; with `stop_after`, the collector dies after so many chunks and another one goes on."""
    collector = make_collector(place, chunk=chunk)
    terms = {"protocol": protocol, "center": [0] * columns, "epsilon": 4, "min_reports": 0}
    collector.open(make_campaign(**terms), *OPEN)
    (campaign,) = collector.campaigns()
    deaths, rng = 0, np.random.default_rng(5)
    while collector.state(campaign)[1] != "done":
        manifest = Manifest.from_bytes(collector.manifests(campaign)[-1].body)
        collector.submit_many(manifest.hash, made_up(manifest, rng))
        collector.close(campaign)
        while collector.state(campaign)[1] == "closed":
            if stop_after is not None:
                save, calls = collector._storage.save_checkpoint, []

                def dying(*args, save=save, calls=calls):
                    save(*args)
                    calls.append(1)
                    if len(calls) == stop_after:
                        raise Stopped

                collector._storage.save_checkpoint = dying
            try:
                collector.next_manifest(campaign, *OPEN)
            except Stopped:
                deaths += 1
                collector.dispose()
                collector = make_collector(place, chunk=chunk)
    bodies = [signed.body for signed in collector.manifests(campaign)]
    with collector._storage._reading() as db:
        sums = db.exec_driver_sql("SELECT round_id, task, statistic FROM checkpoint WHERE is_done ORDER BY 1, 2").all()
    told = collector.result(campaign).to_json()
    collector.dispose()
    return (bodies, sums, told), deaths


@pytest.mark.parametrize(("protocol", "columns"), [("grid", 2), ("zoom", 2), ("refine", 2), ("refine", 5)])
def test_a_decoder_that_dies_after_every_chunk_ends_with_the_same_bytes(tmp_path, protocol, columns):
    calm, _ = run(tmp_path / "calm.db", protocol, columns)
    for stop_after in (1, 3):
        killed, deaths = run(tmp_path / f"killed{stop_after}.db", protocol, columns, stop_after)
        assert deaths >= 1
        assert killed == calm
    whole, _ = run(tmp_path / "whole.db", protocol, columns, chunk=1000)
    assert whole == calm, "nor does the size of a chunk matter"


def test_a_checkpoint_of_another_manifest_does_not_count(tmp_path):
    (_, _, told), _ = run(tmp_path / "calm.db", "grid", 2)
    collector = make_collector(tmp_path / "other.db", chunk=7)
    signed = collector.open(make_campaign(epsilon=4, min_reports=0), *OPEN)
    (campaign,) = collector.campaigns()
    collector.submit_many(signed.hash, made_up(Manifest.from_bytes(signed.body), np.random.default_rng(5)))
    collector.close(campaign)
    get, asked = collector._storage.checkpoint, []

    def poisoned(round_id, task, manifest_hash):
        if not asked:
            asked.append(task)
            collector._storage.save_checkpoint(round_id, task, "ab" * 32, Checkpoint(b"\xff" * 16, bytes(8 * 256), True))
        return get(round_id, task, manifest_hash)

    collector._storage.checkpoint = poisoned
    collector.next_manifest(campaign)
    assert collector.result(campaign).to_json() == told


KINDS = [("olh", "grid", 2, 1), ("grr", "grid", 1, 4), ("hrr", "grid", 3, "1/2"), ("vec", "lma", 5, 2)]


@pytest.mark.parametrize(("kind", "protocol", "columns", "epsilon"), KINDS)
def test_stored_reports_are_decoded_as_reports_in_memory_are(kind, protocol, columns, epsilon):
    collector = make_collector(chunk=16)
    terms = {"protocol": protocol, "center": [0] * columns, "epsilon": epsilon, "n": 1000}
    signed = collector.open(make_campaign(**terms), *OPEN)
    manifest = Manifest.from_bytes(signed.body)
    reports = [Report.from_bytes(report) for report in made_up(manifest, np.random.default_rng(3))]
    collector.submit_many(signed.hash, [report.to_bytes() for report in reports])
    (stored_round,) = collector._storage.rounds(manifest.header.campaign)
    kept = StoredAnswers(collector._storage, stored_round, manifest, 16)
    per_query = {query.id: [report for report in reports if report.query == query.id] for query in manifest.queries}
    arrays = {
        number: (seeds(signed.hash, [one.report_id for one in some]), np.array([one.index for one in some], dtype=np.int64))
        for number, some in per_query.items()
    }
    drawn = Drawn(arrays, columns)
    assert kind in {query.kind for query in manifest.queries}
    for query in manifest.queries:
        keys = np.arange(min(query.n_keys, 64), dtype=np.uint64)
        assert kept.received(query) == drawn.received(query) == len(per_query[query.id])
        if query.kind == "vec":
            ours, theirs = kept.sums(query, keys, 1), drawn.sums(query, keys, 1)
            assert np.array_equal(ours.sums, theirs.sums)
            assert np.array_equal(ours.squares, theirs.squares)
        else:
            assert np.array_equal(kept.support(query, keys), drawn.support(query, keys))
    collector.dispose()


@pytest.mark.parametrize(("protocol", "columns"), [("lae", 3), ("lae-ball", 2), ("lma", 5), ("grid", 1)])
def test_every_protocol_goes_over_the_wire(protocol, columns):
    """Whatever queries it asks, devices accept them and answer, and the collector ends with k finite centres in the domain."""
    points = np.random.default_rng(0).uniform(-0.5, 0.5, (40, columns))
    played = rehearse(points, make_campaign(n=40, protocol=protocol, center=[0] * columns, epsilon=4))
    assert sum(played.answered) == 40
    assert played.result.centers.shape == (2, columns)
    assert (np.linalg.norm(played.result.centers, axis=1) <= 1 + 1e-6).all()
    assert played.result.guarantee.trust == "local"
    assert played.result.guarantee.epsilon == 4


def test_real_devices_find_two_places(tmp_path):
    """A whole campaign through the wire, from a file: 250 people around two places, told by epsilon 4 each."""
    collector = make_collector(tmp_path / "collector.db")
    collector.open(make_campaign(n=250, epsilon=4, center=[10, 20], radius=2.0), *OPEN)
    (campaign,) = collector.campaigns()
    chain = [Signed.from_bytes(one.to_bytes()) for one in collector.manifests(campaign)]
    places = np.array([[9.0, 19.2], [11.0, 20.8]])
    with testing.scripted(1):
        reports = [make_device().answer(chain, places[person % 2]) for person in range(250)]
    assert set(collector.submit_many(chain[-1].hash, reports)) == {Status.NEW}
    collector.close(campaign)
    assert collector.next_manifest(campaign) is None
    assert collector.state(campaign) == (1, "done")
    result = collector.result(campaign)
    found = result.centers[np.argsort(result.centers[:, 0])]
    assert np.abs(found - places).max() < 0.4
    assert result.reports == ((250,),)
    assert 3.99999 < result.epsilon <= 4
    assert Result.from_json(result.to_json()).to_json() == result.to_json()
    assert json.loads(result.to_json())["campaign"] == campaign


def test_a_place_that_is_no_storage_is_refused(tmp_path):
    (tmp_path / "text").write_text("hello, this is not a database, and it is longer than a header")
    for place in (tmp_path / "text", tmp_path / "no" / "folder.db", "nonsense://", "sqlite:////no/such/folder/x.db"):
        with pytest.raises(InvalidValue):
            Collector(place)
    with sqlite3.connect(tmp_path / "future.db") as db:
        db.execute("CREATE TABLE collector(version INTEGER PRIMARY KEY)")
        db.execute("INSERT INTO collector VALUES (3)")
    with pytest.raises(InvalidValue, match="another version"):
        Collector(tmp_path / "future.db")


def test_files_of_devices_curators_and_others_stay_as_they_are(tmp_path):
    make_device(tmp_path / "device.db").close()
    Ledger.create(tmp_path / "curator.db", "clinic", 1.0, relation="add-remove")
    with sqlite3.connect(tmp_path / "other.db") as db:
        db.execute("CREATE TABLE report(text)")
    for name in ("device.db", "curator.db", "other.db"):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(InvalidValue, match=f"{name}' is no collector's database"):
            Collector(tmp_path / name)
        assert (tmp_path / name).read_bytes() == before
    make_collector(tmp_path / "collector.db").dispose()
    with pytest.raises(InvalidValue, match=r"collector\.db' is no ledger of a device"):
        make_device(tmp_path / "collector.db")


def test_the_storage_is_durable_and_orders_ids_by_bytes(tmp_path):
    collector = make_collector(tmp_path / "collector.db")
    signed = collector.open(make_campaign(), *OPEN)
    for place in (2**127, 1, 2**64, 255):
        collector.submit(signed.hash, a_report(place))
    ids, _ = collector._storage.chunk(1, 0, b"", 10)
    assert ids == sorted(ids)
    assert len(ids) == 4
    with collector._storage._reading() as db:
        settings = [db.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")]
    assert settings == ["wal", 2]
    assert KEY.public in signed.body.decode()
