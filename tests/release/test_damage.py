"""Every way to damage a saved release ends in a ReleaseError, and none of them runs anything."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kveil.canonical import RELEASE
from kveil.errors import ReleaseError
from kveil.release import load

FILES = ("release.json", "card.md", "centers.parquet", "centers.csv")


@pytest.fixture
def folder(make, tmp_path) -> Path:
    return make().save(tmp_path / "out")


def refused(folder: Path) -> str:
    """The message of the refusal, which carries no other error along."""
    with pytest.raises(ReleaseError) as caught:
        load(folder)
    assert caught.value.__context__ is None
    assert "\n" not in str(caught.value)
    return str(caught.value)


def edit(folder: Path, change, *, mend: bool = True) -> None:
    """Change release.json and, if asked to, its digest, as somebody who knows the format would."""
    path = folder / "release.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    if mend:
        document.pop("digest", None)
        document["digest"] = hashlib.sha256(RELEASE.write(document)).hexdigest()
    path.write_text(json.dumps(document), encoding="utf-8")


def put_table(folder: Path, data: bytes) -> None:
    (folder / "centers.parquet").write_bytes(data)
    edit(folder, lambda d: d["centers"].update(sha256=hashlib.sha256(data).hexdigest()))


def parquet(columns: dict) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_anywhere_is_found(make, tmp_path, name):
    folder = make().save(tmp_path / "out", format="csv" if name.endswith("csv") else "parquet")
    path = folder / name
    whole = path.read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 150)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        refused(folder)
    path.write_bytes(whole)
    load(folder)


@pytest.mark.parametrize("name", FILES)
def test_a_file_cut_short_is_found(make, tmp_path, name):
    folder = make().save(tmp_path / "out", format="csv" if name.endswith("csv") else "parquet")
    whole = (folder / name).read_bytes()
    for length in (0, 1, len(whole) // 3, len(whole) // 2, len(whole) - 2):
        (folder / name).write_bytes(whole[:length])
        refused(folder)


@pytest.mark.parametrize("name", FILES[:3])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    assert name in refused(folder)


@pytest.mark.parametrize("name", FILES[:3])
def test_a_file_of_another_release_is_found(make, tmp_path, folder, name):
    other = make(centers=[[0.0, 1.0, 2.0], [3.0, 3.0, 3.0]]).save(tmp_path / "other")
    shutil.copy(other / name, folder / name)
    refused(folder)


def test_no_folder_and_no_release_say_so(tmp_path):
    assert "no release at" in refused(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    assert "no release at" in refused(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    assert "release.json is missing" in refused(tmp_path / "empty")


def test_an_edited_number_does_not_match_the_digest(folder):
    edit(folder, lambda d: d["parameters"].update(epsilon=0.25), mend=False)
    assert "digest" in refused(folder)


def test_a_better_epsilon_with_a_mended_digest_does_not_follow_from_its_charges(folder):
    edit(folder, lambda d: d["guarantee"].update(epsilon=0.25))
    assert "does not follow from its charges" in refused(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda g: g.update(delta=0.5),
        lambda g: g.update(valid=1),
        lambda g: g.update(valid="yes"),
        lambda g: g.update(epsilon="0.5"),
        lambda g: g.update(route="none"),
        lambda g: g.update(trust="nobody"),
        lambda g: g.update(relation=["add-remove"]),
        lambda g: g.update(unit={"kind": "person"}),
        lambda g: g.update(charges=[]),
        lambda g: g.update(charges={}),
        lambda g: g.update(reasons=[3]),
        lambda g: g.update(extra=1),
        lambda g: g.pop("assumptions"),
        lambda g: g["charges"][0].update(times=5.0),
        lambda g: g["charges"][0].update(times=10**9),
        lambda g: g["charges"][0].update(epsilon="1e999999999"),
        lambda g: g["charges"][0].update(epsilon="1/0"),
        lambda g: g["charges"][0].update(epsilon="0.1"),
        lambda g: g["charges"][0].update(mechanism="magic"),
        lambda g: g["charges"][0].update(one_coordinate=1),
        lambda g: g["charges"][0].pop("label"),
        lambda g: g["charges"].append(3),
    ],
)
def test_a_guarantee_that_kveil_would_not_write_is_refused(folder, change):
    edit(folder, lambda d: change(d["guarantee"]))
    assert "guarantee" in refused(folder)


def test_scripted_noise_cannot_pass_for_a_valid_guarantee(folder):
    edit(folder, lambda d: d["receipt"].update(secure=False))
    assert "scripted" in refused(folder)


@pytest.mark.parametrize("schema", ["kveil.release/2", "kveil.release/1.5", "kveil.release/0"])
def test_another_schema_asks_for_an_upgrade(folder, schema):
    edit(folder, lambda d: d.update(schema=schema))
    assert schema in refused(folder)
    assert "--upgrade" in refused(folder)


@pytest.mark.parametrize("schema", [None, 1, "other/1", "kveil.release/1\n", "kveil.release/\x1b[31m"])
def test_what_claims_no_schema_of_ours_is_no_release(folder, schema):
    edit(folder, lambda d: d.update(schema=schema))
    assert "does not say that it is a kveil release" in refused(folder)


def test_extra_keys_are_left_alone_so_that_the_same_major_may_grow(folder):
    before = load(folder).card()
    edit(folder, lambda d: (d.update(signature="later"), d["receipt"].update(more=1), d["centers"].update(unit="m")))
    assert load(folder).card() == before


@pytest.mark.parametrize("key", ["purpose", "data_name"])
def test_statements_came_later_and_are_text(folder, key):
    edit(folder, lambda d: d.update({key: 7}))
    refused(folder)
    edit(folder, lambda d: d.pop(key))
    assert getattr(load(folder), key) == ""


KEYS = ("kveil", "created", "kind", "method", "parameters", "features", "centers", "card", "guarantee", "receipt", "notes")


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("value", ["gone", 3, True, [[1]]])
def test_missing_keys_and_wrong_types_are_refused(folder, key, value):
    edit(folder, lambda d: d.pop(key) if value == "gone" else d.update({key: value}))
    refused(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.update(shape=[2, 4]),
        lambda c: c.update(shape=[3, 3]),
        lambda c: c.update(shape=[2]),
        lambda c: c.update(shape=[2, 3, 1]),
        lambda c: c.update(shape=[2.0, 3]),
        lambda c: c.update(shape=[True, 3]),
        lambda c: c.update(shape=[-2, -3]),
        lambda c: c.update(shape=[0, 3]),
        lambda c: c.update(shape="2x3"),
        lambda c: c.update(shape=[10**12, 3]),
        lambda c: c.update(columns=["feature 0", "feature 1", "feature 2"]),
        lambda c: c.update(columns=["feature 1", "feature 0", "feature 2", "weight"]),
        lambda c: c.update(columns=["feature 0", "feature 1", "feature 2", "share"]),
        lambda c: c.update(columns=None),
        lambda c: c.pop("columns"),
        lambda c: c.update(sha256=None),
        lambda c: c.pop("sha256"),
        lambda c: c.update(file="centers.csv"),
        lambda c: c.update(file=["centers.parquet"]),
        lambda c: c.pop("file"),
    ],
)
def test_a_description_that_does_not_fit_the_table_is_refused(folder, change):
    edit(folder, lambda d: change(d["centers"]))
    refused(folder)


@pytest.mark.parametrize("entry", ["centers", "card"])
@pytest.mark.parametrize("name", ["../secret.parquet", "/etc/passwd", "release.json", "centers.parquet/../x", "card.MD", ""])
def test_a_file_outside_the_folder_is_never_opened(folder, entry, name):
    edit(folder, lambda d: d[entry].update(file=name))
    assert "no part of a release" in refused(folder)


@pytest.mark.parametrize("name", FILES[:3])
def test_links_and_pipes_are_not_followed(folder, tmp_path, name):
    (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    assert name in refused(folder)
    (folder / name).unlink()
    os.mkfifo(folder / name)  # opening one to read would wait for ever
    assert name in refused(folder)
    (folder / name).unlink()
    (folder / name).mkdir()
    assert name in refused(folder)


def test_files_of_absurd_size_are_refused_unread(folder):
    os.truncate(folder / "centers.parquet", 2**40)  # sparse: takes no room
    assert "256 MB" in refused(folder)
    os.truncate(folder / "release.json", 17 * 2**20)
    assert "16 MB" in refused(folder)


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


@pytest.mark.parametrize("name", ["centers.parquet", "release.json", "card.md"])
def test_pickled_bytes_are_never_executed(folder, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    bomb = pickle.dumps(Bomb())
    if name == "centers.parquet":
        put_table(folder, bomb)
    else:
        (folder / name).write_bytes(bomb)
    refused(folder)
    assert not (tmp_path / "exploded").exists()


GOOD = {"feature 0": [1.0, 2.0], "feature 1": [1.0, 2.0], "feature 2": [1.0, 2.0], "weight": [0.5, 0.5]}


@pytest.mark.parametrize(
    "change",
    [
        {"feature 0": [1.0, np.nan]},
        {"weight": [np.inf, 0.5]},
        {"feature 0": [1, 2]},
        {"feature 0": pa.array([1.0, 2.0], pa.float32())},
        {"feature 0": ["1", "2"]},
        {"feature 0": [1.0, None]},
        {"feature 0": [b"1", b"2"]},
        {"more": [1.0, 2.0]},
        {name: [1.0] for name in GOOD},
        {name: [1.0, 2.0, 3.0] for name in GOOD},
        {name: [] for name in GOOD},
    ],
)
def test_a_table_of_other_types_or_sizes_is_refused(folder, change):
    put_table(folder, parquet(GOOD))
    assert load(folder).centers.tolist() == [[1.0] * 3, [2.0] * 3]
    put_table(folder, parquet({**GOOD, **change}))
    refused(folder)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "weight\n1\n",
        '"a"\n1.0,2.0\n',
        '"a"\nnan\n',
        '"a"\n1e999\n',
        '"a"\nsecret\n',
        '"a"\n1.0\n2.0\n',
        '"a\n',
        '"a"\n',
        "\xff",
    ],
)
def test_a_csv_that_is_not_the_table_is_refused_without_quoting_it(make, tmp_path, text):
    folder = make(centers=[[1.0]], features=("a",), weights=None).save(tmp_path / "out", format="csv")
    (folder / "centers.csv").write_bytes(text.encode("latin-1"))
    edit(folder, lambda d: d["centers"].update(sha256=hashlib.sha256(text.encode("latin-1")).hexdigest()))
    assert "secret" not in refused(folder)


def test_an_index_must_be_a_whole_number_of_at_least_zero(make, tmp_path):
    folder = make(centers=[3, 4], weights=None).save(tmp_path / "out")
    for values in ([0.5, 1.5], [-1, 2]):
        put_table(folder, parquet({"index": values}))
        refused(folder)


@pytest.mark.parametrize(
    "text",
    [
        "null", "[]", "3", '"kveil.release/1"', "{}", "[" * 100_000, '{"schema": "kveil.release/1", "schema": "kveil.release/1"}',
        '{"schema": "kveil.release/1", "x": NaN}', '{"schema": "kveil.release/1", "x": "\\ud800"}', "9" * 5000,
        '{"schema": "kveil.release/1", "digest": null}', "\ufeff{}",
    ],
)  # fmt: skip
def test_json_that_is_no_release_is_refused(folder, text):
    (folder / "release.json").write_text(text, encoding="utf-8")
    refused(folder)


def test_parameters_nested_without_end_are_refused(folder):
    deep = json.loads("[" * 300 + "]" * 300)
    edit(folder, lambda d: d["parameters"].update(deep=deep))
    assert "deep" in refused(folder)
