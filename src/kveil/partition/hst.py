"""A 2-HST: a tree of ever smaller cells of a public universe. No row of anybody has been seen here.

Radii halve from level to level. The order in which points become centres and one factor of all radii are random, so that
near points stay together for long, with high probability; a fixed factor would not have that (docs/errata.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import Floats, Integers
from kveil.errors import InvalidValue
from kveil.partition import _kernels
from kveil.partition.divide import Divide, divider
from kveil.partition.medoids import medoids
from kveil.space.universe import check_universe, seal

if TYPE_CHECKING:
    from kveil.space.universe import Space


LOWEST_FACTOR = 0.75  # the random factor of the radii is between this and twice this
MOST_LEVELS = 40
MOST_CHILDREN = 256  # of one cell: in high dimension a cell falls apart into nearly as many as it has points


@dataclass(frozen=True, eq=False, repr=False)
class Hst:
    """A tree over the points of `space`. Node 0 is the root; nodes are numbered as they were made, parents before children.

    parent, depth, first_child, n_children: (nodes,) shape of the tree, chains collapsed; the children of a node are
        numbered in a row, in the order they were carved. The root has parent -1, a leaf first_child 0.
    level: (nodes,) the lowest level at which this cell is still one; the root's is n_levels if it was divided at once.
    radius: (nodes,) in steps of the space: all members lie within it of one point. Nominal if the universe was projected.
    gap: (nodes,) in steps: the nominal radius of the level at which the cell was cut from its parent, which is how far members
        are from others, in order of size. The root's is the diameter.
    start, stop, members: node v holds the locations members[start[v]:stop[v]]; a location is named by its first point.
    leaf: (n_points,) the leaf every point is in; points at one location are in one leaf.
    representative: (nodes,) the medoid of a leaf, a point of the universe; -1 for inner nodes.
    """

    space: Space
    n_levels: int
    factor: float
    diameter: int
    parent: Integers
    depth: Integers
    first_child: Integers
    n_children: Integers
    level: Integers
    radius: Floats
    gap: Floats
    start: Integers
    stop: Integers
    members: Integers
    leaf: NDArray[np.int32]
    representative: Integers

    @classmethod
    def of(
        cls,
        space: Space,
        *,
        levels: int = 8,
        leaf_size: int = 1,
        beta: float | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> Hst:
        """The 2-HST of a public universe, at most `levels` deep.

        leaf_size: cells of at most so many locations are not divided. beta: the factor of the radii, random unless given;
        1.0 is the paper's. random_state: public choices only.

        >>> from kveil.space.vectors import Euclidean
        >>> print(Hst.of(Euclidean([[0.0], [1.0], [9.0], [9.0]]), levels=4, beta=1.0, random_state=1))
        points: 4, leaves: 3, height: 2, factor of radii: 1
        3 places within 9
        |-- 2 places within 1.125
        |   |-- point 0
        |   `-- point 1
        `-- point 2
        """
        check_universe(space)
        _check(levels, leaf_size, beta)
        rng = np.random.default_rng(random_state)
        named = space.locations()
        order = _first_seen(named[rng.permutation(space.n_points)])
        factor = LOWEST_FACTOR * 2.0 ** rng.random() if beta is None else float(beta)  # density ~ 1/beta between the ends
        diameter = _diameter(space, int(order[0]))
        radii = [factor * diameter / 2 ** (levels - h) for h in range(levels)]
        grown = _grow(divider(space, order, radii, MOST_CHILDREN, rng), order, radii, diameter, leaf_size)
        leaves = np.flatnonzero(grown["n_children"] == 0)
        representative = np.full(len(grown["parent"]), -1, dtype=np.int64)
        slices = grown["start"][leaves], grown["stop"][leaves]
        representative[leaves] = medoids(space, named, grown["members"], *slices, grown["radius"][leaves], rng)
        leaf = _leaf_of_points(named, grown["members"], leaves, *slices)
        seal(leaf, representative, *grown.values())
        return cls(space, levels, factor, diameter, leaf=leaf, representative=representative, **grown)

    @property
    def n_nodes(self) -> int:
        return len(self.parent)

    @property
    def height(self) -> int:
        """The largest depth of a leaf; 0 if the whole universe is one location."""
        return int(self.depth.max())

    @property
    def leaves(self) -> Integers:
        return np.flatnonzero(self.n_children == 0)

    def sums(self, weights: NDArray[Any]) -> NDArray[Any]:
        """Sums of a weight a point over the members of every node, the root too; exact for integers."""
        sums = np.zeros(self.n_nodes, dtype=weights.dtype)
        np.add.at(sums, self.leaf, weights)
        for depth in range(self.height, 0, -1):
            nodes = np.flatnonzero(self.depth == depth)
            np.add.at(sums, self.parent[nodes], sums[nodes])
        return sums

    def points(self, node: int) -> Integers:
        """Locations in a node, each by its first point."""
        return self.members[self.start[node] : self.stop[node]]

    def children(self, node: int) -> Integers:
        return np.arange(self.first_child[node], self.first_child[node] + self.n_children[node])

    def draw(self, width: int = 100, height: int = 60) -> str:
        """The tree as lines of text, at most `height` of them; what does not fit is counted."""
        from kveil.partition.drawing import text

        return text(self, width, height)

    def save_picture(self, path: str | PathLike[str]) -> Path:
        """Draw the tree into an SVG or PNG file, by its suffix; needs matplotlib: pip install "kveil[report]"."""
        from kveil.partition.drawing import save

        return save(self, path)

    def __str__(self) -> str:
        return self.draw()

    def __repr__(self) -> str:
        return f"Hst({self.space!r}, {self.n_nodes} nodes, {len(self.leaves)} leaves, height {self.height})"


def _check(levels: Any, leaf_size: Any, beta: Any) -> None:
    if any(isinstance(value, bool) for value in (levels, leaf_size, beta)):
        raise InvalidValue("levels, leaf_size and beta must be numbers, not True or False.")
    if not isinstance(levels, int | np.integer) or not 1 <= levels <= MOST_LEVELS:
        raise InvalidValue(f"levels must be a whole number from 1 to {MOST_LEVELS}.")
    if not isinstance(leaf_size, int | np.integer) or leaf_size < 1:
        raise InvalidValue("leaf_size must be a whole number of at least 1.")
    if beta is not None and not (isinstance(beta, int | float) and 0.5 <= beta <= 1.5):
        raise InvalidValue("beta, the factor of all radii, must be between 0.5 and 1.5, or None for a random one.")


def _first_seen(sequence: Integers) -> Integers:
    """The different entries in the order in which they first occur."""
    _, first = np.unique(sequence, return_index=True)
    return np.asarray(sequence[np.sort(first)])


def _leaf_of_points(named: Integers, members: Integers, leaves: Integers, start: Integers, stop: Integers) -> NDArray[np.int32]:
    along = np.argsort(start)  # leaves cover the places of members without a gap
    leaf = np.empty(len(named), dtype=np.int32)
    leaf[members] = np.repeat(leaves[along], (stop - start)[along])
    return np.asarray(leaf[named])


def _diameter(space: Space, anywhere: int) -> int:
    """An upper bound of all distances that is at most twice too large, whatever the space says."""
    return min(int(space.diameter), 2 * int(space.distances(np.array([anywhere])).max()))


def _grow(divide: Divide, order: Integers, radii: list[float], diameter: int, leaf_size: int) -> dict[str, NDArray[Any]]:
    """Divide level by level. A cell that stays whole on a level is the same node with a smaller radius: chains never arise."""
    n, members = len(order), order.copy()
    tree: dict[str, NDArray[Any]] = {
        "parent": np.array([-1]), "depth": np.array([0]), "first_child": np.array([0]), "n_children": np.array([0]),
        "level": np.array([len(radii)]), "radius": np.array([float(diameter)]), "gap": np.array([float(diameter)]),
        "start": np.array([0]), "stop": np.array([n]),
    }  # fmt: skip
    child, far = np.empty(n, dtype=np.int32), np.zeros(n)
    active = np.flatnonzero(tree["stop"] > max(1, leaf_size))
    for level in range(len(radii) - 1, -1, -1):
        if not len(active):
            break
        starts, stops = tree["start"][active], tree["stop"][active]
        divide(level, members, starts, stops, child, far)
        counts, begins = np.empty(len(active), dtype=np.int64), np.empty(n, dtype=np.int64)
        total = _kernels.regroup(members, child, starts, stops, counts, begins)
        whole, split = active[counts == 1], active[counts > 1]
        tree["level"][whole], tree["radius"][whole] = level, radii[level]
        tree["n_children"][split] = counts[counts > 1]
        tree["first_child"][split] = len(tree["parent"]) + np.cumsum(tree["n_children"][split]) - tree["n_children"][split]
        new = _children(tree, split, begins[:total][np.repeat(counts > 1, counts)], far, level, radii[level])
        fresh = len(tree["parent"]) + np.flatnonzero(new["stop"] - new["start"] > max(1, leaf_size))
        tree = {name: np.concatenate([old, new[name]]) for name, old in tree.items()}
        active = np.concatenate([whole, fresh])
    return {**tree, "members": members}


def _children(
    tree: dict[str, NDArray[Any]], split: Integers, start: Integers, far: Floats, level: int, radius: float
) -> dict[str, NDArray[Any]]:
    """The nodes cut from the cells `split`, which begin at `start`."""
    counts = tree["n_children"][split]
    parent, last = np.repeat(split, counts), np.cumsum(counts) - 1
    number = np.arange(len(parent)) - np.repeat(last + 1 - counts, counts)
    stop = np.roll(start, -1)
    stop[last] = tree["stop"][split]
    same = {name: np.full(len(parent), value) for name, value in {"first_child": 0, "n_children": 0, "level": level}.items()}
    reach = np.maximum(radius, far[np.repeat(tree["start"][split], counts) + number])
    shape = {"parent": parent, "depth": tree["depth"][parent] + 1, "start": start, "stop": stop}
    return {**shape, **same, "radius": reach, "gap": np.full(len(parent), radius)}
