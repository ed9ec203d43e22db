"""What a device promises: one report a campaign, stored before it leaves; at most its cap; and nothing between the lines."""

import gc
import os
import sqlite3
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, date, datetime, timedelta, timezone
from fractions import Fraction

import numpy as np
import pytest
from campaigns import KEY, OPEN, Unread, forged, make_campaign, make_collector, make_device

from kveil import testing
from kveil.collect.book import Book, Spend
from kveil.collect.client import LocalClient, Refusal
from kveil.collect.encoding import preferred
from kveil.collect.keys import Rotation
from kveil.collect.ledger_file import LedgerFile
from kveil.collect.manifest import Manifest
from kveil.collect.report import Report, seeds
from kveil.errors import InvalidType, InvalidValue, ManifestError
from kveil.kernel import exact
from kveil.kernel.loss import response_weights
from kveil.signing import SigningKey

STRANGE = {
    "zero": [0.0, 0.0], "inside": [0.3, -0.2], "edge": [1.0, 0.0], "outside": [30.0, 4.0], "NaN": [np.nan, 0.1],
    "infinity": [np.inf, 0], "huge": [1e308, -1e308], "tiny": [5e-324, 0], "None": None, "text": ["a", "b"], "three": [1, 2, 3],
    "empty": [], "a scalar": 7, "ragged": [[1], [2, 3]], "complex": [1j, 0], "objects": [object(), 1], "raises": lambda: 1 / 0,
    "loads": lambda: [0.3, -0.2], "complex array": np.array([1j, 0]), "wide": np.array([np.longdouble(1) * 1e308 * 10, 0]),
    "minus zero": [-0.0, -0.0], "bytes": b"12345678", "huge whole": [10**400, 0], "rows": [[0.3, -0.2], [0.1, 0.1]],
}  # fmt: skip


def open_campaign(**more):
    collector = make_collector()
    first = collector.open(make_campaign(**more), *OPEN)
    collector.dispose()
    return first


def test_the_same_bytes_however_often_and_for_whatever_point_it_is_asked(signed, tmp_path):
    path = tmp_path / "device.db"
    with make_device(path) as client:
        report = client.answer([signed], [0.5, 0.5])
        assert client.answer([signed], [-0.5, 0.5]) == report
        assert client.answer([signed], Unread()) == report, "a retry does not read the point"
    with make_device(path) as client:
        assert client.answer([signed], Unread()) == report
        (spend,) = client.pending()
        assert (spend.report, spend.state, spend.epsilon, spend.day) == (report, "prepared", 1, date(2030, 1, 5))
        assert datetime(2030, 1, 5, 12, tzinfo=UTC) <= spend.send_at < datetime(2030, 2, 1, tzinfo=UTC)
        client.sent(spend.manifest_hash)
        assert client.pending()[0].state == "sent"
        client.acknowledged(spend.manifest_hash)
        client.sent(spend.manifest_hash)
        assert client.pending() == []
        assert client.history()[0].state == "acked"
        assert client.answer([signed], Unread()) == report


def test_a_campaign_has_one_report_of_a_device_whatever_it_is_asked_next(signed):
    """Re-issued rounds and manifests made for one victim have the same header, hence the same campaign."""
    client = make_device()
    assert isinstance(client.answer([signed], [0.5, 0.5]), bytes)
    again = [
        lambda data: data["queries"][0].update(depth=3),
        lambda data: data["queries"].append({**data["queries"][0], "id": 1}),
        lambda data: data.update(not_after="2030-01-30"),
        lambda data: data.update(min_reports=7),
    ]
    for change in again:
        told = client.answer([forged(signed, change)], Unread())
        assert isinstance(told, Refusal)
        assert told.why == "answered"
    assert len(client.history()) == 1
    assert client.remaining() == 3


def test_a_new_name_is_a_new_campaign_and_costs_until_the_cap_is_reached():
    client = make_device(cap=2.5)
    for place in range(5):
        told = client.answer([open_campaign(name=f"survey {place}")], [0.5, 0.5])
        assert isinstance(told, bytes) == (place < 2)
    assert told.why == "budget"
    assert "0.5 of 2.5 is left" in told.reason
    assert client.remaining() == Fraction(1, 2)
    assert isinstance(client.answer([open_campaign(name="small", epsilon="1/2")], [0.5, 0.5]), bytes)
    assert client.remaining() == 0


