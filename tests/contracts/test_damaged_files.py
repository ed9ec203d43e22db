"""Damaged files that once got past their readers: each is refused in words, before memory is taken or anything is answered."""

from __future__ import annotations

import hashlib
import io
import json
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from benchmarks.fuzz.kept import PLAN
from benchmarks.fuzz.reading import means
from benchmarks.fuzz.wire import make_party, run_through
from numpy.lib import format as npy

from kveil import Graph, Ledger, StreamKMeans, read
from kveil.collect import Result
from kveil.errors import BudgetError, BudgetExceeded, InvalidValue, SourceError
from kveil.federate import Policy
from kveil.filing.spending import spending
from kveil.kernel.loss import Guarantee

EDGES = np.array([[0, 1], [1, 2]])


@pytest.mark.parametrize("spoil", [lambda data: data[:-30], lambda data: data[:60] + b"\xff" * 9 + data[69:], lambda data: b"PK"])
def test_a_damaged_graph_is_refused(spoil):
    np.savez("g.npz", edges=EDGES, n=np.array(3))
    Path("g.npz").write_bytes(spoil(Path("g.npz").read_bytes()))
    with pytest.raises(SourceError, match="damaged"):
        Graph.read("g.npz")


@pytest.mark.parametrize("n", [np.array(3), np.array(3.0), np.array([3])])
def test_a_graph_tells_its_number_of_vertices_in_any_type_of_number(n):
    np.savez("g.npz", edges=EDGES, n=n)
    assert Graph.read("g.npz").n_points == 3


def test_a_number_of_vertices_that_is_no_number_is_not_read():
    np.savez("g.npz", edges=EDGES, n=np.array(np.nan))
    assert Graph.read("g.npz").n_points == 3


def test_a_vertex_whose_name_ends_in_a_zero_byte_is_refused():
    Path("g.txt").write_bytes(b"a b\0\nb\0 c\n")
    with pytest.raises(InvalidValue, match="zero byte"):
        Graph.read("g.txt")


def test_edges_as_short_as_any_number_are_a_graph():
    assert Graph.from_edges([[0, 1], [1, 2]], lengths=[5e-324, 5e-324]).n_points == 3


def test_a_vertex_number_that_no_edge_can_reach_takes_no_memory():
    """An array for two thousand million vertices would take 16 GB."""
    with pytest.raises(InvalidValue, match="falls into pieces"):
        Graph.from_edges([[0, 2_000_000_000]])


def header_of(shape: tuple[int, ...]) -> bytes:
    sink = io.BytesIO()
    npy.write_array_header_1_0(sink, {"shape": shape, "fortran_order": False, "descr": "<f8"})
    return sink.getvalue() + bytes(160)


@pytest.mark.parametrize("shape", [(5, 2**40), (0, 2**40), (2**62, 2**62)])
@pytest.mark.parametrize("form", ["npy", "npz"])
def test_a_header_that_claims_more_columns_than_the_file_holds_is_refused(shape, form):
    if form == "npz":
        with zipfile.ZipFile("t.npz", "w") as archive:
            archive.writestr("x.npy", header_of(shape))
    else:
        Path("t.npy").write_bytes(header_of(shape))
    with pytest.raises(SourceError, match="damaged"):
        read(f"t.{form}")


def test_a_table_without_rows_may_have_many_columns():
    np.save("t.npy", np.empty((0, 1000)))
    assert read("t.npy").n_columns == 1000


CELLS = {
    "units is text": "UPDATE charge SET units='many'",
    "units is below 0": "UPDATE charge SET units=-5",
    "a plan is no JSON": "UPDATE charge SET plan='{'",
    "a plan is no plan": "UPDATE charge SET plan='[]'",
    "a plan without a unit": """UPDATE charge SET plan='{"charges": []}'""",
    "a day is no day": "UPDATE charge SET reserved_at='yesterday'",
    "a token is bytes": "UPDATE charge SET token=x'ff'",
    "noise neither secure nor scripted": "UPDATE charge SET secure=2",
    "a note is bytes": "UPDATE note SET text=x'ff'",
    "a limit is text": "UPDATE ledger SET limit_units='all'",
    "a name is bytes": "UPDATE ledger SET name=x'ff'",
    "an unknown relation": "UPDATE ledger SET relation='any'",
    "a delta of 2": "UPDATE ledger SET delta='2', rule='zcdp'",
    "an epsilon that takes hours": "UPDATE ledger SET epsilon='1e99999999999'",
    "no table of charges": "DROP TABLE charge",
    "a newer version": "UPDATE ledger SET version=2",
    "a unit of another kind": """UPDATE charge SET plan=replace(plan, '"id_column"', '"other"')""",
}


