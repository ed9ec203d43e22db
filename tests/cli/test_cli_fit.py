"""`kveil fit`: from a file to a saved release, with every option."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import kveil as library
from kveil import Ledger, PrivacyUnit, PrivateKMeans
from kveil.cli._options import parse_bounds
from kveil.space.bounds import check_domain
from kveil.testing import scripted
from kveil.tuning import Spherical

BESIDE = ["release.json", "synopsis.npz"]
ARGUMENTS = ("--k", 3, "--bounds", "0,10", "--random-state", 1)


@pytest.fixture
def fitted(kveil, tmp_path):
    """Fit under scripted noise and return what was printed and what was saved."""

    def run(data, *arguments, out="out"):
        with scripted(5):
            outcome = kveil("fit", data, "-o", tmp_path / out, *arguments)
        assert outcome.code == 0, outcome
        assert outcome.err == ""
        return outcome.out, library.load(tmp_path / out)

    return run


def model_of(data, **parameters):
    """The same fit through the library."""
    with scripted(5):
        return PrivateKMeans(**{"n_clusters": 3, "bounds": (0, 10), "random_state": 1, **parameters}).fit(data)


def is_the_release_of(model, release):
    np.testing.assert_array_equal(release.centers, model.cluster_centers_)
    np.testing.assert_array_equal(release.weights, model.cluster_weights_)
    return release.guarantee == model.guarantee_ and release.parameters == model.release_.parameters


def test_a_fit_prints_the_centres_first_then_the_promise_and_what_to_type_next(kveil, csv, tmp_path):
    outcome = kveil("fit", csv, "-o", tmp_path / "out", *ARGUMENTS)
    assert outcome.code == 0
    assert outcome.err == ""
    release = library.load(tmp_path / "out")
    assert release.guarantee.valid
    assert release.centers.shape == (3, 2)
    assert release.features == ("age", "height")
    table, verdict, note, told, saved = outcome.out.split("\n\n")
    header, *lines = table.splitlines()
    assert header.split() == ["centre", "share", "age", "height", "told", "apart"]
    assert len(lines) == 3
    for line, center, weight in zip(lines, release.centers, release.weights, strict=True):
        number, share, _, age, _, error, height, *_ = line.split()
        assert float(share) == pytest.approx(100 * weight, abs=0.51)
        assert [float(age), float(height)] == pytest.approx(center, abs=0.06 * float(error)), number
    assert verdict == str(release.verdict())
    assert note == "Note: bounds: low 0, high 10 in every column"
    assert told.splitlines() == [
        "Promise: epsilon = 1, delta = 0 for one record; curator model.",
        "Whoever sees the release: adding or removing one record makes no outcome more than 2.72 times as likely.",
    ]
    alone = "No ledger was named, so nobody adds this release to earlier ones."
    first, *following = saved.splitlines()
    assert first == f"Saved at {tmp_path / 'out'}: 3 centres of 2 columns by the method tree. {alone}"
    for command in (line.split("  ")[1] for line in following[1:]):
        assert kveil(*command.split()[1:]).code == 0, "what is suggested works"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["card.md", "centers.parquet", *BESIDE]


def test_json_is_one_object_that_matches_the_saved_release(kveil, csv, tmp_path):
    outcome = kveil("fit", csv, "-o", tmp_path / "out", *ARGUMENTS, "--json")
    assert outcome.code == 0
    told, release = json.loads(outcome.out), library.load(tmp_path / "out")
    assert told == {
        "release": str(tmp_path / "out"),
        "method": "tree",
        "centers": release.centers.tolist(),
        "weights": release.weights.tolist(),
        "errors": release.errors.tolist(),
        "verdict": release.verdict().to_dict(),
        "notes": ["bounds: low 0, high 10 in every column", release.verdict().note],
        "features": ["age", "height"],
        "guarantee": json.loads(release.guarantee.to_json()),
    }


@pytest.mark.parametrize("kind", ["csv", "parquet", "folder", "npz", "npy"])
def test_every_kind_of_file_gives_the_centres_that_the_library_gives(kind, fitted, rows, tmp_path):
    frame, path = pd.DataFrame(rows, columns=["age", "height"]), tmp_path / f"t.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "parquet":
        frame.to_parquet(path, row_group_size=1000)
    elif kind == "folder":
        path.mkdir()
        for number, part in enumerate(np.array_split(rows, 3)):
            pd.DataFrame(part, columns=["age", "height"]).to_parquet(path / f"{number}.parquet")
    elif kind == "npz":
        np.savez(path, x=rows)
    else:
        np.save(path, rows)
    printed, release = fitted(path, *ARGUMENTS)
    assert is_the_release_of(model_of(rows), release)
    assert release.features == (None if kind.startswith("np") else ("age", "height"))
    assert "NOT VALID: the noise was scripted" in printed


def test_directions_need_no_bounds_and_take_none(fitted, kveil, rows, tmp_path):
    np.save(tmp_path / "rows.npy", rows)
    data = tmp_path / "rows.npy"
    _, release = fitted(data, "--k", 3, "--random-state", 1, "--metric", "cosine", "--delta", 1e-6, "--epsilon", 4)
    assert is_the_release_of(model_of(rows, bounds=None, metric="cosine", delta=1e-6, epsilon=4.0), release)
    _, forced = fitted(data, "--k", 3, "--metric", "cosine", "--method", "spherical", "--delta", 1e-6, out="forced")
    assert forced.method["used"] == "spherical"
    terms = ("--k", 3, "--random-state", 1, "--metric", "cosine", "--method", "spherical", "--delta", 1e-6, "--epsilon", 4)
    _, signed = fitted(data, *terms, "--signed", out="signed")
    own = {"bounds": None, "metric": "cosine", "method": "spherical", "delta": 1e-6, "epsilon": 4.0}
    assert is_the_release_of(model_of(rows, **own, tuning=Spherical(signed=True)), signed)
    assert model_of(rows, **own).release_.parameters != signed.parameters
    outcome = kveil("fit", data, "-o", tmp_path / "no", "--metric", "cosine", "--signed")
    assert outcome.code != 0
    assert "--signed is for --method spherical" in outcome.err
    refused = (
        ("--bounds", "0,10"), ("--radius", 1), ("--scaling", "bounds"), ("--objective", "k-median"), ("--method", "lloyd"),
    )  # fmt: skip
    for given in refused:
        outcome = kveil("fit", data, "-o", tmp_path / "no", "--metric", "cosine", *given)
        assert outcome.code != 0
        assert "cosine" in outcome.err
    planned = kveil("plan", "--rows", 20000, "--columns", 100, "--delta", 1e-6, "--metric", "cosine")
    assert planned.code == 0
    assert "Nothing was charged" in planned.out


def test_distance_may_be_named_as_the_metric_that_it_is(fitted, kveil, csv, rows):
    _, release = fitted(csv, *ARGUMENTS, "--metric", "euclidean")
    assert is_the_release_of(model_of(rows), release)
    planned = ("plan", "--rows", 20000, "--metric", "euclidean", "--delta", 1e-6)
    assert kveil(*planned, "--columns", 4).code == 0
    assert "--bounds is missing" in kveil(*planned, "--sample", csv).err


def test_columns_are_used_in_the_order_they_were_named(fitted, csv, rows):
    printed, release = fitted(csv, *ARGUMENTS, "--columns", "height, age")
    assert release.features == ("height", "age")
    assert is_the_release_of(model_of(rows[:, ::-1]), release)
    printed, release = fitted(csv, *ARGUMENTS, "--columns", "height", out="one")
    assert "3 centres of 1 column by the method" in printed
    assert is_the_release_of(model_of(rows[:, 1:]), release)


@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_columns_of_arrays_are_chosen_by_number(kind, fitted, rows, tmp_path):
    with_ids = np.column_stack([rows, np.arange(len(rows)) // 2])
    path = tmp_path / f"t.{kind}"
    np.save(path, with_ids) if kind == "npy" else np.savez(path, x=with_ids)
    _, release = fitted(path, *ARGUMENTS, "--columns", "1,0")
    assert is_the_release_of(model_of(rows[:, ::-1]), release)
    _, release = fitted(path, *ARGUMENTS, "--person", "2", "--max-rows-per-person", 2, out="people")
    assert release.guarantee.unit == PrivacyUnit("person", 2, "2")
    assert release.centers.shape == (3, 2)


def test_a_parquet_column_may_have_a_number_for_a_name(fitted, rows, tmp_path):
    pd.DataFrame(rows, columns=["7", "8"]).to_parquet(tmp_path / "t.parquet")
    _, release = fitted(tmp_path / "t.parquet", *ARGUMENTS, "--columns", "8")
    assert release.features == ("8",)


def test_people_are_protected_instead_of_records(fitted, rows, tmp_path):
    frame = pd.DataFrame(rows, columns=["age", "height"]).assign(id=np.arange(len(rows)) // 4)
    frame.to_csv(tmp_path / "t.csv", index=False)
    printed, release = fitted(tmp_path / "t.csv", *ARGUMENTS, "--person", "id", "--max-rows-per-person", 3)
    assert release.features == ("age", "height")
    assert release.guarantee.unit == PrivacyUnit("person", 3, "id")
    assert "with at most 3 records" in printed
    assert is_the_release_of(model_of(library.read(frame, person="id", max_rows_per_person=3)), release)


def test_bounds_come_as_a_pair_or_from_a_file_by_name_or_in_order(fitted, csv, rows, tmp_path):
    by_name, in_order = tmp_path / "names.json", tmp_path / "order.json"
    by_name.write_text('{"height": [-2, 12.5], "age": [0, 10]}')
    in_order.write_text("[[0, 10], [-2, 12.5]]")
    expected = model_of(rows, bounds=([0, -2], [10, 12.5]))
    for number, path in enumerate((by_name, in_order)):
        _, release = fitted(csv, "--k", 3, "--random-state", 1, "--bounds", path, out=f"out-{number}")
        assert is_the_release_of(expected, release)
    _, release = fitted(csv, "--k", 3, "--random-state", 1, "--bounds", "-1.5,1e1", out="pair")
    assert is_the_release_of(model_of(rows, bounds=(-1.5, 10)), release)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_file_of_bounds_is_always_one_pair_per_column(d, tmp_path):
    pairs = [[0, 3], [5, 12], [-1, 1]][:d]  # for two columns (lows, highs) would make a box too
    path = tmp_path / "b.json"
    for content in (pairs, dict(zip("xyz", pairs, strict=False))):
        path.write_text(json.dumps(content))
        box = check_domain(parse_bounds(str(path), tuple("xyz"[:d])), None, None, d, 16)
        assert [box.lower.tolist(), box.upper.tolist()] == np.transpose(pairs).tolist()
    box = check_domain(parse_bounds("0,3", None), None, None, d, 16)
    assert (box.lower.tolist(), box.upper.tolist()) == ([0] * d, [3] * d)


def test_a_column_that_decides_every_distance_is_a_note(kveil, csv, tmp_path):
    (tmp_path / "b.json").write_text('{"age": [0, 10], "height": [0, 2000]}')
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a warning with a path and a line of code is not for this door
        outcome = kveil("fit", csv, "-o", tmp_path / "out", "--k", 3, "--bounds", tmp_path / "b.json")
    assert (outcome.code, outcome.err) == (0, "")
    assert 'Note: bounds: "age" low 0, high 10; "height" low 0, high 2000\n' in outcome.out
    assert 'Note: not scaled: "height" is 200 times as wide as "age" and decides every distance\n' in outcome.out


def test_bounds_by_name_follow_the_chosen_columns(fitted, csv, rows, tmp_path):
    (tmp_path / "b.json").write_text('{"height": [0, 9]}')
    _, release = fitted(csv, "--k", 3, "--random-state", 1, "--bounds", tmp_path / "b.json", "--columns", "height")
    assert is_the_release_of(model_of(rows[:, 1:], bounds=(0, 9)), release)


def test_a_ball_is_given_by_centre_and_radius(fitted, csv, rows):
    _, release = fitted(csv, "--k", 3, "--random-state", 1, "--center", "5,4.5", "--radius", 6)
    assert is_the_release_of(model_of(rows, bounds=None, center=[5, 4.5], radius=6.0), release)
    _, release = fitted(csv, "--k", 3, "--random-state", 1, "--center", "5", "--radius", 6, out="one-number")
    assert is_the_release_of(model_of(rows, bounds=None, center=5, radius=6.0), release)
    _, release = fitted(csv, "--k", 3, "--random-state", 1, "--radius", 12, out="at-zero")
    assert is_the_release_of(model_of(rows, bounds=None, radius=12.0), release)


def test_delta_scaling_steps_relation_and_method_reach_the_model(fitted, csv, rows, tmp_path):
    (tmp_path / "b.json").write_text("[[0, 10], [-90, 100]]")
    printed, release = fitted(
        csv, "--k", 3, "--random-state", 1, "--bounds", tmp_path / "b.json", "--epsilon", 0.5, "--delta", 1e-6,
        "--scaling", "bounds", "--n-steps", 9, "--relation", "replace-one", "--method", "lloyd",
    )  # fmt: skip
    expected = model_of(
        rows, bounds=([0, -90], [10, 100]), epsilon=0.5, delta=1e-6, scaling="bounds", n_steps=9, relation="replace-one"
    )
    assert is_the_release_of(expected, release)
    assert release.guarantee.delta == pytest.approx(1e-6)
    assert release.method["asked"] == "lloyd"
    assert "replacing one record" in printed
    assert "likely, plus 1e-06" in printed


def test_random_state_steers_the_start_and_nothing_else(fitted, csv):
    first, again, other = (
        fitted(csv, "--k", 3, "--bounds", "0,10", "--random-state", seed, out=f"out-{number}")[1].centers
        for number, seed in enumerate((1, 1, 2))
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_random_state_takes_no_noise_away(kveil, csv, tmp_path):
    for name in ("a", "b"):
        assert kveil("fit", csv, "-o", tmp_path / name, *ARGUMENTS).code == 0
    assert not np.array_equal(library.load(tmp_path / "a").centers, library.load(tmp_path / "b").centers)


def test_centres_can_be_saved_as_csv(fitted, csv, tmp_path):
    _, release = fitted(csv, *ARGUMENTS, "--format", "csv")
    path = tmp_path / "out" / "centers.csv"
    assert path.read_text().startswith('"age","height","weight"\n')
    np.testing.assert_array_equal(np.loadtxt(path, delimiter=",", skiprows=1)[:, :2], release.centers)
    assert not (tmp_path / "out" / "centers.parquet").exists()


def test_force_replaces_an_older_release(fitted, kveil, csv, tmp_path):
    fitted(csv, *ARGUMENTS)
    _, release = fitted(csv, *ARGUMENTS, "--k", 2, "--force", "--format", "csv")
    assert len(release.centers) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["card.md", "centers.csv", *BESIDE]


def test_force_needs_nothing_to_replace(kveil, csv, tmp_path):
    assert kveil("fit", csv, "-o", tmp_path / "out", *ARGUMENTS, "--force").code == 0
    assert library.load(tmp_path / "out").guarantee.valid


def test_a_ledger_is_charged_exactly_what_the_guarantee_says(kveil, csv, budget, tmp_path):
    for number, left in ((1, 1.25), (2, 0.5)):
        outcome = kveil(
            "fit", csv, "-o", tmp_path / f"{number}", *ARGUMENTS, "--epsilon", 0.75, "--ledger", tmp_path / "budget.db"
        )
        assert outcome.code == 0, outcome
        release = library.load(tmp_path / f"{number}")
        assert budget.remaining().epsilon == left
        assert len(budget.charges()) == number
        assert budget.charges()[-1].token == release.receipt["token"]
        assert budget.charges()[-1].committed
        assert release.guarantee.epsilon == 0.75
        assert release.receipt["ledger"] == "clinic"


def test_a_gaussian_fit_charges_a_ledger_that_has_a_delta(kveil, csv, tmp_path):
    ledger = Ledger.create(tmp_path / "wide.db", "wide", 1.0, 1e-6, relation="add-remove")
    arguments = (*ARGUMENTS, "--epsilon", 0.5, "--delta", 1e-6, "--n-steps", 30, "--ledger", tmp_path / "wide.db")
    assert kveil("fit", csv, "-o", tmp_path / "out", *arguments).code == 0
    promised = library.load(tmp_path / "out").guarantee
    assert promised.route == "zcdp"
    assert ledger.spent().rho == pytest.approx(float(sum(charge.zcdp() for charge in promised.charges)))


def test_without_noise_the_words_promise_nothing(kveil, csv, tmp_path):
    assert kveil("fit", csv, "-o", tmp_path / "out", *ARGUMENTS, "--epsilon", "inf").code == 2  # not by accident
    openly = (*ARGUMENTS, "--epsilon", "inf", "--no-privacy")
    outcome = kveil("fit", csv, "-o", tmp_path / "out", *openly)
    assert outcome.code == 0
    assert "\n\nNo privacy guarantee: the result was computed without noise. Do not let it leave the house.\n" in outcome.out
    told = json.loads(kveil("fit", csv, "-o", tmp_path / "json", *openly, "--json").out)
    assert told["guarantee"]["epsilon"] == "inf"


def test_what_rows_hold_never_stops_a_fit(kveil, tmp_path):
    lines = ["age,height", "1,2", "nan,3", "inf,-inf", "word,4", "1,2,3", '"1', "", "1e999,-1e999"]
    (tmp_path / "odd.csv").write_text("\n".join(lines))
    assert kveil("fit", tmp_path / "odd.csv", "-o", tmp_path / "out", *ARGUMENTS).code == 0
    (tmp_path / "empty.csv").write_text("age,height\n")
    outcome = kveil("fit", tmp_path / "empty.csv", "-o", tmp_path / "none", *ARGUMENTS)
    assert outcome.code == 0
    assert library.load(tmp_path / "none").centers.shape == (3, 2)


def test_the_folder_of_the_caller_is_where_relative_paths_begin(kveil, csv, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = kveil("fit", "in/table.csv", "-o", "out", *ARGUMENTS)
    assert "\nSaved at out: 3 centres of 2 columns by the method tree. " in outcome.out
    assert library.load(tmp_path / "out").features == ("age", "height")


def test_a_fit_in_a_process_of_its_own_does_the_same(shell, csv, tmp_path):
    outcome = shell("fit", csv, "-o", tmp_path / "out", *ARGUMENTS, "--verbose")
    assert outcome.code == 0
    assert f"\n\n{library.load(tmp_path / 'out').guarantee}\n" in outcome.out


def test_a_result_that_is_noise_can_fail_the_command_after_it_was_saved(kveil, csv, tmp_path):
    quiet = kveil("fit", csv, "-o", tmp_path / "one", *ARGUMENTS, "--fail-on", "noise")
    assert (quiet.code, "Verdict: noise" in quiet.out) == (0, False)
    loud = ("--k", 12, "--bounds", "-1000,1000", "--epsilon", 0.01)
    assert kveil("fit", csv, "-o", tmp_path / "two", *loud).code == 0
    failed = kveil("fit", csv, "-o", tmp_path / "three", *loud, "--fail-on", "noise")
    assert (failed.code, "Verdict: noise." in failed.out, failed.err) == (5, True, "")
    assert ("`kveil inspect` shows them" in failed.out, "`kveil inspect` shows them" in quiet.out) == (True, False)
    assert kveil("verdict", tmp_path / "three").out == f"{library.load(tmp_path / 'three').verdict()}\n"
    assert json.loads(kveil("verdict", tmp_path / "three", "--json").out)["word"] == "noise"


def test_a_public_sample_without_the_columns_of_the_table_is_named(refused, csv, tmp_path):
    (tmp_path / "open.csv").write_text("a,b\n1,2\n")
    assert "--public: there is no column" in refused(
        2, "fit", csv, "-o", tmp_path / "out", *ARGUMENTS, "--public", tmp_path / "open.csv"
    )


def test_a_public_sample_is_read_like_the_table_and_told(kveil, tmp_path):
    rng = np.random.default_rng(0)
    places = rng.uniform(1, 9, (3, 5))
    for name, n in (("own", 400), ("open", 90)):
        table = pd.DataFrame(places[np.arange(n) % 3] + 0.1 * rng.standard_normal((n, 5)), columns=list("abcde"))
        (table.assign(more=1.0) if name == "open" else table).to_csv(tmp_path / f"{name}.csv", index=False)
    own, open_rows = tmp_path / "own.csv", tmp_path / "open.csv"
    with scripted(5):
        outcome = kveil("fit", own, "-o", tmp_path / "out", *ARGUMENTS, "--epsilon", 10, "--public", open_rows)
    assert outcome.code == 0, outcome
    assert "a public sample was used. Its rows are not protected" in outcome.out
    assert library.load(tmp_path / "out").parameters["public_sample"]["rows"] == 90
    pattern = str(own)[:-5] + "?" + str(own)[-4:]
    assert "is the table of the fit" in kveil("fit", pattern, "-o", tmp_path / "again", *ARGUMENTS, "--public", own).err
    outcome = kveil("fit", own, "-o", tmp_path / "again", *ARGUMENTS, "--public", own)
    assert outcome.code == 2
    assert "the table of the fit itself" in outcome.err
