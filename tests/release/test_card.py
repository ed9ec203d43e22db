"""The card: what a reader must learn from it, and what it must never tell."""

from __future__ import annotations

import re

import numpy as np
import pytest

from kveil.release.words import code, escaped, printable, sentence


def test_the_card_tells_what_how_and_what_not_to_do(make):
    card = make().card()
    assert card.startswith("# 2 centres by PrivateKMeans\n")
    for heading in (
        "What was protected",
        "Is it any good?",
        "How it was made",
        "The centres",
        "Receipt",
        "Notes",
        "What not to do with it",
    ):
        assert f"\n## {heading}\n" in card
    assert str(make().guarantee) in card
    assert "Method: lloyd (asked for: auto). Why: the only method so far." in card
    assert "- bounds: low -4, high 4 in every column" in card
    assert "| 1 | 0.50 ± 0.12 | 0.30 ± 0.12 | 0.00 ± 0.12 | 0.9 |" in card
    assert "\nVerdict: rough." in card
    assert "- ledger: clinic" in card
    assert "one centre stayed where it was" in card
    assert "labels" in card
    assert "WARNING" not in card


def test_the_card_starts_with_a_person_and_ends_with_detail(make):
    card = make(created="2026-03-01", purpose="beds *per* ward").card()
    headings = re.findall(r"^## (.*)$", card, flags=re.M)
    assert headings == [
        "In short", "What not to do with it", "Is it any good?", "The centres", "What was protected", "How it was made",
        "Receipt", "Notes",
    ]  # fmt: skip
    start = card.split("## What not to do with it")[0]
    assert "Somebody who was 50 % sure that a given record is in the data can become at most 62.3 % sure" in start
    assert "\n- Made on: 2026-03-01\n- Data: not stated\n- Purpose: beds \\*per\\* ward\n" in start
    assert "\nNot covered:\n\n- somebody with several records" in start


def test_a_card_without_a_promise_says_nothing_of_odds(make, none, invalid):
    for guarantee in (none, invalid):
        assert "50 %" not in make(guarantee=guarantee).card()
    assert "Not covered" not in make(guarantee=none).card()


@pytest.mark.parametrize("name", ["none", "invalid"])
def test_a_promise_that_does_not_hold_is_announced_on_top(make, request, name):
    lines = make(guarantee=request.getfixturevalue(name)).card().splitlines()
    assert lines[2].startswith("**WARNING")
    assert lines[2].endswith("**")


def test_the_card_never_tells_how_many_rows_there_were(make, none):
    for release in (make(), make(guarantee=none), make(weights=None), make(centers=[4, 5])):
        assert not re.search(r"\d+ (rows|records|points|people|persons|samples)", release.card())
        assert "n_rows" not in release.card()


def test_a_large_table_is_cut_and_says_so(make):
    card = make(centers=np.zeros((25, 14))).card()
    rows = [line for line in card.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 20
    assert {line.count("|") for line in rows} == {1 + 1 + 12 + 1}
    assert "and 5 more centres, and 2 more features" in card
    assert "more centres" not in make(centers=np.zeros((20, 12))).card()


def test_long_parameters_are_cut(make):
    card = make(parameters={"init": [[0.123456] * 500]}).card()
    assert "release.json)" in card
    assert max(map(len, card.splitlines())) < 400


def test_centres_without_coordinates_weights_or_parameters_have_a_card_too(make):
    card = make(centers=[12345678901, 2], weights=None, parameters={}, notes=()).card()
    assert "|  | index |" in card
    assert "| 0 | 12345678901 |" in card
    assert "No weights were released" in card
    assert "No public parameters were recorded" in card
    assert "## Notes" not in card


def test_names_cannot_act_as_markup(make):
    names = ("a|b\n# fake", "<script>x</script>", "`x` **bold** _it_ blood_pressure")
    card = make(features=names, notes=("![](http://x)",), parameters={"x": "a`b"}).card()
    assert "\n# fake" not in card
    assert "<script>" not in card
    assert r"a\|b # fake" in card
    assert r"\`x\` \*\*bold\*\* \_it\_ blood_pressure" in card
    assert "![](" not in card
    assert '- x: `"a\'b"`' in card


def test_words_are_literal():
    assert escaped("snake_case") == "snake_case"
    assert escaped("# title") == r"\# title"
    assert printable("a\x1b[31mb", 20) == "a [31mb"
    assert printable("abcdef", 4) == "abc…"
    assert code("a`b\nc") == "`a'b c`"


def test_the_sentence_says_what_is_promised_and_to_whom(make, invalid, none):
    assert sentence(make().guarantee) == "(ε = 0.5, δ = 0) per record, add or remove, curator model."
    assert sentence(invalid).startswith("NOT VALID")
    assert sentence(none).startswith("No privacy guarantee")
