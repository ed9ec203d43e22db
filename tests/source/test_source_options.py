"""Options, threads, bounded memory and progress."""

import threading
import weakref

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import kveil
from kveil import libraries
from kveil.errors import InvalidType, InvalidValue
from kveil.kernel.grid import Box
from kveil.source import Source, listen, n_threads, read, step, threads
from kveil.source.base import RawRows
from kveil.source.local import LocalSource
from kveil.source.options import LARGEST_BLOCK, Options, parse_memory


@pytest.mark.parametrize(
    ("given", "n_bytes"),
    [
        ("256MB", 256 * 10**6), ("1GB", 10**9), ("1.5 GiB", 3 * 2**29), ("4096kb", 4096000), ("2000000", 2 * 10**6),
        (2**21, 2**21), (1e9, 10**9),
    ],
)  # fmt: skip
def test_memory_is_bytes_or_a_text_with_a_unit(given, n_bytes):
    assert parse_memory(given) == n_bytes


@pytest.mark.parametrize("given", ["", "lots", "256XB", "-1GB", 0, -5, 1000, float("nan"), float("inf"), None, True, "1e9"])
def test_other_memory_is_refused(given):
    with pytest.raises(InvalidValue, match="256MB"):
        parse_memory(given)


def test_blocks_fit_the_memory():
    for width in (1, 20, 784, 10**6):
        for memory in (2**20, 256 * 10**6, 2**40):
            rows = Options(memory=memory).block_rows(width)
            assert 1 <= rows <= LARGEST_BLOCK
            assert rows == 1 or rows * 64 * width * n_threads() <= memory / 4


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"max_rows": 0}, InvalidValue), ({"max_rows": 2.5}, InvalidType), ({"max_rows": True}, InvalidType),
        ({"max_rows_per_person": 2}, InvalidValue), ({"max_rows_per_person": 0, "person": 0}, InvalidValue),
        ({"person": 1.5}, InvalidType), ({"person": True}, InvalidType), ({"columns": 3}, InvalidType),
        ({"columns": [True]}, InvalidType),
    ],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(options, kind):
    with pytest.raises(kind):
        read(np.ones((3, 2)), **options)


def test_a_source_is_returned_as_it_is_and_takes_no_further_options():
    source = read(np.ones((3, 2)))
    assert isinstance(source, Source)
    assert read(source) is source
    with pytest.raises(InvalidValue, match="source already"):
        read(source, columns=[0])


@pytest.mark.parametrize(("asked", "n"), [("3", 3), (" 1 ", 1), ("0", None), ("two", None), ("-1", None), ("", None)])
def test_the_number_of_threads_can_be_set_in_the_environment(asked, n, monkeypatch):
    monkeypatch.delenv("KVEIL_THREADS", raising=False)
    usual = n_threads()
    monkeypatch.setenv("KVEIL_THREADS", asked)
    assert usual >= 1
    assert n_threads() == (n or usual)


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_blas_has_one_thread_during_a_pass_and_its_own_number_after(grid, table):
    def look(block, state):
        return (np.array([max(blas_threads())]),)

    before = blas_threads()
    assert read(table(9000)).map_reduce(look, None, grid=grid, combine=np.maximum)[0].tolist() == [1]
    assert set(blas_threads()) == set(before)  # the first pass of a process may load one more


def test_overlapping_passes_restore_blas_once_the_last_is_done():
    before, entered, leave = blas_threads(), threading.Event(), threading.Event()

    def hold():
        with threads.one_blas_thread():
            entered.set()
            leave.wait(10)

    other = threading.Thread(target=hold)
    with threads.one_blas_thread():
        other.start()
        entered.wait(10)
    assert set(blas_threads()) == {1}
    leave.set()
    other.join()
    assert blas_threads() == before


def test_after_a_failure_the_other_threads_stop(monkeypatch):
    monkeypatch.setenv("KVEIL_THREADS", "2")
    done = []

    def work(tasks):
        for task in tasks:
            if task == 0:
                raise RuntimeError("first")
            done.append(task)
            threading.Event().wait(0.01)

    with pytest.raises(RuntimeError, match="first"):
        threads.run(work, range(1000))
    assert len(done) < 500


