"""However rows come in, their integer summary is the same to the last bit."""

import copy
import operator
import threading

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from kveil.kernel.grid import Ball, Box
from kveil.source import read
from kveil.source.base import merge

pytestmark = pytest.mark.filterwarnings("error")


def test_every_form_of_a_table_gives_the_same_sums(form, form_of, table, summary, expected):
    rows = table(500)
    assert summary(read(form_of(form, rows))) == expected(rows)


@pytest.mark.parametrize("pieces", [1, 7, 64])
@pytest.mark.parametrize("form", ["parquet", "folder", "dask-array", "dask-frame"])
def test_the_number_of_partitions_does_not_matter(form, pieces, form_of, table, summary, expected):
    rows = table(640)
    source = read(form_of(form, rows, pieces))
    assert len(source.partitions()) == pieces
    assert summary(source) == expected(rows)


@pytest.mark.parametrize("form", ["numpy", "pandas", "csv", "parquet", "dask-frame"])
def test_the_order_of_rows_does_not_matter(form, form_of, table, summary, expected):
    rows = table(500)
    shuffled = np.random.default_rng(1).permutation(rows)
    assert summary(read(form_of(form, shuffled))) == expected(rows)


@pytest.mark.parametrize("form", ["numpy", "polars", "csv", "folder"])
@pytest.mark.parametrize("block_rows", [1, 7, 2048])
@pytest.mark.parametrize("threads", ["1", "2", "8"])
def test_threads_and_block_sizes_do_not_matter(form, block_rows, threads, form_of, table, summary, expected, monkeypatch):
    monkeypatch.setenv("KVEIL_THREADS", threads)
    rows = table(300)
    source = read(form_of(form, rows))
    source._block_rows = block_rows
    assert summary(source) == expected(rows)
    assert summary(source) == expected(rows)


def test_a_table_of_many_blocks_is_read_once_and_only_once(table, summary, expected):
    rows = table(40_000)
    assert len(read(rows).partitions()) > 2
    assert summary(read(rows)) == expected(rows)


def test_a_csv_of_many_byte_ranges_is_read_once_and_only_once(form_of, table, summary, expected):
    rows = table(20_000)
    source = read(form_of("csv", rows))
    source._block_rows = 16
    assert len(source.partitions()) > 10
    assert summary(source) == expected(rows)


@pytest.mark.parametrize("form", ["numpy", "csv", "dask-array"])
@pytest.mark.parametrize("combine", [np.maximum, np.minimum, np.add, operator.add])
def test_results_are_merged_by_the_function_asked_for(form, combine, form_of, table, grid, columnwise_largest, monkeypatch):
    rows = table(300)
    source = read(form_of(form, rows, 1))
    whole = source.map_reduce(columnwise_largest, None, grid=grid, combine=combine)
    assert whole[0].dtype == np.int64
    if combine is np.maximum:
        assert whole[0].tolist() == grid.encode(rows).max(axis=0).tolist()


def test_sums_grow_in_place_and_leave_the_answers_of_blocks_as_they_were():
    """A question may hand out an array that it keeps; what is narrow must not overflow on the way."""
    answers = [(np.array([200, 1], dtype=np.uint8), np.array(7, dtype=np.uint64), np.array([5])) for _ in range(3)]
    total = merge(None, answers[0], np.add)
    assert not any(np.shares_memory(*pair) for pair in zip(total, answers[0], strict=True)), "also where no type changes"
    again = merge(merge(total, answers[1], np.add), answers[2], np.add)
    assert again[0] is total[0]
    assert [part.tolist() for part in again] == [[600, 3], 21, [15]]
    assert [part.dtype for part in again] == [np.int64] * 3
    assert [[part.tolist() for part in answer] for answer in answers] == [[[200, 1], 7, [5]]] * 3


def test_a_table_without_rows_has_a_summary_of_the_same_shape(form, form_of, summary):
    assert summary(read(form_of(form, np.empty((0, 3))))) == [[0, 0, 0], [0, 0, 0], [0]]


