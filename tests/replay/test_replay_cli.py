"""`kveil fit` replayed on neighbours: its exit code, what it prints, what it saves and what it charges."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from neighbours import demands, mixed, odd, people, rows_moved

from kveil import Ledger
from kveil.auditing.released import filed
from kveil.auditing.tape import play as replay
from kveil.cli.main import main

ROADS = "".join(f"{i} {i + 1}\n" for i in range(29)) + "".join(f"{i} {i + 6}\n" for i in range(24))
PLACE = ("-k", "3", "-o", "out", "--force", "--random-state", "1")
FITS = {
    "table": ("--bounds", "-1,1", "--epsilon", 40, "--json"),
    "words": ("--bounds", "-1,1", "--epsilon", 40, "--method", "lloyd", "--format", "csv"),
    "ball": ("--radius", 1.5, "--epsilon", 40, "--objective", "k-median", "--n-steps", 1, "--json"),
    "ledger": ("--bounds", "-1,1", "--epsilon", 30, "--method", "grid", "--ledger", "budget.db", "--json"),
}


@pytest.fixture(autouse=True)
def folder(tmp_path, commands_built_once, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # typer sets its own
    return tmp_path


def run(*arguments: Any) -> dict[str, Any]:
    """Everything that a fit leaves behind; what it prints is noted by the replay."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["kveil", "fit", *map(str, arguments), *PLACE])
        with pytest.raises(SystemExit) as end:
            main()
    assert not end.value.code, "the fit failed"
    return {path.name: path.read_bytes() for path in sorted(Path("out").iterdir())}


def table_file(table: Any) -> str:
    """Rows as a file, with whole numbers for who they are of, if that is told."""
    frame = pd.DataFrame(table, columns=["who", "age", "height"][-table.shape[1] :])
    (frame.astype({"who": int}) if "who" in frame else frame).to_parquet("rows.parquet")
    return "rows.parquet"


@pytest.mark.parametrize("name", FITS)
def test_what_the_command_line_prints_and_saves_follows_from_noisy_answers_alone(name):
    def act(table: Any) -> dict[str, Any]:
        for path in Path().glob("budget.db*"):
            path.unlink()
        budget = Ledger.create("budget.db", "clinic", 40.0, relation="add-remove")
        left = run(table_file(table), *FITS[name])
        return {**left, "charged": filed(budget)}

    for pairs in rows_moved(2, "add-remove"):
        replay(act, pairs.table, pairs.neighbours[:4])


def test_the_command_line_hides_a_person_with_several_rows():
    about = ("--person", "who", "--max-rows-per-person", 2, "--relation", "replace-one")
    for pairs in people(mixed(2), odd(2), 2, "replace-one"):
        replay(lambda table: run(table_file(table), *FITS["table"], *about), pairs.table, pairs.neighbours)


@pytest.mark.parametrize("method", ["counts", "local-search"])
def test_what_is_printed_of_a_graph_follows_from_noisy_answers_alone(method, folder):
    (folder / "roads.txt").write_text(ROADS)

    def act(table: Any) -> dict[str, Any]:
        Path("people.txt").write_text("".join(f"{place:g}\n" for place in table[:, 0]))
        return run("roads.txt", "--metric", "graph", "--demand", "people.txt", "--epsilon", 10, "--method", method, "--json")

    for pairs in demands(1, "add-remove"):
        replay(act, pairs.table, pairs.neighbours[:4])
