"""Fits that share a source share its cache, and never get the blocks of another grid."""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kveil import read
from kveil.kernel.grid import Box
from kveil.source.base import RawRows
from kveil.source.cache import Cache
from kveil.source.local import LocalSource
from kveil.source.options import Options


class Domain:
    """Stands for a grid: the cache tells grids apart by identity alone."""


def filled(cache, grid, tag):
    filling = cache.begin(grid)
    filling.add(0, np.full(3, tag))
    return filling


def interrupted(call, at, interruption):
    """What `call` returns if `interruption` runs in its frame before the instruction number `at`, as a thread might."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        frame.f_trace_opcodes = True
        if event == "opcode":
            if count == at:
                interruption()
            count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return call()
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("at", range(30))
def test_a_fit_that_comes_between_two_instructions_of_another_never_swaps_their_notes(at):
    cache, mine, other = Cache(0, of_notes=100), Domain(), Domain()
    cache.notes(mine).page(0).keep("labels", np.full(3, 1))

    def meanwhile():
        cache.notes(other).page(0).keep("labels", np.full(3, 2))

    found = interrupted(lambda: cache.notes(mine), at, meanwhile).page(0).find("labels")
    assert found is None or found.tolist() == [1] * 3


def test_a_page_holds_one_note_and_gives_it_to_nobody_who_asks_for_another():
    page = Cache(0, of_notes=100).notes(Domain()).page(0)
    page.keep("some centres", np.arange(3))
    assert page.find("other centres") is None
    page.keep("other centres", np.arange(4))
    assert page.find("some centres") is None
    assert page.find("other centres").tolist() == [0, 1, 2, 3]


def test_notes_never_pass_their_limit():
    notes = Cache(0, of_notes=100).notes(Domain())
    for number in range(5):
        notes.page(number).keep("labels", np.zeros(40, dtype=np.uint8))
    kept = [number for number in range(5) if notes.page(number).find("labels") is not None]
    assert kept == [0, 1]  # 80 bytes; a third would make 120
    notes.page(0).keep("labels", np.zeros(60, dtype=np.uint8))  # in the place of its first one
    assert notes.page(0).find("labels").size == 60
    notes.page(1).keep("labels", np.zeros(41, dtype=np.uint8))
    assert notes.page(1).find("labels") is None


@pytest.mark.parametrize("at", range(30))
@pytest.mark.parametrize("method", ["finish", "begin", "blocks"])
def test_a_fit_that_comes_between_two_instructions_of_another_never_swaps_their_blocks(method, at):
    cache, mine, other = Cache(10**6), Domain(), Domain()
    filling, foreign = filled(cache, mine, 1), filled(cache, other, 2)
    cache.finish(mine, filling)
    calls = {
        "finish": lambda: cache.finish(mine, filling),
        "begin": lambda: cache.begin(mine),
        "blocks": lambda: cache.blocks(mine),
    }
    found = interrupted(calls[method], at, lambda: cache.finish(other, foreign))
    seen = [(1, found)] if method == "blocks" else []
    for tag, blocks in [*seen, (1, cache.blocks(mine)), (2, cache.blocks(other))]:
        assert blocks is None or blocks[0][1].tolist() == [tag] * 3


class Remember:
    """A kernel that notes the first row of a block, and tells whether that is what it finds in a later pass."""

    takes_page = True

    def __call__(self, block, state, page=None):
        noted = None if page is None else page.find("first row")
        if noted is None and page is not None:
            page.keep("first row", block[:1].copy())
        return (np.array([int(noted is not None and np.array_equal(noted, block[:1]))]),)


class Measure:
    """A kernel that notes its rows, and tells how many there are, and how many were noted; -1 if nothing was."""

    takes_page = True

    def __call__(self, block, state, page):
        noted = page.find("rows")
        page.keep("rows", block.copy())
        return (np.array([len(block), -1 if noted is None else len(noted)]),)


@pytest.mark.parametrize("n", [20_000, 400_000], ids=["codes are kept", "codes are not"])
@pytest.mark.parametrize("form", ["array", "parquet"])
def test_every_block_has_a_page_of_its_own_in_all_passes(form, n, tmp_path):
    """Also where a part of the table, such as a row group, comes in several blocks."""
    rows, grid = np.arange(float(n))[:, None], Box([0.0], [float(n)], 23)
    if form == "parquet":
        pq.write_table(pa.table({"a": rows[:, 0]}), tmp_path / "rows.parquet", row_group_size=n)
    source = read(rows if form == "array" else tmp_path / "rows.parquet", memory="1MiB")
    passes = [source.map_reduce(Remember(), None, grid=grid, combine=np.minimum)[0].tolist() for _ in range(3)]
    assert passes == [[0], [1], [1]]
    assert (source._cache.blocks(grid) is None) == (n > 100_000)


class Growing:
    """A reader of one block, whose table has more rows every time that it is read."""

    names, n_columns, width, is_sparse = None, 1, 1, False

    def __init__(self):
        self.n_rows = 10

    def parts(self, rows):
        return [0]

    def blocks(self, part, rows, with_ids):
        self.n_rows += 5
        yield RawRows(np.full((self.n_rows, 1), 0.5))


def test_notes_of_a_block_are_not_used_for_one_of_another_length():
    """A file that grows between two passes: its new rows have no label, and a compiled loop would read past the last one."""
    source, grid = LocalSource(Growing(), Options()), Box([-1.0], [1.0], 16)
    source._cache.limit = 0  # codes are not kept, so that every pass reads
    lengths = [source.map_reduce(Measure(), None, grid=grid)[0].tolist() for _ in range(3)]
    assert lengths == [[15, -1], [20, -1], [25, -1]]


def test_a_kernel_that_asks_for_no_page_gets_none():
    found = read(np.zeros((10, 1))).map_reduce(lambda *given: (np.array([len(given)]),), None, grid=Box([-1.0], [1.0]))
    assert found[0].tolist() == [2]
