"""Every question against its own parts: what one row does to the exact answer is at most what they say.

A class of `kveil.questions` without examples fails.
"""

from __future__ import annotations

import pickle
import sys
from dataclasses import dataclass, field, replace
from itertools import pairwise, zip_longest
from math import isqrt
from typing import Any, ClassVar

import numpy as np
import pytest
from question_examples import GROUNDS, MAKERS, Example, Ground, examples, questions, table

from kveil.kernel.grid import Box
from kveil.partition.projection import random_axes
from kveil.questions import cells, cluster_sums, cubes, demand, leaves, medians, midpoint_cells, octaves, swaps, unit_rows
from kveil.questions.base import Part, Question
from kveil.questions.frame import BLOCK, Frame
from kveil.questions.saturating import MOST
from kveil.space.euclidean import Centers

ENOUGH = 0.9  # of a bound: a test that never comes near it would not see a bound that is half of what it should be


def most_moved(made: Example, rng: np.random.Generator) -> list[float]:
    """For every part the largest ratio of what a row of a random table adds to what it may add; AssertionError above 1."""
    n = int(rng.integers(1, 5))
    rows = table(rng, made.ground, n)
    after, parts = made.raw(rows), made.question.parts
    assert len(after) == len(parts)
    others = [np.delete(np.arange(n), i) for i in range(n)]
    without = [made.raw(rows[which]) for which in others]  # the table before row i came, or after it was removed
    found = [0.0] * len(parts)
    for number, part in enumerate(parts):
        for before in without:
            got, most = moved(made.question, part, before[number], after[number])
            assert got <= most, f"{type(made.question).__name__}: {part.label!r} moves by {got}, and may by {most}"
            found[number] = max(found[number], got / most)
        if part.kind == "total":  # row 0 replaced by another
            assert np.abs(without[0][number] - without[-1][number]).max() <= part.length
    return found


def moved(question: Question, part: Part, before: Any, after: Any) -> tuple[int, int]:
    """How far one more row moved a part, in the norm of its kind, rounded up; and how far it may."""
    if part.kind == "active":
        return codes_moved(before, after), 1
    added = after - before
    assert part.is_signed or (added >= 0).all(), "a row takes nothing away: else one that is replaced would move it farther"
    if part.kind == "counts":
        assert (added >= 0).all(), "a row takes nothing from a count"
        return norm(added, is_l2=getattr(question, "is_squared", False)), part.length
    if part.kind == "total":
        assert added.size == 1, "a total is one number"
        assert (added >= 0).all(), "a row takes nothing from a total: else one that is replaced would move it twice as far"
        return norm(added, is_l2=False), part.length
    if part.kind == "costs":
        return int(np.ptp(added)), part.length
    by_cell = np.atleast_2d(added)  # as desks see it: one axis is one cell
    (touched,) = by_cell.reshape(len(by_cell), -1).any(axis=1).nonzero()
    assert len(touched) <= 1, "a row is in one cell"
    bound = bounds_of_cells(question, part, len(by_cell))
    if not len(touched):
        return 0, part.length
    vector, most = by_cell[touched[0]], bound[touched[0]]
    if part.kind == "peeled costs":
        assert np.abs(vector).max() <= part.largest, "no cost moves by more than the largest move"
    return (int(np.ptp(vector)) if part.kind == "cell costs" else norm(vector, is_l2=part.kind == "vectors")), most


def bounds_of_cells(question: Question, part: Part, n_cells: int) -> list[int]:
    if question.lengths is None or part.kind == "cell costs":
        return [part.length] * n_cells
    assert len(question.lengths) == n_cells, "every cell has a length"
    assert 1 <= min(question.lengths, default=1) <= max(question.lengths, default=1) <= part.length
    return [int(length) for length in question.lengths]


def norm(added: Any, *, is_l2: bool) -> int:
    numbers = [abs(int(x)) for x in np.ravel(added) if x]
    square = sum(x * x for x in numbers)
    return (isqrt(square - 1) + 1 if square else 0) if is_l2 else sum(numbers)


