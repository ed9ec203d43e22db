"""A public binary tree over released axes, grown by noisy counts: several halvings a stage, every child counted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kveil.models._view import View
from kveil.space.euclidean import Centers
from kveil.summary.cells import Residuals, Stage, stage_counts
from kveil.summary.frame import Frame

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Leaves(NamedTuple):
    """Released points with weights, and how far the rows of each may lie from it."""

    points: Floats
    weights: Floats
    reaches: Floats


def grow(view: View, frame: Frame, half: Floats, bits: list[int], share: float) -> Leaves:
    """Leaves of a tree with one stage for each entry of `bits`; each stage is given `share` of the budget.

    A stage counts ALL children of kept cells, empty ones too; a row is in at most one. Which cells are kept, and so the
    shape of the next stage, follows from noisy counts.
    """
    size = np.maximum(np.ceil(half), 1).astype(np.int64)
    order = halving_order(size, sum(bits))
    kept, weights = np.zeros(1, dtype=np.int64), np.ones(1)
    found: list[tuple[Floats, Floats, Floats]] = []  # middles, half-widths and weights of leaves
    depth = 0
    for s in bits:
        stage = Stage(frame, size, order[: depth + s], kept, s)
        (raw,) = view.source.map_reduce(stage_counts, stage, grid=view.task.domain)  # secret
        counts = view.pool.counts("cells of the tree", raw, share)  # public, charged
        is_kept = counts >= least_count(view, len(counts), share)
        childless = ~is_kept.reshape(len(kept), -1).any(axis=1)
        found.append((*boxes(kept[childless], order[:depth], size), weights[childless]))
        codes = (kept[:, None] << s) + np.arange(1 << s)
        kept, weights, depth = codes.ravel()[is_kept], counts[is_kept], depth + s
        if not len(kept):
            break
    found.append((*boxes(kept, order[:depth], size), weights))
    middles, halves, weights = (np.concatenate(part) for part in zip(*found, strict=True))
    return Leaves(middles, weights, np.sqrt((halves**2).sum(axis=1)))


def least_count(view: View, n_cells: int, share: float) -> float:
    """What a cell must show to be kept: more deviations where there are more cells, whose noise could pass by chance."""
    log = float(np.log(n_cells))
    factor = 0.8 * log / 2**0.5 if view.pool.kind == "pure" else 0.9 * (2 * log) ** 0.5
    return max(max(2.0, factor) * view.pool.deviation(share), 0.5)


def with_means(view: View, frame: Frame, leaves: Leaves, share: float) -> Leaves:
    """Leaves moved to the noisy mean of the rows nearest to each, with their noisy count."""
    bases = np.rint(leaves.points).astype(np.int64)
    radii = np.maximum(np.ceil(leaves.reaches), 1).astype(np.int64)
    state = Residuals(frame, Centers(bases.astype(np.float64), None), "projected", "projected", bases, radii)
    found = view.means(state, 0.25 * share, 0.75 * share)
    points = leaves.points + np.where(found.is_weak[:, None], 0.0, found.moves)
    return Leaves(points, np.where(found.is_weak, np.maximum(found.counts, 0) / 4, found.counts), leaves.reaches)


def halving_order(half: Integers, depth: int) -> Integers:
    """Which axis each level halves: always the one that is widest now, ties to the lowest index."""
    width = half.astype(np.float64) * 2
    order = np.empty(depth, dtype=np.int64)
    for level in range(depth):
        order[level] = int(np.argmax(width))
        width[order[level]] /= 2
    return order


def boxes(codes: Integers, order: Integers, half: Integers) -> tuple[Floats, Floats]:
    """Middles and half-widths (cells, axes) of cells of one depth."""
    low, high = (np.tile(side * half.astype(np.float64), (len(codes), 1)) for side in (-1, 1))
    for level, axis in enumerate(order):
        middle = (low[:, axis] + high[:, axis]) / 2
        is_upper = (codes >> (len(order) - 1 - level)) & 1 == 1
        low[:, axis], high[:, axis] = np.where(is_upper, middle, low[:, axis]), np.where(is_upper, high[:, axis], middle)
    return (low + high) / 2, (high - low) / 2
