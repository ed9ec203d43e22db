"""What is refused, with which exit code, in which words; and that a refusal spends nothing, leaves nothing, tells nothing."""

from __future__ import annotations

import os
import signal

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, save_npz

import kveil as library
from kveil import Ledger, PrivacyUnit

SECRET, N_ROWS = 8.7654321, 4391  # as in conftest.py

BOUNDS = ("--bounds", "0,10")


def is_one_paragraph(text):
    return text.startswith("kveil: ") and text.endswith("\n") and text.count("\n") == 1


@pytest.fixture
def fit_refused(refused, csv, tmp_path):
    """A fit with a ledger that must be refused; returns what it said."""

    def run(code, *arguments, data=csv, out=None, ledger="budget.db"):
        place = tmp_path / "out" if out is None else out
        said = refused(code, "fit", data, "-o", place, *arguments, "--ledger", tmp_path / ledger)
        assert is_one_paragraph(said), said
        return said

    return run


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "bounds is missing"),
        (("--center", "1,2"), "bounds is missing"),
        ((*BOUNDS, "--radius", 3), "either --bounds or --center and --radius"),
        ((*BOUNDS, "--k", 0), "--k must be a whole number of at least 1, got 0"),
        ((*BOUNDS, "--k", -3), "got -3"),
        ((*BOUNDS, "--n-steps", 0), "--n-steps must be a whole number of at least 1"),
        (("--bounds", "10,0"), "has low 10 and high 0. Take them from public knowledge.\n"),
        ((*BOUNDS, "--epsilon", 0), "epsilon must be above 0, from 2**-30 to 1024"),
        ((*BOUNDS, "--epsilon", -1), "epsilon must be above 0, from 2**-30 to 1024"),
        ((*BOUNDS, "--epsilon", "nan"), "epsilon must be above 0, from 2**-30 to 1024"),
        ((*BOUNDS, "--epsilon", "inf"), "say --no-privacy"),
        ((*BOUNDS, "--no-privacy"), "goes with --epsilon inf"),
        ((*BOUNDS, "--objective", "k-median", "--method", "lloyd"), "is not for --objective k-median"),
        ((*BOUNDS, "--epsilon", "inf", "--no-privacy"), "there is nothing to charge"),
        ((*BOUNDS, "--delta", 1), "delta must be in [0, 1)"),
        ((*BOUNDS, "--delta", -1e-6), "delta must be in [0, 1)"),
        ((*BOUNDS, "--delta", "nan"), "delta must be in [0, 1)"),
        (("--bounds", "1,1"), "low"),
        (("--bounds", "2,1"), "low"),
        (("--bounds", "0,inf"), "finite"),
        (("--bounds", "nan,1"), "finite"),
        (("--bounds", "0,1,2"), "LOW,HIGH or a JSON file"),
        (("--bounds", "nowhere.json"), "there is no file 'nowhere.json'"),
        (("--bounds", "[0, 1], " * 99), "LOW,HIGH or a JSON file"),
        (("--radius", 0), "radius"),
        (("--radius", "nan"), "radius"),
        (("--radius", 3, "--center", "1,2,3"), "center has 3 entries for 2 feature(s)"),
        (("--radius", 3, "--center", "here"), "--center takes one number"),
        ((*BOUNDS, "--columns", "age,weight"), 'there is no column "weight". The columns are "age", "height"'),
        ((*BOUNDS, "--columns", "age,age"), "more than once"),
        ((*BOUNDS, "--columns", "0"), 'there is no column "0"'),
        ((*BOUNDS, "--columns", ""), 'there is no column ""'),
        ((*BOUNDS, "--person", "id"), 'there is no column "id"'),
        ((*BOUNDS, "--person", "age", "--columns", "age"), "cannot be a feature too"),
        ((*BOUNDS, "--max-rows-per-person", 3), "it needs --person"),
        ((*BOUNDS, "--person", "age", "--max-rows-per-person", 0), "--max-rows-per-person must be between"),
    ],
)
def test_parameters_that_cannot_be_used_are_refused(fit_refused, arguments, text):
    assert text in fit_refused(2, *arguments)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ('{"age": [0, 10]}', "Missing: ['height']"),
        ('{"age": [0, 10], "height": [0, 10], "weight": [0, 10]}', "Unknown: ['weight']"),
        ('{"age": [0, 10], "Height": [0, 10]}', "Missing: ['height']. Unknown: ['Height']"),
        ("[[0, 10]]", "1 entries for 2 feature(s)"),
        ("[]", "0 entries for 2 feature(s)"),
        ("[[0, 10], [0, 10, 20]]", "must hold JSON"),
        ('[[0, 10], ["0", "10"]]', "must hold JSON"),
        ('{"age": [0, 10], "height": 10}', "must hold JSON"),
        ("[[0, 10], [10, 0]]", "low"),
        ("[[0, 10], [0, NaN]]", "finite"),
        ('"0,10"', "must hold JSON"),
        ("age: 0 to 10", "must hold JSON"),
        ("", "must hold JSON"),
        (b"\xff\xfe\x00", "must hold JSON"),
    ],
)
def test_files_of_bounds_that_do_not_fit_are_refused(fit_refused, content, text, tmp_path):
    path = tmp_path / "bounds.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert text in fit_refused(2, "--bounds", path)