def codes_moved(before: Any, after: Any) -> int:
    old, new = (dict(zip(*found.tolist(), strict=True)) for found in (before, after))
    assert all(
        len(counts) == found.shape[1] and min(counts.values(), default=1) > 0 for counts, found in ((old, before), (new, after))
    )
    added = {code: new.get(code, 0) - old.get(code, 0) for code in {*old, *new}}
    assert min(added.values(), default=0) >= 0, "a row takes nothing from a cell"
    return sum(added.values())


def test_every_question_has_examples():
    assert set(questions()) == set(MAKERS)


@pytest.mark.parametrize("kind", MAKERS, ids=lambda kind: kind.__name__)
def test_one_row_moves_no_part_further_than_it_says(kind):
    """And no bound is far from what rows can do: a part that moves by half of its bound would hide a bound that is too low."""
    found = zip_longest(*(most_moved(*example) for example in examples(kind)), fillvalue=0.0)  # some have a part per column
    reached = np.array([max(part) for part in found])
    print(kind.__name__, reached.round(4))
    assert (reached >= ENOUGH).all()


@pytest.mark.parametrize("kind", MAKERS, ids=lambda kind: kind.__name__)
def test_answers_of_blocks_merge_to_the_answer_of_the_whole(kind):
    for made, rng in examples(kind):
        rows = table(rng, made.ground, 5)
        cuts = [0, *np.sort(rng.integers(0, 6, 3)).tolist(), 5]  # some blocks have no rows
        merged = made.merged([rows[start:stop] for start, stop in pairwise(cuts)])
        assert [(a.shape, a.tobytes()) for a in merged] == [(a.shape, a.astype(np.int64).tobytes()) for a in made.raw(rows)]


@pytest.mark.parametrize("kind", MAKERS, ids=lambda kind: kind.__name__)
def test_a_table_of_several_full_blocks_is_answered_as_its_parts_are(kind):
    """Rows are looked at `BLOCK` at a time, and where one such block ends must not show: one more row moves all the others."""
    seen = set()
    for made, rng in examples(kind):
        if (sort := (type(made.ground.domain), made.ground.is_sparse, made.ground.stays_sparse)) in seen:
            continue
        seen.add(sort)
        rows = table(rng, made.ground, 40)[rng.integers(0, 40, 2 * BLOCK + 1)]
        cuts = [0, 1, 1500, 2900, 2 * BLOCK + 1]  # none of them has a full block
        merged = made.merged([rows[start:stop] for start, stop in pairwise(cuts)])
        assert [(a.shape, a.tobytes()) for a in merged] == [(a.shape, a.astype(np.int64).tobytes()) for a in made.raw(rows)]


def wrapping(kind: type[Question]) -> bool:
    """Whether costs of a question pass the end of integers where they merge: a choice would then move by 2**64 for one row."""
    made, _ = next(examples(kind))
    end = np.full((2, 2), MOST)
    return any(part.kind == "costs" for part in made.question.parts) and (made.question.combine(end, end) != MOST).any()


@pytest.mark.parametrize("kind", MAKERS, ids=lambda kind: kind.__name__)
def test_costs_of_more_rows_than_there_may_be_do_not_wrap(kind):
    assert not wrapping(kind)


def test_costs_that_wrap_are_found(monkeypatch):
    for kind in (swaps.SetCosts, swaps.SwapCosts):
        monkeypatch.setattr(kind, "combine", np.add)
        assert wrapping(kind)


@pytest.mark.parametrize("kind", MAKERS, ids=lambda kind: kind.__name__)
def test_parts_and_shapes_are_public_and_nothing_of_the_rows_is_kept(kind):
    for made, rng in examples(kind):
        asked, stranger = left_by_rows(made, rng)
        empty, found = (made.raw(table(rng, made.ground, n)) for n in (0, 4))
        for part, public, a, b in zip(asked.parts, stranger.parts, empty, found, strict=True):
            assert replace(part, unit=0) == replace(public, unit=0)
            assert np.array_equal(part.unit, public.unit)
            assert part.kind == "active" or a.shape == b.shape
            assert part.length >= 1
            assert all(np.issubdtype(array.dtype, np.integer) for array in (a, b))