def test_many_at_once_never_spend_more_than_the_cap(tmp_path):
    """Eight threads with a connection each, eight campaigns of epsilon 1, and a cap of 3."""
    asked, path = [open_campaign(name=f"survey {place}") for place in range(8)], tmp_path / "device.db"
    clients = [make_device(path, cap=3) for _ in asked]
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda client, one: client.answer([one], [0.1, 0.2]), clients, asked))
    assert sum(isinstance(one, bytes) for one in told) == 3
    assert {one.why for one in told if isinstance(one, Refusal)} == {"budget"}
    assert clients[0].remaining() == 0
    assert len(clients[0].history()) == 3


def test_any_round_of_a_campaign_counts_as_its_one_answer():
    """Cohorts that do not overlap stop a second question before; the ledger does not rely on that."""
    day, moment = date(2030, 1, 5), datetime(2030, 1, 6, tzinfo=UTC)
    spend = Spend("c", 1, "one_round", Fraction(1), "m", b"", "prepared", day, moment, True)
    book = Book((spend,), day)
    assert book.find("c", 2, "one_round") is spend
    assert book.find("c", 2, "all_rounds") is None
    assert book.find("d", 1, "one_round") is None


def test_a_device_whose_ledger_was_lost_stays_quiet_for_a_year(signed, tmp_path):
    path = tmp_path / "device.db"
    lost = make_device(path, is_first=False)
    told = lost.answer([signed], Unread())
    assert told.why == "budget"
    assert "2031-01-05" in told.reason
    assert lost.remaining() == 0
    lost.close()
    assert make_device(path, is_first=True).answer([signed], Unread()).why == "budget", "the file is there: it is not the first"