def test_bounds_by_name_are_refused_for_columns_without_names(fit_refused, rows, tmp_path):
    np.save(tmp_path / "t.npy", rows)
    (tmp_path / "b.json").write_text('{"age": [0, 10], "height": [0, 10]}')
    assert "have no names" in fit_refused(2, "--bounds", tmp_path / "b.json", data=tmp_path / "t.npy")


class TestTables:
    """Tables that cannot be read as rows of numbers."""

    def test_a_csv_without_header_is_refused_and_its_first_row_not_quoted(self, fit_refused, rows, tmp_path):
        np.savetxt(tmp_path / "bare.csv", rows, delimiter=",")
        assert "is not a header" in fit_refused(2, *BOUNDS, data=tmp_path / "bare.csv")

    def test_an_empty_file_is_called_empty(self, fit_refused, tmp_path):
        (tmp_path / "empty.csv").touch()
        assert "is empty" in fit_refused(2, *BOUNDS, data=tmp_path / "empty.csv")

    def test_a_column_of_type_text_is_named_and_its_text_not_quoted(self, fit_refused, rows, tmp_path):
        frame = pd.DataFrame(rows, columns=["age", "height"]).assign(town=f"town of {SECRET}")
        frame.to_parquet(tmp_path / "t.parquet", index=False)
        assert '"town"' in fit_refused(2, *BOUNDS, data=tmp_path / "t.parquet")

    def test_a_broken_parquet_footer_is_refused(self, fit_refused, rows, tmp_path):
        path = tmp_path / "t.parquet"
        pd.DataFrame(rows, columns=["age", "height"]).to_parquet(path)
        content = path.read_bytes()
        for broken in (content[:-9], content[: len(content) // 2], content[:-12] + b"\xff" * 4 + content[-8:], b""):
            path.write_bytes(broken)
            assert "no readable Parquet file" in fit_refused(2, *BOUNDS, data=path)

    def test_arrays_that_are_no_tables_are_refused(self, fit_refused, tmp_path):
        np.save(tmp_path / "flat.npy", np.full(N_ROWS, SECRET))
        assert "Expected 2D array" in fit_refused(2, *BOUNDS, data=tmp_path / "flat.npy")
        np.save(tmp_path / "text.npy", np.full((N_ROWS, 2), str(SECRET)))
        assert "argument must be a real number" in fit_refused(2, *BOUNDS, data=tmp_path / "text.npy")
        np.savez(tmp_path / "other.npz", rows=np.full((N_ROWS, 2), SECRET))
        assert "has no array x" in fit_refused(2, *BOUNDS, data=tmp_path / "other.npz")
        save_npz(tmp_path / "sparse.npz", csr_array(np.full((N_ROWS, 2), SECRET)))
        assert "holds a sparse matrix" in fit_refused(2, *BOUNDS, data=tmp_path / "sparse.npz")
        np.save(tmp_path / "good.npy", np.full((N_ROWS, 2), SECRET))
        assert "there is no column 2. The columns are 0, 1" in fit_refused(
            2, *BOUNDS, "--columns", "2", data=tmp_path / "good.npy"
        )

    def test_what_is_not_there_or_of_no_known_kind_is_refused(self, fit_refused, tmp_path):
        said = fit_refused(2, *BOUNDS, data=tmp_path / "nothing.csv")
        assert "there is no file" in said
        assert "or the rows" not in said, "a shell cannot pass rows"
        (tmp_path / "t.xlsx").write_text(str(SECRET))
        assert "no known kind" in fit_refused(2, *BOUNDS, data=tmp_path / "t.xlsx")
        (tmp_path / "folder").mkdir()
        assert "no .parquet files" in fit_refused(2, *BOUNDS, data=tmp_path / "folder")

    def test_a_file_damaged_inside_is_found_when_it_is_read_and_the_budget_stays_spent(self, kveil, budget, rows, tmp_path):
        path = tmp_path / "t.parquet"
        pd.DataFrame(rows, columns=["age", "height"]).to_parquet(path)
        content = bytearray(path.read_bytes())
        content[4:3000] = b"\xff" * 2996
        path.write_bytes(content)
        outcome = kveil("fit", path, "-o", tmp_path / "out", *BOUNDS, "--ledger", tmp_path / "budget.db")
        assert (outcome.code, outcome.out) == (2, "")
        assert is_one_paragraph(outcome.err)
        assert "damaged" in outcome.err
        assert not (tmp_path / "out").exists()
        assert len(budget.charges()) == 1, "the whole budget is reserved before a row is read"


class TestPlaces:
    """Places where the release could not be saved: found out before anything is spent."""

    def test_an_existing_place_is_not_touched(self, fit_refused, tmp_path):
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "thesis.tex").write_text("years of work")
        said = fit_refused(2, *BOUNDS)
        assert ("there is something at" in said, "or pass --force if it is" in said) == (True, True)
        assert "so --force does not touch it" in fit_refused(2, *BOUNDS, "--force")
        (tmp_path / "file").write_text("one file")
        assert "there is something at" in fit_refused(2, *BOUNDS, out=tmp_path / "file")
        assert "is not a kveil release" in fit_refused(2, *BOUNDS, "--force", out=tmp_path / "file")

    def test_a_release_is_replaced_only_by_force_and_only_if_alone(self, fit_refused, kveil, csv, tmp_path):
        assert kveil("fit", csv, "-o", tmp_path / "out", *BOUNDS).code == 0
        assert "--force" in fit_refused(2, *BOUNDS)
        (tmp_path / "out" / "notes.txt").write_text("mine")
        assert "shares its folder with other files" in fit_refused(2, *BOUNDS, "--force")

    def test_a_link_to_nowhere_is_in_the_way(self, fit_refused, tmp_path):
        os.symlink(tmp_path / "nowhere", tmp_path / "out")
        assert "there is something at" in fit_refused(2, *BOUNDS)
        assert "is not a kveil release" in fit_refused(2, *BOUNDS, "--force")

    def test_a_place_without_a_parent_is_refused_and_the_parent_not_made(self, fit_refused, csv, tmp_path):
        assert "No such file or directory" in fit_refused(2, *BOUNDS, out=tmp_path / "no" / "such" / "out")
        assert "Not a directory" in fit_refused(2, *BOUNDS, out=csv / "out")

    def test_a_name_too_long_to_be_saved_under_is_refused(self, fit_refused, tmp_path):
        assert "nothing was charged" in fit_refused(2, *BOUNDS, out=tmp_path / ("n" * 250))

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
    def test_a_folder_that_may_not_be_written_to_is_refused(self, fit_refused, tmp_path):
        (tmp_path / "closed").mkdir(mode=0o500)
        assert "Permission denied" in fit_refused(2, *BOUNDS, out=tmp_path / "closed" / "out")


class TestUsage:
    """What typer refuses itself, before kveil is asked."""

    @pytest.mark.parametrize(
        "arguments",
        [
            ("--epsilon", "small"),
            ("--relation", "friends"),
            ("--method", "magic"),
            ("--format", "pickle"),
            ("--scaling", "rows"),
            ("--random-state", -1),
            ("--random-state", 2**32),
            ("--seed", 1),
        ],
    )
    def test_arguments_that_make_no_sense_are_refused(self, refused, csv, tmp_path, arguments):
        said = refused(2, "fit", csv, "-o", tmp_path / "out", *BOUNDS, "--ledger", tmp_path / "budget.db", *arguments)
        assert "Usage: kveil fit" in said

    def test_a_second_table_that_is_not_there_is_named(self, refused, csv, tmp_path):
        said = refused(2, "fit", csv, "-o", tmp_path / "out", *BOUNDS, "--ledger", tmp_path / "budget.db", "another.csv")
        assert "there is no file another.csv" in said

    def test_a_number_of_clusters_that_is_none_is_refused(self, refused, csv, tmp_path):
        said = refused(2, "fit", csv, "-o", tmp_path / "out", *BOUNDS, "--ledger", tmp_path / "budget.db", "--k", "many")
        assert "--k takes a whole number, or auto" in said

    @pytest.mark.parametrize(
        "arguments", [("fit",), ("fit", "table.csv"), ("fit", "-o", "out"), ("guarantee",), ("ledger", "init", "x.db"), ("fly",)]
    )
    def test_what_is_missing_or_unknown_is_named(self, refused, arguments):
        assert "Usage: kveil" in refused(2, *arguments)


class TestBudget:
    """Refused by the ledger: exit code 3, and the ledger as it was."""

    def test_too_little_left_is_refused_and_says_what_is_left(self, fit_refused):
        said = fit_refused(3, *BOUNDS, "--epsilon", 2.5)
        assert 'needs epsilon 2.5, delta 0; epsilon 2, delta 0 is left on ledger "clinic"' in said
        assert "Nothing was drawn and nothing was charged" in said

    def test_the_last_bit_of_a_budget_can_be_spent_and_not_a_bit_more(self, fit_refused, kveil, csv, budget, tmp_path):
        for number in range(4):
            arguments = ("-o", tmp_path / f"{number}", *BOUNDS, "--epsilon", 0.5, "--ledger", tmp_path / "budget.db")
            assert kveil("fit", csv, *arguments).code == 0
        assert budget.remaining().epsilon == 0
        assert "is left" in fit_refused(3, *BOUNDS, "--epsilon", 1e-6)

    @pytest.mark.parametrize(
        ("terms", "arguments"),
        [
            ({"relation": "replace-one"}, ()),
            ({"relation": "add-remove"}, ("--relation", "replace-one")),
            ({"relation": "add-remove", "unit": PrivacyUnit("person", 3)}, ()),
            ({"relation": "add-remove", "unit": PrivacyUnit("person", 3)}, ("--person", "height", "--max-rows-per-person", 2)),
            ({"relation": "add-remove"}, ("--person", "height")),
            ({"relation": "add-remove"}, ("--n-steps", 30, "--delta", 1e-6)),
        ],
    )
    def test_a_ledger_of_another_kind_is_refused(self, fit_refused, terms, arguments, rows, tmp_path):
        frame = pd.DataFrame(rows, columns=["age", "height"]).assign(height=lambda table: table["height"].round().astype(int))
        frame.to_parquet(tmp_path / "t.parquet")
        other = Ledger.create(tmp_path / "other.db", "other", 2.0, **terms)
        said = fit_refused(3, *BOUNDS, *arguments, data=tmp_path / "t.parquet", ledger="other.db")
        assert "Nothing was charged" in said
        assert other.charges() == ()

    def test_a_ledger_that_is_not_there_or_is_none_is_bad_input(self, fit_refused, csv):
        assert "make one with `kveil ledger init`" in fit_refused(2, *BOUNDS, ledger="nothing.db")
        assert "no kveil ledger" in fit_refused(2, *BOUNDS, ledger=csv)


class TestUnforeseen:
    """Trouble nobody thought of, and Ctrl-C."""

    @pytest.fixture
    def broken(self, monkeypatch):
        def breaks(error):
            def run(*_, **__):
                raise error

            monkeypatch.setattr("kveil.methods.tree.method.Tree.run", run)

        return breaks

    def run(self, kveil, csv, tmp_path):
        return kveil("fit", csv, "-o", tmp_path / "out", *BOUNDS, "--ledger", tmp_path / "budget.db")

    def test_only_the_type_of_an_unforeseen_error_is_told(self, broken, kveil, csv, budget, tmp_path):
        broken(ZeroDivisionError(f"row 4391 holds {SECRET}"))
        outcome = self.run(kveil, csv, tmp_path)
        assert (outcome.code, outcome.out) == (1, "")
        assert is_one_paragraph(outcome.err)
        assert "ZeroDivisionError" in outcome.err
        assert "KVEIL_TRACEBACK=1" in outcome.err
        assert "row" not in outcome.err
        assert str(SECRET) not in outcome.err
        assert not (tmp_path / "out").exists()
        assert len(budget.charges()) == 1, "what was reserved stays spent"

    def test_a_developer_may_ask_for_the_traceback(self, broken, kveil, csv, budget, tmp_path, monkeypatch):
        broken(ZeroDivisionError("here"))
        monkeypatch.setenv("KVEIL_TRACEBACK", "1")
        with pytest.raises(ZeroDivisionError, match="here"):
            self.run(kveil, csv, tmp_path)
        monkeypatch.setenv("KVEIL_TRACEBACK", "0")
        assert self.run(kveil, csv, tmp_path).code == 1

    def test_a_refusal_is_a_refusal_also_for_developers(self, refused, csv, tmp_path, monkeypatch):
        monkeypatch.setenv("KVEIL_TRACEBACK", "1")
        assert is_one_paragraph(refused(2, "fit", csv, "-o", tmp_path / "out"))

    def test_an_interrupt_while_rows_are_read_says_that_the_reservation_stays_spent(self, broken, kveil, csv, budget, tmp_path):
        broken(KeyboardInterrupt())
        outcome = self.run(kveil, csv, tmp_path)
        assert outcome == (
            130,
            "",
            "kveil: interrupted. What was reserved on a ledger stays spent; `kveil ledger show` tells whether it was charged.\n",
        )
        assert not (tmp_path / "out").exists()
        assert len(budget.charges()) == 1

    @pytest.fixture
    def deaf(self):
        """Whoever sends SIGTERM here and is not heard by the command must not end the tests."""
        before = signal.signal(signal.SIGTERM, handler := lambda *_: None)
        yield handler
        signal.signal(signal.SIGTERM, before)

    def test_sigterm_while_the_release_is_saved_leaves_no_half_of_it_and_the_handler_as_it_was(
        self, kveil, csv, budget, tmp_path, monkeypatch, deaf
    ):
        monkeypatch.setattr("kveil.release.place._sync_folder", lambda *_: signal.raise_signal(signal.SIGTERM))
        outcome = self.run(kveil, csv, tmp_path)
        assert outcome == (
            143,
            "",
            "kveil: terminated. What was reserved on a ledger stays spent; `kveil ledger show` tells whether it was charged.\n",
        )
        assert signal.getsignal(signal.SIGTERM) is deaf
        assert {path.name for path in tmp_path.iterdir() if not path.name.startswith("budget.db")} == {"in"}
        assert len(budget.charges()) == 1

    def test_an_interrupt_before_the_reservation_spends_nothing(self, refused, csv, tmp_path, monkeypatch):
        def interrupt(*_, **__):
            raise KeyboardInterrupt

        monkeypatch.setattr("kveil.cli.fit.parse_bounds", interrupt)
        said = refused(130, "fit", csv, "-o", tmp_path / "out", *BOUNDS, "--ledger", tmp_path / "budget.db")
        assert said.startswith("kveil: interrupted.")

    def test_an_interrupt_while_the_release_is_saved_leaves_no_half_of_it(self, kveil, csv, budget, tmp_path, monkeypatch):
        def interrupt(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr("kveil.release.place._sync_folder", interrupt)
        assert self.run(kveil, csv, tmp_path).code == 130
        assert {path.name for path in tmp_path.iterdir() if not path.name.startswith("budget.db")} == {"in"}


class TestNames:
    """Names of files and columns are quoted as they are, and steer nothing."""

    def test_markup_and_emoji_codes_in_names_are_left_as_they_are(self, refused, tmp_path):
        assert "no:cat:[bold]x[/bold].csv." in refused(2, "fit", "no:cat:[bold]x[/bold].csv", "-o", tmp_path / "out")

    def test_names_of_columns_cannot_steer_a_terminal_or_begin_a_paragraph(self, fit_refused, rows, tmp_path):
        frame = pd.DataFrame(rows, columns=["age\x1b[2J", "he\n\night"])
        frame.to_parquet(tmp_path / "t.parquet")
        said = fit_refused(2, *BOUNDS, "--columns", "age", data=tmp_path / "t.parquet")
        assert "\x1b" not in said
        assert '"age [2J", "he  ight"' in said


def test_a_refusal_in_a_process_of_its_own_looks_the_same(shell, csv, budget, tmp_path):
    arguments = ("fit", csv, "-o", tmp_path / "out", *BOUNDS, "--ledger", tmp_path / "budget.db")
    for code, more in ((2, ("--k", 0)), (3, ("--epsilon", 2.5))):
        outcome = shell(*arguments, *more)
        assert (outcome.code, outcome.out) == (code, "")
        assert is_one_paragraph(outcome.err), outcome.err
    assert budget.charges() == ()
    assert not (tmp_path / "out").exists()


def test_the_release_of_a_refused_overwrite_is_still_the_old_one(kveil, csv, tmp_path):
    assert kveil("fit", csv, "-o", tmp_path / "out", *BOUNDS).code == 0
    before = library.load(tmp_path / "out").centers
    assert kveil("fit", csv, "-o", tmp_path / "out", *BOUNDS).code == 2
    np.testing.assert_array_equal(library.load(tmp_path / "out").centers, before)
