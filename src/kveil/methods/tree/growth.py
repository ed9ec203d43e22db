"""A public binary tree over released axes, grown by noisy counts: several halvings a stage, every child counted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from kveil.arrays import Floats, Integers
from kveil.methods.ground import Ground
from kveil.methods.steps import asked_means
from kveil.partition.midpoints import halving_order
from kveil.questions.cells import Residuals, Stage
from kveil.questions.frame import Frame, whole_steps
from kveil.solve.evidence import shows_rows, sure_sum
from kveil.solve.wkmeans import quick_kmeans
from kveil.space.euclidean import Centers

EVERYWHERE = 0.75  # of the cells of a stage show rows: finer ones would not
FEW_BY_CHANCE = 4.0  # an outpost without rows stands out with probability exp(-4) in all


class Leaves(NamedTuple):
    """Released points with weights, how far the rows of each may lie from it, and half-widths (leaves, axes) of its box."""

    points: Floats
    weights: Floats
    reaches: Floats
    halves: Floats


class Grown(NamedTuple):
    """Leaves, and the deviation of the noise in the count of one."""

    leaves: Leaves
    deviation: float


def grow(ground: Ground, frame: Frame, half: Floats, bits: list[int], share: float, *, saves: bool = False) -> Grown:
    """Leaves of a tree with one stage for each entry of `bits`; each stage is given `share` of the budget.

    A stage counts ALL children of kept cells, empty ones too; a row is in at most one. Which cells are kept, and so the
    shape of the next stage, follows from noisy counts.
    saves: no next stage where nearly all cells are kept. Rows lie everywhere then, too few in a finer cell to stand out, and its
    budget is left to later answers.
    """
    size = np.maximum(np.ceil(half), 1).astype(np.int64)
    order = halving_order(size, sum(bits))
    kept, weights = np.zeros(1, dtype=np.int64), np.ones(1)
    found: list[tuple[Floats, Floats, Floats]] = []  # middles, half-widths and weights of leaves
    depth, deviation = 0, 0.0
    for s in bits:
        stage = Stage(frame, size, order[: depth + s], kept, s, planned=order)
        ((counts, deviation),) = ground.desk.ask(stage, share)  # public, charged
        is_kept = shows_rows(counts, deviation, is_pure=ground.desk.kind == "pure", is_only=len(bits) == 1)
        childless = ~is_kept.reshape(len(kept), -1).any(axis=1)
        found.append((*boxes(kept[childless], order[:depth], size), weights[childless]))
        codes = (kept[:, None] << s) + np.arange(1 << s)
        kept, weights, depth = codes.ravel()[is_kept], counts[is_kept], depth + s
        if not len(kept) or (saves and len(kept) > EVERYWHERE * is_kept.size):
            break
    found.append((*boxes(kept, order[:depth], size), weights))
    middles, halves, weights = (np.concatenate(part) for part in zip(*found, strict=True))
    return Grown(Leaves(middles, weights, np.sqrt((halves**2).sum(axis=1)), halves), deviation)


def joined(leaves: Leaves, most: int, rng: np.random.Generator) -> Leaves:
    """At most so many leaves: k-means of more, each with the sides and the farthest corner of all the cells that it stands for.
    Free: it looks at released numbers alone."""
    if len(leaves.points) <= most:
        return leaves
    points = quick_kmeans(leaves.points, leaves.weights, most, rng)
    owner = cdist(leaves.points, points, "sqeuclidean").argmin(axis=1)
    sides = np.abs(leaves.points - points[owner]) + leaves.halves
    halves, reaches = np.zeros(points.shape), np.zeros(most)
    np.maximum.at(halves, owner, sides)
    np.maximum.at(reaches, owner, np.sqrt((sides**2).sum(axis=1)))
    weights = np.bincount(owner, leaves.weights, minlength=most).astype(np.float64)
    return Leaves(points, weights, reaches, halves)


def outposts(half: Floats, full: Floats) -> Leaves:
    """Points far out on either side of every axis, from where cells end to where the domain does, each about twice as far as the
    one before: rows that the cells cut off, a small cluster of outliers say, gather at one of them, however loose bounds are."""
    n, near, found = len(half), np.maximum(half, 1.0), [np.zeros((0, 2 * len(half) + 1))]
    while (is_far := full > 1.5 * near).any():
        far = np.where(full > 3 * near, 2 * near, full)
        away, reaches = np.diag((near + far) / 2)[is_far], np.maximum((far - near) / 2, 1.0)[is_far, None]
        found += [np.hstack([points, reaches, np.tile(reaches / np.sqrt(n), (1, n))]) for points in (away, -away)]
        near = np.where(is_far, far, near)
    points, reaches, halves = np.split(np.concatenate(found), [n, n + 1], axis=1)
    return Leaves(points, np.zeros(len(points)), reaches[:, 0], halves)


def with_means(ground: Ground, frame: Frame, leaves: Leaves, outside: Leaves, share: float) -> Grown:
    """Leaves moved to the noisy mean of the rows nearest to each, with their noisy count; outposts if rows are there."""
    n_leaves = len(leaves.points)
    leaves = Leaves(*(np.concatenate(parts) for parts in zip(leaves, outside, strict=True)))
    bases = whole_steps(leaves.points, frame.reach or ground.reach)
    radii = np.maximum(np.ceil(leaves.reaches), 1).astype(np.int64)
    question = Residuals(frame, Centers(bases.astype(np.float64), None), "projected", "projected", bases, radii)
    found = asked_means(ground.desk, question, 0.25 * share, 0.75 * share)
    points = leaves.points + np.where(found.is_weak[:, None], 0.0, found.moves)
    weights = np.where(found.is_weak, np.maximum(found.counts, 0) / 4, found.counts)
    deviation = ground.desk.deviation(0.25 * share)
    least = sure_sum(np.ones(1), np.log(max(1, len(outside.points))) + FEW_BY_CHANCE, is_pure=ground.desk.kind == "pure")[0]
    is_noise = (np.arange(len(points)) >= n_leaves) & (found.counts < least * deviation)
    return Grown(leaves._replace(points=points, weights=np.where(is_noise, 0.0, weights)), deviation)


def boxes(codes: Integers, order: Integers, half: Integers) -> tuple[Floats, Floats]:
    """Middles and half-widths (cells, axes) of cells of one depth."""
    low, high = (np.tile(side * half.astype(np.float64), (len(codes), 1)) for side in (-1, 1))
    for level, axis in enumerate(order):
        middle = (low[:, axis] + high[:, axis]) / 2
        is_upper = (codes >> (len(order) - 1 - level)) & 1 == 1
        low[:, axis], high[:, axis] = np.where(is_upper, middle, low[:, axis]), np.where(is_upper, high[:, axis], middle)
    return (low + high) / 2, (high - low) / 2
