"""Examples of every class of question: public parameters, a ground to ask about, and small tables of nasty rows.

A maker gets a ground (a box, an uneven box, a ball, sparse rows; 1 to 24 columns) and makes a question with random public
parameters. Rows are corners, far outside, missing, duplicates.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace
from functools import cache, reduce
from math import isqrt, sqrt
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from scipy.sparse import csr_array

import kveil.questions
from kveil import Euclidean, PrivacyUnit
from kveil.federate.layout import Layout
from kveil.kernel.grid import Ball, Box
from kveil.partition.cubes import Cubes
from kveil.partition.hst import Hst
from kveil.partition.midpoints import descendants
from kveil.partition.projection import random_axes
from kveil.partition.tiling import Tiling
from kveil.questions import (
    cells,
    closeness,
    cluster_sums,
    columns,
    cubes,
    demand,
    keywords,
    leaves,
    medians,
    midpoint_cells,
    octaves,
    party_cells,
    public_sample,
    swaps,
    unit_rows,
)
from kveil.questions.base import Question
from kveil.questions.column_bins import Cells, ColumnBins, even_edges, octave_edges
from kveil.questions.frame import Frame, clipped, stays_sparse
from kveil.questions.leaves import LeafSums, LeafTotals
from kveil.source.base import merge
from kveil.space.euclidean import Centers
from kveil.space.places import Places
from kveil.space.unit_ball import UnitBall

LENGTH = 2**22
TRIALS = 3  # for every ground and class


class Ground(NamedTuple):
    """What a question may be asked of: public facts of a table."""

    domain: Any
    is_sparse: bool = False

    @property
    def d(self) -> int:
        return int(self.domain.n_columns)

    @property
    def stays_sparse(self) -> bool:
        return self.is_sparse and stays_sparse(self.d)


class Example(NamedTuple):
    """A question, how its rows are encoded, and the question that makes the arrays it is over, if it is over some."""

    question: Question
    ground: Ground
    through: Question | None = None

    def raw(self, rows: Any) -> tuple[Any, ...]:
        return self.question.raw(rows if self.through is None else self.through.raw(rows))

    def merged(self, blocks: list[Any]) -> tuple[Any, ...]:
        """The answer that a source makes of the answers to blocks."""
        asked = self.through or self.question
        held = reduce(lambda total, block: merge(total, asked.raw(block), asked.combine), blocks, None)
        return held if self.through is None else self.question.raw(held)


def grounds():
    for d in (1, 2, 5, 20):
        yield Ground(Box([-1.0] * d, [1.0] * d, 16))
        yield Ground(Ball([0.0] * d, 1.0, 16))
        if d > 1:
            half = np.linspace(1.0, 0.01, d)
            yield Ground(Box(-half, half, 16))
    for d in (5, 20):
        yield Ground(Box([-1.0] * d, [1.0] * d, 16), is_sparse=True)
        yield Ground(Ball([0.0] * d, 1.0, 16), is_sparse=True)
    yield Ground(Box([-1.0] * 24, [1.0] * 24, 16))  # so wide that leaves are cut in a projection


GROUNDS = list(grounds())


def table(rng: np.random.Generator, ground: Ground, n: int) -> Any:
    """Encoded rows, as a source hands them to a kernel."""
    if isinstance(ground.domain, Places):
        return ground.domain.encode(rng.choice([-1.0, 0.5, np.nan, *range(13)], (n, 1)))
    d, away = ground.d, np.empty((n, ground.d))
    for i in range(n):
        axis = np.zeros(d)
        axis[rng.integers(d)] = rng.choice([-1.0, 1.0])
        kinds = [
            rng.uniform(-1, 1, d), 1.5 * rng.uniform(-1, 1, d), np.sign(rng.standard_normal(d)), np.ones(d), -np.ones(d), axis,
            1e6 * rng.standard_normal(d), np.full(d, np.nan), away[i - 1] if i else np.zeros(d),
        ]  # fmt: skip
        away[i] = kinds[rng.integers(len(kinds))]
        if ground.is_sparse:
            away[i, rng.permutation(d)[rng.integers(1, d + 1) :]] = 0.0
    rows = away * getattr(ground.domain, "half", 1.0)
    return ground.domain.encode_sparse(csr_array(rows)) if ground.is_sparse else ground.domain.encode(rows)


# Makers: each gets public randomness and a ground, and returns an example, or None where such rows are refused.


def a_frame(rng: np.random.Generator, ground: Ground, *, projects: bool = True) -> Frame:
    d, whole = ground.d, Frame.of(ground.domain, None if rng.random() < 0.7 else "bounds")
    if ground.is_sparse:
        whole = replace(whole, nonzeros=int(rng.integers(1, d + 1)) if rng.random() < 0.5 else None)
    if rng.random() < 0.5:
        middle = whole.middle if ground.stays_sparse else rng.integers(-(2**13), 2**13, d)
        whole = replace(whole, middle=middle, radius=int(rng.integers(1, whole.radius)))
    if not projects or d == 1 or rng.random() < 0.5:
        return whole
    p = int(rng.integers(1, d))
    axes = random_axes(d, p, rng, stretch=sqrt(d / p))
    return replace(whole, axes=axes, reach=int(rng.integers(max(1, whole.radius // 2), whole.radius + 1)))


def n_axes(frame: Frame) -> int:
    return len(frame.middle) if frame.axes is None else int(frame.axes.shape[1])


def points(rng: np.random.Generator, n: int, d: int, reach: int) -> Any:
    """Centres: the middle, two opposite corners, and others, as far as they may be."""
    corner = np.full(d, int(reach / sqrt(d)))
    some = np.stack([np.zeros(d, dtype=np.int64), corner, -corner, *rng.integers(-reach, reach + 1, (3, d))])
    return clipped(some[rng.permutation(len(some))[:n]], reach)


def row_count(rng, ground):
    return Example(cells.RowCount(), ground)


def whole(rng, ground):
    return None if ground.stays_sparse else Example(cells.Whole(a_frame(rng, ground)), ground)


def grid_cells(rng, ground):
    is_small = ground.d <= 5 and not ground.is_sparse
    return Example(cells.GridCells(ground.domain.top, int(rng.integers(1, 4))), ground) if is_small else None


def lengths(rng, ground, kind=cells.Lengths):
    frame = a_frame(rng, ground)
    near = None if ground.stays_sparse else Centers(points(rng, 3, ground.d, frame.radius).astype(float), None)
    return Example(kind.binned(frame, frame.radius, near if rng.random() < 0.5 else None), ground)


def lengths_by_center(rng, ground):
    frame = a_frame(rng, ground)
    near = Centers(points(rng, 3, ground.d, frame.radius).astype(float), None)
    return None if ground.stays_sparse else Example(cells.LengthsByCenter.binned(frame, frame.radius, near), ground)


def votes(rng, ground):
    frame = a_frame(rng, ground, projects=False)
    if ground.stays_sparse:
        return None
    return Example(public_sample.Votes(frame, Centers(points(rng, 4, ground.d, frame.radius).astype(float), None)), ground)


def gain(rng, ground):
    """Some centres lie where rows do, and the radius may be short: then a row adds all that it may."""
    frame = a_frame(rng, ground, projects=False)
    if ground.stays_sparse:
        return None
    places = points(rng, 4, ground.d, Frame.of(ground.domain, None).radius)
    if rng.random() < 0.5:
        corner = ground.domain.encode(np.ones((1, ground.d)) * ground.domain.half)
        places = np.concatenate([places, frame.measured(corner)])
    return Example(public_sample.Gain(frame, Centers(places.astype(float), None)), ground)


def worded(rng, ground):
    """Rows whose last columns are words: of those above 0 so many count that some rows have all that they may."""
    n_words, most = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    centers, is_dense = Centers(points(rng, 3, ground.d, ground.domain.top).astype(float), None), not ground.is_sparse
    grid = keywords.Worded(ground.domain, n_words, n_words, is_dense)  # the question itself leaves out what is too much
    question = keywords.Keywords(centers, n_words, min(most, n_words), rng.random() < 0.5, is_dense)
    return Example(question, Ground(grid, ground.is_sparse))


def squares(rng, ground, kind=cells.Squares):
    return None if ground.is_sparse else Example(kind(a_frame(rng, ground)), ground)


def stage(rng, ground):
    frame = a_frame(rng, ground)
    if ground.stays_sparse and frame.axes is None:
        return None
    p = n_axes(frame)
    half, order, planned = rng.integers(1, 2**15, p), rng.integers(0, p, 5), rng.integers(0, p, 12)
    planned = np.concatenate([order, planned]) if rng.random() < 0.5 else None
    return Example(cells.Stage(frame, half, order, np.unique(rng.integers(0, 4, 3)), 3, planned), ground)


def residuals(rng, ground, kind=cells.Residuals):
    frame = a_frame(rng, ground)
    projected = ["projected"] if frame.axes is not None or not ground.stays_sparse else []
    by, of = rng.choice(["measured", *projected]), rng.choice(["measured", "centred", *projected])
    p, d = n_axes(frame) if by == "projected" else ground.d, n_axes(frame) if of == "projected" else ground.d
    k = int(rng.integers(1, 5))
    near, radii = Centers(points(rng, k, p, frame.radius).astype(float), None), rng.integers(1, 2 * frame.radius, k)
    by_coordinates = ground.is_sparse and of != "projected" and bool(rng.random() < 0.5)
    about_0 = of != "projected" and (ground.stays_sparse or by_coordinates)
    if by_coordinates:
        frame = replace(frame, middle=np.zeros_like(frame.middle))
    bases = np.zeros((k, d), dtype=np.int64) if about_0 else points(rng, k, d, frame.radius)
    return Example(kind(frame, near, str(by), str(of), bases, radii, by_coordinates=by_coordinates), ground)


def residuals_in_columns(rng, ground):
    """Of some, sums are released in some columns alone: one of them, or most."""
    made = residuals(rng, ground)
    if made is None or made.question.of == "projected" or rng.random() < 0.4:
        return made
    n = int(rng.choice([1, max(1, ground.d - 1)]))
    columns = np.sort(rng.permutation(ground.d)[:n])
    return made._replace(question=replace(made.question, frame=replace(made.question.frame, columns=columns)))


def column_costs(rng, ground, *, picked=None):
    """Over sums of sparse rows, which are not moved: so every question has the frame of those sums."""
    if not ground.is_sparse or (made := residuals(rng, ground)) is None or made.question.of == "projected":
        return None
    frame = replace(made.question.frame, middle=np.zeros(ground.d, dtype=np.int64))
    summed = replace(made.question, frame=frame, bases=np.zeros_like(made.question.bases), by_coordinates=True)
    if picked is None:
        return Example(columns.ColumnCosts(frame, ground.d), ground, summed)
    own = np.stack([rng.permutation(ground.d)[:picked] for _ in summed.bases])
    return Example(columns.ColumnSums(frame, ground.d, own), ground, summed)


def column_sums(rng, ground):
    return column_costs(rng, ground, picked=int(rng.choice([1, ground.d - 1, ground.d])))


def sums(rng, ground):
    centers, scaling = rng.uniform(-1, 1, (3, ground.d)) * ground.domain.half, None if rng.random() < 0.5 else "bounds"
    by_coordinates = bool(rng.random() < 0.5)
    return Example(cluster_sums.ClusterSums.of(centers, ground.domain, scaling, by_coordinates=by_coordinates), ground)


def nearest_bins(rng, ground):
    near = Centers.of(rng.uniform(-1, 1, (3, ground.d)) * ground.domain.half, ground.domain)
    edges = np.unique(rng.integers(1, 4 * ground.domain.l2_sensitivity**2, 6))[::-1].copy()
    return Example(closeness.NearestBins(near, edges), ground)


def close(rng, ground, kind=closeness.Closeness):
    scaling = None if rng.random() < 0.5 else "bounds"
    k = int(rng.integers(1, 4)) + (kind is closeness.Shape)
    near = Centers.of(rng.uniform(-1, 1, (k, ground.d)) * ground.domain.half, ground.domain, scaling)
    clip = int(rng.choice([1, 2**20, 2**28]))
    return Example(kind(near, clip, bool(rng.random() < 0.5)), ground)


def cube_counts(rng, ground):
    frame = a_frame(rng, ground)
    if ground.stays_sparse and frame.axes is None:
        return None
    found = Cubes.shifted(int(rng.integers(1, 2**15)), n_axes(frame), rng)
    for _ in range(int(rng.integers(0, 3))):  # levels, of which some cubes are active
        found = found.grown(np.unique(rng.integers(0, found.n_children, 2**9)))
    return Example(cubes.CubeCounts(frame, found), ground)


def pulls(rng, ground):
    frame = a_frame(rng, ground, projects=False)
    question = medians.Pulls(frame, points(rng, 4, ground.d, frame.radius), float(rng.choice([0.5, 37.0, 2**13])), 2**20)
    return None if ground.is_sparse else Example(question, ground)


def median_costs(rng, ground):
    frame, d = a_frame(rng, ground, projects=False), ground.d
    way = np.stack([np.ones(d), -np.ones(d), *rng.standard_normal((3, d))]) * float(rng.integers(1, 200))
    offsets, centers = np.rint(way).astype(np.int64), points(rng, 3, d, frame.radius)
    radius = sqrt((offsets**2).sum(axis=1).max())
    bases = None if rng.random() < 0.5 else points(rng, 3, d, frame.radius)
    places = (centers if bases is None else bases)[:, None, :] + offsets
    question = medians.MedianCosts(frame, centers, places, radius, 2**20, bases)
    return None if ground.is_sparse else Example(question, ground)


def swap_costs(rng, ground):
    frame, objective = a_frame(rng, ground), str(rng.choice(["k-means", "k-median"]))
    if ground.stays_sparse and frame.axes is None:
        return None
    candidates = points(rng, 6, n_axes(frame), frame.radius if frame.axes is None else frame.reach)
    chosen, others = (rng.permutation(6)[:n] for n in (int(rng.integers(1, 4)), 5))
    return Example(swaps.SwapCosts(frame, objective, 2**40, candidates[chosen], candidates, others), ground)


def set_costs(rng, ground):
    frame, objective, in_projection = a_frame(rng, ground), str(rng.choice(["k-means", "k-median"])), bool(rng.random() < 0.5)
    if ground.stays_sparse and frame.axes is None:
        in_projection = False
    p, ball = (n_axes(frame), frame.reach) if in_projection and frame.axes is not None else (ground.d, frame.radius)
    sets = np.stack([points(rng, 2, p, ball) for _ in range(4)])
    return Example(swaps.SetCosts(frame, objective, 2**40, sets, in_projection=in_projection), ground)


def cell_counts(rng, ground):
    layout = Layout(ground.domain, PrivacyUnit())
    level = int(rng.integers(0, min(6, layout.cells.depth) + 1))
    nodes = None if rng.random() < 0.5 else np.unique(rng.integers(0, 2**level, 20))
    return None if ground.is_sparse else Example(midpoint_cells.CellCounts(layout.frame, layout.cells, level, nodes), ground)


def cell_sums(rng, ground):
    if ground.is_sparse:
        return None
    layout = Layout(ground.domain, PrivacyUnit())
    found, norm = layout.cells, str(rng.choice(["l1", "l2"]))
    deep = found.find(found.clamped(np.full((1, ground.d), ground.domain.top)))  # of a corner
    levels = [
        [(0, np.zeros(1, dtype=np.int64))],
        [(1, np.zeros(1, dtype=np.int64)), (found.depth, deep)],
        [(2, np.array([0, 2]))],
    ]
    return Example(midpoint_cells.CellSums.in_levels(layout.frame, found, levels[rng.integers(3)], norm), ground)


def tile_counts(rng, ground):
    if ground.is_sparse:
        return None
    frame = Frame.of(ground.domain, "bounds" if rng.random() < 0.5 else None)
    tiling = Tiling.whole(np.maximum(1, rng.integers(1, ground.domain.top + 2, ground.d)))
    for _ in range(3):
        tiling = tiling.divided(rng.integers(0, 3, len(tiling.codes)))
    return Example(midpoint_cells.TileCounts(frame, tiling), ground)


def leaf_totals(rng, ground):
    if ground.is_sparse or isinstance(ground.domain, Ball):
        return None
    return Example(LeafTotals(leaves.Leaves.of(ground.domain, int(rng.integers(0, 7)))), ground)


def leaf_counts(rng, ground):
    if (made := leaf_totals(rng, ground)) is None:
        return None
    depth = made.question.leaves.cells.depth
    level = int(rng.integers(0, depth + 1))
    codes = descendants(rng.permutation(2 ** (level // 2)), level - level // 2)
    return Example(leaves.LeafCounts("cells", level, rng.permutation(codes)), ground, made.question)


def leaf_sums(rng, ground):
    if (made := leaf_totals(rng, ground)) is None:
        return None
    found, owners = made.question.leaves, int(rng.integers(1, 4))
    owner = rng.integers(0, owners, found.n_leaves)
    if found.is_projected or rng.random() < 0.5:
        factor = int(rng.integers(1, 9))
        factors = np.full(found.n_leaves, factor)
        question = LeafSums(found, ("", "sums"), owner, owners, factor * found.frame.radius, factors=factors)
    else:
        own = rng.random() < 0.5  # bases: of the leaf itself, or any
        bases = found.cells.centers(np.arange(found.n_leaves), found.cells.depth) if own else points(rng, 1, ground.d, 2**14)
        bases = np.broadcast_to(bases, (found.n_leaves, ground.d))
        reaches = [max(1, isqrt(square - 1) + 1) if square else 1 for square in leaves.squared_reaches(found, bases).tolist()]
        question = LeafSums(found, ("", "sums"), owner, owners, LENGTH, bases, LENGTH // np.array(reaches))
    return Example(question, ground, made.question)


def unit_view(rng, ground):
    """Some or all columns in any order, of rows whose entries may be bounded, and whose signs may count."""
    columns = rng.permutation(ground.d)[: int(rng.integers(1, ground.d + 1))]
    nonzeros = int(rng.integers(1, ground.d + 1)) if rng.random() < 0.5 else None
    return unit_rows.UnitRows(ground.d, columns, nonzeros, bool(rng.random() < 0.5))


def unit_totals(rng, ground):
    directions = Ground(UnitBall(ground.d, 16), ground.is_sparse)
    return Example(unit_rows.UnitTotals(unit_view(rng, ground), bool(rng.random() < 0.5)), directions)


def unit_sums(rng, ground):
    view, directions = unit_view(rng, ground), Ground(UnitBall(ground.d, 16), ground.is_sparse)
    centers = points(rng, int(rng.integers(1, 5)), len(view.columns), unit_rows.TOP)
    return Example(unit_rows.UnitSums(view, centers, bool(rng.random() < 0.5)), directions)


UNIVERSE = Euclidean(np.random.default_rng(0).uniform(-1, 1, (12, 2)))
DEMAND = Ground(Places(UNIVERSE, 1))


@cache
def trees():
    return [Hst.of(UNIVERSE, levels=levels, random_state=0) for levels in (1, 4, 8)]


def demand_size(rng, ground):
    return Example(demand.DemandSize(), DEMAND)


def point_counts(rng, ground):
    return Example(demand.PointCounts(UNIVERSE.n_points), DEMAND)


def partition_counts(rng, ground):
    return Example(demand.PartitionCounts(rng.integers(0, 4, UNIVERSE.n_points)), DEMAND)


def tree_counts(rng, ground):
    return Example(demand.TreeCounts(trees()[rng.integers(3)], is_squared=bool(rng.random() < 0.5)), DEMAND)


def demand_tree(rng, ground):
    question = demand.DemandTree(trees()[rng.integers(3)], is_squared=bool(rng.random() < 0.5))
    return Example(question, DEMAND, demand.PointCounts(UNIVERSE.n_points))


def octave_counts(rng, ground):
    shape = str(rng.choice(["cube", "ball"] if ground.is_sparse else ["box", "cube", "ball"]))
    center = np.zeros(ground.d) if ground.is_sparse else rng.uniform(-1, 1, ground.d)
    binned = octaves.Octaves(center, -3, 2, shape)
    return Example(octaves.OctaveCounts(binned), Ground(binned, ground.is_sparse))


def column_counts(rng, ground):
    if ground.is_sparse or isinstance(ground.domain, Ball):
        return None
    d, top, even = ground.d, ground.domain.top, rng.random() < 0.5
    which = tuple(rng.permutation(d)[: int(rng.integers(1, d + 1))].tolist())
    edges = [even_edges(top, 6) if even else octave_edges(top, int(rng.integers(-top, top))) for _ in which]
    question = ColumnBins("bins", which, np.stack(edges), -top, is_joint=bool(rng.random() < 0.5))
    return Example(question, Ground(Cells(ground.domain, bool(rng.random() < 0.5))))


MAKERS = {
    cells.RowCount: row_count,
    cells.Whole: whole,
    cells.GridCells: grid_cells,
    cells.Lengths: lengths,
    cells.LengthsByCenter: lengths_by_center,
    cells.Squares: squares,
    public_sample.Votes: votes,
    keywords.Keywords: worded,
    public_sample.Gain: gain,
    cells.SecondMoments: lambda rng, ground: squares(rng, ground, cells.SecondMoments),
    cells.Stage: stage,
    cells.Residuals: residuals_in_columns,
    closeness.NearestBins: nearest_bins,
    closeness.Closeness: close,
    closeness.Shape: lambda rng, ground: close(rng, ground, closeness.Shape),
    cluster_sums.ClusterSums: sums,
    columns.ColumnCosts: column_costs,
    columns.ColumnSums: column_sums,
    ColumnBins: column_counts,
    cubes.CubeCounts: cube_counts,
    demand.DemandSize: demand_size,
    demand.PointCounts: point_counts,
    demand.PartitionCounts: partition_counts,
    demand.TreeCounts: tree_counts,
    demand.DemandTree: demand_tree,
    leaves.LeafTotals: leaf_totals,
    leaves.LeafCounts: leaf_counts,
    leaves.LeafSums: leaf_sums,
    medians.Pulls: pulls,
    medians.MedianCosts: median_costs,
    midpoint_cells.CellCounts: cell_counts,
    midpoint_cells.CellSums: cell_sums,
    midpoint_cells.TileCounts: tile_counts,
    octaves.OctaveCounts: octave_counts,
    party_cells.PartyLengths: lambda rng, ground: lengths(rng, ground, party_cells.PartyLengths),
    party_cells.PartyResiduals: lambda rng, ground: residuals(rng, ground, party_cells.PartyResiduals),
    swaps.SwapCosts: swap_costs,
    swaps.SetCosts: set_costs,
    unit_rows.UnitTotals: unit_totals,
    unit_rows.UnitSums: unit_sums,
}


def questions(base: type[Question] = Question) -> list[type[Question]]:
    """Every class of question of the house; tests/test_wall.py keeps them in one room, so that room is all there is to import."""
    for module in pkgutil.iter_modules(kveil.questions.__path__, "kveil.questions."):
        importlib.import_module(module.name)
    found = [kind for kind in base.__subclasses__() if kind.__module__.startswith("kveil.")]
    return sorted({each for kind in found for each in (kind, *questions(kind))}, key=lambda kind: kind.__name__)


def examples(kind: type[Question]):
    """Examples of a class on every ground, each with a generator for its rows."""
    for number, ground in enumerate(GROUNDS):
        for trial in range(TRIALS):
            rng = np.random.default_rng([crc32(kind.__name__.encode()), number, trial])
            if (made := MAKERS[kind](rng, ground)) is not None:
                yield made, rng
