"""`kveil plan` and `kveil compare`: what to expect, and which method, before anything is spent."""

from __future__ import annotations

import json

import pytest


def test_a_plan_from_public_numbers(kveil, tmp_path):
    numbers = ("--rows", 20_000, "--columns", 9, "-k", 10, "--epsilon", 0.02)
    told = kveil("plan", *numbers)
    assert (told.code, told.err) == (0, "")
    assert "noise (good below 0.01, noise above 0.3)" in told.out
    assert "must be public" in told.out
    found = json.loads(kveil("plan", *numbers, "--delta", 1e-6, "--json").out)
    assert (found["figures"]["word"], found["trials"]) == ("noise", [])
    pytest.importorskip("matplotlib")
    assert kveil("plan", *numbers, "--picture", tmp_path / "plan.svg").code == 0
    assert (tmp_path / "plan.svg").exists()


def test_a_plan_with_a_public_sample(kveil, csv):
    sample = ("--sample", csv, "--bounds", "0,10", "--runs", 1)
    told = kveil("plan", "--rows", 50_000, "-k", 3, *sample, "--for-ratio", 1.2)
    assert (told.code, told.err) == (0, "")
    assert told.out.splitlines()[-1].startswith("Ratio 1.2: ")
    found = json.loads(kveil("plan", "--rows", 50_000, "-k", 3, *sample, "--for-ratio", 0.5, "--json").out)
    assert len(found["trials"]) == 7
    assert (found["for_ratio"], found["epsilon_for"]) == (0.5, None)


def test_methods_are_compared(kveil, csv):
    told = kveil("compare", csv, "-k", 3, "--bounds", "0,10", "--methods", "tree, mean", "--runs", 1)
    assert (told.code, told.err) == (0, "")
    assert "IS ITSELF A RELEASE" in told.out
    found = json.loads(kveil("compare", csv, "-k", 3, "--bounds", "0,10", "--methods", "mean", "--runs", 1, "--json").out)
    assert set(found["methods"]) == {"mean"}


def test_a_release_is_compared_by_its_sample(kveil, csv, rows, tmp_path, monkeypatch):
    from kveil import Release

    assert kveil("fit", csv, "-o", tmp_path / "out", "-k", 3, "--bounds", "0,10").code == 0
    monkeypatch.setattr(Release, "sample", lambda self, n, *, random_state=None: rows[:300], raising=False)
    told = kveil("compare", tmp_path / "out", "-k", 3, "--methods", "mean", "--runs", 1)
    assert (told.code, told.err) == (0, "")
    assert "300 synthetic rows of a release" in told.out


def test_refusals(refused, csv):
    assert "--for-ratio needs --sample" in refused(2, "plan", "--rows", 100, "--columns", 2, "--for-ratio", 1.1)
    assert "--bounds is missing" in refused(2, "plan", "--rows", 100, "--sample", csv)
    assert "--bounds is missing" in refused(2, "compare", csv)
    assert "how many columns" in refused(2, "plan", "--rows", 100)
