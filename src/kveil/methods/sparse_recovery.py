"""Means of clusters of sparse rows: noise in every column, of which those are kept that stand out; or columns chosen first."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np

from kveil.desk.base import Curator
from kveil.methods.tree.sparse_sums import SparseSums, standing_means
from kveil.questions.cells import TOP, Residuals, l1_length
from kveil.questions.columns import ColumnCosts, ColumnSums
from kveil.questions.frame import Frame
from kveil.solve.placed import Placed
from kveil.solve.shrink import within

OF_SIZES = 0.05  # of recovery


def by_threshold(desk: Curator, question: Residuals, share: float) -> Placed:
    """Sums with noise in all columns; what is kept of them follows from released values. See `SparseSums`."""
    frame, (k, d) = question.frame, question.bases.shape
    law = SparseSums(desk, TOP, d, frame.nonzeros or d, (1 - OF_SIZES) * share)
    sizes, sums = law.ask(question, OF_SIZES * share)  # public, charged
    return standing_means(sizes, sums, np.ones(k), law, float(frame.radius))


def by_columns(desk: Curator, question: Residuals, share: float, eta: float) -> Placed:
    """Columns of each sum that hold most, chosen one after the other by the exponential mechanism; then noise in these alone.

    Private:      the sums.  Public: how many columns are chosen, 2 s/eta, and the shares.
    Neighbours:   those of the pool's plan.
    Sensitivity:  of sums, not of means: a row adds to one cluster a vector v with at most s entries that are not 0. It moves the
                  size of no sum by more than |v|, column by column (`questions.columns`). Noisy sizes of clusters are released
                  apart and divided by afterwards: a mean over the exact size would move in columns that the row does not touch.
    Cost:         `share`, pure. Picks: a ((rounds - 1) L + L1) at rate a, L = max |v| and L1 = |v|_1 (`kernel.choice.peeled`);
                  values: a L1. The paper has one rate for both, a = eta epsilon/(4 s) for rows of s entries of size 1: with
                  L = 1, L1 = s and 2 s/eta rounds that is less than epsilon/2 + eta epsilon/4 + eta epsilon/4, which is
                  (1 + eta)/2 epsilon. Here L is the radius, L1 sqrt(s) radii, and a what the share pays for.
    Reference:    Balcan, Dick, Liang, Mou, Zhang (2017), Algorithm 5, as corrected in docs/errata.md.
    """
    frame, (k, d) = question.frame, question.bases.shape
    rounds, length = n_columns_chosen(frame, d, eta), l1_length(frame, d)
    of_sizes, rest = OF_SIZES * share, (1 - OF_SIZES) * share
    of_values = rest * length / (2 * length + (rounds - 1) * TOP)
    held = desk.hold(replace(question, by_coordinates=True, in_steps=False))
    sizes, deviation = held.show(0, of_sizes)  # public, charged
    columns = held.choose_several(ColumnCosts(frame, d), rounds, rest - of_values)  # (k, rounds)  public, charged
    ((values, noise),) = held.ask(ColumnSums(frame, d, columns), of_values)  # public, charged
    weak, unit = sizes < max(2 * deviation, 0.5), frame.radius / TOP / np.maximum(sizes, 1.0)
    centers = np.zeros((k, d))
    np.put_along_axis(centers, columns, np.where(weak[:, None], 0.0, values * unit[:, None]), axis=1)
    return Placed(within(centers, float(frame.radius)), sizes, np.where(weak, frame.radius, noise * length * unit))


def n_columns_chosen(frame: Frame, n_columns: int, eta: float) -> int:
    return min(n_columns, ceil(2 * min(frame.nonzeros or n_columns, n_columns) / eta))
