"""A ledger that was damaged: a device says so and sends nothing, or what is damaged does not matter.

`python tests/collect/test_damaged_ledger.py 1000` flips so many bits, and says what came of it.
"""

import re
import shutil
import sqlite3
import sys
import tempfile
from collections import Counter
from contextlib import closing
from datetime import date
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from campaigns import OPEN, Unread, make_campaign, make_collector, make_device
from ledger_v1 import booked, write_ledger
from test_cap import a_spend

from kveil.collect.client import Refusal
from kveil.collect.keys import Rotation
from kveil.collect.ledger_file import TRIGGERS, LedgerFile
from kveil.errors import BudgetError, InvalidValue
from kveil.signing import SigningKey

CAP = 4


def open_campaigns(*names):
    collector = make_collector()
    made = [[collector.open(make_campaign(name=name), *OPEN)] for name in names]
    collector.dispose()
    return made


class Damage:
    """The ledger of a device that has spent 2 of its cap of 4, what it sent, and what it is asked next."""

    def __init__(self, folder):
        self.path, self.place = Path(folder) / "device.db", Path(folder) / "damaged.db"
        self.asked = open_campaigns("first", "second", "third", "fourth", "fifth")
        mine, other = SigningKey(bytes([7] * 32)), SigningKey(bytes([8] * 32))
        with make_device(self.path, cap=CAP) as client:
            self.sent = [client.answer(chain, [0.5, 0.5]) for chain in self.asked[:2]]
            client.acknowledged(self.asked[0][0].hash)
            make_device(self.path, device_name="ben").answer(self.asked[0], [0, 0])
            with make_device(self.path, key=mine.public) as same:
                same.rotate(Rotation.make(mine, other, 1, date(2030, 1, 1)))
        self.content = self.path.read_bytes()

    def flipped(self, bit):
        """What came of one flipped bit: "unusable", "refused", or "unharmed"; fails where a device does what it may not."""
        content = bytearray(self.content)
        content[bit // 8] ^= 1 << bit % 8
        self.place.write_bytes(content)
        first, opened = self.used()
        again, _ = self.used()
        for before, now in zip(first, again, strict=True):
            assert before is None or now is None or before == now, "what was sent is sent again as it was"
        new = sum(report is not None for report in map(either, first[2:], again[2:]))
        assert 2 + new <= CAP, "epsilon 1 each"
        return "unusable" if not opened else "unharmed" if all(first[:4]) else "refused"

    def used(self):
        """What a device with this file sends for each campaign, None if it refuses; and whether it could be opened."""
        try:
            file = LedgerFile(self.place)
            file._db.execute("PRAGMA synchronous=OFF")  # nobody pulls a plug here
            client = make_device(file, cap=CAP)
        except (InvalidValue, BudgetError):
            return [None] * 5, False
        with client:
            steps = [client.pending, client.history, client.remaining, lambda: client.key]
            steps += [lambda: client.sent(self.asked[1][0].hash), lambda: client.acknowledged(self.asked[1][0].hash)]
            for step in steps:
                refusal(step)
            told = [client.answer(chain, Unread()) for chain in self.asked[:2]]
            told += [client.answer(chain, [0.5, 0.5]) for chain in self.asked[2:]]
        for report, before in zip(told, self.sent, strict=False):
            assert isinstance(report, Refusal) or report == before, "the bytes that were sent, or nothing"
        assert all(report.why == "budget" for report in told if isinstance(report, Refusal))
        return [None if isinstance(report, Refusal) else report for report in told], True


def either(one, other):
    return one if one is not None else other


def refusal(step):
    """Whether it says no, in the one way that it may."""
    try:
        step()
    except BudgetError:
        return True
    return False


@pytest.fixture(scope="module")
def damage(tmp_path_factory):
    return Damage(tmp_path_factory.mktemp("ledger"))


def bits(content, n, seed):
    """Bits to flip: half of them anywhere, half of them in bytes that hold something."""
    rng, used = Random(seed), [place for place, byte in enumerate(content) if byte]
    anywhere = [rng.randrange(len(content) * 8) for _ in range(n - n // 2)]
    return anywhere + [rng.choice(used) * 8 + rng.randrange(8) for _ in range(n // 2)]


def test_no_flipped_bit_makes_a_device_pass_its_cap_send_other_bytes_or_fail(damage):
    outcomes = Counter(damage.flipped(bit) for bit in bits(damage.content, 60, seed=1))
    assert outcomes["unharmed"] >= 5, "most of a file is empty"
    assert outcomes["unusable"] + outcomes["refused"] >= 5


TAMPERED = [
    "UPDATE spend SET eps_num=0", "UPDATE spend SET eps_den=2", "UPDATE spend SET day='2000-01-01'",
    "UPDATE spend SET campaign='x' WHERE id=1", "UPDATE spend SET send_at='2000-01-01T00:00:00+00:00'",
    "UPDATE spend SET report_blob=zeroblob(22)", "UPDATE spend SET round=2", "UPDATE spend SET manifest_hash='x'",
    "UPDATE spend SET mode='all_rounds'", "UPDATE spend SET state='acked'", "UPDATE spend SET secure=0",
    "UPDATE spend SET covers='campaign'", "UPDATE spend SET seal=zeroblob(32)", "UPDATE spend SET report_blob='text'",
    "UPDATE spend SET day=7", "UPDATE spend SET eps_num=1.5", "UPDATE spend SET device='x' WHERE id=1", "DELETE FROM spend",
    "DELETE FROM spend WHERE id=1", "DELETE FROM spend WHERE id=2", "UPDATE spend SET id=9 WHERE id=1",
    "UPDATE device SET quiet_until='2000-01-01'", "UPDATE device SET secret=zeroblob(32)", "UPDATE device SET secret='text'",
    "UPDATE device SET version=3", "UPDATE device SET seal=''", "DELETE FROM device",
    "UPDATE device SET name='x' WHERE name=''", "DELETE FROM rotation", "UPDATE rotation SET new='x'",
    "UPDATE rotation SET serial=2", "INSERT INTO rotation VALUES ('',2,'a','b')",
]  # fmt: skip


@pytest.mark.parametrize("change", TAMPERED)
def test_whatever_is_written_beside_the_client_is_noticed_before_it_is_relied_on(damage, tmp_path, change):
    """For SQLite such a file is in order, so that only the hashes can tell; and no device is taken for a new one."""
    path = tmp_path / "device.db"
    path.write_bytes(damage.content)
    with make_device(path, cap=CAP) as client:
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA ignore_check_constraints=ON")
            for trigger in ("keep", "fixed", "once", "once_device", "fixed_device", "keep_device"):
                db.execute(f"DROP TRIGGER {trigger}")
            db.execute(change)
            for trigger in TRIGGERS.split(";;"):
                db.execute(trigger)
        for chain in damage.asked:
            told = client.answer(chain, Unread())
            assert isinstance(told, Refusal)
            assert told.why == "budget"
            assert "damaged" in told.reason
        hashes = [chain[0].hash for chain in damage.asked]
        steps = [client.pending, client.history, client.remaining, lambda: client.key, lambda: client.sent(hashes[1])]
        assert all(map(refusal, steps))
    with pytest.raises((InvalidValue, BudgetError), match="damaged"):
        make_device(path)


def test_rows_of_another_person_are_no_concern_of_ours(damage, tmp_path):
    path = tmp_path / "device.db"
    path.write_bytes(damage.content)
    with make_device(path, device_name="ben") as ben, make_device(path, cap=CAP) as client:
        with sqlite3.connect(path) as db:
            db.execute("UPDATE spend SET state='acked', seal=x'00' WHERE device='ben'")
        assert ben.answer(damage.asked[0], Unread()).why == "budget"
        assert client.answer(damage.asked[0], Unread()) == damage.sent[0]


def test_a_row_is_sealed_anew_when_its_state_changes(damage, tmp_path):
    path = tmp_path / "device.db"
    path.write_bytes(damage.content)
    with make_device(path, cap=CAP) as client:
        for move in (client.sent, client.acknowledged, client.sent):
            move(damage.asked[1][0].hash)
            assert len(client.history()) == 2
        assert client.pending() == []
        assert isinstance(client.answer(damage.asked[2], [0, 0]), bytes), "and the chain goes on"
    assert [spend.state for spend in make_device(path).history()] == ["acked", "acked", "prepared"]


def test_a_device_whose_name_was_damaged_is_not_taken_for_a_new_one(damage, tmp_path):
    """In the table or in its index: a new one would have a whole cap."""
    path, places = tmp_path / "device.db", [place.start() for place in re.finditer(b"ben", damage.content)]
    assert len(places) >= 4
    for place in places:
        path.write_bytes(damage.content[:place] + b"bem" + damage.content[place + 3 :])
        with pytest.raises((InvalidValue, BudgetError), match="damaged"):
            make_device(path, device_name="ben")


def test_damaged_text_that_a_database_quotes_in_its_error_is_a_refusal_too(damage):
    for place in re.finditer(b"CREATE (TABLE|TRIGGER)", damage.content):
        assert damage.flipped(place.start() * 8 + 7) == "unusable"
    damage.place.write_bytes(damage.content)
    with make_device(damage.place) as client, closing(sqlite3.connect(damage.place, isolation_level=None)) as db:
        db.execute("PRAGMA writable_schema=ON")
        db.execute("UPDATE sqlite_master SET name=CAST(x'cf41' AS TEXT), sql='nothing' WHERE name='keep'")
        db.execute("PRAGMA schema_version=99")  # whoever has the file open reads its tables anew
        assert client.answer(damage.asked[0], Unread()).why == "budget"


def test_an_empty_list_of_tables_in_a_file_that_has_pages_is_damage_and_no_new_ledger(damage, tmp_path):
    path = tmp_path / "device.db"
    path.write_bytes(damage.content)
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA writable_schema=ON")
        db.execute("DELETE FROM sqlite_master")
    with pytest.raises(InvalidValue, match="damaged"):
        make_device(path)


def old_ledger(path, campaign="c"):
    rows = booked(
        [a_spend(campaign, 1, 1, 0), a_spend(campaign, 2, 2, 3), a_spend("d", 1, 1, 4)], {campaign: 3, "d": Fraction(1)}
    )
    rows = [rows[0]._replace(state="acked", report=b"a" * 22), rows[1]._replace(state="sent"), rows[2]]
    keys = [SigningKey(bytes([i] * 32)).public for i in (1, 2)]
    return rows, write_ledger(path, rows, changes=[(3, *keys)]), keys


def test_a_ledger_of_version_1_is_taken_over_once_with_all_that_it_holds(tmp_path):
    """The process that wrote it was killed: its last commits are in the log alone."""
    path, moved = tmp_path / "old.db", tmp_path / "device.db"
    rows, db, keys = old_ledger(path)
    for end in ("", "-wal"):
        shutil.copy(f"{path}{end}", f"{moved}{end}")
    db.close()
    for _ in range(2):
        with make_device(moved, key=keys[0]) as client:
            assert client.history() == rows
            assert client.key == keys[1]
            assert client._ledger.secret == bytes(range(32))
        assert not Path(f"{moved}-wal").exists()
    with closing(sqlite3.connect(moved)) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    empty = tmp_path / "empty.db"
    with write_ledger(empty, []) as db:
        db.executescript("DROP TRIGGER keep_device; DELETE FROM device")  # made, and no device in it yet
    db.close()
    assert make_device(empty).remaining() == 4


WRONG = ["day='soon'", "day=x'00'", "send_at='2030-01-01'", "mode='twice' WHERE campaign='d'", "eps_den=0", "eps_num=77"]
WRONG_ROWS = [f"UPDATE spend SET {change}" for change in (*WRONG, "report_blob=5", "state='x'")]
WRONG_DEVICES = [
    "UPDATE device SET version=7", "UPDATE device SET quiet_until='x'", "UPDATE device SET secret=5", "DELETE FROM device"
]  # fmt: skip


@pytest.mark.parametrize("wrong", [*WRONG_ROWS, *WRONG_DEVICES])
def test_a_damaged_ledger_of_version_1_is_refused_and_left_as_it_is(tmp_path, wrong):
    path = tmp_path / "device.db"
    _, db, _ = old_ledger(path)
    db.execute("PRAGMA ignore_check_constraints=ON")
    for trigger in ("keep_device", "fixed", "fixed_device"):
        db.execute(f"DROP TRIGGER {trigger}")
    db.execute(wrong)
    db.close()
    before = path.read_bytes()
    with pytest.raises(InvalidValue, match="damaged"):
        make_device(path)
    assert path.read_bytes() == before


def test_a_takeover_that_breaks_off_leaves_version_1(tmp_path, monkeypatch):
    path = tmp_path / "device.db"
    rows, db, _ = old_ledger(path)
    db.close()

    def broken(db, old):
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("kveil.collect.ledger_file.put_back", broken)
        with pytest.raises(InvalidValue):
            make_device(path)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT version FROM device").fetchone() == (1,)
    assert make_device(path).history() == rows


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        made = Damage(folder)
        print(len(made.content), "bytes:", Counter(made.flipped(bit) for bit in bits(made.content, int(sys.argv[1]), seed=2)))