def test_every_device_is_asked_in_one_round_and_knows_which():
    """Quarters of 2000 fair places: the chance that one of them has fewer than 391 or more than 609 is below 1e-7."""
    headers = [make_campaign(name=f"{i}").header(KEY.public) for i in range(200)]
    devices = [make_device() for _ in range(10)]
    cohorts = np.array([[client.cohort(header) for header in headers] for client in devices])
    counts = np.bincount(cohorts.ravel() // 2**14, minlength=4)
    assert counts.min() > 390
    assert counts.max() < 610
    assert len(np.unique(cohorts)) > 1900, "not the same for all devices or all campaigns"
    assert [client.cohort(headers[0]) for client in devices] == cohorts[:, 0].tolist()


@pytest.mark.parametrize("protocol", ["grid", "refine"])
def test_no_point_makes_a_device_fail_or_send_another_length_or_use_other_random_words(protocol):
    """One scripted stream for all points: what is drawn, and how much of it, may not depend on the point."""
    made = []
    chain = [open_campaign(protocol=protocol)]
    for point in STRANGE.values():
        with testing.scripted(7):
            client = make_device()
            while (report := client.answer(chain, point)) and not isinstance(report, bytes):
                client = make_device()  # of another cohort
            made.append((len(report), report[:20], client.history()[0].send_at, exact.entropy()._calls))
    assert all(one == made[0] for one in made)


@pytest.mark.parametrize("point", STRANGE.values(), ids=STRANGE)
def test_no_point_makes_a_device_warn(signed, point):
    gc.collect()  # from Python 3.13 on, a database that another test left open warns once it is collected
    with warnings.catch_warnings(record=True) as told, closing(make_device()) as client:
        warnings.simplefilter("always")
        assert isinstance(client.answer([signed], point), bytes)
    assert told == []


@pytest.mark.parametrize("hour", [0, 12, 23])
def test_the_last_second_of_a_round_may_be_drawn_and_none_after_it(signed, hour, monkeypatch):
    now = datetime(2030, 1, 31, hour, 59, 59, 999, tzinfo=UTC)
    client = make_device(clock=lambda: now)
    for place, expected in (
        (lambda n: n - 1, datetime(2030, 1, 31, 23, 59, 59, tzinfo=UTC)),
        (lambda n: 0, now.replace(microsecond=0)),
    ):
        monkeypatch.setattr("kveil.collect.device.secret_below", place)
        assert client._moment(date(2030, 1, 31)) == expected


def test_days_are_counted_in_utc_whatever_zone_the_clock_has(signed):
    """1 February in Auckland is 31 January in UTC, where the round is open still."""
    auckland = timezone(timedelta(hours=13))
    client = make_device(clock=lambda: datetime(2030, 2, 1, 8, tzinfo=auckland))
    assert isinstance(client.answer([signed], [0, 0]), bytes)
    assert client.history()[0].day == date(2030, 1, 31)
    early = make_device(clock=lambda: datetime(2030, 1, 1, 8, tzinfo=auckland))
    assert early.answer([signed], Unread()).why == "not now"


def test_whoever_loads_a_point_cannot_answer_meanwhile(signed):
    """A second answer within the first would end its transaction, and what was stored would count as refused."""
    client, inner = make_device(), []

    def load():
        inner.append(client.answer([signed], [0.1, 0.1]))
        return [0.5, 0.5]

    report = client.answer([signed], load)
    assert isinstance(report, bytes)
    assert [told.why for told in inner] == ["budget"]
    assert [spend.report for spend in client.history()] == [report]


def test_the_file_alone_remembers_what_was_spent_without_its_log(signed, tmp_path):
    """A process that is killed never closes its ledger; who then moves device.db alone must not move an empty one."""
    client = make_device(tmp_path / "device.db")
    report = client.answer([signed], [0.5, 0.5])
    (tmp_path / "moved.db").write_bytes((tmp_path / "device.db").read_bytes())
    moved = make_device(tmp_path / "moved.db")
    assert [spend.report for spend in moved.history()] == [report]
    assert moved.remaining() == 3
    assert moved.answer([signed], Unread()) == report


def test_a_ledger_that_is_closed_or_damaged_is_a_refusal_and_no_error_of_a_database(signed, tmp_path):
    closed = make_device()
    closed.close()
    damaged = make_device(tmp_path / "device.db")
    with sqlite3.connect(tmp_path / "device.db") as db:
        db.execute("DROP TABLE rotation")
    for client in (closed, damaged):
        told = client.answer([signed], Unread())
        assert isinstance(told, Refusal)
        assert told.why == "budget"


def test_a_device_that_was_given_scripted_noise_remembers_it(signed):
    with testing.scripted(1):
        client = make_device()
        client.answer([signed], [0, 0])
    assert [spend.secure for spend in client.history()] == [False]
    fresh = make_device()
    fresh.answer([signed], [0, 0])
    assert [spend.secure for spend in fresh.history()] == [True]


def chances(manifest, report, points):
    """The exact chance of a report's value, given its query and id, for each of these points."""
    read = Report.from_bytes(report)
    query = manifest.queries[read.query]
    a, b = response_weights(manifest.epsilon)
    wanted = preferred(query, points, seeds(manifest.hash, [read.report_id] * len(points)))
    whole = query.kappa * a + (query.M - query.kappa) * b
    return [Fraction(a if read.index in row else b, whole) for row in wanted]


@pytest.mark.parametrize(("protocol", "columns", "epsilon"), [("grid", 2, "1"), ("refine", 4, "2"), ("refine", 5, "1/2")])
def test_a_whole_transcript_never_favours_a_point_by_more_than_epsilon(protocol, columns, epsilon):
    """A campaign of real devices: each has one report, and its chance under any other point is within e**epsilon."""
    collector = make_collector()
    terms = {"protocol": protocol, "center": [0] * columns, "epsilon": epsilon, "n": 24}
    collector.open(make_campaign(min_reports=0, **terms), *OPEN)
    (campaign,) = collector.campaigns()
    rng = np.random.default_rng(0)
    people = [(make_device(n_features=columns), rng.uniform(-0.5, 0.5, columns)) for _ in range(24)]
    others = np.vstack([rng.uniform(-1, 1, (48, columns)) / np.sqrt(columns), np.zeros((1, columns)), np.eye(columns)[:1]])
    transcript = []
    while True:
        chain = collector.manifests(campaign)
        for client, point in people:
            report = client.answer(chain, point)
            if isinstance(report, bytes):
                transcript.append((client, Manifest.from_bytes(chain[-1].body), report, point))
        collector.close(campaign)
        if collector.next_manifest(campaign, *OPEN) is None:
            break
    assert len(transcript) == len({id(client) for client, *_ in transcript}) == 24, "one report each, in one round"
    ratios = set()
    for _, manifest, report, point in transcript:
        own, *rest = chances(manifest, report, np.vstack([point, others]))
        ratios |= {max(own / other, other / own) for other in rest}
    a, b = response_weights(Fraction(epsilon))
    assert ratios <= {Fraction(1), Fraction(a, b)}
    assert Fraction(a, b) in ratios, "some point is told apart, or nothing was measured"
    assert float(np.log(a / b)) <= float(Fraction(epsilon))
    collector.dispose()


def test_in_a_later_round_only_its_own_cohort_answers_and_nobody_twice(monkeypatch):
    """Two bars, each of which holds alone: whose turn it is, and the book, which knows a campaign by any of its rounds."""
    collector = make_collector()
    collector.open(make_campaign(protocol="zoom", min_reports=0), *OPEN)
    (campaign,) = collector.campaigns()
    first = collector.manifests(campaign)
    collector.close(campaign)
    collector.next_manifest(campaign, *OPEN)
    chain = collector.manifests(campaign)
    (low, high), (later, last) = Manifest.from_bytes(chain[-1].body).header.cohorts
    assert (low, high + 1, last) == (0, later, 2**16 - 1)
    for cohort in (low, high, later, last):
        client = make_device()
        monkeypatch.setattr(client, "cohort", lambda header, cohort=cohort: cohort)
        told = [client.answer(signed, [0.5, 0.5]) for signed in (first, chain)]
        assert [isinstance(each, bytes) for each in told] == [cohort <= high, cohort >= later]
        assert {each.why for each in told if isinstance(each, Refusal)} == {"not asked"}
        assert [spend.epsilon for spend in client.history()] == [1]
    client = make_device()
    for signed, cohort in ((first, low), (chain, last)):
        monkeypatch.setattr(client, "cohort", lambda header, cohort=cohort: cohort)
        told = client.answer(signed, [0.5, 0.5])
    assert told.why == "answered"
    assert client.remaining() == 3
    collector.dispose()


def test_in_all_rounds_mode_every_round_is_answered_once_and_costs_its_own_part():
    collector = make_collector()
    terms = {"protocol": "refine", "center": [0] * 4, "epsilon": 3, "mode": "all_rounds", "min_reports": 0}
    collector.open(make_campaign(**terms), *OPEN)
    (campaign,) = collector.campaigns()
    client, poor = make_device(n_features=4), make_device(n_features=4, cap=2)
    for place in range(3):
        chain = collector.manifests(campaign)
        assert Manifest.from_bytes(chain[-1].body).epsilon == 1
        report = client.answer(chain, [0.2] * 4)
        assert isinstance(report, bytes)
        assert client.answer(chain, Unread()) == report
        twice = forged(chain[-1], lambda data: data.update(min_reports=5))
        assert client.answer([*chain[:-1], twice], Unread()).why == "answered"
        assert client.remaining() == 3 - place
        assert poor.answer(chain, Unread()).why == "budget", "the whole must be payable, not one round"
        collector.close(campaign)
        assert (collector.next_manifest(campaign, *OPEN) is None) == (place == 2)
    assert [spend.epsilon for spend in client.history()] == [1, 1, 1]
    assert len({spend.report[4:20] for spend in client.history()}) == 3, "a new id each round"
    assert collector.result(campaign).epsilon <= 3
    collector.dispose()


def test_all_rounds_together_never_favour_a_point_by_more_than_the_declared_total():
    """Chances multiply over rounds: for every pair of points the ratio of a whole transcript stays within e**epsilon."""
    collector = make_collector()
    terms = {"protocol": "refine", "center": [0] * 4, "epsilon": 3, "mode": "all_rounds", "min_reports": 0}
    collector.open(make_campaign(**terms), *OPEN)
    (campaign,) = collector.campaigns()
    rng = np.random.default_rng(1)
    points = np.vstack([rng.uniform(-0.5, 0.5, (49, 4)), np.zeros((1, 4))])
    people = [make_device(n_features=4) for _ in range(6)]
    whole = [[Fraction(1)] * len(points) for _ in people]
    for _ in range(3):
        chain = collector.manifests(campaign)
        manifest = Manifest.from_bytes(chain[-1].body)
        for place, client in enumerate(people):
            told = chances(manifest, client.answer(chain, points[place]), points)
            whole[place] = [before * now for before, now in zip(whole[place], told, strict=True)]
        collector.close(campaign)
        collector.next_manifest(campaign, *OPEN)
    a, b = response_weights(Fraction(1))
    worst = max(max(law) / min(law) for law in whole)
    assert Fraction(a, b) < worst <= Fraction(a, b) ** 3 <= Fraction(response_weights(Fraction(3))[0] + 1, b)
    collector.dispose()


def test_rows_of_the_ledger_are_neither_changed_nor_deleted(signed, tmp_path):
    path = tmp_path / "device.db"
    client = make_device(path)
    client.answer([signed], [0.5, 0.5])
    settings = [client._ledger.file._db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "journal_mode")]
    assert settings == [3, "delete"], "EXTRA: a commit is on the disk, in the file itself, before a report leaves"
    db = sqlite3.connect(path, isolation_level=None)
    attacks = [
        "DELETE FROM spend", "UPDATE spend SET eps_num=0", "UPDATE spend SET report_blob=x'00'",
        "UPDATE spend SET day='2000-01-01'", "INSERT OR REPLACE INTO spend SELECT * FROM spend",
        "UPDATE device SET quiet_until='2000-01-01'", "DELETE FROM device",
        "INSERT INTO spend SELECT 9, device, campaign, 2, mode, 1, 1, 'x', x'', day, send_at, 1, covers, state, seal FROM spend",
        "UPDATE spend SET state='prepared'", "UPDATE device SET secret=x'00'",
    ]  # fmt: skip
    for attack in attacks:
        with pytest.raises(sqlite3.IntegrityError):
            db.execute(attack)
    assert os.stat(path).st_mode & 0o077 == 0, "for the owner's eyes"


