"""A batch counts once, in counts and in sums alike, also when it is interrupted or when threads bring it at the same time."""

import sys
import threading
from functools import partial

import numpy as np
import pytest

from kveil.desk.leaf_table import LeafTable
from kveil.errors import InvalidValue
from kveil.kernel.grid import Box
from kveil.source import read
from kveil.stream.flow import Flow

WATCHED = ("stream/flow.py", "desk/leaf_table.py", "stream/taken.py")


class Interrupt:
    """Stops a run at its n-th step inside the files of a stream, as Ctrl-C may."""

    def __init__(self, n):
        self.left = n

    def __call__(self, frame, event, _):
        if not frame.f_code.co_filename.replace("\\", "/").endswith(WATCHED):
            return None
        frame.f_trace_opcodes = True
        if event in ("opcode", "line"):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self


def is_stopped(action, n):
    before = sys.gettrace()
    sys.settrace(Interrupt(n))
    try:
        action()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


BOX = Box([-10.0], [10.0])
LOW, HIGH = read(np.array([[-9.0]])), read(np.array([[9.0]]))


def a_flow(rows, source):
    flow = Flow(LeafTable(BOX, 2), None)
    flow.take(rows, source, 0)
    return flow


def same(one, other):
    mine, theirs = one.kept.arrays(), other.kept.arrays()
    return all((mine[name] == theirs[name]).all() for name in mine)


@pytest.mark.parametrize("way", ["batch", "merge"])
def test_an_interrupt_anywhere_leaves_a_batch_in_or_out_and_a_repeat_adds_nothing(way):
    before, after, n = a_flow(LOW, "s"), a_flow(LOW, "s"), 0
    after.take(HIGH, "s", 1)
    while True:
        n += 1
        flow, other = a_flow(LOW, "s"), a_flow(HIGH, "t")
        add = partial(flow.take, HIGH, "s", 1) if way == "batch" else partial(flow.merge, other)
        if not is_stopped(add, n):
            break
        is_in = flow.journal.taken() != before.journal.taken()
        assert same(flow, after if is_in else before), f"step {n}: the journal and the rows, or counts and sums, do not agree"
        if is_in:
            with pytest.raises(InvalidValue, match=r"next one is 2|twice"):
                add()
        else:
            add()
        assert same(flow, after)
    assert n > 100  # so many steps were stopped at


class Slow:
    """A batch that is read by all threads before any of them goes on."""

    def __init__(self, rows, readers):
        self.rows, self.all_read = read(rows), threading.Barrier(readers)

    def map_reduce(self, *arguments, **options):
        found = self.rows.map_reduce(*arguments, **options)
        self.all_read.wait(timeout=20)
        return found


@pytest.mark.parametrize("seqs", [(0, 0, 0), (None, None, None)])
def test_threads_that_bring_one_batch_add_it_once_and_others_all(seqs):
    flow = Flow(LeafTable(Box([0.0], [1.0]), 3), None)
    batch, refused = Slow(np.array([[0.2], [0.9]]), len(seqs)), []

    def bring(seq):
        try:
            flow.take(batch, "queue", seq)
        except InvalidValue:
            refused.append(seq)

    threads = [threading.Thread(target=bring, args=(seq,)) for seq in seqs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = 1 if seqs[0] == 0 else 3
    assert len(refused) == 3 - expected
    assert flow.kept.arrays()["counts"].sum() == 2 * expected
    assert flow.journal.taken() == {"queue": ((0, expected - 1),)}


def test_what_a_release_reads_does_not_change_under_it():
    flow = a_flow(LOW, "s")
    table = flow.kept
    before = {name: array.copy() for name, array in table.arrays().items()}
    flow.take(HIGH, "s", 1)
    flow.merge(a_flow(HIGH, "t"))
    assert all((before[name] == array).all() for name, array in table.arrays().items())
    assert flow.kept.arrays()["counts"].sum() == 3
