"""A stream's state in a file: whole or absent, its owner's alone, and nothing in it is executed."""

import hashlib
import io
import os
import stat
import sys

import numpy as np
import pytest

from kveil.errors import SourceError
from kveil.stream import checkpoint

ARRAYS = {"counts": np.arange(5), "sums": np.ones((5, 2))}


def test_what_was_written_comes_back(tmp_path):
    checkpoint.write(tmp_path / "state", {"a": [1, None, "x"]}, ARRAYS)
    document, arrays = checkpoint.read(tmp_path / "state")
    assert document == {"schema": "kveil.stream/1", "a": [1, None, "x"]}
    assert {name: array.tolist() for name, array in arrays.items()} == {n: a.tolist() for n, a in ARRAYS.items()}
    assert os.listdir(tmp_path) == ["state"]


@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX")
def test_only_its_owner_may_read_it_also_when_it_replaces_an_open_one(tmp_path):
    place = tmp_path / "state"
    place.write_text("old")
    place.chmod(0o644)
    before = os.umask(0)
    try:
        checkpoint.write(place, {}, ARRAYS)
    finally:
        os.umask(before)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    place = tmp_path / "state"
    checkpoint.write(place, {"n": 1}, ARRAYS)

    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(SourceError, match="unchanged"):
        checkpoint.write(place, {"n": 2}, ARRAYS)
    assert checkpoint.read(place)[0]["n"] == 1
    assert os.listdir(tmp_path) == ["state"]


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b"", lambda b: b[:40] + b"?" + b[41:], lambda b: b + b"0"])
def test_damage_is_found(tmp_path, damage):
    place = tmp_path / "state"
    checkpoint.write(place, {}, ARRAYS)
    place.write_bytes(damage(place.read_bytes()))
    with pytest.raises(SourceError, match="damaged"):
        checkpoint.read(place)


def signed(body):
    return body + hashlib.sha256(body).digest()


def test_pickles_and_other_schemas_are_refused(tmp_path):
    place, body = tmp_path / "state", io.BytesIO()
    np.savez(body, document=np.array([{"run": "this"}], dtype=object))
    place.write_bytes(signed(body.getvalue()))
    with pytest.raises(SourceError):
        checkpoint.read(place)
    body = io.BytesIO()
    np.savez(body, document=np.frombuffer(b'{"schema": "kveil.stream/2"}', dtype=np.uint8))
    place.write_bytes(signed(body.getvalue()))
    with pytest.raises(SourceError, match="another version"):
        checkpoint.read(place)
    with pytest.raises(SourceError, match="no state"):
        checkpoint.read(tmp_path / "missing")


def test_a_save_removes_what_killed_saves_of_the_same_state_left_and_nothing_else(tmp_path):
    stale = [".state.0123456789ab.new", ".state.ffffffffffff.new"]
    others = [".other.0123456789ab.new", ".state.new", ".state.0123456789ab.new.old", "xstate.0123456789ab.new", ".state.xyz.new"]
    for name in (*stale, *others):
        (tmp_path / name).write_text("secret")
    checkpoint.write(tmp_path / "state", {}, ARRAYS)
    assert sorted(os.listdir(tmp_path)) == sorted(["state", *others])


def test_names_with_special_characters_are_taken_literally(tmp_path):
    for name in (".a+[b].0123456789ab.new", ".aab.0123456789ab.new"):
        (tmp_path / name).write_text("secret")
    checkpoint.write(tmp_path / "a+[b]", {}, ARRAYS)
    assert sorted(os.listdir(tmp_path)) == [".aab.0123456789ab.new", "a+[b]"]