def test_people_who_share_a_file_share_nothing_else(signed, tmp_path):
    file = LedgerFile(tmp_path / "household.db")
    people = [make_device(file, device_name=name) for name in ("ada", "ben", "cem")]
    reports = [client.answer([signed], [0.5, 0.5]) for client in people[:2]]
    assert len({report[4:20] for report in reports}) == 2
    assert [client.remaining() for client in people] == [3, 3, 4]
    assert [len(client.history()) for client in people] == [1, 1, 0]
    header = Manifest.from_bytes(signed.body).header
    assert len({client.cohort(header) for client in people}) > 1
    assert make_device(file, device_name="ada").answer([signed], Unread()) == reports[0]
    people[0].acknowledged(signed.hash)
    assert [client.history()[0].state for client in people[:2]] == ["acked", "prepared"]
    assert make_device(file, device_name="dan", is_first=False).answer([signed], Unread()).why == "budget"


def test_keys_change_only_if_the_old_and_the_new_one_say_so(signed, tmp_path):
    new, newer, thief = (SigningKey(bytes([i] * 32)) for i in (7, 8, 9))
    path = tmp_path / "device.db"
    client = make_device(path)
    true = Rotation.make(KEY, new, 1, date(2030, 1, 1))
    for false in (
        Rotation.make(thief, new, 1, date(2030, 1, 1)), Rotation(true.body, true.by_old, true.by_old),
        Rotation(true.body.replace(b"2030", b"2031"), true.by_old, true.by_new), Rotation(b"{}", KEY.sign(b"{}"), b""),
        Rotation.make(KEY, new, 0, date(2030, 1, 1)),
    ):  # fmt: skip
        with pytest.raises(ManifestError):
            client.rotate(false)
    assert client.key == KEY.public
    client.rotate(true)
    client.close()
    client = make_device(path)
    assert client.key == new.public
    with pytest.raises(ManifestError):
        client.rotate(true)
    with pytest.raises(InvalidValue, match="older"):
        client.rotate(Rotation.make(new, newer, 1, date(2030, 1, 1)))
    client.rotate(Rotation.make(new, newer, 2, date(2030, 1, 2)))
    assert isinstance(client.answer([signed], Unread()), Refusal), "the old key asks in vain"
    asked = forged(signed, lambda data: data["header"].update(key=newer.public), key=newer)
    assert isinstance(client.answer([asked], [0, 0]), bytes)


