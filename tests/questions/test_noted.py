"""What is noted of a block's rows spares work, and changes no answer."""

from dataclasses import replace

import numpy as np
import pytest
from question_examples import MAKERS, examples, table

import kveil
from kveil import PrivateKMeans
from kveil.partition.midpoints import halving_order
from kveil.questions import noted
from kveil.questions.base import Paged
from kveil.questions.cells import Lengths, LengthsByCenter, Residuals, Stage
from kveil.questions.frame import Frame
from kveil.source.cache import Notes
from kveil.space.euclidean import Centers
from kveil.testing import scripted

RNG = np.random.default_rng(5)
ROWS = RNG.integers(-1000, 1000, (300, 4)).astype(np.int32)
CENTERS = RNG.integers(-1000, 1000, (7, 4))
FRAME = Frame(None, np.array([3, -5, 0, 8]), 1500)


def same(one, other):
    return [(a.shape, a.tobytes()) for a in one] == [(a.shape, a.tobytes()) for a in other]


def lengths(frame=FRAME, centers=CENTERS):
    return Lengths.binned(frame, 2000, Centers(centers.astype(np.float64), None))


def residuals(frame=FRAME, centers=CENTERS):
    return Residuals.about(frame, centers, np.full(len(centers), 400))


def after(first, question):
    """The answer to a question about a block that another was asked about before."""
    page = Notes(10**6).page(0)
    first.raw(ROWS, page)
    return question.raw(ROWS, page)


@pytest.mark.parametrize("kind", [kind for kind in MAKERS if hasattr(kind, "takes_page")], ids=lambda kind: kind.__name__)
def test_a_question_has_one_answer_whatever_its_page_holds(kind):
    """Every example on every ground, after itself and after all the examples before it."""
    for made, rng in examples(kind):
        assert isinstance(made.question, Paged)
        rows, page = table(rng, made.ground, 5), Notes(10**6).page(0)
        plain = made.raw(rows)
        assert all(same(made.question.raw(rows, page), plain) for _ in range(2))


@pytest.mark.parametrize(
    "first",
    [
        lengths(centers=CENTERS[::-1].copy()),
        lengths(frame=Frame(np.array([1.0, 0.1, 0.5, 0.2]), FRAME.middle, 1500)),
        lengths(frame=replace(FRAME)),
    ],
    ids=["other centres", "another frame", "an equal frame"],
)
def test_labels_of_anything_else_are_not_used(first):
    assert same(after(first, residuals()), residuals().raw(ROWS))


def test_labels_of_rows_as_measured_are_not_used_for_rows_as_projected():
    frame = replace(FRAME, middle=np.array([300, -500, 0, 800]))
    question = replace(residuals(frame), by="projected")
    plain = question.raw(ROWS)
    assert not same(plain, residuals(frame).raw(ROWS))
    assert same(after(lengths(frame), question), plain)


def test_labels_of_more_centres_than_a_byte_can_tell():
    many = RNG.integers(-1000, 1000, (300, 4))
    assert same(after(lengths(centers=many), residuals(centers=many)), residuals(centers=many).raw(ROWS))


@pytest.mark.parametrize("numbers", [(3, 300), (300, 3), (255, 257), (256, 1)], ids=str)
def test_labels_about_another_number_of_centres_are_a_guess_like_any(numbers):
    """Labels about few centres are kept in a byte, which holds no larger number."""
    few, many = (RNG.integers(-1000, 1000, (k, 4)) for k in numbers)
    question = LengthsByCenter.binned(FRAME, 2000, Centers(many.astype(np.float64), None))
    assert same(after(lengths(centers=few), question), question.raw(ROWS))


def test_cells_of_another_order_are_not_used_and_long_codes_are_kept_whole():
    half = np.array([1000, 900, 800, 700])
    order = halving_order(half, 20)
    stages = [Stage(FRAME, half, axes[:8], np.arange(1), 8, axes) for axes in (order, order[::-1].copy())]
    deep = Stage(FRAME, half, order, np.arange(2**12), 8, order)
    assert same(after(stages[0], stages[1]), stages[1].raw(ROWS))
    assert same(after(stages[0], deep), deep.raw(ROWS))


@pytest.mark.parametrize(
    "other",
    [
        {"frame": replace(FRAME, middle=FRAME.middle + 200)},
        {"frame": replace(FRAME, radius=500)},
        {"half": np.array([500, 450, 1400, 350])},
    ],
    ids=["another middle", "another radius", "other half-widths"],
)
def test_cells_of_anything_else_are_not_used(other):
    """A note of other cells would put a row where an earlier question saw it, or not, by how much memory notes had."""
    half = np.array([1000, 900, 800, 700])
    order = halving_order(half, 9)
    first = Stage(FRAME, half, order, np.arange(1), 9)
    question = replace(first, **other)
    assert not same(question.raw(ROWS), first.raw(ROWS))
    assert same(after(first, question), question.raw(ROWS))


