"""`kveil collect`: what to expect, and a rehearsal through the real wire."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from kveil.cli.collect_demo import _drawn


def test_a_plan_is_told_in_words_and_in_json(kveil):
    told = kveil("collect", "plan", "--n", 1_000_000, "--columns", 10, "--k", 8, "--epsilon", 1)
    assert (told.code, told.err) == (0, "")
    assert "protocol: refine" in told.out
    assert "rounds: 4 (reports: 200 000, 300 000, 250 000, 250 000; 22 bytes each)" in told.out
    assert "people needed: about 980 000 for a cost within a few per cent" in told.out
    plain = json.loads(kveil("collect", "plan", "--n", 1_000_000, "--columns", 10, "--k", 8, "--json").out)
    assert (plain["protocol"], plain["rounds"], plain["terms"]["epsilon"], plain["refusal"]) == ("refine", 4, "1", None)
    assert 1 < plain["ratio"] < 2


def test_the_map_of_the_demo_has_north_above_and_east_to_the_right():
    lines = _drawn(SimpleNamespace(centers=np.array([[54.0, 14.0]]), counts=None))
    assert lines[0] == "north (up)"
    above, right = next((number, line.index("o")) for number, line in enumerate(lines[2:]) if "o" in line)
    assert above < 5
    assert right > 40


def test_a_plan_says_when_there_are_too_few_people(kveil):
    told = kveil("collect", "plan", "--n", 500, "--columns", 10, "--k", 8, "--epsilon", "1/2")
    assert told.code == 0
    assert "refused: too few people" in told.out


@pytest.mark.parametrize(
    "wrong",
    [
        ("plan", "--n", 100, "--columns", 2, "--epsilon", "0"), ("plan", "--n", 100, "--columns", 2, "--epsilon", "11"),
        ("plan", "--n", 100, "--columns", 2, "--epsilon", "1/0"), ("plan", "--n", 100, "--columns", 2, "--epsilon", "x"),
        ("plan", "--n", 100, "--columns", 9, "--protocol", "grid"), ("plan", "--n", 0, "--columns", 2),
        ("plan", "--n", 100, "--columns", 2, "--preset", "paper"), ("simulate", "--people", 0),
        ("simulate", "--people", 50, "--k", 8, "--epsilon", "1"), ("simulate", "--people", 50, "--protocol", "best"),
        ("plan", "--n", 100, "--columns", 10**8), ("plan", "--n", 10**24, "--columns", 2), ("simulate", "--columns", "x"),
        ("simulate", "x.csv", "--people", 9, "--radius", 1), ("simulate", "--people", 1, "--protocol", "refine"),
        ("simulate", "--people", 50, "--radius", 0), ("simulate", "--people", 50, "--radius", "nan"),
        ("simulate", "--people", 50, "--center", "0,0,0"), ("simulate", "none.csv"),
    ],
    ids=lambda arguments: " ".join(map(str, arguments)),
)  # fmt: skip
def test_what_cannot_work_is_refused_in_words(kveil, wrong, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = kveil("collect", *wrong)
    assert told.code == 2
    assert told.out == ""
    assert len(told.err) > 30
    assert "Traceback" not in told.err


def test_a_rehearsal_finds_made_up_people(kveil, tmp_path):
    storage = tmp_path / "collector.db"
    told = kveil("collect", "simulate", "--people", 300, "--k", 2, "--storage", storage, "--json")
    assert told.code == 0, told.err
    plain = json.loads(told.out)
    assert (len(plain["answered"]), sum(plain["answered"])) == (2, 300), "everyone in one of two rounds"
    found = np.sort(np.array(plain["result"]["centers"])[:, 0])
    assert np.abs(found - [-0.6, 0.6]).max() < 0.3, "seen: .16 in 150 runs; cohorts follow from the day, too"
    assert plain["result"]["reports"] == [[people] for people in plain["answered"]]
    assert storage.exists()


def test_a_rehearsal_of_a_file_in_words(kveil, tmp_path):
    rng = np.random.default_rng(0)
    people = np.column_stack([rng.normal(30, 1, 200), rng.normal(50, 1, 200), np.arange(200)])
    np.savetxt(tmp_path / "people.csv", people, delimiter=",", header="x,y,id", comments="")
    place = ("--center", "30,50", "--radius", 10, "--columns", "x,y")
    told = kveil("collect", "simulate", tmp_path / "people.csv", "--k", 1, "--protocol", "refine", *place)
    assert told.code == 0, told.err
    assert "200 devices sent 22 bytes each" in told.out
    assert "epsilon = 4, delta = 0" in told.out
    assert "local model" in told.out
    missing = kveil("collect", "simulate", tmp_path / "people.csv", "--k", 1)
    assert missing.code == 2
    assert "--radius is missing" in missing.err
