"""How far a pass has come: in bytes or parts as they lie there, the same whichever rows are kept."""

from __future__ import annotations

import gzip
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from kveil import PrivateKMeans, read
from kveil.auditing.tape import Diverged
from kveil.auditing.tape import play as replay
from kveil.kernel.grid import Box
from kveil.progress import listen
from kveil.source import text

BOX = Box([0.0], [9.0])


def counted(block, state):
    return (np.array([len(block)]),)


def heard(source, passes=2):
    """What a listener hears of some passes, and how many rows counted in the last one."""
    news = []
    with listen(lambda *_: None, lambda *told: news.append(told)):
        for _ in range(passes):
            (found,) = source.map_reduce(counted, None, grid=BOX)
    return news, int(found[0])


@pytest.fixture
def one_thread(monkeypatch):
    monkeypatch.setenv("KVEIL_THREADS", "1")


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(text, "_step", lambda *_: 500)


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "feather", "npy", "files"])
def test_a_pass_goes_from_nothing_to_all(kind, tmp_path, small_parts):
    frame = pd.DataFrame({"x": np.arange(500.0) % 10})
    path = tmp_path / f"t.{kind}"
    if kind in ("csv", "csv.gz"):
        frame.to_csv(path, index=False)
    elif kind == "npy":
        np.save(path, frame.to_numpy())
    elif kind == "files":
        for number in range(3):
            frame.to_csv(tmp_path / f"{number}.csv", index=False)
        path = str(tmp_path / "?.csv")
    else:
        getattr(frame, f"to_{kind}")(path)
    news, n_rows = heard(read(path))
    assert n_rows == (1500 if kind == "files" else 500)
    starts = [place for place, (done, _, _) in enumerate(news) if done == 0]
    assert len(starts) == 2, "a pass begins once"
    for one in (news[: starts[1]], news[starts[1] :]):
        assert one[-1][0] == one[-1][1]
        assert all(before[0] < after[0] for before, after in pairwise(one))
        assert {unit for _, _, unit in one} == {"parts" if kind in ("npy", "feather") else "bytes"}


def people(ids, broken=0):
    lines = [f"{who:05},{(place % 10):01}" for place, who in enumerate(ids)]
    for place in range(broken):
        lines[place] = "," * len(lines[place])  # as long, and with too many cells
    return "\n".join(["who,x", *lines]) + "\n"


@pytest.mark.parametrize("is_packed", [False, True])
def test_which_rows_are_kept_cannot_be_heard(is_packed, tmp_path, one_thread, small_parts):
    """All people different, all the same, and half of the lines no rows: files of the same size, read and then from memory."""
    found, n = [], 40_000 if is_packed else 200  # a packed file is read by many thousand bytes
    for ids, broken in ((range(n), 0), ([7] * n, 0), (range(n), n // 2)):
        path = tmp_path / ("t.csv.gz" if is_packed else "t.csv")
        content = people(ids, broken).encode()
        path.write_bytes(gzip.compress(content, compresslevel=0, mtime=0) if is_packed else content)
        found.append(heard(read(path, person="who", missing="drop")))
    assert len({n_rows for _, n_rows in found}) == 3, "other rows are kept"
    assert found[0][0] == found[1][0] == found[2][0]
    assert len(found[0][0]) > 8


def test_whether_kept_rows_fit_into_memory_cannot_be_heard(tmp_path, one_thread, small_parts):
    """How many rows people keep decides whether a later pass reads the packed file again, or what is in memory."""
    found, n, path = [], 9000, tmp_path / "t.csv.gz"
    for ids in (range(n), [7] * n):
        path.write_bytes(gzip.compress(people(ids).encode(), compresslevel=0, mtime=0))
        source = read(path, person="who")
        source._cache.limit = 2000
        found.append((heard(source, passes=3)[0], source._cache._held[1] is None))
    (one, is_read), (other, is_read_too) = found
    assert (is_read, is_read_too) == (True, False)
    assert one == other


def test_nobody_else_hears_of_it():
    assert heard(read(np.ones((9, 1))))[0]
    with listen(lambda *_: pytest.fail("no step was made")):
        read(np.ones((9, 1))).map_reduce(counted, None, grid=BOX)


class TestPasses:
    """How many passes there are must follow from noisy answers alone, so a replay counts them."""

    @staticmethod
    def act(table, more=0):
        source = read(table)
        for _ in range(more):
            source.map_reduce(counted, None, grid=BOX)
        return {"centers": PrivateKMeans(1, bounds=(0, 9), random_state=0, method="mean").fit(source).cluster_centers_}

    def test_a_replay_hears_the_same_passes_of_neighbours(self):
        replay(self.act, np.ones((5, 1)), [np.ones((6, 1))])

    def test_a_pass_more_for_a_row_more_is_noticed(self):
        with pytest.raises(Diverged, match="other progress"):
            replay(lambda table: self.act(table, len(table) - 5), np.ones((5, 1)), [np.ones((6, 1))])
