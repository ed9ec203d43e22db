"""From a table about people to a release a reviewer can read, as a user would do it: command by command."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from contextlib import closing, contextmanager, suppress

import numpy as np
import pandas as pd
import pytest

import kveil
import warm
from kveil import Ledger, PrivacyUnit
from kveil.release.numbers import with_error

pytestmark = pytest.mark.journey

ENVIRONMENT = {**os.environ, "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "120"}
HABITS = np.array([[7.5, 20.0], [12.0, 45.0], [18.0, 90.0]])  # hour and minutes of a visit
N_PEOPLE = 2713


def run(*arguments, cwd, code=0):
    """What `kveil ...` printed on stdout, or on stderr if it was to be refused."""
    done = warm.run(warm.KVEIL, *arguments, cwd=cwd, env=ENVIRONMENT)
    assert done.returncode == code, done.stderr
    assert (done.stderr if code == 0 else done.stdout) == ""
    return done.stdout if code == 0 else done.stderr


def visits():
    """Up to six visits each of made-up people, who keep to one of three habits."""
    rng = np.random.default_rng(11)
    person = np.repeat(np.arange(N_PEOPLE), rng.integers(1, 7, size=N_PEOPLE))
    points = HABITS[person % 3] + rng.standard_normal((len(person), 2)) * [0.5, 4.0]
    return pd.DataFrame({"id": [f"p{number:05}" for number in person], "hour": points[:, 0], "minutes": points[:, 1]})


@pytest.fixture(scope="module")
def clinic(tmp_path_factory):
    """A folder in which everything up to the first release has been done."""
    place = tmp_path_factory.mktemp("clinic")
    visits().to_parquet(place / "visits.parquet", index=False)
    (place / "bounds.json").write_text('{"hour": [0, 24], "minutes": [0, 120]}')
    said = run("ledger", "init", "clinic.db", "--epsilon", "1.5", "--name", "clinic 2026", "--unit", "person:3", cwd=place)
    assert said == 'ledger "clinic 2026" at clinic.db: epsilon 1.5, delta 0. The epsilons of all releases add up.\n'
    (place / "fit.txt").write_text(run(*fit("habits"), cwd=place))
    return place


def fit(out, epsilon="1"):
    return (
        "fit", "visits.parquet", "-o", out, "--k", "3", "--epsilon", epsilon, "--bounds", "bounds.json", "--scaling", "bounds",
        "--person", "id", "--max-rows-per-person", "3", "--ledger", "clinic.db", "--random-state", "4",
    )  # fmt: skip


def test_the_fit_says_whom_it_protects_and_how_well(clinic):
    said = (clinic / "fit.txt").read_text()
    assert said.split()[:4] == ["centre", "share", "hour", "minutes"]
    assert 'Promise: epsilon = 1, delta = 0 for one person by "id" with at most 3 records; ' in said
    assert "Saved at habits: 3 centres of 2 columns by the method tree." in said


def test_the_guarantee_of_the_folder_is_the_one_that_was_told(clinic):
    said = run("guarantee", "habits", cwd=clinic)
    terms = said.split(", adding or removing")[0]
    assert f"Promise: {terms}; " in (clinic / "fit.txt").read_text()
    assert said == f"{kveil.load(clinic / 'habits').guarantee}\n"


def test_the_release_is_of_use_in_python(clinic):
    release = kveil.load(clinic / "habits")
    assert release.guarantee.valid
    assert release.guarantee.unit == PrivacyUnit("person", 3, "id")
    assert release.features == ("hour", "minutes")
    assert release.centers.shape == (3, 2)
    assert ((release.centers >= 0) & (release.centers <= [24, 120])).all()
    rows = visits()[["hour", "minutes"]]
    labels, distances = release.predict(rows), release.transform(rows.head(5))
    assert labels.shape == (len(rows),)
    assert set(labels) <= {0, 1, 2}
    assert distances.shape == (5, 3)
    np.testing.assert_array_equal(labels[:5], distances.argmin(axis=1))


def test_the_card_says_what_a_reviewer_wants_to_see(clinic):
    card, release = (clinic / "habits" / "card.md").read_text(), kveil.load(clinic / "habits")
    assert "WARNING" not in card
    for text in (
        'epsilon = 1, delta = 0 for one person by "id" with at most 3 records, adding or removing it; curator model.',
        "k-norm",
        "discrete-laplace",
        "bounds, parameters and preprocessing come from public knowledge",
        '- bounds: "hour" low 0, high 24; "minutes" low 0, high 120',
        "- n_clusters: `3`",
        "- n_clusters: `3`",
        '- scaling: `"bounds"`',
        '- relation: `"add-remove"`',
        "| hour | minutes | weight |",
        "- ledger: clinic 2026",
        f"- token: {release.receipt['token']}",
        "- noise from: the operating system",
        "Do not publish labels",
        "Do not fit again on the same rows without counting",
    ):
        assert text in card, text
    for center, errors in zip(release.centers, release.verdict().column_errors, strict=True):
        assert " | ".join(map(with_error, center, errors)) in card


def test_nothing_that_was_saved_tells_about_rows_people_or_places(clinic):
    people, rows = str(N_PEOPLE), str(len(visits()))
    for path in (clinic / "habits").iterdir():
        content = path.read_bytes().decode("latin-1")
        numbers = set(re.findall(r"(?<![\d.])\d+(?![\d.])", content)) if path.suffix != ".parquet" else set()
        assert not {people, rows} & numbers, path
        assert "p00000" not in content
        assert str(clinic) not in content
        assert "visits.parquet" not in content


def test_what_the_ledger_shows_is_the_receipt_of_the_release(clinic):
    told = json.loads(run("ledger", "show", "clinic.db", "--json", cwd=clinic))
    assert told["unit"] == "one person with at most 3 records"
    assert told["spent"]["epsilon"] == 1.0
    assert told["remaining"]["epsilon"] == 0.5
    assert [charge["token"] for charge in told["charges"]] == [kveil.load(clinic / "habits").receipt["token"]]


def test_a_second_fit_is_refused_when_the_budget_is_spent(clinic):
    said = run(*fit("again"), cwd=clinic, code=3)
    assert 'this release needs epsilon 1, delta 0; epsilon 0.5, delta 0 is left on ledger "clinic 2026"' in said
    assert not (clinic / "again").exists()
    assert len(Ledger.open(clinic / "clinic.db").charges()) == 1


@contextmanager
def started(*arguments, cwd):
    """A running `kveil ...`, and the file of what it says on stderr."""
    errors = cwd / "errors.txt"
    with (
        open(errors, "w") as file,
        closing(warm.Started(warm.KVEIL, *arguments, cwd=cwd, env=ENVIRONMENT, stderr=file)) as process,
    ):
        yield process, errors


def interrupted(process, by):
    """A signal, sent again if nothing happens: one that comes inside a callback, as of the compiler, Python itself drops."""
    for _ in range(5):
        process.send_signal(by)
        with suppress(subprocess.TimeoutExpired):
            return process.wait(25)
    pytest.fail(f"{by.name} does not end it")


ENDS = [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
STAYS_SPENT = "What was reserved on a ledger stays spent; `kveil ledger show` tells whether it was charged.\n"


@pytest.mark.parametrize(("by", "code", "word"), ENDS, ids=["ctrl-c", "sigterm"])
def test_a_signal_in_the_middle_of_a_fit_leaves_the_charge_and_no_release(by, code, word, tmp_path, until):
    """The fit is given far more steps than it could ever take, and interrupted as soon as its charge is on the ledger."""
    visits().to_parquet(tmp_path / "visits.parquet", index=False)
    ledger = Ledger.create(tmp_path / "clinic.db", "clinic", 1000.0, relation="add-remove")
    arguments = ("fit", "visits.parquet", "-o", "out", "--columns", "hour,minutes", "--bounds", "0,120")
    long = ("--ledger", "clinic.db", "--n-steps", "100000000", "--epsilon", "1000")
    with started(*arguments, *long, cwd=tmp_path) as (process, errors):
        until(lambda: ledger.charges() or process.is_over(), "nothing was charged")
        assert (interrupted(process, by), process.stdout.read()) == (code, ""), errors.read_text()
    err = errors.read_text()
    errors.unlink()
    assert err.endswith(f"kveil: {word}. {STAYS_SPENT}")
    assert len(ledger.charges()) == 1
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith("clinic.db")) == ["visits.parquet"]


@pytest.mark.parametrize(("by", "code", "word"), ENDS, ids=["ctrl-c", "sigterm"])
def test_a_signal_ends_a_party_with_a_word(by, code, word, tmp_path):
    visits().to_parquet(tmp_path / "visits.parquet", index=False)
    Ledger.create(tmp_path / "clinic.db", "clinic", 1.0, relation="add-remove")
    rows = ("--data", "visits.parquet", "--columns", "hour,minutes", "--bounds", "0,120", "--ledger", "clinic.db")
    with started("federate", "party", *rows, "--socket", "door", "--name", "clinic", cwd=tmp_path) as (process, errors):
        assert "party clinic answers at" in process.stdout.readline()
        assert interrupted(process, by) == code, errors.read_text()
    assert errors.read_text().endswith(f"kveil: {word}. {STAYS_SPENT}")