def left_by_rows(made: Example, rng: np.random.Generator) -> tuple[Question, Question]:
    """A question that was asked, and one that was not; asked about different rows, it must stay the same to the last byte.

    So must the rows, which the next question is asked about, and whatever else the room of questions holds.
    """
    asked, other, stranger = (pickle.loads(pickle.dumps(made.question)) for _ in range(3))  # as a worker gets it
    for question in (asked, other):
        rows, around = table(rng, made.ground, 4), kept_around()
        before = pickle.dumps(rows)
        made._replace(question=question).raw(rows)
        assert pickle.dumps(rows) == before, "a question leaves rows as they are"
        assert kept_around() == around, "modules and classes keep nothing of rows"
    assert pickle.dumps(asked) == pickle.dumps(other), "a question keeps nothing of its rows"
    return asked, stranger


def kept_around() -> dict[str, bytes]:
    """What modules and classes of the room hold besides code, and how much is in their caches."""
    found = {}
    for module in (module for name, module in sys.modules.items() if name.startswith("kveil.questions")):
        classes = [value for value in vars(module).values() if isinstance(value, type) and value.__module__ == module.__name__]
        for owner in (module, *classes):
            for name, value in vars(owner).items():
                if isinstance(value, list | dict | set | np.ndarray) and not name.startswith("__"):
                    found[f"{module.__name__} {owner.__name__} {name}"] = pickle.dumps(value)
                elif hasattr(value, "cache_info"):
                    found[f"{module.__name__} {owner.__name__} {name}"] = pickle.dumps(value.cache_info().currsize)
    return found


@pytest.mark.parametrize("moved_by", ["base", "middle", "projection"])
def test_noise_on_coordinates_is_refused_where_rows_are_moved(moved_by):
    """A sparse row has few entries, so a short L1 norm; about another point, or along other axes, it has many."""
    ground, zeros = Ground(Box([-1.0] * 5, [1.0] * 5, 16), is_sparse=True), np.zeros((1, 5), dtype=np.int64)
    frame, rows = replace(Frame.of(ground.domain, None), nonzeros=1), table(np.random.default_rng(0), ground, 2)
    question = cells.Residuals(frame, Centers(zeros.astype(float), None), "measured", "centred", zeros, np.array([9]))
    by_coordinates = replace(question, by_coordinates=True)
    by_coordinates.raw(rows)
    changed = {
        "base": {"bases": zeros + 1},
        "middle": {"frame": replace(frame, middle=zeros[0] + 1)},
        "projection": {"frame": replace(frame, axes=random_axes(5, 5, np.random.default_rng(0)), reach=9), "of": "projected"},
    }[moved_by]
    with pytest.raises(AssertionError, match="before they are moved"):
        replace(by_coordinates, **changed).raw(rows)


# Twins that must fail: what they say is the truth of another question.


@dataclass(frozen=True, eq=False)
class Twin(Question):
    """Says what one question says, and does what another does, or something else to its answer."""

    says: Question
    does: Question
    after: Any = tuple

    @property
    def combine(self):
        return self.does.combine

    @property
    def lengths(self):
        return self.says.lengths

    @property
    def is_squared(self):
        return getattr(self.says, "is_squared", False)

    @property
    def parts(self):
        return self.says.parts

    def raw(self, held):
        return self.after(self.does.raw(held))


