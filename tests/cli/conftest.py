"""The command line as a user meets it: what is typed, what comes back, and what must never be in it."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import warm
from kveil import Ledger, PrivacyUnit
from kveil.cli.main import main

SECRET = 8.7654321  # in every table; its digits must be in no message
N_ROWS = 4391  # nor may the number of rows
NAMES = ["age", "height"]
QUIET = {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "100"}
LOUD = ("FORCE_COLOR", "TTY_COMPATIBLE", "GITHUB_ACTIONS", "PY_COLORS", "KVEIL_TRACEBACK")


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


def make_rows(n_rows: int = N_ROWS) -> Any:
    """Made-up rows around three places in [0, 10]^2; the first one is the secret."""
    rng = np.random.default_rng(7)
    places = np.array([[2.0, 2.0], [5.0, 8.0], [8.0, 3.0]])[np.arange(n_rows) % 3]
    rows = np.clip(places + 0.4 * rng.standard_normal((n_rows, 2)), 0.0, 10.0)
    rows[0] = SECRET
    return rows


def write_csv(path: Path, rows: Any, names: Any = NAMES) -> Path:
    np.savetxt(path, rows, delimiter=",", header=",".join(names), comments="", fmt="%.17g")
    return path


@pytest.fixture(scope="session")
def rows():
    return make_rows()


@pytest.fixture
def csv(tmp_path, rows):
    """A good table, in a folder of its own."""
    (tmp_path / "in").mkdir()
    return write_csv(tmp_path / "in" / "table.csv", rows)


@pytest.fixture
def calm(commands_built_once, monkeypatch):
    """No colours; `python -m pytest` does not show in usage lines; typer's hook for exceptions is taken away afterwards."""
    for name in LOUD:
        monkeypatch.delenv(name, raising=False)
    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.modules["__main__"], "__package__", "", raising=False)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)


@pytest.fixture
def kveil(calm, monkeypatch, capsys):
    """Run `kveil ...` in this process, through `main`: typer's own runner would bypass it, and it makes the exit codes."""

    def run(*arguments: Any) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["kveil", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        written = capsys.readouterr()
        return Outcome(end.value.code or 0, without_colours(written.out), without_colours(written.err))

    return run


@pytest.fixture
def shell(calm):
    """Run `kveil ...` as a process of its own."""

    def run(*arguments: Any, **options: Any) -> Outcome:
        done = warm.run(warm.KVEIL, *arguments, **{"cwd": Path.cwd()} | options)
        return Outcome(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def budget(tmp_path):
    """A ledger of epsilon 2 for records, at tmp_path / "budget.db"."""
    return Ledger.create(tmp_path / "budget.db", "clinic", 2.0, relation="add-remove", unit=PrivacyUnit())


@pytest.fixture
def refused(kveil, tmp_path, budget):
    """Run a command that must be refused: one paragraph on stderr, nothing about rows, nothing spent, nothing left behind."""

    def run(code: int, *arguments: Any) -> str:
        before, files = budget.charges(), tree(tmp_path)
        outcome = kveil(*arguments)
        assert outcome.code == code, outcome
        said = outcome.err
        if "--json" in arguments:
            assert outcome.err == ""
            told = json.loads(outcome.out)
            assert told["exit_code"] == code
            said = f"kveil: {told['message']}\n"
        else:
            assert outcome.out == ""
        assert budget.charges() == before
        assert tree(tmp_path) == files
        tells_nothing_about_rows(outcome.out + said, tmp_path)
        return said

    return run


def tells_nothing_about_rows(text: str, folder: Path) -> None:
    bare = text.replace(str(folder), "")  # which may hold any number
    for digits in ("7654321", str(N_ROWS), str(N_ROWS + 1), str(N_ROWS - 1)):
        assert digits not in bare, text


def tree(folder: Path) -> dict[str, bytes]:
    """Every file and its content; of a ledger only that it is there, since SQLite may move pages about."""
    paths = [Path(place, name) for place, folders, files in os.walk(folder) for name in (*folders, *files)]
    return {str(path): _content(path) for path in paths if not path.name.endswith((".db-wal", ".db-shm"))}


def _content(path: Path) -> bytes:
    if path.is_symlink():
        return os.readlink(path).encode()
    return path.read_bytes() if path.is_file() and path.suffix != ".db" else b""


def without_colours(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