def test_passes_from_the_cache_equal_passes_that_read_again(form, form_of, table, summary, expected):
    rows = table(3000)
    kept, again = read(form_of(form, rows)), read(rows)
    again._cache.limit = 0
    for _ in range(3):
        assert summary(kept) == summary(again) == expected(rows)
    assert again._cache._held[1] is None


def test_a_cache_given_up_midway_changes_nothing(table, summary, expected):
    rows = table(20_000)
    source = read(rows)
    source._cache.limit = 50_000  # some blocks fit, not all
    for _ in range(3):
        assert summary(source) == expected(rows)


def test_the_cache_follows_the_grid(table, summary, expected):
    rows = table(1000)
    source = read(rows)
    fine, coarse = Box([-9.0] * 3, [9.0] * 3, bits=20), Ball([0.0] * 3, 2.0, bits=8)
    for domain in (fine, coarse, fine, Box([-9.0] * 3, [9.0] * 3, bits=20)):
        assert summary(source, domain) == expected(rows, domain)
        assert source._cache._held[0] is domain


def test_a_pass_that_failed_leaves_no_half_filled_cache(table, grid, summary, expected):
    rows = table(20_000)
    source = read(rows)

    def stumble(block, state):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        source.map_reduce(stumble, None, grid=grid)
    assert summary(source) == expected(rows)


def test_fits_in_several_threads_may_share_a_source(table, summary, expected):
    rows, answers = table(20_000), []
    source = read(rows)
    workers = [threading.Thread(target=lambda: answers.append(summary(source))) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert answers == [expected(rows)] * 6


@pytest.mark.parametrize("form", ["numpy", "pandas", "polars", "pyarrow", "dask-array"])
def test_the_callers_data_is_never_changed(form, form_of, table, summary):
    rows = table(200)
    data = form_of(form, rows)
    before = copy.deepcopy(data) if form != "dask-array" else data
    summary(read(data))
    np.testing.assert_array_equal(np.asarray(data), np.asarray(before))
    np.testing.assert_array_equal(rows, table(200))


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint64, np.float16, np.longdouble, ">f8"])
def test_every_type_of_number_is_a_number(kind, summary, expected):
    rows = np.array([[0, 1, 1], [1, 0, 1]]).astype(kind)
    assert summary(read(rows)) == expected(rows.astype(np.float64))


def test_objects_that_are_numbers_are_numbers(summary, expected):
    from decimal import Decimal
    from fractions import Fraction

    odd = [Fraction(1, 2), 10**400, Decimal("sNaN")]
    rows = np.array([[1, 2.5, None], [True, np.float32(1), Decimal("1.5")], odd], dtype=object)
    floats = np.array([[1, 2.5, np.nan], [1, 1, 1.5], [0.5, np.nan, np.nan]])
    assert summary(read(rows)) == expected(floats)


def test_masked_entries_count_as_missing(summary, expected):
    rows = np.ma.MaskedArray([[1.0, 2.0, 3.0], [1.0, 1.0, 1.0]], mask=[[False, True, False], [False] * 3])
    assert summary(read(rows)) == expected(np.array([[1.0, np.nan, 3.0], [1.0, 1.0, 1.0]]))


@pytest.mark.parametrize(
    "rows",
    [
        [[1.0, np.ma.masked, 3.0], [1.0, 1.0, 1.0]],
        [np.ma.array([1, 2, 3], mask=[0, 1, 0]), [1, 1, 1]],
        np.array([[1.0, np.ma.masked, 3.0], [1.0, 1.0, 1.0]], dtype=object),
    ],
)
def test_masked_cells_of_lists_and_objects_count_as_missing_without_a_warning(rows, summary, expected):
    assert summary(read(rows)) == expected(np.array([[1.0, np.nan, 3.0], [1.0, 1.0, 1.0]]))


