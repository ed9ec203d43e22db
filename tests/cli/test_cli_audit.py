"""`kveil audit`: verdicts, exit codes, JSON, and a page that needs no other file."""

from __future__ import annotations

import json
import re

import pytest

MODULE = """
import secrets
def exact(rows):
    return len(rows)
def silent(rows):
    return secrets.randbelow(100)
"""


@pytest.fixture
def made(tmp_path, monkeypatch):
    (tmp_path / "made_to_audit.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return "made_to_audit"


def test_names_of_models_are_listed(kveil):
    outcome = kveil("audit", "--list")
    assert outcome.code == 0
    assert {"tree", "lloyd", "universe counts"} <= set(outcome.out.splitlines())


def test_a_broken_promise_ends_with_4_and_a_page(kveil, made, tmp_path):
    outcome = kveil("audit", f"{made}:exact", f"{made}:silent", "--runs", 2000, "--html", tmp_path / "audit.html")
    assert outcome.code == 4
    assert "exact: violated" in outcome.out
    assert "silent: consistent" in outcome.out
    page = (tmp_path / "audit.html").read_text()
    assert "<svg" in page
    assert "exact: violated" in page
    assert 'name="viewport"' in page
    assert "color-scheme:light dark" in page
    assert page.count("<td>1</td><td>") > page.count("<td>2</td><td>") > 0, "rounds, the later ones of fewer pairs"
    assert not re.search(r"<script|<link|src=|@import|url\(", page)


def test_what_is_kept_ends_with_0_and_as_json(kveil, made):
    outcome = kveil("audit", f"{made}:silent", "--runs", 2000, "--json", "--relation", "replace-one", "--columns", 2)
    assert outcome.code == 0
    told = json.loads(outcome.out)
    assert (told["outcome"], told["relation"]) == ("consistent", "replace-one")


@pytest.mark.parametrize("name", ["no such model", "no_such_module:model", "math:no_such_name"])
def test_what_is_not_there_is_refused(kveil, name):
    assert kveil("audit", name).code == 2


def test_a_module_that_is_not_there_comes_with_an_example(kveil):
    assert "pass my_models:model" in " ".join(kveil("audit", "model.py:model").err.split())


def test_a_name_is_needed(kveil):
    assert kveil("audit").code == 2
