"""Universes and demands of "k-Median Clustering via Metric Embedding: Towards Better Initialization with Differential Privacy".

Images of digits under L1 and L2, and random graphs of ten clusters, near (r = 1) or far (r = 100) from each other. A demand is
drawn from all points (balanced) or from two clusters only (imbalanced). All of it is public or made up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import Integers
from kveil.errors import SourceError
from kveil.space.graph import Graph
from kveil.space.matrix import Precomputed
from kveil.space.universe import Space
from kveil.space.vectors import Euclidean, Manhattan

Kind = Literal["balanced", "imbalanced"]

SEED = 2023  # of made-up graphs and of draws of demands; the noise has none
KINDS: tuple[Kind, ...] = ("balanced", "imbalanced")
LEAST_IMAGES = 64
GROUPS, LINKS, WITHIN = 10, 10, 0.2  # clusters of a graph, links of two clusters, how likely two vertices of a cluster are joined
RANGES = (1, 100)  # r: links between clusters have lengths from 0.5 to r


class Images(NamedTuple):
    """Public images, one per row, and the digit each of them shows."""

    pixels: NDArray[Any]
    digits: Integers


@dataclass(frozen=True, eq=False)
class Case:
    """A public universe as a table of all distances, in steps of length `unit`, and the cluster each point belongs to.

    The table is what everybody searches: distances are then looked up by all methods alike, as fast as can be.
    """

    name: str
    title: str
    space: Space
    group: Integers  # (n,)
    two: tuple[int, int]  # clusters that an imbalanced demand is drawn from
    unit: float

    def demand(self, kind: Kind, n_rows: int, number: int) -> Integers:
        """Points of a demand without repetition, another for every number; all there are if those are fewer."""
        pool = np.arange(len(self.group)) if kind == "balanced" else np.flatnonzero(np.isin(self.group, self.two))
        rng = np.random.default_rng([SEED, number])
        return np.sort(rng.choice(pool, min(n_rows, len(pool)), replace=False))


def cases(n_images: int, n_vertices: int, images: Images | None) -> Iterator[Case]:
    """The universes one after another, since their tables are large: images, if there are some, and both graphs."""
    for norm, kind in (("L1", Manhattan), ("L2", Euclidean)) if images is not None else ():
        assert images is not None
        some, digits = images.pixels[:n_images], images.digits[:n_images]
        yield _tabled(f"mnist-{norm.lower()}", f"images of digits, {norm}", kind(some), digits, _two(digits))
    for r in RANGES:
        graph, group = clustered_graph(n_vertices, r)
        yield _tabled(f"graph-r{r}", f"a graph of ten clusters, r = {r}", graph, group, (0, 1))


def clustered_graph(n: int, r: float) -> tuple[Graph, Integers]:
    """A random graph as the paper describes it, and the cluster of every vertex.

    Ten equal clusters. Two vertices of one are joined with probability 0.2 by an edge of a length uniform in [0, 1], two clusters
    by links of lengths uniform in [0.5, r]; how many links is not said there, and is ten here. Clusters of less than about 90
    vertices are joined more densely, so that none falls apart.
    """
    rng = np.random.default_rng([SEED, n])  # the same edges for every r
    group = rng.permutation(np.arange(n) % GROUPS)
    members = [np.flatnonzero(group == g) for g in range(GROUPS)]
    edges, lengths = [], []
    for inside in members:
        first, second = np.triu_indices(len(inside), 1)
        joined = rng.random(len(first)) < max(WITHIN, 3 * np.log(len(inside)) / len(inside))
        edges.append(np.column_stack([inside[first[joined]], inside[second[joined]]]))
        lengths.append(rng.random(len(edges[-1])))
    for one, other in combinations(members, 2):
        edges.append(np.column_stack([rng.choice(one, LINKS), rng.choice(other, LINKS)]))
        lengths.append(0.5 + (r - 0.5) * rng.random(LINKS))
    return Graph.from_edges(np.concatenate(edges), lengths=np.concatenate(lengths), n_points=n), group


def read_digits(path: Path) -> Images:
    """The images of an .npz file: an array x of numbers, one row an image, and y, a whole number each. Public data, shuffled."""
    x = y = None
    try:
        with np.load(path, allow_pickle=False) as file:
            x, y = file["x"], file["y"]
    except Exception:  # a parser fed with foreign bytes may raise anything
        pass
    is_table = x is not None and x.ndim >= 2 and x.dtype.kind in "uif" and x.size and np.isfinite(x).all()
    if x is None or y is None or not is_table or len(x) < LEAST_IMAGES or y.shape != (len(x),) or y.dtype.kind not in "iu":
        raise SourceError(
            f"{path} cannot be used as images. An .npz file is needed with an array x of finite numbers, one row per image, "
            f"at least {LEAST_IMAGES} of them. It also needs an array y with the digit of each. Leave out --data to draw the "
            "other figures."
        )
    order = np.random.default_rng(SEED).permutation(len(x))
    return Images(x.reshape(len(x), -1)[order], y[order].astype(np.int64))


def timed_universes(images: Images | None) -> dict[str, Callable[[int], Space]]:
    """Universes of any number of points, with distances of their own and no table, to measure seeding on."""
    found: dict[str, Callable[[int], Space]] = {"graph-r1": lambda n: clustered_graph(n, 1)[0]}
    if images is not None:
        pixels = images.pixels
        found["mnist-l2"] = lambda n: Euclidean(pixels[:n])
    return found


def _tabled(name: str, title: str, space: Space, group: Integers, two: tuple[int, int]) -> Case:
    table = Precomputed(space.distances(np.arange(space.n_points)))
    return Case(name, title, table, group, two, space.step)


def _two(digits: Integers) -> tuple[int, int]:
    """Noughts and eights, as in the paper, or the first two labels where there are none."""
    known = np.unique(digits).tolist()
    return (0, 8) if {0, 8} <= set(known) else (known[0], known[min(1, len(known) - 1)])
