"""A flat partition of a finite public universe: every point goes to the nearest of m sites that are spread over it.

Everything here is public: no row of a demand is looked at, so any choice is free. Sites are spread by k-median++ and then
moved to the middles of their cells, which makes cells round and of like width.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kveil.partition.medoids import medoids

if TYPE_CHECKING:
    from kveil.space.universe import Space

Labels = NDArray[np.int32]
Indices = NDArray[np.int64]
Rng = np.random.Generator

ROUNDS, MANY, ROUNDS_IF_MANY = 3, 1500, 1  # rounds of moving sites; with many cells the first spread is nearly as good
BATCH = 64  # draws from one table of probabilities


@dataclass(frozen=True, eq=False)
class Cells:
    """owner: the cell of every point (n,). sites: the point in the middle of every cell (m,). groups: neighbouring cells that
    are judged together (m,). sizes: how many points a cell has (m,), at least one each."""

    owner: Labels
    sites: Indices
    groups: Labels
    sizes: Indices


def voronoi(space: Space, n_cells: int, rng: Rng) -> Cells:
    """`n_cells` cells of `space`, or a few less where some turn out empty; at most one for every location."""
    named = space.locations()
    sites, owner = divided(space, named, np.unique(named), n_cells, rng)
    _, groups = divided(space, named, sites, ceil(sqrt(len(sites))), rng)
    return Cells(owner, sites, groups[sites], np.bincount(owner, minlength=len(sites)))


def divided(space: Space, named: Indices, pool: Indices, n_cells: int, rng: Rng) -> tuple[Indices, Labels]:
    """Sites among the points of `pool`, which lie apart from each other, and the nearest site of every point of `space`.

    named: the location of every point. Cells without a point of the pool are dropped.
    """
    if n_cells >= len(pool):
        return pool, space.nearest(pool)[0]
    sites = spread(space, pool, n_cells, rng)
    for _ in range(ROUNDS_IF_MANY if n_cells > MANY else ROUNDS):
        sites = _middles(space, named, pool, sites, rng)
    owner = space.nearest(sites)[0]
    kept = np.unique(owner[pool])
    if len(kept) < len(sites):
        sites = sites[kept]
        owner = space.nearest(sites)[0]
    return sites, owner


def spread(space: Space, pool: Indices, n_sites: int, rng: Rng) -> Indices:
    """k-median++ on the points of `pool`, more than `n_sites`: the first site anywhere, each next one by its distance to those
    before.

    Draws come in batches from one table of distances; a draw whose distance has shrunk since is kept with probability new
    over old, so the law is exactly that of drawing one by one, with one table for many draws.
    """
    best, owner = np.full(space.n_points, space.diameter + 1, dtype=np.int32), np.full(space.n_points, -1, dtype=np.int32)
    sites = [int(pool[rng.integers(len(pool))])]
    space.claim(sites[0], 0, best, owner)
    while len(sites) < n_sites:
        table = best[pool].astype(np.int64)
        cumulative = np.cumsum(table)
        if not cumulative[-1]:  # what is no metric may have points at distance 0 from a site and not from each other
            break
        draws = np.searchsorted(cumulative, rng.integers(cumulative[-1], size=BATCH), side="right")
        for place, height in zip(draws.tolist(), rng.integers(table[draws]).tolist(), strict=True):
            if height < best[pool[place]] and len(sites) < n_sites:
                space.claim(int(pool[place]), len(sites), best, owner)
                sites.append(int(pool[place]))
    return np.array(sites, dtype=np.int64)


def _middles(space: Space, named: Indices, pool: Indices, sites: Indices, rng: Rng) -> Indices:
    """Of every cell that has points of the pool the one in the middle of them."""
    owner, first, _, _ = space.nearest(sites)
    members = pool[np.argsort(owner[pool], kind="stable")]
    start = np.flatnonzero(np.diff(owner[members], prepend=-1))
    radius = np.maximum.reduceat(first[members], start).astype(np.float64)
    return medoids(space, named, members, start, np.append(start[1:], len(members)), radius, rng)