def test_a_pandas_column_of_objects_is_judged_by_all_of_its_rows(summary, expected):
    for numbers in ([None] * 150 + [1.5], [1.5] + [None] * 150):
        frame = pd.DataFrame({"a": pd.Series(numbers, dtype=object), "b": 0.0, "c": 0.0})
        assert summary(read(frame)) == expected(frame.to_numpy(dtype=float))


def test_a_polars_column_of_objects_that_are_numbers_is_read(summary, expected):
    frame = pl.DataFrame({"a": pl.Series([1.5, 2], dtype=pl.Object), "b": [0.0, 1.0], "c": [0.0, 1.0]})
    assert summary(read(frame)) == expected(np.array([[1.5, 0, 0], [2, 1, 1]]))


def test_a_longdouble_beyond_float64_neither_raises_nor_warns(summary, expected):
    rows = np.array([[1, 2, 3]], dtype=np.longdouble) * np.longdouble("1e4000")
    assert summary(read(rows)) == expected(np.full((1, 3), np.inf))


class TestSparse:
    """Sparse rows reach the kernel as CSR codes, equal to the dense ones."""

    grid = Box([-3.0] * 3, [3.0] * 3)

    @pytest.mark.parametrize("format", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
    @pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix])
    def test_every_format_gives_the_codes_of_the_dense_table(self, format, container, table, expected):
        rows = np.nan_to_num(table(60), posinf=9, neginf=-9) * (np.random.default_rng(2).random((60, 3)) < 0.4)
        rows[4, 1] = np.nan
        matrix = container(rows).asformat(format)
        before = matrix.copy()
        assert self.sums(read(matrix)) == expected(rows, self.grid)
        assert (matrix != before).nnz <= 1  # the NaN differs from itself

    def test_duplicates_are_summed_and_the_matrix_is_left_alone(self, expected):
        data, place = np.array([1.0, 0.5, 2.0, 1.0]), (np.array([1, 0, 0, 1]), np.array([2, 2, 0, 2]))
        for matrix in (sp.coo_array((data, place), shape=(2, 3)), sp.csr_array((data[[1, 2, 0, 3]], [2, 0, 2, 2], [0, 2, 4]))):
            assert self.sums(read(matrix)) == expected(np.array([[2.0, 0, 0.5], [0, 0, 2.0]]), self.grid)
            assert matrix.nnz == 4

    def test_columns_can_be_chosen_and_reordered(self, expected):
        rows = np.array([[1.0, 0.0, 2.0], [0.0, 1.5, 0.5]])
        domain = Box([-3.0] * 2, [3.0] * 2)
        assert self.sums(read(sp.csr_array(rows), columns=[2, 0]), domain) == expected(rows[:, [2, 0]], domain)

    def test_no_rows_give_a_summary(self):
        assert self.sums(read(sp.csr_array((0, 3)))) == [[0] * 3, [0] * 3, [0]]

    def test_the_order_of_duplicates_in_one_row_is_not_decided_by_another_row(self):
        values = np.random.default_rng(3).normal(size=40) * 10.0 ** np.arange(40)[::-1]
        alone = sp.csr_array((values, [1] * 40, [0, 40]), shape=(1, 3))
        beside = sp.csr_array((np.append(values, [1.0, 1.0]), [1] * 40 + [2, 0], [0, 40, 42]), shape=(2, 3))
        first = next(read(alone).raw_blocks()).toarray()[0]
        assert next(read(beside).raw_blocks()).toarray()[0].tolist() == first.tolist()

    def sums(self, source, domain=None):
        return [a.tolist() for a in source.map_reduce(sparse_sums, None, grid=domain or self.grid)]


def sparse_sums(block, state):
    assert block.has_canonical_format
    assert block.dtype == np.int16  # of a grid of 16 bits
    wide = block.toarray().astype(np.int64)
    return wide.sum(axis=0), (wide * wide).sum(axis=0), np.array([block.shape[0]])