def test_two_collectors_that_share_a_cap_change_their_keys_without_each_other(tmp_path):
    """One ledger, so that both draw on one cap; the serials of one collector say nothing about those of the other."""
    keys = [SigningKey(bytes([i] * 32)) for i in range(5)]
    path, day = tmp_path / "device.db", date(2030, 1, 1)
    ours, theirs = make_device(path, key=keys[0].public), make_device(path, key=keys[1].public)
    theirs.rotate(Rotation.make(keys[1], keys[2], 2**53 - 1, day))
    for serial, (old, new) in enumerate([(0, 3), (3, 4), (4, 0)], 1):
        ours.rotate(Rotation.make(keys[old], keys[new], serial, day))
        assert (ours.key, theirs.key) == (keys[new].public, keys[2].public)
    with pytest.raises(InvalidValue, match="older"):
        ours.rotate(Rotation.make(keys[0], keys[3], 1, day))  # the key is back, and what it once signed is played again
    assert ours.key == keys[0].public


@pytest.mark.parametrize(
    "wrong",
    [{"key": "abc"}, {"key": None}, {"witnesses": ["x"]}, {"witnesses": [KEY.public]},
     {"n_features": 0}, {"n_features": 1.5}, {"cap": 0}, {"cap": np.inf}],
    ids=repr,
)  # fmt: skip
def test_a_client_that_cannot_work_is_not_made(wrong):
    with pytest.raises(InvalidValue):
        make_device(**wrong)


