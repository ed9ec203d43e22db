"""Released sums of unit rows turned into directions: what stands out of the noise, and which sums go together. Never a secret."""

from __future__ import annotations

from math import exp, log, pi, sqrt

import numpy as np
from scipy.special import ndtr, ndtri

from kveil.arrays import Bools, Floats, Integers

MOST_CELLS = 128  # that tell which columns go together: those with most rows


def standing(sums: Floats, cuts: Floats | float, least: int, *, signed: bool) -> Floats:
    """Sums (n, q) with 0 where an entry does not pass its cut; if fewer than `least` of one do, its `least` largest entries.

    Without signs negative entries are noise, and become 0; with them magnitudes decide.
    """
    sizes = np.abs(sums) if signed else sums
    found = np.where(sizes > np.broadcast_to(cuts, sums.shape), sums, 0.0)
    for place in np.flatnonzero(np.count_nonzero(found, axis=1) < least):
        first = np.argsort(-sizes[place], kind="stable")[:least]
        found[place] = 0.0
        found[place, first] = sums[place, first] if signed else np.maximum(sums[place, first], 0.0)
    return found


def own_parts(sums: Floats, cut: float, chance: float) -> Floats:
    """Sums (n, q) less what each would hold if its rows were like all rows; as they are where that does not stand out.

    A sum of rows of all kinds points where every other does, and draws rows of all kinds again. What it has more of than its
    share tells it apart. Without signs; a row stays as it is unless more entries pass the cut than by the `chance` of noise.
    """
    total, by_chance = sums.sum(axis=0), chance * sums.shape[1]
    sizes = np.maximum(sums.sum(axis=1), 0.0)
    own = sums - np.outer(sizes / max(float(sizes.sum()), 1e-300), total)
    passing = np.count_nonzero(own > cut, axis=1)
    return np.where((passing > by_chance + 4 * sqrt(by_chance) + 4)[:, None], own, sums)


def noise_length(n_numbers: int, cut: float, least: int, *, is_laplace: bool, signed: bool) -> float:
    """How long a sum of noise alone is after `standing`, in deviations of one number: the numbers beyond the cut, or the `least`
    largest."""
    sides = 2 if signed else 1
    share = min(0.5, least / (sides * n_numbers))
    z = min(cut, -log(2 * share) / sqrt(2) if is_laplace else -float(ndtri(share)))
    if is_laplace:
        tail = exp(-sqrt(2) * z) * (z**2 + sqrt(2) * z + 1) / 2
    else:
        tail = z * exp(-(z**2) / 2) / sqrt(2 * pi) + float(ndtr(-z))
    return sqrt(sides * n_numbers * tail)


def halves(sums: Floats) -> Bools:
    """(q,) which of two groups a column is in, by sums (m, q) of rows of different cells: columns of rows that go together rise
    and fall together from cell to cell. The sign of the first singular vector, after totals of cells and columns are taken out.
    """
    first = np.argsort(-sums.sum(axis=1), kind="stable")[:MOST_CELLS]
    sums = sums[first]
    columns = np.maximum(sums.sum(axis=0), 1e-9)
    expected = np.outer(sums.sum(axis=1) / columns.sum(), columns)
    return np.asarray(np.linalg.svd((sums - expected) / np.sqrt(columns), full_matrices=False)[2][0] > 0)


def split(kept: Floats, history: Floats, least: float) -> Floats:
    """Sums (n, q) in which those that are no longer than `least` are gone: in the place of each stands a half of a long one.

    A sum of two kinds of rows never comes apart by itself, and cells without rows get none. Which columns go together is told
    by `history`, the sums (m, q) of all cells so far. The longest are halved first, each once. Half of one kind of rows does no
    harm: it is merged again.
    """
    found, lengths = kept.copy(), np.linalg.norm(kept, axis=1)
    empty, longest = np.flatnonzero(lengths <= least), np.argsort(-lengths, kind="stable")
    for to, whole in zip(empty, longest[: len(kept) - len(empty)], strict=False):
        columns = np.flatnonzero(kept[whole])
        first = columns[halves(history[:, columns])]
        if 0 < len(first) < len(columns):
            found[to] = found[whole]
            found[to, first] = 0.0
            found[whole, np.setdiff1d(columns, first)] = 0.0
    return found


def merged_groups(sums: Floats, k: int) -> Integers:
    """(n,) a group below k for each of n sums: the two whose union loses least are joined, until k groups are left.

    A sum C of unit rows is worth |C|, the sum of their cosines with its direction; two together are worth |A + B|, which is
    |A| + |B| - |A + B| less. Ties go to the lowest places.
    """
    n, group = len(sums), np.arange(len(sums))
    products = sums @ sums.T
    losses = _losses(products, np.arange(n))
    losses[np.arange(n), np.arange(n)] = np.inf
    near, least = losses.argmin(axis=1), losses.min(axis=1)
    for _ in range(n - k):
        a = int(np.argmin(least))
        a, b = sorted((a, int(near[a])))
        group[group == b] = a
        products[a] += products[b]
        products[:, a] += products[:, b]
        gone = np.isinf(losses).all(axis=1)
        losses[a] = losses[:, a] = np.where(gone, np.inf, _losses(products, np.array([a]))[0])
        losses[a, a] = np.inf
        losses[b] = losses[:, b] = np.inf
        for row in np.flatnonzero((near == a) | (near == b) | (losses[:, a] <= least)):
            near[row], least[row] = losses[row].argmin(), losses[row].min()
        near[a], least[a] = losses[a].argmin(), losses[a].min()
        least[b] = np.inf
    return np.unique(group, return_inverse=True)[1].reshape(-1)


def _losses(products: Floats, rows: Integers) -> Floats:
    """What joining each of some sums with every other loses, from the products of all."""
    squares = np.maximum(np.diagonal(products), 0.0)
    lengths = np.sqrt(squares)
    together = np.sqrt(np.maximum(squares[rows, None] + squares + 2 * products[rows], 0.0))
    return np.asarray(np.maximum(lengths[rows, None] + lengths - together, 0.0))
