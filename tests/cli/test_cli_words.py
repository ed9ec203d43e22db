"""Errors in the words of the shell, as paragraphs and as JSON; how much is said; and completion."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

import kveil as library
from kveil.cli.commands import COMMANDS
from kveil.cli.door import loaded
from kveil.cli.wording import in_shell_words

HOUSE = Path(library.__file__).parent
ROOMS = ("source", "models", "methods", "space", "release", "kernel")  # whose refusals `kveil fit` passes on


def texts_of_refusals():
    """Every text that these rooms raise, with what is filled in written as X."""
    for room in ROOMS:
        for path in (HOUSE / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                    yield f"{path.name}:{node.lineno}", _text(node.exc.args[0]).replace("=X", '="x"')  # values are in quotes


def _text(node):
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    if isinstance(node, ast.BinOp):
        return _text(node.left) + _text(node.right)
    return "X"


def test_no_refusal_speaks_python_of_an_option():
    options = loaded("fit").params
    names = [option.name for option in options if option.param_type_name == "option"] + ["n_clusters"]
    python = re.compile(rf"(?<![\w.(\-])(?:{'|'.join(names)})=(?!=)|(?<!\w)(?:{'|'.join(n for n in names if '_' in n)})(?!\w)")
    found = dict(texts_of_refusals())
    assert len(found) > 150
    assert sum(bool(python.search(text)) for text in found.values()) > 40, "the library speaks Python"
    left = {where: said for where, text in found.items() if python.search(said := in_shell_words(text, options))}
    assert left == {}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("bounds is missing. Pass bounds=(low, high).", "--bounds is missing. Pass --bounds LOW,HIGH."),
        ('missing="mean" needs scaling="private".', "--missing mean needs --scaling private."),
        ("n_clusters must be at least 1.", "--k must be at least 1."),
        ("Choose columns=[...], or look with kveil.inspect.", "Choose --columns, or look with `kveil inspect`."),
        ("max_rows_per_person bounds rows.", "--max-rows-per-person bounds rows."),
        ("Make one with Ledger.create or `kveil ledger init`.", "Make one with `kveil ledger init`."),
        ("pass delimiter=';'.", "pass --delimiter ';'."),
        ("xy must be latitudes, with degrees=True.", "--xy must be latitudes, with --degrees."),
        ("Check the name, or make one with Ledger.create.", "Check the name, or make one with `kveil ledger init`."),
        ("Or pass overwrite=True (--force) if it may be replaced.", "Or pass --force if it may be replaced."),
        ("no release, so overwrite=True does not touch it.", "no release, so --force does not touch it."),
        ("low < high: x. A list of tuples is one pair per column, a tuple of lists is (lows, highs).", "low < high: x."),
        ("pass n_features=... (--columns), bounds or a sample.", "pass --columns, bounds or a sample."),
        ("cost_curve needs the synopsis of a release.", "`kveil curve` needs the synopsis of a release."),
        ("the folder that Release.save or `kveil fit` wrote.", "the folder that `kveil fit` wrote."),
        ("pass either bounds or center and radius, not both.", "pass either --bounds or --center and --radius, not both."),
        ("Leave out bounds, center and radius.", "Leave out --bounds, --center and --radius."),
        ("center needs radius: together they are a ball.", "--center needs --radius: together they are a ball."),
        (
            "k_range must be two whole numbers (low, high) with 2 <= low < high <= 100, got (9, 2). Try less.",
            "--k-range takes LOW,HIGH: two whole numbers with 2 <= LOW < HIGH <= 100, got 9,2. Try less.",
        ),
        ("bounds must be (low, high), got (3, 2).", "--bounds must be (low, high), got (3, 2)."),
        ("no distance. Ask the universe: universe.nearest(release.centers).", "no distance."),
        ("these columns have no bounds of their own.", "these columns have no bounds of their own."),
        ("there is no file my_columns=3.csv.", "there is no file my_columns=3.csv."),
    ],
)
def test_parameters_become_options_and_other_words_stay(said, told):
    assert in_shell_words(said, loaded("fit").params) == told


def test_an_error_as_json_has_its_kind_its_notes_and_the_exit_code(kveil, csv, budget, tmp_path):
    (tmp_path / "b.json").write_text('{"age": [0, 10], "height": [0, 2000]}')
    arguments = ("fit", csv, "-o", tmp_path / "out", "--bounds", tmp_path / "b.json", "--ledger", tmp_path / "budget.db")
    outcome = kveil(*arguments, "--epsilon", 2.5, "--json")
    told = json.loads(outcome.out)
    assert (outcome.code, outcome.err) == (3, "")
    assert (told["error"], told["exit_code"]) == ("BudgetExceeded", 3)
    assert "200 times as wide" in told["notes"][0]
    said = kveil(*arguments, "--epsilon", 2.5).err
    assert said.startswith(f"kveil: {told['message']}")
    assert "kveil: note: " in said


@pytest.mark.parametrize(
    ("arguments", "kind", "code"),
    [
        (("fit", "gone.csv", "-o", "out", "--bounds", "0,1"), "SourceError", 2),
        (("fit", "gone.csv"), "UsageError", 2),
        (("fit", "gone.csv", "-o", "out", "--epsilom", "1"), "UsageError", 2),
        (("fti",), "UsageError", 2),
    ],
)
def test_every_error_can_be_json(kveil, arguments, kind, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = kveil(*arguments, "--json")
    told = json.loads(outcome.out)
    assert (told["error"], told["exit_code"], outcome.code, outcome.err) == (kind, code, code, "")
    assert told["message"]


def test_an_unforeseen_error_is_json_that_quotes_nothing(kveil, csv, tmp_path, monkeypatch):
    monkeypatch.setattr("kveil.cli.fit.parse_clusters", lambda text: 1 // 0)
    outcome = kveil("fit", csv, "-o", tmp_path / "out", "--json")
    told = json.loads(outcome.out)
    assert (outcome.code, told["error"]) == (1, "Unforeseen")
    assert "ZeroDivisionError" in told["message"]


ARGUMENTS = ("--k", 3, "--bounds", "0,10", "--random-state", 1)


def test_quiet_prints_the_folder_and_verbose_every_charge(kveil, csv, tmp_path):
    quiet = kveil("fit", csv, "-o", tmp_path / "a", *ARGUMENTS, "--quiet")
    assert (quiet.out, quiet.err) == (f"{tmp_path / 'a'}\n", "")
    loud = kveil("fit", csv, "-o", tmp_path / "b", *ARGUMENTS, "--verbose")
    assert str(library.load(tmp_path / "b").guarantee) in loud.out
    assert "kveil: method tree, because" in loud.err
    assert "2 columns, protects one record" in loud.err


def test_log_lines_tell_nothing_about_rows(kveil, csv, rows, tmp_path):
    said = kveil("fit", csv, "-o", tmp_path / "b", *ARGUMENTS, "--verbose").err.replace(str(tmp_path), "")
    assert said
    assert not any(digits in said for digits in ("7654321", str(len(rows)), str(len(rows) + 1), str(len(rows) - 1)))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_where_the_table_says_and_has_the_common_options(name):
    command, waiting = loaded(name), []
    waiting = [command]
    while waiting:
        one = waiting.pop()
        assert one.help, one.name
        if hasattr(one, "commands"):
            waiting += one.commands.values()
        else:
            assert {"config", "quiet", "verbose"} <= {option.name for option in one.params}
    assert len(COMMANDS[name].help) < 80


def test_a_line_is_completed(kveil, monkeypatch):
    monkeypatch.setenv("_KVEIL_COMPLETE", "complete_bash")
    for typed, found in (("kveil fi", "fit"), ("kveil fit --max-r", "--max-rows-per-person"), ("kveil ledger in", "init")):
        monkeypatch.setenv("COMP_WORDS", typed)
        monkeypatch.setenv("COMP_CWORD", str(typed.count(" ")))
        assert found in kveil().out.split()


def test_completion_is_offered_by_the_program_and_not_by_its_groups(kveil):
    assert "--install-completion" in kveil("--help").out
    for group in ("stream", "ledger", "keys", "federate", "collect", "reproduce"):
        assert "completion" not in kveil(group, "--help").out, "it would be that of no program"
