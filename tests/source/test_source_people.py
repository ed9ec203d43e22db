"""Of each person at most m rows stay, and nobody's rows decide about another's."""

from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kveil.errors import SourceError
from kveil.kernel.grid import Box
from kveil.kernel.loss import PrivacyUnit
from kveil.source import read
from kveil.source.people import Fingerprints, kept_rows, matching_rows, row_hashes, sparse_row_hashes

pytestmark = pytest.mark.filterwarnings("error")

GRID = Box([-8.0, -8.0], [8.0, 8.0])
FORMS = ["pandas", "polars", "pyarrow", "csv", "parquet", "folder", "dask-frame"]


def rows_seen(block, state):
    """How often each possible row was seen: rows are pairs of whole numbers 0..4."""
    counts = np.zeros((5, 5), dtype=np.int64)
    cell = np.clip(np.rint(GRID.decode(block)).astype(int), 0, 4)
    np.add.at(counts, (cell[:, 0], cell[:, 1]), 1)
    return (counts,)


def seen(source):
    return source.map_reduce(rows_seen, None, grid=GRID)[0].tolist()


def sparse_rows_seen(block, state):
    return rows_seen(block.toarray(), state)


def sparse_seen(source):
    return source.map_reduce(sparse_rows_seen, None, grid=GRID)[0].tolist()


def visits(n_rows=300, seed=0, text=False):
    random = np.random.default_rng(seed)
    ids = random.integers(0, 40, n_rows)
    people = [f"p{i}" for i in ids] if text else ids
    return pd.DataFrame({"x": random.integers(0, 5, n_rows) * 1.0, "id": people, "y": random.integers(0, 5, n_rows)})