class CountingReader:
    """A thousand blocks, of which it counts how many are alive at once."""

    names, n_columns, width, is_sparse = None, 3, 3, False

    def __init__(self):
        self.alive, self.most, self.lock = 0, 0, threading.Lock()

    def parts(self, rows):
        return range(50)

    def blocks(self, part, rows, with_ids):
        for _ in range(20):
            block = np.zeros((100, 3))
            with self.lock:
                self.alive += 1
                self.most = max(self.most, self.alive)
            weakref.finalize(block, self.let_go)
            yield RawRows(block)
            del block

    def let_go(self):
        with self.lock:
            self.alive -= 1


def test_few_blocks_are_in_memory_at_once(summary, monkeypatch):
    monkeypatch.setenv("KVEIL_THREADS", "2")
    reader = CountingReader()
    source = LocalSource(reader, Options(memory=2**20))
    source._cache.limit = 0
    assert summary(source)[2] == [100_000]
    assert reader.most <= 4


def test_narrow_results_are_widened_before_they_are_added(table):
    def narrow(block, state):
        return (np.array([100], dtype=np.int8),)

    source = read(np.zeros((20_000, 1)))
    n_blocks = len(source.partitions())
    assert source.map_reduce(narrow, None, grid=Box([-1.0], [1.0]))[0].tolist() == [100 * n_blocks]
    with pytest.raises(TypeError):
        source.map_reduce(lambda block, state: (np.array([0.5]),), None, grid=Box([-1.0], [1.0]))


def test_state_reaches_the_kernel(table, grid):
    total = read(table(100)).map_reduce(lambda block, state: (np.array([state * len(block)]),), 7, grid=grid)
    assert total[0].tolist() == [700]


def test_progress_reaches_the_listener_and_nobody_else():
    heard = []
    step("before", 1, 1)
    with listen(lambda *what: heard.append(what)):
        step("seeding", 1, 3)
        with listen(lambda *what: heard.append(("inner", *what))):
            step("lloyd", 2, 3)
        step("lloyd", 3, 3)
    step("after", 1, 1)
    assert heard == [("seeding", 1, 3), ("inner", "lloyd", 2, 3), ("lloyd", 3, 3)]


def openmp_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "openmp"]


def test_openmp_has_one_thread_where_there_are_few_numbers_and_its_own_number_elsewhere():
    import sklearn.cluster  # noqa: F401  # which brings OpenMP

    with threadpool_limits(2, user_api="openmp"):
        before = openmp_threads()
        assert set(before) == {2}
        with libraries.few_threads(libraries.SMALL):
            assert set(openmp_threads()) == {1}
        with libraries.few_threads(libraries.SMALL + 1):
            assert openmp_threads() == before
        assert openmp_threads() == before


def test_passes_over_a_tiny_table_start_threads_once(grid, table, monkeypatch):
    """The first one does not know yet how many codes there are."""
    monkeypatch.setattr(threads, "_runs_threads", lambda: True)
    made, keeper = [], threads._Keeper
    monkeypatch.setattr(threads, "_Keeper", lambda: made.append(1) or keeper())
    source, count = read(table(20)), lambda block, state: (np.array([len(block)]),)
    for _ in range(3):
        assert source.map_reduce(count, None, grid=grid)[0].tolist() == [20]
    assert len(made) == 1
    large = read(table(9000))
    for _ in range(3):
        large.map_reduce(count, None, grid=grid)
    assert len(made) == 4


def test_where_blas_has_one_thread_nobody_holds_it_there(monkeypatch):
    monkeypatch.setattr(threads, "_runs_threads", lambda: False)
    monkeypatch.setattr(threads, "_Keeper", lambda: pytest.fail("a thread was started"))
    with threads.one_blas_thread(), threads.one_blas_thread():
        pass


def test_a_fit_holds_blas_once_for_all_its_passes(monkeypatch):
    made, plain = [], threads._Keeper
    monkeypatch.setattr(threads, "_runs_threads", lambda: True)
    monkeypatch.setattr(threads, "_Keeper", lambda: made.append(1) or plain())
    before = blas_threads()
    kveil.PrivateKMeans(3, bounds=(-1, 1)).fit(np.random.default_rng(0).uniform(-1, 1, (3000, 5)))
    assert len(made) == 1
    assert set(blas_threads()) == set(before)
