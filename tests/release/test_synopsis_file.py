"""The synopsis of a release in its folder: the same numbers back, and nothing believed that was changed or made to harm."""

from __future__ import annotations

import io
import json
import os
import zipfile
from dataclasses import fields

import numpy as np
import pytest

import kveil
from kveil.errors import ReleaseError
from kveil.release.check import check_release
from kveil.release.synopsis_file import read_synopsis, write_synopsis
from kveil.solve import synopsis as kept
from kveil.solve.synopsis import Distances, Projected, Step, Synopsis, UniverseSynopsis, why_left_out

RNG = np.random.default_rng(0)


def bins(is_pure: bool = True) -> Distances:
    return Distances(RNG.normal(size=40), 1.5, 8 * 2.0 ** (-np.arange(40) / 4), is_pure)


def full(d: int = 3, m: int = 7) -> Synopsis:
    """Every field of it is there."""
    step = Step(RNG.normal(size=2), 1.0, np.ones(2), RNG.normal(size=(2, d)), RNG.normal(size=(2, d)), 0.5, bins())
    shown = Projected(RNG.normal(size=(5, 2)), np.ones(5), np.ones((5, 2)), RNG.normal(size=(d, 2)), 4.5, 0.5, 1.5)
    return Synopsis(
        "centers", RNG.normal(size=(m, d)), RNG.normal(size=m), RNG.random(m) < 0.5, RNG.random((m, d)), 1.25, 100.0, 2.0,
        np.zeros(d), bins(False), (step, Step(np.zeros(3), 1, np.ones(3))), np.ones(m), shown,
        np.arange(d) > 0,
    )  # fmt: skip


def bare(d: int = 3) -> Synopsis:
    return kept.of_steps(d, (), 100.0, 2.0)


def universe() -> UniverseSynopsis:
    return UniverseSynopsis(np.array([3, 8]), np.array([1.5, -2.0]), np.array([4, 5]), 1.0, np.inf, "public")


def same(one: object, other: object) -> bool:
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if hasattr(one, "__dataclass_fields__"):
        return type(one) is type(other) and all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    return type(one) is type(other) and one == other


@pytest.mark.parametrize("synopsis", [full(), full(m=0), bare(), universe()], ids=["full", "no points", "bare", "universe"])
def test_a_synopsis_comes_back_to_the_last_bit_and_as_the_same_bytes(synopsis, make, tmp_path):
    release = make(synopsis=synopsis, centers=[3, 8]) if isinstance(synopsis, UniverseSynopsis) else make(synopsis=synopsis)
    folder = release.save(tmp_path / "out")
    assert "synopsis.npz" in os.listdir(folder)
    again = kveil.load(folder).synopsis
    assert same(again, synopsis)
    assert write_synopsis(again) == (folder / "synopsis.npz").read_bytes()
    assert np.load(folder / "synopsis.npz", allow_pickle=False).files  # any numpy reads it
    check_release(folder)  # it is no stranger there


def test_a_release_without_one_has_no_file_and_one_of_before_loads(make, tmp_path):
    folder = make().save(tmp_path / "out")
    assert "synopsis.npz" not in os.listdir(folder)
    document = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    assert document.pop("synopsis") is None
    del document["digest"]
    from kveil.canonical import RELEASE, digest

    document["digest"] = digest(RELEASE.write(document))
    (folder / "release.json").write_text(json.dumps(document), encoding="utf-8")
    assert kveil.load(folder).synopsis is None


def test_a_changed_missing_or_swapped_synopsis_is_refused(make, tmp_path):
    for number, change in enumerate(
        (lambda data: data[:200] + b"\1" + data[201:], lambda data: b"", lambda _: write_synopsis(full()))
    ):
        folder = make(synopsis=full()).save(tmp_path / str(number))
        path = folder / "synopsis.npz"
        path.write_bytes(change(path.read_bytes()))
        with pytest.raises(ReleaseError, match=r"synopsis\.npz"):
            kveil.load(folder)
    path.unlink()
    with pytest.raises(ReleaseError, match=r"synopsis\.npz"):
        kveil.load(folder)


def packed(arrays: dict[str, np.ndarray], compression: int = zipfile.ZIP_STORED) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", compression) as file:
        for name, array in arrays.items():
            entry = io.BytesIO()
            np.lib.format.write_array(entry, array, allow_pickle=True)
            file.writestr(f"{name}.npy", entry.getvalue())
    return sink.getvalue()


def spoiled() -> dict[str, bytes]:
    good = dict(np.load(io.BytesIO(write_synopsis(full()))).items())
    huge = io.BytesIO()
    np.lib.format.write_array_header_1_0(huge, {"descr": "<f8", "fortran_order": False, "shape": (2**50,)})
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as file:
        file.writestr("points.npy", huge.getvalue())
    return {
        "compressed": packed(good, zipfile.ZIP_DEFLATED),
        "code": packed(good | {"counts": np.array([print] * 7, dtype=object)}),
        "a shape without numbers": sink.getvalue(),
        "a field of its own": packed(good | {"more": np.ones(1)}),
        "no counts": packed({name: array for name, array in good.items() if name != "counts"}),
        "another width": packed(good | {"middle": np.ones(2)}),
        "another kind": packed(good | {"kind": np.array(3)}),
        "no number": packed(good | {"deviation": np.array(np.nan)}),
        "text": packed(good | {"deviation": np.array("1")}),
        "no zip": b"PK" + bytes(100),
        "a step that is missing": packed({name: array for name, array in good.items() if not name.startswith("steps.0")}),
    }


@pytest.mark.parametrize("what", spoiled())
def test_what_is_no_synopsis_is_refused_and_nothing_of_it_is_run_or_unpacked(what):
    with pytest.raises(ReleaseError, match="damaged"):
        read_synopsis(spoiled()[what])


def test_a_synopsis_of_other_columns_or_of_a_universe_does_not_belong_to_these_centres(make):
    for wrong in (full(2), universe(), "text"):
        with pytest.raises(ReleaseError, match="synopsis"):
            make(synopsis=wrong)


def test_one_that_is_too_large_or_not_finite_is_left_out_and_says_so(monkeypatch):
    assert why_left_out(full()) is None
    assert "finite" in why_left_out(kept.of_steps(3, (), np.inf, 2.0))
    monkeypatch.setattr(kept, "LARGEST", kept.OF_NAMES + 100)
    assert "64 MiB" in why_left_out(full())
    with kveil.testing.scripted(1):
        model = kveil.PrivateKMeans(2, bounds=(-1, 1), random_state=0).fit(RNG.uniform(-1, 1, (500, 2)))
    assert model.release_.synopsis is None
    assert kept.TOO_LARGE in model.release_.notes


def test_its_arrays_are_its_own_and_cannot_be_changed():
    counts = np.ones(40)
    shown = Distances(counts, 1, np.ones(40), True)
    counts[0] = 7
    assert shown.counts[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        shown.counts[0] = 2