def in_form(form, frame, folder, pieces=3):
    chunk = max(1, -(-len(frame) // pieces))
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if form == "polars":
        return pl.from_arrow(table)
    if form == "pyarrow":
        return table
    if form == "csv":
        frame.to_csv(folder / "t.csv", index=False)
        return folder / "t.csv"
    if form == "parquet":
        pq.write_table(table, folder / "t.parquet", row_group_size=chunk)
        return folder / "t.parquet"
    if form == "folder":
        place = folder / f"t{len(list(folder.iterdir()))}"
        place.mkdir()
        for start in range(0, max(1, len(frame)), chunk):
            pq.write_table(table.slice(start, chunk), place / f"{start:05}.parquet")
        return place
    if form == "dask-frame":
        import dask.dataframe as dd

        return dd.from_pandas(frame, npartitions=pieces)
    return frame


def test_the_unit_of_the_source_is_the_person():
    source = read(visits(), person="id", max_rows_per_person=3)
    assert source.unit == PrivacyUnit("person", 3, "id")
    assert source.names == ("x", "y")
    assert read(visits()).unit == PrivacyUnit()


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_keeps_the_same_rows(form, text, tmp_path):
    frame = visits(text=text)
    reference = seen(read(frame, person="id", max_rows_per_person=2))
    assert np.sum(reference) == sum(min(2, n) for n in Counter(frame["id"]).values())
    for pieces in (1, 7, 64):
        shuffled = frame.sample(frac=1, random_state=pieces, ignore_index=True)
        source = read(in_form(form, shuffled, tmp_path, pieces), person="id", max_rows_per_person=2)
        assert seen(source) == reference
        assert seen(source) == reference


def test_blocks_and_threads_do_not_change_which_rows_stay(tmp_path, monkeypatch):
    frame = visits(3000)
    reference = seen(read(frame, person="id", max_rows_per_person=5))
    for form in ("csv", "parquet"):
        for threads, block_rows in (("1", 7), ("2", 100), ("2", 1)):
            monkeypatch.setenv("KVEIL_THREADS", threads)
            source = read(in_form(form, frame, tmp_path), person="id", max_rows_per_person=5)
            source._block_rows = block_rows
            source._cache.limit = 0
            assert seen(source) == seen(source) == reference


def test_an_array_has_a_numbered_column_of_ids_that_must_be_whole(tmp_path):
    frame = visits()
    for table in (frame.to_numpy(dtype=float), frame.to_numpy(dtype=np.int64), frame.to_numpy(dtype=np.float32)):
        assert seen(read(table, person=1)) == seen(read(frame, person="id"))
    np.savez(tmp_path / "t.npz", x=frame.to_numpy(dtype=float))
    assert seen(read(tmp_path / "t.npz", person=1)) == seen(read(frame, person="id"))
    odd = np.array([[1, 0.5, 1], [1, np.nan, 1], [1, np.inf, 1], [2, -0.0, 2], [2, 0.0, 2], [3, 1e300, 3]])
    assert np.sum(seen(read(odd, person=1))) == 1  # person 0 only


@pytest.mark.parametrize(
    ("kind", "limit"), [(np.float64, 2**53), (np.float32, 2**24), (np.float16, 2**11), (np.longdouble, 2**53)]
)
def test_a_float_that_may_stand_for_several_ids_is_no_id(kind, limit):
    ids = np.array([limit - 1, 1 - limit, limit, -limit, limit + 2], dtype=kind)
    table = np.stack([np.ones(5, dtype=kind), ids, np.ones(5, dtype=kind)], axis=1)
    assert np.sum(seen(read(table, person=1))) == 2


def test_a_masked_id_is_missing():
    for kind in (np.int64, np.uint64, np.float64):
        table = np.ma.array(np.array([[1, 1, 1], [2, 3, 2], [3, 2, 3]], dtype=kind), mask=[[0] * 3, [0, 1, 0], [0] * 3])
        assert np.sum(seen(read(table, person=1))) == 2


def test_lists_have_no_people_since_one_rows_type_would_become_everybodys():
    table = [[2**53 + i, 1, 1] for i in range(4)]
    for rows in (table, [*table, [7, 0.5, 1]], [*table, [7, None, 1]], tuple(map(tuple, table))):
        with pytest.raises(SourceError, match="lists have no type"):
            read(rows, person=0)
    assert read(table).n_columns == 3


def test_a_dask_array_has_a_numbered_column_of_ids():
    import dask.array as da

    frame = visits()
    table = da.from_array(frame.to_numpy(dtype=float), chunks=(50, 2))
    assert seen(read(table, person=1)) == seen(read(frame, person="id"))


@pytest.mark.parametrize("form", FORMS)
def test_rows_without_an_id_are_left_out(form, tmp_path):
    frame = visits(text=True)
    frame.loc[::3, "id"] = None
    rest = frame.dropna(ignore_index=True)
    assert seen(read(in_form(form, frame, tmp_path), person="id")) == seen(read(rest, person="id"))


def test_large_integer_ids_are_told_apart():
    frame = pd.DataFrame({"x": [1.0, 2.0], "id": [2**60, 2**60 + 1], "y": [1.0, 2.0]})
    assert np.sum(seen(read(frame, person="id"))) == 2
    assert np.sum(seen(read(frame.astype({"id": "uint64"}), person="id"))) == 2
    assert np.sum(seen(read(np.array([[1, 2**60, 1], [2, 2**60 + 1, 2]]), person=1))) == 2


def test_categories_are_ids_and_floats_and_dates_are_not():
    frame = visits(text=True)
    assert seen(read(frame.astype({"id": "category"}), person="id")) == seen(read(frame, person="id"))
    for kind in ("float64", "datetime64[ns]"):
        with pytest.raises(SourceError, match="integers or strings"):
            read(visits().astype({"id": kind}), person="id")


def test_an_old_pandas_column_of_objects_may_hold_strings_and_nothing_else_counts_wherever_it_stands():
    many, odd = ["a"] * 200, [3, None, ("b",), "c", "\ud800x", 2.5, True]
    for ids in (many + odd, odd + many, odd[::-1] + many):
        frame = pd.DataFrame({"x": 1.0, "id": pd.Series(ids, dtype=object), "y": 2.0})
        assert np.sum(seen(read(frame, person="id", max_rows_per_person=4))) == 6


def test_text_that_is_no_utf8_is_an_id_like_any_other():
    for ids in (pd.array(["a", "\ud800x", "\ud800x", None], dtype=pd.StringDtype("python")),
                pd.Categorical(pd.array(["a", "\ud800x", "\ud800x", None], dtype=pd.StringDtype("python")))):  # fmt: skip
        frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "id": ids, "y": 1.0})
        assert np.sum(seen(read(frame, person="id"))) == 2


