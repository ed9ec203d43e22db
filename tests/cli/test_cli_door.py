"""The door itself: help, quick imports, progress, and output that tells nothing about how many rows came in."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from kveil import __version__ as kveil_version
from kveil.cli import watching
from kveil.cli.commands import COMMANDS
from kveil.progress import listen
from kveil.testing import scripted

ANSWERING = [("fit",), ("demo",), ("guarantee",), ("ledger", "init"), ("ledger", "show"), ("reproduce", "highdim-figures")]
EXPLAINED = [(), ("ledger",), ("reproduce",), ("stream", "add"), ("predict",), *ANSWERING]
HEAVY = ["sklearn", "pandas", "polars", "dask", "distributed", "matplotlib", "typer", "rich"]


@pytest.mark.parametrize("command", EXPLAINED, ids=" ".join)
def test_every_command_explains_itself(kveil, command):
    outcome = kveil(*command, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert f"Usage: {' '.join(['kveil', *command])}" in outcome.out


@pytest.mark.parametrize("command", EXPLAINED, ids=" ".join)
def test_no_type_is_shown_behind_an_option_that_takes_no_value(kveil, command):
    shown = kveil(*command, "--help").out
    assert "--help" in shown
    assert "bool" not in shown.lower()
    if command == ("fit",):
        assert re.search(r"--epsilon\s+<?float", shown, flags=re.I), "others keep theirs"


@pytest.mark.parametrize("command", [("predict",), ("collect", "answer"), ("collect", "codes")], ids=" ".join)
def test_help_breaks_lines_by_the_width_of_the_screen_alone(kveil, command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    words = kveil(*command, "--help").out.partition("Arguments")[0]
    assert all(line.strip().endswith((".", "]", "...")) for line in words.splitlines()[2:-1] if line.strip()), words


def test_names_of_methods_are_whole_in_the_help(kveil):
    for command in ("fit", "plan"):
        shown = kveil(command, "--help").out
        assert re.search(r"--method\s+NAME", shown)
        assert {"sample-aggregate", "local-search"} <= set(re.findall(r"[\w-]+", shown))


def test_the_number_of_clusters_has_the_name_of_scikit_learn_too(kveil, csv, tmp_path):
    told = json.loads(kveil("fit", csv, "--n-clusters", 2, "--bounds", "0,10", "-o", tmp_path / "out", "--json").out)
    assert len(told["centers"]) == 2
    assert "--n-clusters" not in kveil("fit", "--help").out


@pytest.mark.parametrize("command", ANSWERING, ids=" ".join)
def test_every_command_that_answers_can_answer_in_json(kveil, command):
    assert "--json" in kveil(*command, "--help").out


def test_the_help_of_fit_names_every_option(kveil):
    shown = kveil("fit", "--help").out
    for option in (
        "--out", "--k", "--epsilon", "--delta", "--bounds", "--center", "--radius", "--method", "--n-steps", "--scaling",
        "--columns", "--person", "--max-rows-per-person", "--relation", "--ledger", "--format", "--force", "--random-state",
        "--demand", "--truncate", "--xy", "--degrees",
    ):  # fmt: skip
        assert re.search(rf"{option}\b", shown), option


@pytest.mark.parametrize("command", [(), ("ledger",), ("reproduce",)], ids=" ".join)
def test_without_arguments_help_is_printed(kveil, command):
    outcome = kveil(*command)
    assert outcome.code in (0, 2), "which of them is up to typer"
    assert "Usage: kveil" in outcome.out + outcome.err
    assert re.search("Commands|Find centres", outcome.out + outcome.err)


def test_help_works_in_a_process_of_its_own(shell):
    outcome = shell("--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert all(name in outcome.out for name in ("fit", "demo", "guarantee", "ledger"))


OF_COMMANDS = [f"kveil.cli.{home.module}" for home in COMMANDS.values()]


def test_importing_the_library_loads_nothing_heavy():
    code = f"import sys, kveil; print(sorted(set({HEAVY}) & set(sys.modules)), kveil.__version__);"
    code += f"import kveil.cli.main; print(sorted({{'numpy', *{OF_COMMANDS}}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    first, second = done.stdout.splitlines()
    assert first.startswith("[] "), first
    assert second == "[]", "the door loads the command that is typed, and no other"


def table_of(n_rows, folder):
    rows = np.random.default_rng(n_rows).uniform(0.0, 10.0, size=(n_rows, 2))
    folder.mkdir()
    np.savetxt(folder / "table.csv", rows, delimiter=",", header="age,height", comments="")
    return folder


RELEASED = r"\A(.+\n)+\nVerdict: .*\n.*\n.*\n"  # the table, and three lines that released numbers decide


class TestTheNumberOfRows:
    """With 1000 rows or 2000, the same is printed, but for the released numbers. (With few rows the noisy number says so, and the
    cells are looked at less often.)"""

    @pytest.fixture
    def printed(self, kveil, tmp_path, monkeypatch):
        def run(n_rows, *arguments):
            monkeypatch.chdir(table_of(n_rows, tmp_path / str(n_rows)))
            with scripted(3):
                outcome = kveil("fit", "table.csv", "-o", "out", "--k", 3, "--bounds", "0,10", "--random-state", 1, *arguments)
            assert outcome.code == 0
            return outcome

        return run

    def test_does_not_show_in_words(self, printed):
        few, many = (re.sub(RELEASED, "", printed(n_rows).out) for n_rows in (1000, 2000))
        assert few == many

    def test_does_not_show_in_json_but_in_released_numbers(self, printed):
        few, many = (printed(n_rows, "--json") for n_rows in (1000, 2000))
        assert few.err == many.err == ""
        few, many = json.loads(few.out), json.loads(many.out)
        released = {key for key in few if few[key] != many[key]}
        assert released <= {"centers", "weights", "errors", "verdict", "notes"}
        assert few["notes"][:-1] == many["notes"][:-1]  # the last one is the verdict, which released numbers decide
        assert np.shape(few["centers"]) == np.shape(many["centers"])

    def test_does_not_show_in_what_is_saved_but_in_released_numbers(self, printed, tmp_path):
        for n_rows in (1000, 2000):
            printed(n_rows, "--format", "csv")
        few, many = (json.loads((tmp_path / f"{n}" / "out" / "release.json").read_text()) for n in (1000, 2000))
        for document in (few, many):
            for key in ("digest", "created", "errors"):
                del document[key]
            del document["receipt"]["token"]
            for file in ("centers", "card", "synopsis"):
                del document[file]["sha256"]
            assert document["notes"].pop().startswith("verdict: ")  # released numbers decide it
        assert few == many

    def test_does_not_show_in_the_bar_of_progress(self, printed, monkeypatch):
        monkeypatch.setenv("FORCE_COLOR", "1")  # what makes rich believe in a terminal
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.delenv("NO_COLOR")
        seen = []
        for n_rows in (1000, 2000):
            outcome = printed(n_rows, "--n-steps", 4)
            assert "100 % of this pass" in outcome.err
            assert not re.search(r"\bNone\b|/", re.sub(r"\x1b\S*", "", outcome.err)), "never 0/None"
            assert str(n_rows) not in outcome.err
            assert "Lloyd step" not in outcome.out
            seen.append(set(re.findall(r"[A-Za-z ]+\(step \d of \d\)", outcome.err)))
        assert seen[0] == seen[1]
        assert "Lloyd step (step 4 of 4)" in {label.strip() for label in seen[0]}


def test_there_is_no_progress_where_nobody_watches(kveil, tmp_path):
    data = table_of(100, tmp_path / "in") / "table.csv"
    assert kveil("fit", data, "-o", tmp_path / "out", "--bounds", "0,10").err == ""


def test_the_package_can_be_run_as_a_module():
    done = subprocess.run([sys.executable, "-m", "kveil", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, kveil_version)


class TestLines:
    """Off a terminal: one log line per minute, with a share and a time, and no size."""

    def test_one_line_per_minute_tells_step_share_and_time_left(self, caplog):
        now = [0.0]
        lines = watching.Lines(clock=lambda: now[0])
        with listen(lines.step, lines.read), caplog.at_level("INFO", "kveil.progress"):
            lines.step("counting cells", 2, 5)
            for second in range(151):
                now[0] = float(second)
                lines.read(10**6 * second, 300 * 10**6, "bytes")
        assert [record.getMessage() for record in caplog.records] == [
            "counting cells (step 2 of 5), 20 % of this pass, about 4 min left in it",
            "counting cells (step 2 of 5), 40 % of this pass, about 3 min left in it",
        ]

    def test_they_reach_stderr_and_quiet_silences_them(self, kveil, csv, tmp_path, monkeypatch):
        monkeypatch.setattr(watching, "EVERY", 0.0)
        arguments = ("fit", csv, "--bounds", "0,10", "-k", 3)
        shown = kveil(*arguments, "-o", tmp_path / "a").err
        assert re.search(r"^kveil: counting cells \(step 2 of 5\), \d+ % of this pass", shown, flags=re.M)
        assert kveil(*arguments, "-o", tmp_path / "b", "--quiet").err == ""
