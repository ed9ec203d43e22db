"""All partitions of a few points, and the best of them. Exponential: for a dozen points at most."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import Floats
from kveil.errors import InvalidValue

MOST = 300_000  # sets or partitions that are tried

Labels = NDArray[np.int64]


def partitions(n_points: int, n_groups: int) -> Labels:
    """(partitions, n): every way to put n points into at most so many groups, numbered in the order of their first point."""
    if n_groups > 1 and (n_points - 1) * np.log(n_groups) > np.log(MOST * n_groups):
        raise InvalidValue("so many points have too many partitions to try. Say which is the best one by labels, or take fewer.")
    labels, groups = np.zeros((1, 1), dtype=np.int64), np.ones(1, dtype=np.int64)
    for _ in range(n_points - 1):
        choices = np.minimum(groups + 1, n_groups)
        before = np.repeat(np.arange(len(labels)), choices)
        chosen = np.arange(len(before)) - np.repeat(np.cumsum(choices) - choices, choices)
        labels, groups = np.column_stack([labels[before], chosen]), np.maximum(groups[before], chosen + 1)
    return labels


def group_means(rows: Floats, labels: Labels, n_groups: int) -> tuple[Floats, Floats]:
    """(partitions, groups, d): the means of all groups, of an empty one that of the first; and (partitions,): what they cost."""
    means, costs = np.empty((len(labels), n_groups, rows.shape[1])), np.zeros(len(labels))
    for group in range(n_groups):
        mine = (labels == group).astype(np.float64)
        counts = mine.sum(axis=1)
        means[:, group] = np.where(counts[:, None] > 0, mine @ rows / np.maximum(counts, 1.0)[:, None], means[:, 0])
        away = ((rows[None] - means[:, group, None]) ** 2).sum(axis=2)
        costs += (mine * away).sum(axis=1)
    return means, costs


def best_labels(rows: Floats, n_groups: int) -> Labels:
    """The partition that k-means would find if it could."""
    labels = partitions(len(rows), n_groups)
    return np.asarray(labels[int(np.argmin(group_means(rows, labels, n_groups)[1]))])


def least_cost(rows: Floats, n_groups: int) -> float:
    """The least cost of so many centres, by trying all partitions."""
    if len(np.unique(rows, axis=0)) <= n_groups:
        return 0.0
    return float(group_means(rows, partitions(len(rows), n_groups), n_groups)[1].min())
