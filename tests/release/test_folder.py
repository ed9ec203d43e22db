"""Saving and loading: the same release to the last bit, whole or absent, and nothing else destroyed."""

from __future__ import annotations

import json
import os
import stat
from datetime import date
from fractions import Fraction

import numpy as np
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest

from kveil._version import __version__
from kveil.errors import InvalidValue, ReleaseError
from kveil.kernel.loss import Charge, Plan, PrivacyUnit, guarantee
from kveil.release import load

FORMATS = ("parquet", "csv")
ODD = [
    ("größe", "年齢", "🩺"),
    ("weight", "a", "kveil_weight"),
    ("", "a,b", 'say "x"'),
    ("line\nbreak", "re\rturn", "nul\0"),
    (" a", "a ", "A"),
    ("x1", "x0", "index"),
    ("=1+1", "a.b", "a" * 5000),
]


def assert_same(one, two):
    assert one.centers.dtype == two.centers.dtype
    assert one.centers.tobytes() == two.centers.tobytes()
    assert (one.weights is None) == (two.weights is None)
    assert one.weights is None or one.weights.tobytes() == two.weights.tobytes()
    assert one.names == two.names
    assert (one.errors is None) == (two.errors is None)
    assert one.errors is None or one.errors.tobytes() == two.errors.tobytes()
    for field in ("features", "guarantee", "receipt", "kind", "method", "parameters", "notes", "purpose", "data_name", "created"):
        assert getattr(one, field) == getattr(two, field), field
    assert one.card() == two.card()


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"weights": None},
        {"errors": None},
        {"centers": [4, 5], "errors": None, "names": ("zoo", "Straße|1")},
        {"features": None},
        {"centers": [[0.1]], "features": None},
        {"centers": [[0.1], [5e-324], [1.7976931348623157e308]], "features": ("weight",)},
        {"centers": [[0.1]], "features": ("index",), "weights": None},
        {"centers": [7, 0, 2**62]},
        {"centers": [7], "weights": None},
        {"centers": np.random.default_rng(0).normal(size=(500, 40))},
        {"parameters": {}, "notes": ()},
        {"purpose": "beds | <b>", "data_name": "Größe", "created": "2026-03-01"},
        *({"features": names} for names in ODD),
    ],
)
def test_a_release_comes_back_as_it_was(make, tmp_path, changes, format):
    release = make(**changes)
    assert_same(load(release.save(tmp_path / "out", format=format)), release)


@pytest.mark.parametrize("format", FORMATS)
def test_a_table_is_what_other_programs_expect(make, tmp_path, format):
    release = make(features=None)
    folder = release.save(tmp_path / "out", format=format)
    read = pq.read_table if format == "parquet" else arrow_csv.read_csv
    table = read(folder / f"centers.{format}")
    assert table.column_names == ["x0", "x1", "x2", "weight"]
    assert np.array_equal(table["x1"].to_numpy(), release.centers[:, 1])


@pytest.mark.parametrize(
    ("features", "last"), [(("a",), "weight"), (("weight",), "kveil_weight"), (("weight", "kveil_weight"), "kveil_weight_")]
)
def test_a_feature_called_weight_keeps_its_name(make, tmp_path, features, last):
    release = make(centers=[[2.0] * len(features)], weights=[0.25], features=features)
    folder = release.save(tmp_path / "out")
    assert pq.read_table(folder / "centers.parquet").column_names == [*features, last]
    assert load(folder).weights.tolist() == [0.25]


def test_release_json_holds_what_the_design_says(make, tmp_path):
    folder = make().save(tmp_path / "out")
    assert sorted(os.listdir(folder)) == ["card.md", "centers.parquet", "release.json"]
    document = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    assert list(document) == [
        "schema", "kveil", "created", "purpose", "data_name", "kind", "method", "parameters", "features", "centers", "errors",
        "names", "card", "synopsis", "guarantee", "receipt", "notes", "digest",
    ]  # fmt: skip
    assert document["schema"] == "kveil.release/1"
    assert document["kveil"] == __version__
    assert date.fromisoformat(document["created"])
    assert document["centers"]["file"] == "centers.parquet"
    assert document["centers"]["shape"] == [2, 3]
    assert document["guarantee"]["charges"][0]["epsilon"] == "1/10"
    assert document["receipt"] == {"token": "t-1", "ledger": "clinic", "charges": 5, "secure": True}
    assert str(tmp_path) not in json.dumps(document)


def test_guarantees_of_every_route_come_back(make, tmp_path, none, invalid):
    gaussian = Charge("discrete-gaussian", "sums", 9, "l2", rho=Fraction(1, 50), times=2)
    laplace = Charge("discrete-laplace", "counts", 1, "l1", epsilon=Fraction(1, 20), times=2, one_coordinate=True)
    delta = Fraction(1, 10**6)
    plans = [Plan((charge,), "replace-one", PrivacyUnit("person", 3, "id"), delta) for charge in (gaussian, laplace)]
    promises = [guarantee(plan, trust="curator") for plan in plans]
    assert {promise.route for promise in promises} == {"zcdp", "pure"}
    for place, promise in enumerate([*promises, none, invalid]):
        secure = promise.valid and promise.route != "none"
        release = make(guarantee=promise, receipt={"token": None, "ledger": None, "charges": 0, "secure": secure})
        assert_same(load(release.save(tmp_path / str(place))), release)


