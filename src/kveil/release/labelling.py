"""Where labels go, so that none covers another: beside its point if there is room, else farther away with a line to it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kveil.arrays import Bools, Floats, Integers

AROUND = np.deg2rad([90, 270, 0, 180, 45, 135, 315, 225, 22, 158, 68, 112, 202, 338, 248, 292])  # above first
FARTHER = (0.0, 4.0, 10.0, 18.0, 28.0, 40.0, 55.0, 75.0, 100.0, 130.0, 165.0, 205.0)  # pixels beyond the edge of a mark
DOT = 3.0  # pixels from the middle of a mark to its border
ALONG = 24  # points that stand for a line
NEAR = 10.0  # from here on a line leads to the point


class Placed(NamedTuple):
    """Boxes (k, 4) as left, bottom, right, top; whether each label found room; and whether it needs a line to its point."""

    boxes: Floats
    is_shown: Bools
    is_far: Bools


def place(points: Floats, sizes: Floats, radii: Floats, frame: Floats, order: Integers, gap: float = 2.0) -> Placed:
    """Boxes for labels of `sizes` (k, 2) beside `points` (k, 2) with discs of `radii` (k,), all inside `frame` (4,).

    No box of a label meets another or the middle of any mark; as long as there is room, none meets a disc or a line that leads to
    a point either. Labels are placed in `order`; one that finds no room at all is not shown. All in pixels.
    """
    k = len(points)
    dots = np.column_stack([points - DOT, points + DOT])
    discs = np.column_stack([points - 0.8 * radii[:, None], points + 0.8 * radii[:, None]])
    boxes, is_shown, is_far = np.zeros((k, 4)), np.zeros(k, dtype=bool), np.zeros(k, dtype=bool)
    lines = np.empty((0, 4))  # of labels placed before: points on them, as boxes without a width
    for label in order.tolist():
        options, away = _options(points[label], sizes[label], radii[label], gap)
        inside = (options[:, :2] >= frame[:2]).all(axis=1) & (options[:, 2:] <= frame[2:]).all(axis=1)
        free = inside & ~_meets(options, boxes[is_shown], gap) & ~_meets(options, dots, 0.0)
        others = dots[np.abs(points - points[label]).max(axis=1) > DOT]  # marks on the same spot share their lines
        clear = free & ~_meets(options, lines, 1.0)
        clear &= (away < NEAR) | ~_crosses(points[label], options, np.concatenate([boxes[is_shown], others]))
        best = clear & ~_meets(options, discs, 0.0)
        found = next((np.flatnonzero(some) for some in (best, clear, free) if some.any()), None)
        if found is None:
            continue
        boxes[label], is_shown[label], is_far[label] = options[found[0]], True, away[found[0]] >= NEAR
        if is_far[label]:
            lines = np.concatenate([lines, np.tile(_line(points[label], boxes[label][None])[0], 2)])
    return Placed(boxes, is_shown, is_far)


def _options(point: Floats, size: Floats, radius: float, gap: float) -> tuple[Floats, Floats]:
    """Boxes around a point, nearest first, and how far beyond its disc each is."""
    away = np.repeat(FARTHER, len(AROUND))
    angles = np.tile(AROUND, len(FARTHER))
    direction = np.column_stack([np.cos(angles), np.sin(angles)])
    reach = (radius + gap + away)[:, None] * direction + np.sign(np.round(direction, 6)) * size / 2
    middle = point + reach
    return np.column_stack([middle - size / 2, middle + size / 2]), away


def _line(point: Floats, boxes: Floats) -> Floats:
    """(n, ALONG, 2) points on the way from a point to the middle of each box."""
    middles = (boxes[:, None, :2] + boxes[:, None, 2:]) / 2
    return np.asarray(point + np.linspace(0, 1, ALONG)[None, :, None] * (middles - point))


def _crosses(point: Floats, boxes: Floats, others: Floats) -> Bools:
    """Whether the way from a point to each of `boxes` leads through any of `others`."""
    way = np.tile(_line(point, boxes), 2).reshape(-1, 4)
    return np.asarray(_meets(way, others, 0.0).reshape(len(boxes), ALONG).any(axis=1))


def _meets(boxes: Floats, others: Floats, gap: float) -> Bools:
    """Whether each of `boxes` (n, 4) comes closer than `gap` to any of `others` (m, 4)."""
    a, b = boxes[:, None, :], others[None, :, :]
    apart = (a[..., 0] >= b[..., 2] + gap) | (b[..., 0] >= a[..., 2] + gap)
    apart |= (a[..., 1] >= b[..., 3] + gap) | (b[..., 1] >= a[..., 3] + gap)
    return np.asarray(~apart.all(axis=1)) if others.size else np.zeros(len(boxes), dtype=bool)
