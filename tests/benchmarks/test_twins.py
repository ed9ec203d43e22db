"""Broken twins: each is caught, the same code without the bug is not, and the page says of each what the registry says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks.twins import ALL

from kveil.audit import Attack

ROOT = Path(__file__).parents[2]
QUICK = Attack(scores=("threshold",))
FALSE_ALARM = 1e-7  # of an audit of sound code, by its confidence; six twins are audited


@pytest.mark.parametrize("twin", ALL, ids=lambda twin: twin.name)
def test_a_twin_is_caught_and_the_same_code_without_the_bug_is_not(twin):
    found = twin.verdict(runs=2400, attack=QUICK)
    assert found.is_violated, found
    sound = twin.verdict(is_broken=False, runs=400, attack=QUICK, confidence=1 - FALSE_ALARM)
    assert sound.lower <= 1 + 1e-9, sound


def table() -> dict[str, list[str]]:
    rows = re.findall(r"^\| (.*) \|$", (ROOT / "docs/twins.md").read_text(), re.M)[2:]
    return {cells[0]: cells[1:] for cells in (row.split(" | ") for row in rows)}


def test_the_page_has_every_twin_with_its_bug_who_had_it_and_what_catches_it():
    shown = table()
    assert list(shown) == [twin.name for twin in ALL]
    for twin in ALL:
        bug, had, catcher, fits, lower = shown[twin.name]
        assert (bug, had, catcher) == (twin.bug, twin.had, twin.catcher)
        assert int(fits.replace(" ", "")) > 0
        assert lower == "-" or float(lower) > 1


def test_twins_are_not_in_the_package():
    assert not [path for path in (ROOT / "src").rglob("*.py") if "twin" in path.name]