@pytest.mark.parametrize("cap", ["4", "1/2", None, True, [4], 4j], ids=repr)
def test_a_cap_that_is_no_number_is_refused_in_words(cap):
    with pytest.raises(InvalidType, match=r"cap must be a number.*365 days"):
        make_device(cap=cap)


@pytest.mark.parametrize("wrong", [{"witnesses": None}, {"witnesses": KEY.public}, {"device_name": None}, {"device_name": 5}])
def test_what_is_of_another_type_is_refused_in_words(wrong):
    with pytest.raises(InvalidType, match=next(iter(wrong))):
        make_device(**wrong)


@pytest.mark.parametrize("four", [4, 4.0, Fraction(4), np.float32(4), np.int64(4)])
def test_a_cap_is_taken_exactly_whatever_kind_of_number_it_is(four):
    assert make_device(cap=four, n_features=np.int64(2)).remaining() == 4
    assert make_device(cap=0.1).remaining() == Fraction(0.1)


def test_manifests_that_are_in_no_list_are_refused_in_words(signed):
    for alone in (signed, None, signed.to_bytes()):
        told = make_device().answer(alone, Unread())
        assert told.why == "manifest"
        assert "manifests of all rounds" in str(told)


def test_a_file_that_is_no_ledger_is_refused(tmp_path):
    (tmp_path / "text").write_text("hello, this is not a database, and it is longer than a header")
    for path in (tmp_path / "text", tmp_path / "no" / "folder.db", tmp_path):
        with pytest.raises(InvalidValue, match="ledger"):
            make_device(path)
    assert (tmp_path / "text").read_text().startswith("hello")


def test_a_ledger_that_cannot_be_written_refuses_before_the_point_is_read(signed, tmp_path):
    path = tmp_path / "device.db"
    client = make_device(path)
    client._ledger.file._db.execute("PRAGMA busy_timeout=10")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    told = client.answer([signed], Unread())
    assert told.why == "budget"
    other.execute("ROLLBACK")
    assert isinstance(client.answer([signed], [0, 0]), bytes)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_copy_does_not_answer(signed, tmp_path):
    client = make_device(tmp_path / "device.db")
    child = os.fork()
    if child == 0:
        told = client.answer([signed], Unread())
        os._exit(0 if isinstance(told, Refusal) and told.why == "budget" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_what_a_client_is_made_of_is_not_in_its_repr():
    assert "secret" not in repr(KEY)
    assert KEY._secret.hex() not in repr(KEY)
    assert LocalClient.__repr__ is object.__repr__
