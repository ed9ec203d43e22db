"""Released sums of unit rows turned into directions: what stands out of the noise, and which sums go together. Never a secret."""

from __future__ import annotations

import numpy as np

from kveil.arrays import Floats, Integers


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
