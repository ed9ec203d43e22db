"""What `make audit` lets pass; the audits themselves take minutes."""

import pytest
from benchmarks.audit import Line, main

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
