"""The default for private k-means: counts of a public binary tree, ordinary clustering of what they show, then relative steps.

Three ideas carry it. A stage of the tree releases several bits of a row's cell at once, since a row is in one child
whatever their number. More centres than asked for are recovered where the predicted noise allows, and merged. After the
first recovery everything is relative to released centres, with a clip radius measured before every step, and shrunken
towards what is known, so that steps average noise instead of adding it.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from kveil.errors import InvalidValue
from kveil.kernel.ledger import UNIT, Ticket
from kveil.kernel.loss import Plan
from kveil.models._method import Facts, Found, shares
from kveil.models._task import Task
from kveil.partition.projection import random_axes
from kveil.privatise.pool import Pool
from kveil.solve.shrink import in_ball, shrunk
from kveil.solve.wkmeans import thorough_kmeans
from kveil.source import Source
from kveil.source.progress import step as progress
from kveil.space.euclidean import Centers, clip
from kveil.summary.cells import MOMENT_TOP, TOP, Lengths, Residuals, Stage, lengths, moments, residual_sums, stage_counts, whole
from kveil.summary.frame import Frame
from kveil.tuning import Tree as TreeTuning

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

N_LENGTHS = 40  # bins of a distance, four an octave
MOST_LEAVES = 512  # with more, leaves are small, their middles will do, and looking for the nearest one takes too long
LEAST_UNITS, WIDEST = 2**14, 2.0**49  # of a ledger's units, so that shares are not lost in rounding; of a deviation, in steps


class Tree:
    """Private k-means by a tree of noisy counts.

    Private:      the rows and their number.  Public: all parameters, the random frame, and that a fit took place.
    Sensitivity, neighbours and cost: those of `Pool`, for every release; shares of the budget follow from released values.
    """

    takes_sparse: ClassVar[bool] = False
    options: ClassVar[frozenset[str]] = frozenset()
    tuning: ClassVar[type[TreeTuning]] = TreeTuning

    @staticmethod
    def bits(facts: Facts) -> int:
        """As fine a grid as exact distances and exact sums allow: narrow columns beside wide ones stay readable."""
        return max(2, min(23, 63 - (facts.max_rows - 1).bit_length(), 1 + int((51 - np.log2(facts.n_features)) // 2)))

    def __init__(self, task: Task) -> None:
        self.task = task
        is_pure = not task.delta or (task.domain.n_columns <= 3 and not task.is_zcdp)
        self.pool = Pool(task.epsilon, task.delta, task.relation, task.unit, is_pure=is_pure)
        # Judged here, from public parameters, so that no draw in the middle of a fit can be refused.
        widest = self.pool.spread(1, task.domain.n_columns**0.5 * task.domain.top + 2, 0.02) ** 0.5
        if self.pool.kind != "none" and (self.pool.total * UNIT < LEAST_UNITS or widest > WIDEST):
            raise InvalidValue(
                'this budget is too small for method="tree", which shares it out in many draws. Raise epsilon, or try "mean".'
            )

    def plan(self) -> Plan | None:
        return self.pool.plan()

    def run(self, source: Source, ticket: Ticket | None, rng: np.random.Generator) -> Found:
        self.pool.open(ticket)
        return _Fit(self.task, self.pool, source, rng).run()


class _Fit:
    """One fit, stage by stage. Lengths are in steps of the grid, all columns alike, from the centre of the domain."""

    def __init__(self, task: Task, pool: Pool, source: Source, rng: np.random.Generator) -> None:
        self.task, self.pool, self.source, self.rng = task, pool, source, rng
        domain = task.domain
        self.k, self.d = task.n_clusters, domain.n_columns
        self.is_pure = pool.kind == "pure"
        self.whole = Frame.of(domain, task.scaling)
        self.ratio, self.reach = self.whole.ratio, self.whole.radius
        self.half = np.rint(domain.top * (np.ones(self.d) if self.ratio is None else self.ratio))
        self.is_low = self.d <= 3
        self.p = self.d if self.d <= (12 if self.is_pure else 16) else 12

    # --- the flow ----------------------------------------------------------------------------------------------------

    def run(self) -> Found:
        progress("looking at the whole", 1, 5)
        n, raw_sum = self._whole()
        if self.p < self.d and self.pool.spread(self.d, self.reach, 0.7) * (self.k / n) ** 2 > 2 * self.reach**2:
            return self._one_mean(np.zeros(self.d), float(self.reach))
        middle, radius = np.zeros(self.d), float(self.reach)
        if not self.is_low:
            middle = self._mean(raw_sum, n)
            radius = self._radius(middle)
            rest = 0.95 * (0.75 - (1 - self.pool.left))
            if self.p < self.d and self.pool.spread(self.d, radius, rest) * (self.k / n) ** 2 > radius**2:
                return self._one_mean(middle, radius)
        frame, half = self._frame(middle, radius, n)
        progress("growing the tree", 2, 5)
        leaves, weights, reaches = self._tree(frame, half, n)
        if not self.is_low and len(leaves) <= MOST_LEAVES:
            progress("looking into the leaves", 3, 5)
            leaves, weights = self._leaf_means(frame, leaves, reaches)
        progress("recovering centres", 4, 5)
        if self.p == self.d:
            centers, steps = middle + thorough_kmeans(leaves, weights, self.k, self.rng), 2
        else:
            centers, steps = self._recovered(frame, leaves, weights, middle, radius, n)
        counts = np.ones(self.k)
        for step in range(steps):
            progress("relative steps", 5, 5)
            centers, counts = self._step(centers, 1 / (steps - step))
        return self._found(centers, shares(counts))

    def _found(self, centers: Floats, weights: Floats | None, notes: tuple[str, ...] = ()) -> Found:
        domain = self.task.domain
        inside = domain.center + np.asarray(centers) * self.whole.unit(domain)
        return Found(clip(domain, inside), weights, notes)

    # --- releases ----------------------------------------------------------------------------------------------------

    def _whole(self) -> tuple[float, Integers]:
        """The noisy number of rows, public, and the raw sum, secret."""
        raw_count, raw_sum = self.source.map_reduce(whole, self.whole, grid=self.task.domain)
        share = 0.05 if self.is_pure and self.p < self.d else 0.01
        return max(10.0, float(self.pool.counts("number of rows", raw_count, share)[0])), raw_sum

    def _mean(self, raw_sum: Integers, n: float) -> Floats:
        share = 0.04
        if self.is_pure and self.p < self.d:
            share = min(0.5, max(0.04, 10 * self.d / (n * float(self.pool.total))))
        spread = self.pool.spread(self.d, self.reach, share)
        noisy = self.pool.vectors("sum of rows", raw_sum, self.reach, share)[0]
        return in_ball(shrunk(noisy / n, spread / n**2), self.reach)

    def _radius(self, middle: Floats) -> float:
        cap = self.reach + float(np.linalg.norm(middle))
        frame = Frame(self.ratio, np.rint(middle).astype(np.int64), self.reach)
        return self._quantile(Lengths(frame, self._edges()), 0.95 if self.p < self.d else 0.99, 0.02, cap)

    def _quantile(self, state: Lengths, q: float, share: float, cap: float) -> float:
        (raw,) = self.source.map_reduce(lengths, state, grid=self.task.domain)
        counts = self.pool.counts("distances", raw, share)
        counts[counts < 2 * self.pool.deviation(share)] = 0.0
        if not counts.sum() > 0:
            return cap
        place = int(np.argmax(np.cumsum(counts) > (1 - q) * counts.sum()))
        return float(min(cap, max(1.0, 2 * self.reach * 2.0 ** (-place / 4))))

    def _edges(self) -> Integers:
        return np.array([int((2 * self.reach) ** 2 * 2.0 ** (-(j + 1) / 2)) for j in range(N_LENGTHS - 1)], dtype=np.int64)

    def _frame(self, middle: Floats, radius: float, n: float) -> tuple[Frame, Floats]:
        base = np.rint(middle).astype(np.int64)
        r0 = int(np.ceil(radius))
        if self.p < self.d:
            reach = int(np.ceil(min(radius, 1.5 * radius * np.sqrt(self.p / self.d))))
            axes = random_axes(self.d, self.p, self.rng)
            return Frame(self.ratio, base, r0, axes, reach), np.full(self.p, min(radius, 2.5 * radius / np.sqrt(self.d)))
        frame = Frame(self.ratio, base, r0)
        if self.is_low:
            return frame, self.half
        share = 0.08 if self.is_pure else 0.02
        (raw,) = self.source.map_reduce(moments, frame, grid=self.task.domain)
        top = float(MOMENT_TOP**2)
        noisy = self.pool.vectors("squares", raw, MOMENT_TOP**2, share)[0] / top * r0**2 / n
        own = np.sqrt(self.pool.spread(self.d, 1.0, share) / self.d) * r0**2 / n
        variance = np.clip(noisy, max(own, 1e-6 * r0**2), float(r0) ** 2)
        stage = self.pool.deviation(0.7 * self._tree_share() / len(self._stage_bits(n)))
        factor = 4 if self.p <= 8 and stage <= (0.0002 if self.is_pure else 0.002) * n else 3
        return frame, np.minimum(np.minimum(factor * np.sqrt(variance), radius), self.half + np.abs(middle))

    def _tree_share(self) -> float:
        return 0.6 if self.is_low else 0.4 if self.is_pure and self.p == self.d else 0.25

    def _stage_bits(self, n: float) -> list[int]:
        share = self._tree_share() * (1.0 if self.is_low else 0.7)
        e = float(self.pool.total) * share
        if self.pool.kind == "none":
            e = 1e6 / n
        if self.is_low:
            e = 2 * np.sqrt(e) if self.pool.kind == "zcdp" else e
            return [int(np.clip(round(np.log2((n * e / 10) ** (2 * self.d / (self.d + 2)))), 4, 20))]
        if self.is_pure:
            return [int(np.clip(np.floor(np.log2(n * e / 8)), 4, 16))]
        return [6, 5, 5] if self.p < self.d else [6, 6, 6]

    def _tree(self, frame: Frame, half: Floats, n: float) -> tuple[Floats, Floats, Floats]:
        """Centres, noisy weights and half-diagonals of the leaves."""
        bits = self._stage_bits(n)
        share = self._tree_share() * (1.0 if self.is_low else 0.7) / len(bits)
        size = np.maximum(np.ceil(half), 1).astype(np.int64)
        order = _halving_order(size, sum(bits))
        kept, weights = np.zeros(1, dtype=np.int64), np.ones(1)
        found: list[tuple[Floats, Floats, Floats]] = []  # middles, half-widths and weights of leaves
        depth = 0
        for s in bits:
            stage = Stage(frame, size, order[: depth + s], kept, s)
            (raw,) = self.source.map_reduce(stage_counts, stage, grid=self.task.domain)
            counts = self.pool.counts("cells of the tree", raw, share)
            m = len(counts)
            t = max(2.0, 0.8 * np.log(m) / np.sqrt(2)) if self.is_pure else max(2.0, 0.9 * np.sqrt(2 * np.log(m)))
            is_kept = counts >= max(t * self.pool.deviation(share), 0.5)
            childless = ~is_kept.reshape(len(kept), -1).any(axis=1)
            found.append((*_boxes(kept[childless], order[:depth], size), weights[childless]))
            codes = (kept[:, None] << s) + np.arange(1 << s)
            kept, weights, depth = codes.ravel()[is_kept], counts[is_kept], depth + s
            if not len(kept):
                break
        found.append((*_boxes(kept, order[:depth], size), weights))
        middles, halves, weights = (np.concatenate(part) for part in zip(*found, strict=True))
        return middles, weights, np.sqrt((halves**2).sum(axis=1))

    def _leaf_means(self, frame: Frame, leaves: Floats, reaches: Floats) -> tuple[Floats, Floats]:
        share = 0.3 * self._tree_share()
        bases = np.rint(leaves).astype(np.int64)
        radii = np.maximum(np.ceil(reaches), 1).astype(np.int64)
        state = Residuals(frame, Centers(bases.astype(np.float64), None), "projected", "projected", bases, radii)
        counts, moves = self._cells(state, 0.25 * share, 0.75 * share, radii.astype(np.float64))
        weak = counts < 2 * self.pool.deviation(0.25 * share)
        return leaves + np.where(weak[:, None], 0.0, moves), np.where(weak, np.maximum(counts, 0) / 4, counts)

    def _cells(self, state: Residuals, of_counts: float, of_sums: float, radii: Floats) -> tuple[Floats, Floats]:
        """Noisy counts and shrunken mean residuals of cells."""
        raw_counts, raw_sums = self.source.map_reduce(residual_sums, state, grid=self.task.domain)  # secret
        counts = self.pool.counts("cells", raw_counts, of_counts)  # public, charged
        sums = self.pool.vectors("residuals", raw_sums, TOP, of_sums) * (radii / TOP)[:, None]  # public, charged
        n = np.maximum(counts, 1.0)
        variance = self.pool.spread(sums.shape[1], 1.0, of_sums) * radii**2 / n**2
        means = np.array([shrunk(mean, v) for mean, v in zip(sums / n[:, None], variance, strict=True)])
        return counts, np.array([in_ball(mean, r) for mean, r in zip(means, radii, strict=True)])

    def _recovered(
        self, frame: Frame, leaves: Floats, weights: Floats, middle: Floats, radius: float, n: float
    ) -> tuple[Floats, int]:
        """Centres in all columns from clusters found in the projection, and how many relative steps are left for them."""
        rest, k, d, pool = self.pool.left, self.k, self.d, self.pool
        rounds = 3
        if self.is_pure:
            fits = [t for t in (3, 2) if pool.spread(d, radius, 0.9 * rest / t) * (k / n) ** 2 <= 0.1 * radius**2]
            rounds = fits[0] if fits else 1
        share = rest / rounds
        noise = np.sqrt(pool.spread(d, radius, 0.95 * share))
        most = max(k, min(4 * k, len(leaves) // 2))
        k2 = most if noise == 0 else int(np.clip(np.floor(0.3 * n * radius / noise), k, most))
        seeds = np.rint(thorough_kmeans(leaves, weights, k2, self.rng)).astype(np.int64)
        radii = np.full(k2, float(frame.radius))
        state = Residuals(
            frame, Centers(seeds.astype(np.float64), None), "projected", "centred",
            np.zeros((k2, d), dtype=np.int64), np.full(k2, frame.radius, dtype=np.int64),
        )  # fmt: skip
        counts, means = self._cells(state, 0.05 * share, 0.95 * share, radii)
        weak = counts < max(2 * pool.deviation(0.05 * share), 0.5)
        means[weak] = 0.0
        if k2 > k:
            strong = ~weak
            means = thorough_kmeans(means[strong], counts[strong], k, self.rng) if strong.any() else np.zeros((k, d))
        return np.array([in_ball(center, self.reach) for center in middle + means]), rounds - 1

    def _step(self, centers: Floats, part: float) -> tuple[Floats, Floats]:
        """One relative step with `part` of what is left: a radius, then mean residuals within it."""
        share = self.pool.left * part
        of_radius = 0.15 * share if self.is_pure else min(0.1 * share, 0.02)
        codes = np.rint(centers).astype(np.int64)
        places = Centers(codes.astype(np.float64), None)
        previous = getattr(self, "_last_radius", float(self.reach))
        radius = self._quantile(Lengths(self.whole, self._edges(), places), 0.85, of_radius, previous)
        self._last_radius = radius
        r = max(1, int(np.ceil(radius)))
        state = Residuals(self.whole, places, "measured", "measured", codes, np.full(self.k, r, dtype=np.int64))
        of_counts, of_sums = 0.05 * (share - of_radius), 0.95 * (share - of_radius)
        counts, moves = self._cells(state, of_counts, of_sums, np.full(self.k, float(r)))
        moves[counts < max(2 * self.pool.deviation(of_counts), 0.5)] = 0.0
        return np.array([in_ball(center, self.reach) for center in codes + moves]), counts

    def _one_mean(self, about: Floats, radius: float) -> Found:
        """No signal for k centres: one mean, k times."""
        rest = self.pool.left
        frame = Frame(self.ratio, np.rint(about).astype(np.int64), self.reach)
        r = max(1, int(np.ceil(radius)))
        base = frame.middle[None, :]
        state = Residuals(frame, Centers(base.astype(np.float64), None), "measured", "measured", base, np.array([r]))
        _, moves = self._cells(state, 0.2 * rest, 0.8 * rest, np.array([float(r)]))
        center = in_ball(frame.middle + moves[0], self.reach)
        note = (
            "too little budget for so many centres: all are one private mean. Use delta > 0, a smaller domain or fewer centres."
        )
        return self._found(np.tile(center, (self.k, 1)), np.full(self.k, 1 / self.k), (note,))


def _halving_order(half: Integers, depth: int) -> Integers:
    """Which axis each level halves: always the one that is widest now, ties to the lowest index."""
    width = half.astype(np.float64) * 2
    order = np.empty(depth, dtype=np.int64)
    for level in range(depth):
        order[level] = int(np.argmax(width))
        width[order[level]] /= 2
    return order


def _boxes(codes: Integers, order: Integers, half: Integers) -> tuple[Floats, Floats]:
    """Middles and half-widths (cells, axes) of cells of one depth."""
    low, high = (np.tile(side * half.astype(np.float64), (len(codes), 1)) for side in (-1, 1))
    for level, axis in enumerate(order):
        middle = (low[:, axis] + high[:, axis]) / 2
        is_upper = (codes >> (len(order) - 1 - level)) & 1 == 1
        low[:, axis], high[:, axis] = np.where(is_upper, middle, low[:, axis]), np.where(is_upper, high[:, axis], middle)
    return (low + high) / 2, (high - low) / 2