def farther(question):
    """Clips a row to a ball of another radius than the one that its parts are about."""
    return Twin(replace(question, frame=replace(question.frame, radius=1 + question.frame.radius // 2)), question)


def other_radii(question):
    return Twin(question, replace(question, radii=np.maximum(1, question.radii // 2)), lambda arrays: (arrays[0], 2 * arrays[1]))


def in_two_cells(question):
    return Twin(question, question, lambda arrays: (*arrays[:-1], arrays[-1] + np.roll(arrays[-1], 1, axis=0)))


def shorter_lengths(question):
    says = replace(question, reaches=np.maximum(1, question.reaches * 3 // 4))
    return Twin(says, question)


def twice(question):
    return Twin(question, question, lambda arrays: (*arrays[:-1], 2 * arrays[-1]))


def less(question):
    return Twin(question, question, lambda arrays: (-arrays[0], *arrays[1:]))


def without_weights(question):
    return Twin(replace(question, is_squared=False), replace(question, is_squared=True))


def without_signs(question):
    return Twin(
        replace(question, view=replace(question.view, signed=False)), replace(question, view=replace(question.view, signed=True))
    )


TWINS = [
    (cells.Whole, farther), (cells.Whole, less), (cells.Stage, in_two_cells), (cells.Residuals, other_radii),
    (cells.Residuals, in_two_cells), (cells.SecondMoments, twice), (cells.GridCells, less), (cluster_sums.ClusterSums, twice),
    (cluster_sums.ClusterSums, in_two_cells), (cubes.CubeCounts, twice), (demand.DemandSize, twice), (demand.DemandTree, twice),
    (demand.TreeCounts, without_weights), (leaves.LeafTotals, in_two_cells), (leaves.LeafSums, twice), (medians.Pulls, twice),
    (medians.MedianCosts, in_two_cells), (medians.MedianCosts, twice), (midpoint_cells.CellSums, shorter_lengths),
    (midpoint_cells.TileCounts, in_two_cells), (midpoint_cells.TileCounts, twice),
    (octaves.OctaveCounts, twice), (swaps.SetCosts, twice), (swaps.SwapCosts, twice), (unit_rows.UnitTotals, twice),
    (unit_rows.UnitTotals, less), (unit_rows.UnitSums, in_two_cells), (unit_rows.UnitSums, twice),
    (unit_rows.UnitSums, without_signs),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "spoilt"), TWINS, ids=lambda thing: thing.__name__)
def test_a_question_that_does_more_than_it_says_is_found(kind, spoilt):
    twins = [(made._replace(question=spoilt(made.question)), rng) for made, rng in examples(kind)]
    with pytest.raises(AssertionError, match=r"a row (is in|takes)|moves by"):
        [most_moved(*twin) for twin in twins]


@dataclass(frozen=True)
class Keeper(cells.RowCount):
    seen: list[int] = field(default_factory=list)

    def raw(self, rows):
        self.seen[:] = self.seen or np.ravel(rows[:1]).tolist()
        return super().raw(rows)


class Sorter(cells.RowCount):
    """Sorts its rows column by column: whoever asks next is told about rows that nobody gave."""

    def raw(self, rows):
        rows.sort(axis=0)
        return super().raw(rows)


class Tally(cells.RowCount):
    """Keeps what it has seen where the next question finds it."""

    seen: ClassVar[list[int]] = []

    def raw(self, rows):
        self.seen.append(len(rows))
        return super().raw(rows)


class Crowd(cells.RowCount):
    """Counts no more than 3 rows of a block: where rows are cut into blocks shows."""

    def raw(self, rows):
        return (np.minimum(super().raw(rows)[0], 3),)


@pytest.mark.parametrize(("kind", "says"), [(Keeper, "keeps nothing"), (Sorter, "leaves rows"), (Tally, "keep nothing")])
def test_a_question_that_keeps_or_moves_rows_is_found(kind, says, monkeypatch):
    monkeypatch.setattr(cells, kind.__name__, kind, raising=False)
    monkeypatch.setattr(kind, "__module__", cells.__name__)
    with pytest.raises(AssertionError, match=says):
        left_by_rows(Example(kind(), GROUNDS[0]), np.random.default_rng(0))


def test_a_question_whose_blocks_do_not_merge_is_found(monkeypatch):
    monkeypatch.setitem(MAKERS, Crowd, lambda rng, ground: Example(Crowd(), ground))
    with pytest.raises(AssertionError):
        test_answers_of_blocks_merge_to_the_answer_of_the_whole(Crowd)
