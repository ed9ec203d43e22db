"""What `make audit` lets pass; the audits themselves take minutes."""

import json
from dataclasses import replace

import pytest
from benchmarks.audit import TWINS, Line, main

from kveil.audit import Verdict


def verdict(outcome, lower):
    return Verdict(outcome, 1.0, 0.0, "add-remove", 0.999, lower, None, "pair", "event", 1000, 1.0, "", "name")


@pytest.mark.parametrize(
    ("line", "passed"),
    [
        (Line("model", verdict("consistent", 0.75), 0.9), True),
        (Line("model", verdict("consistent", 0.5), 0.9), False),  # no teeth
        (Line("model", verdict("consistent", 0.5), 0.9, "half of it is hidden"), True),
        (Line("model", verdict("consistent", 0.1), 0.4), True),
        (Line("model", verdict("violated", 1.2), 0.9), False),
        (Line("model", verdict("unknown", 0.0), 0.4), False),
        (Line("twin", verdict("violated", 1.2)), True),
        (Line("twin", verdict("consistent", 0.9)), False),
        (Line("peer", verdict("unknown", 0.0)), False),
    ],
)
def test_models_must_be_consistent_and_seen_and_twins_violated(line, passed):
    assert line.passed is passed


def test_a_name_that_no_audit_has_is_no_success(monkeypatch):
    monkeypatch.setattr("sys.argv", ["audit", "--only", "no such model"])
    with pytest.raises(SystemExit, match="nothing was checked"):
        main()


def test_files_are_there_after_every_audit_and_say_what_passed(monkeypatch, tmp_path):
    names = ["--json", str(tmp_path / "a.json"), "--html", str(tmp_path / "a.html")]
    monkeypatch.setattr("sys.argv", ["audit", "--only", "charge after the draw", "labels in the pickle", *names])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    told = json.loads((tmp_path / "a.json").read_text())
    assert [(one["kind"], one["passed"], one["outcome"]) for one in told] == [("twin", True, "violated")] * 2
    assert "labels in the pickle" in (tmp_path / "a.html").read_text()


def test_an_audit_that_raises_is_not_passed_and_the_others_go_on(monkeypatch, capsys):
    broken = replace(TWINS[-1], make=lambda is_broken: 1 / 0)
    monkeypatch.setattr("benchmarks.audit.TWINS", (broken, TWINS[6]))
    monkeypatch.setattr("sys.argv", ["audit", "--only", broken.name, TWINS[6].name])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().out
    assert ended.value.code == 4
    assert f"WRONG twin {broken.name}: unknown" in said
    assert f"ok    twin {TWINS[6].name}: violated" in said