def test_labels_are_found_once_for_distances_and_sums(monkeypatch):
    labelled, plain = [], noted.assign
    expected = residuals().raw(ROWS)
    monkeypatch.setattr(noted, "assign", lambda seen, centers: labelled.append(len(seen)) or plain(seen, centers))
    assert same(after(lengths(), residuals()), expected)
    assert sum(labelled) == len(ROWS)


def test_cells_are_found_once_for_all_stages(monkeypatch):
    half = np.array([1000, 900, 800, 700])
    order, kept = halving_order(half, 9), np.array([0, 3, 5])
    first, later = (Stage(FRAME, half, order[:n], cells, bits, order) for n, cells, bits in ((4, kept[:1], 4), (9, kept, 6)))
    alone = [replace(stage, planned=None).raw(ROWS) for stage in (first, later)]
    found, plain = [], noted.find_cells
    monkeypatch.setattr(noted, "find_cells", lambda seen, *rest: found.append(len(seen)) or plain(seen, *rest))
    assert same(after(first, later), alone[1])
    assert sum(found) == len(ROWS)
    assert same(first.raw(ROWS), alone[0])


def test_a_stage_refuses_a_plan_that_goes_another_way():
    with pytest.raises(AssertionError, match="begins with this stage's halvings"):
        Stage(FRAME, np.full(4, 100), np.array([0, 1, 2]), np.zeros(1, dtype=np.int64), 3, np.array([1, 0, 2, 3]))


def test_a_fit_that_keeps_blocks_and_one_that_keeps_nothing_are_the_same():
    """With the least memory neither codes nor notes of all blocks are kept."""
    rows = RNG.uniform(-0.6, 0.6, (3, 20))[RNG.integers(0, 3, 30_000)] + 0.05 * RNG.standard_normal((30_000, 20))
    found = []
    for memory in ("256MB", "1MiB"):
        with scripted(2):
            model = PrivateKMeans(3, bounds=(-1, 1), delta=1e-6, random_state=0).fit(kveil.read(rows, memory=memory))
        found.append(model.cluster_centers_.tobytes())
    assert found[0] == found[1]


@pytest.mark.parametrize("spread", [30, 1000], ids=["apart", "overlapping"])
@pytest.mark.parametrize("k", [1, 2, 7, 12])
def test_a_wrong_guess_of_labels_changes_no_answer(k, spread):
    """Labels about other centres, more or fewer of them, some in one place; rows halfway between two have the lowest index."""
    places = RNG.integers(-1000, 1000, (12, 4)) * 2
    rows = (places[RNG.integers(0, 12, 400)] + RNG.integers(-spread, spread, (400, 4))).astype(np.int32)
    rows[:20] = (places[:20:2][RNG.integers(0, 6, 20)] + places[RNG.integers(0, 12, 20)]) // 2
    centers = np.concatenate([places[: k - 1], places[:1]])
    question, page = lengths(centers=centers), Notes(10**6).page(0)
    plain = LengthsByCenter(question.frame, question.edges, question.centers)
    for earlier in (places[::-1].copy(), places[:3], RNG.permutation(places)):
        lengths(centers=earlier).raw(rows, page)
        assert same(plain.raw(rows, page), plain.raw(rows))
        assert same(residuals(centers=centers).raw(rows, page), residuals(centers=centers).raw(rows))


def test_a_wrong_guess_is_put_right_where_single_floats_cannot_tell_distances_apart():
    """Rows in the middle of two places far apart, or a step beside it: a place that is left out is left out by whole numbers."""
    rng = np.random.default_rng(7)
    places = 2 * rng.integers(-(2**21), 2**21, (6, 4))
    first, second = np.array([(i, j) for i in range(6) for j in range(6) if i != j]).T
    middles = np.repeat((places[first] + places[second]) // 2, 40, axis=0)
    rows = (middles + rng.integers(-1, 2, middles.shape)).astype(np.int32)
    frame = Frame(None, np.zeros(4, dtype=np.int64), 2**25)
    question = LengthsByCenter.binned(frame, 2**24, Centers(places.astype(np.float64), None))
    for earlier in (places[::-1].copy(), np.roll(places, 1, axis=0), places[:2]):
        page = Notes(10**6).page(0)
        lengths(frame, earlier).raw(rows, page)
        assert same(question.raw(rows, page), question.raw(rows))


def test_labels_that_most_rows_keep_are_not_looked_for_again(monkeypatch):
    places = RNG.integers(-1000, 1000, (5, 4)) * 10
    rows, page, labelled = (places[RNG.integers(0, 5, 300)]).astype(np.int32), Notes(10**6).page(0), []
    plain = noted.assign
    monkeypatch.setattr(noted, "assign", lambda seen, centers: labelled.append(len(seen)) or plain(seen, centers))
    for step in range(3):
        lengths(centers=places + step).raw(rows, page)
    assert labelled == [300]
