"""Labels of pictures: none covers another, in any crowd."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kveil.release.labelling import place

FRAME = np.array([0.0, 0.0, 900.0, 600.0])


def meet(a, b):
    return not (a[0] >= b[2] or b[0] >= a[2] or a[1] >= b[3] or b[1] >= a[3])


def placed_in(points, sizes, radii):
    return place(points, sizes, radii, FRAME, np.argsort(-radii, kind="stable"))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 60), spread=st.sampled_from([0.0, 5.0, 60.0, 250.0]))
def test_no_label_meets_another_the_frame_or_the_middle_of_a_mark(seed, k, spread):
    rng = np.random.default_rng(seed)
    points = np.clip(rng.normal((450, 300), spread, (k, 2)), FRAME[:2], FRAME[2:])
    sizes = np.column_stack([rng.uniform(10, 90, k), np.full(k, 12.0)])
    found = placed_in(points, sizes, rng.uniform(2, 20, k))
    boxes = found.boxes[found.is_shown]
    assert not any(meet(boxes[i], boxes[j]) for i in range(len(boxes)) for j in range(i))
    assert (boxes[:, :2] >= FRAME[:2]).all()
    assert (boxes[:, 2:] <= FRAME[2:]).all()
    assert not any((box[:2] < point).all() and (point < box[2:]).all() for box in boxes for point in points)
    assert np.allclose(boxes[:, 2:] - boxes[:, :2], sizes[found.is_shown])


def test_with_room_every_label_stands_right_above_its_mark():
    points = np.array([[100.0, 100.0], [500.0, 400.0]])
    found = placed_in(points, np.full((2, 2), (40.0, 12.0)), np.array([8.0, 8.0]))
    assert found.is_shown.all()
    assert not found.is_far.any()
    assert np.allclose((found.boxes[:, 0] + found.boxes[:, 2]) / 2, points[:, 0])
    assert (found.boxes[:, 1] > points[:, 1] + 8).all()


@pytest.mark.parametrize("k", [12, 50])
def test_a_crowd_on_one_spot_is_labelled_with_lines_as_long_as_there_is_room(k):
    found = placed_in(np.full((k, 2), (450.0, 300.0)), np.full((k, 2), (30.0, 12.0)), np.full(k, 6.0))
    assert found.is_shown.sum() >= min(k, 20)
    assert found.is_far.any()


def test_a_label_that_finds_no_room_is_left_out():
    found = place(np.array([[5.0, 5.0]]), np.array([[50.0, 50.0]]), np.ones(1), np.array([0.0, 0, 10, 10]), np.array([0]))
    assert not found.is_shown.any()
