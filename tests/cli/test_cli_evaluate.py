"""`kveil evaluate`: a saved release, rows and a ledger in; noisy numbers out."""

from __future__ import annotations

import json

import kveil as library


def test_an_evaluation_is_charged_and_told_in_words_and_json(kveil, csv, tmp_path):
    assert kveil("ledger", "init", tmp_path / "people.db", "--epsilon", 2).code == 0
    paid = ("--ledger", tmp_path / "people.db")
    assert kveil("fit", csv, "-o", tmp_path / "out", "--k", 3, "--bounds", "0,10", "--epsilon", 1, *paid).code == 0
    told = kveil("evaluate", tmp_path / "out", csv, "--epsilon", 0.25, *paid)
    assert (told.code, told.err) == (0, "")
    assert told.out.startswith("cost, distances clipped at ")
    assert "epsilon = 0.25" in told.out
    asked = kveil("evaluate", tmp_path / "out", csv, "--epsilon", 0.25, *paid, "--json")
    assert set(json.loads(asked.out)) >= {"cost", "silhouette", "sizes", "guarantee", "beyond"}
    assert library.Ledger.open(tmp_path / "people.db").spent().epsilon == 1.5
    refused = kveil("evaluate", tmp_path / "out", csv, "--epsilon", 1, *paid)
    assert refused.code == 3