@pytest.mark.parametrize(
    "ids",
    [[1, 2, 1, None], ["a", "b", "a", None], [2**63 + 1, 2**63 + 2, 2**63 + 1, None],
     pd.array([2**60, 2**60 + 1, 2**60, None], dtype="Int64"), pd.array(["a", "b", "a", None], dtype=pd.ArrowDtype(pa.string())),
     pd.Series(["a", "b", "a", None], dtype=object)],
)  # fmt: skip
def test_categories_that_are_integers_or_text_are_exact_ids(ids):
    ids = pd.Categorical(ids) if not isinstance(ids, list) or isinstance(ids[0], str) else pd.Categorical.from_codes(
        [0, 1, 0, -1], categories=ids[:2])  # fmt: skip
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "id": ids, "y": 1.0})
    assert np.sum(seen(read(frame, person="id"))) == 2


@pytest.mark.parametrize(
    "ids",
    [pd.Categorical([1, "secretname"]), pd.Categorical(["a", ("t", 1)]), pd.Categorical([1, 2**70]), pd.Categorical([1.5, 2]),
     pd.Categorical([True, False]), pd.Categorical([pd.Timestamp("2020"), pd.Timestamp("2021")])],
)  # fmt: skip
def test_categories_that_are_neither_integers_nor_text_are_refused_before_a_row_is_read(ids):
    with pytest.raises(SourceError, match="integers or strings") as caught:
        read(pd.DataFrame({"x": [1.0, 2.0], "id": ids}), person="id")
    assert "secretname" not in str(caught.value)
    assert caught.value.__context__ is None


def test_arrow_dictionaries_and_wide_integers_are_refused_unless_their_values_are_exact():
    for values in ([1.5, 2.0], [True, False]):
        with pytest.raises(SourceError, match="integers or strings"):
            read(pa.table({"x": [1.0, 2.0], "id": pa.array(values).dictionary_encode()}), person="id")
    for kind in (getattr(pl, name) for name in ("Int128", "UInt128") if hasattr(pl, name)):  # older polars has neither
        wide = pl.DataFrame({"x": [1.0, 2.0], "id": pl.Series([2**100, 1], dtype=kind)})
        with pytest.raises(SourceError, match="integers or strings"):
            read(wide, person="id")
        with pytest.raises(SourceError, match="128"):
            read(wide)
    for values in ([1, 2], ["a", "b"]):
        table = pa.table({"x": [1.0, 2.0], "id": pa.array(values).dictionary_encode(), "y": [1.0, 2.0]})
        assert np.sum(seen(read(table, person="id"))) == 2


def test_ids_of_another_type_in_one_file_of_a_folder_are_refused(tmp_path):
    pq.write_table(pa.table({"x": [1.0], "id": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"x": [1.0], "id": ["1"]}), tmp_path / "2.parquet")
    with pytest.raises(SourceError, match="int64 or string"):
        read(tmp_path, person="id")


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.coo_array])
def test_of_sparse_rows_those_of_a_person_are_bounded_as_of_a_dense_table(form):
    table = np.array([[7, 1, 0], [7, 1, 0], [7, 0, 2], [8, 3, 3], [9, 0, 0]], dtype=float)
    for limit in (1, 2, 5):
        source = read(form(table), person=0, max_rows_per_person=limit)
        assert source.unit == PrivacyUnit("person", limit, "0")
        counts = np.array(sparse_seen(source))
        assert counts.sum() == min(limit, 3) + 2
        assert counts[3, 3] == counts[0, 0] == 1
    shuffled = read(form(table[[3, 2, 0, 4, 1]]), person=0, max_rows_per_person=2)
    assert sparse_seen(shuffled) == sparse_seen(read(form(table), person=0, max_rows_per_person=2))


def test_sparse_rows_without_an_id_are_left_out():
    """An id that is not stored, is 0, is no whole number, is stored twice, or is too large for its type."""
    stored = [(0, 0.0), (1, 4.0), (1, 5.0), (2, 0.5), (3, 2.0**24), (4, 6.0)]  # of row 5 none
    where = [*(row for row, _ in stored), *range(6)], [*[0] * len(stored), *[1] * 6]
    values = np.array([*(value for _, value in stored), *[1.0] * 6], dtype=np.float32)
    table = sp.coo_array((values, where), shape=(6, 3))
    assert np.sum(sparse_seen(read(table, person=0, max_rows_per_person=9))) == 1