@pytest.mark.parametrize("name", CELLS)
def test_a_ledger_with_a_damaged_cell_is_refused(name):
    Ledger.create("l.db", "clinic", 2.0, relation="add-remove").reserve(PLAN, purpose="beds")
    with closing(sqlite3.connect("l.db", isolation_level=None)) as db:
        for (trigger,) in db.execute("SELECT name FROM sqlite_master WHERE type='trigger'").fetchall():
            db.execute(f"DROP TRIGGER {trigger}")
        db.execute("PRAGMA ignore_check_constraints=1")
        db.execute(CELLS[name])
    with pytest.raises(InvalidValue, match="no kveil ledger, or damaged"):
        Ledger.open("l.db")


def test_a_ledger_that_says_that_there_is_no_budget_is_still_shown():
    Ledger.create("l.db", "clinic", 2.0, relation="add-remove").reserve(PLAN)
    with closing(sqlite3.connect("l.db", isolation_level=None)) as db:
        db.execute("DROP TRIGGER fixed_ledger")
        db.execute("UPDATE ledger SET limit_units=0")
    assert spending(Ledger.open("l.db")).shares == (1.0,)


def test_a_ledger_that_lost_its_triggers_still_refuses_what_does_not_fit():
    ledger = Ledger.create("l.db", "clinic", 1.5 * float(PLAN.charges[0].epsilon), relation="add-remove")
    with closing(sqlite3.connect("l.db", isolation_level=None)) as db:
        for (trigger,) in db.execute("SELECT name FROM sqlite_master WHERE type='trigger'").fetchall():
            db.execute(f"DROP TRIGGER {trigger}")
    ledger.reserve(PLAN)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(PLAN, purpose="beds")
    assert len(Ledger.open("l.db").charges()) == 1


def test_a_ledger_that_is_damaged_while_it_is_open_says_so():
    ledger = Ledger.create("l.db", "clinic", 2.0, relation="add-remove")
    Path("l.db").write_bytes(b"SQLite format 3\x00" + b"\xff" * 9000)
    for act in (ledger.spent, ledger.charges, lambda: ledger.reserve(PLAN)):
        with pytest.raises(BudgetError, match="damaged"):
            act()


def test_a_damaged_journal_is_refused_before_anything_is_answered():
    Ledger.create("a.db", "a", 40.0, relation="add-remove")
    party = make_party(ledger="a.db")
    run_through(party)
    party.close()
    with closing(sqlite3.connect("a.db.runs", isolation_level=None)) as db:
        db.execute("ALTER TABLE answer RENAME COLUMN token TO other")
    with pytest.raises(InvalidValue, match="no journal"):
        make_party(ledger="a.db")


@pytest.mark.parametrize("missing", ["counts", "document"])
def test_a_stream_whose_state_lacks_a_part_is_refused(missing):
    StreamKMeans(2, epsilon=1.0, bounds=(-1, 1), memory=64).partial_fit([[0.1, 0.2]]).save("s")
    with np.load(io.BytesIO(Path("s").read_bytes()[:-32])) as held:
        parts = {name: held[name] for name in held.files if name != missing}
    sink = io.BytesIO()
    np.savez(sink, **parts)
    Path("s").write_bytes(sink.getvalue() + hashlib.sha256(sink.getvalue()).digest())
    with pytest.raises(SourceError, match="no state of a stream"):
        StreamKMeans.resume("s")


@pytest.mark.parametrize("epsilon", [f"{10**400}", "1e99999999999"])
def test_a_guarantee_with_a_number_that_cannot_be_written_or_computed_is_refused(epsilon):
    told = json.loads(means().guarantee.to_json())
    told["draws"] = [{**told["charges"][0], "epsilon": epsilon}]
    with pytest.raises(InvalidValue, match="no guarantee"):
        Guarantee.from_json(json.dumps(told))


@pytest.mark.parametrize("read_text", [lambda text: (Path("p.json").write_text(text), Policy.read("p.json")), Result.from_json])
def test_lists_within_lists_within_lists_are_refused(read_text):
    with pytest.raises(InvalidValue, match="is no"):
        read_text("[" * 100_000)
