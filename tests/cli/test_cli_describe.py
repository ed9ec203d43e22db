"""`kveil describe`: a saved release, rows with columns of words and a ledger in; words of clusters out."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

import kveil as library


def test_a_description_is_charged_drawn_and_told_in_words_and_json(kveil, tmp_path):
    rng = np.random.default_rng(0)
    which = np.arange(600) % 2
    table = pd.DataFrame({"x": 2.0 + 6 * which + rng.normal(scale=0.3, size=600), "corn": which, "oil": 1 - which})
    table.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "words.txt").write_text("corn\noil\n\n")
    assert kveil("ledger", "init", tmp_path / "people.db", "--epsilon", 30).code == 0
    paid = ("--ledger", tmp_path / "people.db")
    fitted = kveil("fit", tmp_path / "rows.csv", "--columns", "x", "-o", tmp_path / "out", "-k", 2, "--bounds", "0,10", *paid)
    assert fitted.code == 0, fitted
    asked = (tmp_path / "out", tmp_path / "rows.csv", "--keywords", tmp_path / "words.txt", *paid, "--per-row", 1)
    told = kveil("describe", *asked, "--epsilon", 10, "--picture", tmp_path / "themes.svg", "--purpose", "what people need")
    assert (told.code, told.err) == (0, "")
    assert told.out.startswith("cluster 0: ")
    assert "corn" in told.out
    assert (tmp_path / "themes.svg").exists()
    assert dict(library.Ledger.open(tmp_path / "people.db").charges()[-1].notes)["purpose"] == "what people need"
    found = json.loads(kveil("describe", *asked, "--epsilon", 10, "--json").out)
    assert sorted(cluster["words"][0]["name"] for cluster in found["clusters"]) == ["corn", "oil"]
    assert library.Ledger.open(tmp_path / "people.db").spent().epsilon == 21
    assert kveil("describe", *asked, "--epsilon", 10).code == 3
    refused = kveil("describe", *asked, "--epsilon", 1, "--picture", tmp_path / "themes.gif")
    assert refused.code == 2
    assert library.Ledger.open(tmp_path / "people.db").spent().epsilon == 21
    nothing = kveil("describe", *asked[:3], tmp_path / "none.txt", *paid, "--epsilon", 1)
    assert nothing.code == 2
    assert "public keyword per line" in nothing.err