def test_hashes_of_sparse_rows_mind_what_is_in_them_and_not_how_it_is_stored():
    rows = np.array([[0.0, 1.0, 2.0], [0.0, 2.0, 1.0], [1.0, 2.0, 0.0], [np.nan, 0.0, 0.0], [0.0, 0.0, 0.0]])
    plain = sp.csr_array(rows)
    stored = sp.csr_array((rows.ravel(), np.tile(np.arange(3), 5), np.arange(0, 16, 3)), shape=(5, 3))  # zeros too
    assert len(set(sparse_row_hashes(plain).tolist())) == 5
    assert sparse_row_hashes(plain).tolist() == sparse_row_hashes(stored).tolist()
    # By its place, a row of one person would decide which rows of others stay.
    assert sparse_row_hashes(plain).tolist() == [int(sparse_row_hashes(plain[[i]])[0]) for i in range(5)]


def test_a_table_without_rows_has_no_people_and_a_summary(tmp_path):
    empty = visits(5)[:0]
    for form in FORMS:
        assert np.sum(seen(read(in_form(form, empty, tmp_path, 1), person="id"))) == 0


TABLE = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), max_size=25)


def kept_by_person(rows, limit):
    """The rows that stay, a sorted list for each person."""
    values = np.array([[float(value), -0.0] for _, value in rows]).reshape(-1, 2)
    ids = pa.array([person if person else None for person, _ in rows], pa.int64())
    mask = kept_rows([Fingerprints(ids, row_hashes(values))], limit)[0]
    return {p: sorted(v for (q, v), keep in zip(rows, mask, strict=True) if keep and q == p) for p in range(5)}


@given(TABLE, TABLE, st.integers(1, 3))
def test_one_persons_rows_never_change_what_is_kept_of_another(rows, replacement, limit):
    others = [row for row in rows if row[0] != 1]
    neighbour = others + [(1, value) for _, value in replacement]
    kept, kept_beside = kept_by_person(rows, limit), kept_by_person(neighbour, limit)
    for person in (2, 3, 4):
        assert kept[person] == kept_beside[person]
    assert kept[0] == []
    assert all(len(values) <= limit for values in kept.values())


@given(TABLE, st.randoms(use_true_random=False), st.integers(1, 3))
def test_order_does_not_change_what_is_kept(rows, random, limit):
    shuffled = random.sample(rows, len(rows))
    assert kept_by_person(shuffled, limit) == kept_by_person(rows, limit)


@settings(deadline=None)
@given(TABLE, TABLE, st.integers(1, 3))
def test_rows_found_again_are_matched_whatever_their_order_and_never_exceed_those_kept(rows, extra, limit):
    def fingerprints(table):
        values = np.array([[float(value)] for _, value in table]).reshape(-1, 1)
        return Fingerprints(pa.array([p if p else None for p, _ in table], pa.int64()), row_hashes(values))

    before = fingerprints(rows)
    mask = kept_rows([before], limit)[0]
    kept = Fingerprints(before.ids.filter(pa.array(mask)), before.hashes[mask])
    now = rows[::-1] + extra
    again = matching_rows(kept, fingerprints(now))
    chosen = Counter(row for row, keep in zip(now, again, strict=True) if keep)
    assert chosen == Counter(row for row, keep in zip(rows, mask, strict=True) if keep)


def test_hashes_treat_equal_numbers_as_equal_and_others_as_different():
    other_nan = np.array([0x7FF8000000000001], dtype=np.uint64).view(np.float64)[0]
    assert row_hashes(np.array([[np.nan, 0.0]])) == row_hashes(np.array([[-other_nan, -0.0]]))
    table = np.random.default_rng(0).normal(size=(10_000, 2))
    assert len(set(row_hashes(table).tolist())) == 10_000
    assert row_hashes(np.array([[1.0, 2.0]])) != row_hashes(np.array([[2.0, 1.0]]))
    np.testing.assert_array_equal(row_hashes(np.asfortranarray(table)), row_hashes(table))