def test_an_unknown_format_is_refused(make, tmp_path):
    with pytest.raises(InvalidValue, match="pickle"):
        make().save(tmp_path / "out", format="pickle")


def test_a_name_that_utf8_cannot_write_is_refused_before_anything_is_written(make, tmp_path):
    with pytest.raises(ReleaseError, match="UTF-8"):
        make(features=("a", "b", "\ud800")).save(tmp_path / "out", format="csv")
    assert os.listdir(tmp_path) == []


def test_missing_parents_are_made_and_the_folder_can_be_read_by_others(make, tmp_path):
    folder = make().save(tmp_path / "a" / "b" / "out")
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o777 & ~umask


def test_what_is_there_is_not_replaced_unless_asked(make, tmp_path):
    first = make()
    first.save(tmp_path / "out")
    second = make(notes=("second",))
    with pytest.raises(ReleaseError, match="overwrite=True"):
        second.save(tmp_path / "out")
    assert load(tmp_path / "out").notes == first.notes
    second.save(tmp_path / "out", format="csv", overwrite=True)
    assert load(tmp_path / "out").notes == ("second",)
    assert sorted(os.listdir(tmp_path / "out")) == ["card.md", "centers.csv", "release.json"]
    assert os.listdir(tmp_path) == ["out"]


def test_overwrite_with_nothing_there_just_saves(make, tmp_path):
    assert load(make().save(tmp_path / "out", overwrite=True)).kind == "PrivateKMeans"


def test_a_damaged_release_may_be_replaced(make, tmp_path):
    folder = make().save(tmp_path / "out")
    (folder / "centers.parquet").write_bytes(b"")
    assert load(make().save(folder, overwrite=True)).kind == "PrivateKMeans"


def a_file(place):
    place.write_text("thesis")


def an_empty_folder(place):
    place.mkdir()


def a_folder_of_something_else(place):
    place.mkdir()
    (place / "release.json").write_text('{"schema": "somebody.else/1"}')


def a_folder_with_broken_json(place):
    place.mkdir()
    (place / "release.json").write_text("{")


def a_dangling_link(place):
    place.symlink_to(place.parent / "nowhere")


@pytest.mark.parametrize(
    "other", [a_file, an_empty_folder, a_folder_of_something_else, a_folder_with_broken_json, a_dangling_link]
)
@pytest.mark.parametrize("overwrite", [False, True])
def test_what_is_no_release_is_never_touched(make, tmp_path, other, overwrite):
    other(tmp_path / "out")
    before = os.lstat(tmp_path / "out")
    with pytest.raises(ReleaseError, match="not a kveil release" if overwrite else "already"):
        make().save(tmp_path / "out", overwrite=overwrite)
    assert os.lstat(tmp_path / "out") == before
    assert os.listdir(tmp_path) == ["out"]


def test_a_link_to_a_release_is_not_replaced_but_can_be_loaded(make, tmp_path):
    make().save(tmp_path / "real")
    (tmp_path / "out").symlink_to(tmp_path / "real")
    with pytest.raises(ReleaseError, match="not a kveil release"):
        make().save(tmp_path / "out", overwrite=True)
    assert load(tmp_path / "out").kind == "PrivateKMeans"


def test_a_release_that_shares_its_folder_is_not_replaced(make, tmp_path):
    folder = make().save(tmp_path / "out")
    (folder / "thesis.txt").write_text("years of work")
    with pytest.raises(ReleaseError, match=r"thesis\.txt"):
        make().save(folder, overwrite=True)
    assert (folder / "thesis.txt").exists()


@pytest.mark.parametrize("crash", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("call", ["rename", "fsync"])
def test_a_crash_in_the_middle_leaves_nothing(make, tmp_path, monkeypatch, crash, call):
    def fail(*_):
        raise crash

    monkeypatch.setattr(os, call, fail)
    with pytest.raises((ReleaseError, KeyboardInterrupt)):
        make().save(tmp_path / "out")
    assert os.listdir(tmp_path) == []


def test_a_crash_while_replacing_puts_the_old_release_back(make, tmp_path, monkeypatch):
    folder = make(notes=("old",)).save(tmp_path / "out")
    rename = os.rename

    def fail_for_the_new_one(source, target):
        if str(source).endswith(".new"):
            raise OSError(13, "Permission denied")
        rename(source, target)

    monkeypatch.setattr(os, "rename", fail_for_the_new_one)
    with pytest.raises(ReleaseError, match="Permission denied"):
        make().save(folder, overwrite=True)
    assert load(folder).notes == ("old",)
    assert os.listdir(tmp_path) == ["out"]


def test_two_savers_at_once_do_not_mix(make, tmp_path, monkeypatch):
    rename = os.rename

    def another_was_faster(source, target):
        monkeypatch.setattr(os, "rename", rename)
        make(notes=("faster",)).save(tmp_path / "out")
        rename(source, target)

    monkeypatch.setattr(os, "rename", another_was_faster)
    with pytest.raises(ReleaseError, match="already"):
        make().save(tmp_path / "out")
    assert load(tmp_path / "out").notes == ("faster",)
    assert os.listdir(tmp_path) == ["out"]
