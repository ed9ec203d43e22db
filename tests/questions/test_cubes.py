"""Counts of occupied cubes: against a plain walk, and merged in any order."""

import math
import pickle
from collections import Counter
from functools import reduce
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kveil.partition.cubes import Cubes
from kveil.questions.base import raw
from kveil.questions.cubes import CubeCounts, merge_counts
from kveil.questions.frame import Frame


def frame(n_axes, radius=2**20):
    return Frame(None, np.zeros(n_axes, dtype=np.int64), radius)


def plain_walk(row, cubes):
    """The same by halving intervals, in fractions; None for a row that leaves the active cubes."""
    low, side, rank = [int(x) for x in cubes.low], cubes.side, 0
    for level in range(1, len(cubes.levels) + 2):
        code = rank
        for a, y in enumerate(row):
            y = min(max(int(y), -cubes.half), cubes.half)
            code = 2 * code + (math.floor((y - low[a]) * 2**level / side) % 2)
        if level > len(cubes.levels):
            return code
        active = cubes.levels[level - 1].tolist()
        if code not in active:
            return None
        rank = active.index(code)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_counts_are_those_of_a_plain_walk(n_axes, depth, seed):
    rng = np.random.default_rng(seed)
    cubes = Cubes.shifted(50, n_axes, rng)
    for _ in range(depth):
        n = cubes.n_children
        cubes = cubes.grown(np.sort(rng.choice(n, size=max(1, n // 2), replace=False)))
    rows = rng.integers(-60, 61, size=(80, n_axes))  # some beyond the clip
    (counts,) = CubeCounts(frame(n_axes), cubes).raw(rows)
    walked = Counter(code for code in (plain_walk(row, cubes) for row in rows) if code is not None)
    assert dict(zip(*counts.tolist(), strict=True)) == walked
    assert (np.diff(counts[0]) > 0).all()
    assert (counts[1] >= 1).all()


def test_a_table_without_rows_and_a_level_without_cubes_have_no_occupied_children():
    cubes = Cubes.shifted(5, 2, np.random.default_rng(0))
    assert CubeCounts(frame(2), cubes).raw(np.zeros((0, 2), dtype=np.int16))[0].shape == (2, 0)
    dead = cubes.grown(np.empty(0, dtype=np.int64))
    assert CubeCounts(frame(2), dead).raw(np.zeros((3, 2), dtype=np.int16))[0].shape == (2, 0)
    assert dead.middles().shape == (0, 2)


HISTOGRAM = st.dictionaries(st.integers(0, 2**54), st.integers(1, 2**40), max_size=8)


def array(histogram):
    return np.array([sorted(histogram), [histogram[code] for code in sorted(histogram)]], dtype=np.int64)


@given(HISTOGRAM, HISTOGRAM, HISTOGRAM)
def test_merging_minds_neither_order_nor_grouping(a, b, c):
    one, two, three = map(array, (a, b, c))
    left = merge_counts(merge_counts(one, two), three)
    right = merge_counts(three, merge_counts(two, one))
    assert left.tolist() == right.tolist() == array(Counter(a) + Counter(b) + Counter(c)).tolist()


def coin(count, least, epsilon, *, skips_empties=False):
    """P(count + Z >= least) for discrete Laplace noise Z, which is what the vault draws."""
    gap, q = least - count, math.exp(-epsilon)
    if skips_empties and count == 0:
        return 0.0
    return q**gap / (1 + q) if gap >= 0 else 1 - q ** (1 - gap) / (1 + q)


def law(rows, cubes, levels, least, epsilon, **more):
    """{the active cubes of every level: probability}: everything that a partition releases, by enumeration."""
    if levels == 0 or not len(cubes.places):
        return {(): 1.0}
    (counts,) = CubeCounts(frame(cubes.n_axes), cubes).raw(rows)
    held = dict(zip(*counts.tolist(), strict=True))
    coins = [coin(held.get(code, 0), least, epsilon, **more) for code in range(cubes.n_children)]
    chances = {}
    for outcome in product((False, True), repeat=len(coins)):
        chance = math.prod(c if active else 1 - c for c, active in zip(coins, outcome, strict=True))
        codes = np.flatnonzero(outcome)
        deeper = law(rows, cubes.grown(codes), levels - 1, least, epsilon, **more) if chance else {}
        for rest, then in deeper.items():
            chances[(tuple(codes.tolist()), *rest)] = chance * then
    return chances


def worst(root, places, levels, most, epsilon, **more):
    """The largest log-ratio of any outcome, over all neighbours with up to `most` rows."""
    tables = [rows for size in range(most + 1) for rows in combinations_with_replacement(range(len(places)), size)]
    laws = {t: law(np.array(places)[list(t)].reshape(-1, root.n_axes), root, levels, 3, epsilon, **more) for t in tables}
    found = 0.0
    for few in (t for t in tables if len(t) < most):
        for extra in range(len(places)):
            one, other = laws[few], laws[tuple(sorted((*few, extra)))]
            if one.keys() != other.keys():
                return math.inf
            found = max(found, *(abs(math.log(one[key] / other[key])) for key in one))
    return found


def test_a_partition_costs_epsilon_a_level_by_enumeration_and_no_less():
    """Three levels of the line at 0.7 each, at most two rows on four places: all outcomes of all neighbours."""
    root = Cubes(np.array([-8]), 16, 7, (), np.zeros((1, 1), dtype=np.int64))
    assert worst(root, [[-7], [-5], [0], [7]], 3, 2, 0.7) == pytest.approx(2.1, abs=1e-9)


def test_one_level_of_the_plane_costs_its_epsilon():
    root = Cubes(np.array([-8, -8]), 16, 7, (), np.zeros((1, 2), dtype=np.int64))
    assert worst(root, [[-7, -7], [-7, 7], [7, -7], [7, 7]], 1, 3, 0.7) == pytest.approx(0.7, abs=1e-9)


def test_skipping_empty_cubes_would_cost_infinitely_much():
    """The guard: the same enumeration sees outcomes that one neighbour cannot have."""
    root = Cubes(np.array([-8]), 16, 7, (), np.zeros((1, 1), dtype=np.int64))
    assert worst(root, [[-7], [7]], 1, 1, 0.7, skips_empties=True) == math.inf


def test_a_search_travels_to_workers():
    cubes = Cubes.shifted(50, 2, np.random.default_rng(0)).grown(np.array([0, 3]))
    question = CubeCounts(frame(2), cubes)
    kernel, state, combine = pickle.loads(pickle.dumps((raw, question, question.combine)))
    rows = np.random.default_rng(1).integers(-50, 51, size=(40, 2))
    parts = [kernel(part, state)[0] for part in np.array_split(rows, 7)]
    assert reduce(combine, parts).tolist() == question.raw(rows)[0].tolist()
