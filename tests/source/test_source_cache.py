"""Fits that share a source share its cache, and never get the blocks of another grid."""

import sys

import numpy as np
import pytest

from kveil.source.cache import Cache


class Domain:
    """Stands for a grid: the cache tells grids apart by identity alone."""


def filled(cache, grid, tag):
    filling = cache.begin(grid)
    filling.add(np.full(3, tag))
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
        assert blocks is None or blocks[0].tolist() == [tag] * 3
