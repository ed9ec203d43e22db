"""The default for private k-means: counts of a public binary tree, ordinary clustering of what they show, then relative steps.

Three ideas carry it. A stage of the tree releases several bits of a row's cell at once, since a row is in one child
whatever their number. More centres than asked for are recovered where the predicted noise allows, and merged. After the
first recovery everything is relative to released centres, with a clip radius measured before every step, and shrunken
towards what is known, so that steps average noise instead of adding it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from kveil.arrays import Floats
from kveil.desk.base import Curator
from kveil.desk.pool import Pool
from kveil.errors import InvalidValue
from kveil.kernel.ledger import UNIT
from kveil.methods.base import Facts, Found, shares
from kveil.methods.ground import Ground
from kveil.methods.steps import MOST_STEPS as MOST_AFFORDED
from kveil.methods.steps import affordable_steps, one_mean, relative_steps
from kveil.methods.task import Task, check_choice, check_count
from kveil.methods.tree.growth import Grown, Leaves
from kveil.methods.tree.kept import of_cells, of_leaves, of_recovered
from kveil.methods.tree.public import OF_GATE, tried, unused
from kveil.methods.tree.sparse import SparseFit
from kveil.methods.tree.stages import FirstLook, Stages, n_axes
from kveil.progress import step as progress
from kveil.questions.cells import MOMENT_TOP, TOP
from kveil.questions.frame import FEW_COLUMNS, Frame, stays_sparse
from kveil.questions.public_sample import LENGTH
from kveil.solve.choosing import CHOSE, NOTHING, choice, chosen
from kveil.solve.placed import Placed, merged
from kveil.solve.shrink import within
from kveil.solve.synopsis import Synopsis
from kveil.solve.wkmeans import thorough_kmeans
from kveil.tuning import Tree as TreeTuning

MOST_PCA_COLUMNS, MOST_SEEN_COLUMNS = 1000, 16  # of principal axes; up to the second the tree sees all columns, with delta > 0
MOST_STEPS = 100
OF_RECOVERY = 1 / 3  # of what the tree leaves, for means of clusters that were found in a projection; the rest is for steps
LEAN_RECOVERY = 0.2  # where that is as good
LEAST_UNITS, WIDEST = 2**14, 2.0**49  # of a ledger's units, so that shares are not lost in rounding; of a deviation, in steps


def fewest_steps(d: int, kind: str) -> int:
    """Relative steps that a fit takes, unless its tuning says otherwise or noise would drown them; more where noise is small."""
    return 1 if d <= 3 else 2 if n_axes(d, kind) == d else 4


class Tree:
    """Private k-means by a tree of noisy counts.

    Private:      the rows and their number.  Public: all parameters, the random frame, and that a fit took place.
    Sensitivity, neighbours and cost: those of `Pool`, for every release; shares of the budget follow from released values.
    """

    takes_sparse: ClassVar[bool] = True
    options: ClassVar[frozenset[str]] = frozenset()
    tuning: ClassVar[type[TreeTuning]] = TreeTuning

    @staticmethod
    def bits(facts: Facts) -> int:
        """As fine a grid as exact distances and exact sums allow: narrow columns beside wide ones stay readable."""
        return max(2, min(23, 63 - (facts.max_rows - 1).bit_length(), 1 + int((51 - np.log2(facts.n_features)) // 2)))

    def __init__(self, task: Task) -> None:
        _check_tuning(task)
        self.task = task
        is_pure = not task.delta or (task.domain.n_columns <= 3 and not task.is_zcdp)
        self.budget = Pool(task.epsilon, task.delta, task.relation, task.unit, is_pure=is_pure)
        # Judged here, from public parameters, so that no draw in the middle of a fit can be refused.
        length = max(task.domain.n_columns**0.5 * max(task.domain.top, TOP) + 2, MOMENT_TOP**2)
        most_steps = task.tuning.steps or (MOST_AFFORDED if task.domain.n_columns > 3 else 1)
        widest = self.budget.spread(1, length, 0.02 * 3 / max(4, most_steps)) ** 0.5
        if task.sample is not None:
            widest = max(widest, self.budget.spread(2, LENGTH, OF_GATE) ** 0.5)
        if self.budget.kind != "none" and (self.budget.total * UNIT < LEAST_UNITS or widest > WIDEST):
            raise InvalidValue(
                'this budget is too small for method="tree", which shares it out in many draws. Raise epsilon, or try "mean".'
            )

    def run(self, desk: Curator, rng: np.random.Generator) -> Found:
        is_wide = desk.is_sparse and stays_sparse(desk.n_columns, self.task.tuning.nonzeros)
        return (SparseFit if is_wide else _Fit)(Ground(self.task, desk), self.task.tuning, rng).run()


def _check_tuning(task: Task) -> None:
    """Refuse what the tuning asks for and these rows or this budget cannot give."""
    tuning, d = task.tuning, task.domain.n_columns
    check_choice("tuning.trust_public", tuning.trust_public, (False, True))
    if tuning.steps is not None and check_count("tuning.steps", tuning.steps) > MOST_STEPS:
        raise InvalidValue(f"tuning.steps must be at most {MOST_STEPS}: with more, each has too little budget to be drawn.")
    if tuning.nonzeros is not None:
        check_count("tuning.nonzeros", tuning.nonzeros)
        if not task.is_sparse:
            raise InvalidValue(
                "tuning.nonzeros bounds the entries of sparse rows, and these are dense. Leave it out, or pass a SciPy sparse "
                "matrix (guarantee(is_sparse=True) to ask beforehand)."
            )
    if tuning.steps is not None and task.is_sparse and stays_sparse(d, tuning.nonzeros):
        raise InvalidValue(
            f"tuning.steps is for dense rows: sparse ones of more than {FEW_COLUMNS} columns, or with a bound on few entries "
            "(nonzeros), have no relative steps. Leave it out."
        )
    if check_choice("tuning.frame", tuning.frame, ("random", "pca")) == "pca":
        if task.is_sparse:
            raise InvalidValue('frame="pca" needs dense rows: a released matrix of moments is dense. Use frame="random".')
        if task.epsilon is not None and not task.delta:
            raise InvalidValue('frame="pca" draws Gaussian noise, which is not pure. Pass delta > 0, or use frame="random".')
        if task.epsilon is not None and d <= MOST_SEEN_COLUMNS:
            raise InvalidValue(
                f'frame="pca" is for more than {MOST_SEEN_COLUMNS} columns: with {d} the tree sees them all. Use frame="random".'
            )
        if d > MOST_PCA_COLUMNS:
            raise InvalidValue(
                f'frame="pca" releases a number for every pair of columns, and {d} are too many: at most {MOST_PCA_COLUMNS}. '
                'Use frame="random".'
            )


class _Fit(Stages):
    """One fit: the stages, centres from the leaves, and relative steps."""

    short_noise: ClassVar[tuple[float, float]] = (0.35, 0.35)

    @property
    def narrows(self) -> bool:
        """With pure noise in many columns."""
        return self.is_pure and self.is_projected and self.ground.task.sample is None

    @property
    def saves_a_stage(self) -> bool:
        """Of a pure tree in a projection: means in all columns need its budget more."""
        return self.is_pure and self.is_projected

    def run(self) -> Found:
        seen = self.look()
        if self.ground.task.sample is None:
            return self._grown(seen)
        asked = unused(self.ground.task) if self.is_low else tried(self.ground, seen, self.rng, is_projected=self.is_projected)
        if asked.start is None:
            found = self._grown(self.with_left(seen))
        else:
            assert asked.synopsis is not None
            found = self._of_public(asked.start, asked.synopsis, asked.squared_error, seen.radius)
        return replace(found, notes=(*found.notes, asked.note), sample=asked.told)

    def _of_public(self, start: Floats, synopsis: Synopsis, squared_error: float | None, radius: float) -> Found:
        """Steps from centres of a public sample, with all that is left: two, or one where noise is longer than they are off."""
        k, n_steps, known = self.ground.k, 2, None
        errors = np.full(k, float(self.ground.reach))
        if squared_error is not None:
            known = np.full(k, squared_error)
            errors = np.sqrt(known)
            noise = self.desk.spread(self.d, radius, self.desk.left / 2) * (k / synopsis.rows) ** 2
            n_steps = 1 if noise > squared_error else 2
        placed, steps = relative_steps(self.ground, Placed(start, np.ones(k), errors), self.tuning.steps or n_steps, known)
        kept = replace(synopsis, steps=steps)
        return self.ground.found(placed.centers, shares(placed.counts), placed.errors, synopsis=kept)

    def _grown(self, seen: FirstLook) -> Found:
        """Centres of the tree alone."""
        if not seen.has_signal:
            notes = self._chosen(seen, None)
            found = one_mean(self.ground, seen.middle, seen.radius, seen.n, seen.n_deviation, seen.total)
            return replace(found, notes=(*notes, *found.notes))
        self.k = seen.n_centers
        placed, synopsis, said = self._of_few_columns(seen) if self.is_low else self._of_leaves(seen)
        placed, notes = _filled(placed, self.ground.k)
        return self.ground.found(placed.centers, shares(placed.counts), placed.errors, (*said, *notes), synopsis)

    def _chosen(self, seen: FirstLook, synopsis: Synopsis | None) -> tuple[str, ...]:
        """With n_clusters="auto": from here on the fit is one with the k that released values suggest, and a note says why."""
        k_range = self.ground.task.k_range
        if k_range is None:
            return ()
        best = choice(NOTHING, None, k_range[0]) if synopsis is None else chosen(synopsis, self.ground.widths, k_range)
        self.ground = Ground(replace(self.ground.task, n_clusters=best.k), self.desk, self.ground.whole.columns)
        self.k = min(best.k, seen.n_centers)
        return (f"{CHOSE}{best.why}.",)

    def _of_few_columns(self, seen: FirstLook) -> tuple[Placed, Synopsis, tuple[str, ...]]:
        """Centres of one grid, whose expected squared errors decide how far a step may move them."""
        progress("counting cells", 2, 5)
        cells, half = self.histogram(seen)
        synopsis = of_cells(self.ground, seen, cells, half)
        notes = self._chosen(seen, synopsis)
        progress("recovering centres", 4, 5)
        centers = within(cells.centers(self.k, self.rng), self.ground.reach)
        squared_errors = cells.squared_errors(centers)
        placed = Placed(centers, np.ones(self.k), np.sqrt(squared_errors))
        placed, steps = relative_steps(self.ground, placed, self.tuning.steps or 1, squared_errors)
        return placed, replace(synopsis, steps=steps), notes

    def _of_leaves(self, seen: FirstLook) -> tuple[Placed, Synopsis, tuple[str, ...]]:
        """Centres of the leaves of a tree, in all columns, and steps."""
        frame, grown = self.leaves(seen)
        progress("recovering centres", 4, 5)
        if self.is_projected:
            notes = self._chosen(seen, of_recovered(self.ground, seen, frame, grown))
            placed, n_steps, synopsis = self._recovered(frame, grown, seen)
        else:
            synopsis = of_leaves(self.ground, seen, grown)
            notes = self._chosen(seen, synopsis)
            placed, n_steps = self._seeded(grown.leaves, seen)
        of_last = 1 / n_steps if n_steps else None
        if self.tuning.steps is None and n_steps:
            n_steps = affordable_steps(self.ground, seen.n, self.k, n_steps)
        placed, steps = relative_steps(self.ground, placed, n_steps, n=seen.n, of_last=of_last)
        return placed, replace(synopsis, steps=steps), notes

    def _seeded(self, leaves: Leaves, seen: FirstLook) -> tuple[Placed, int]:
        """Centres of the leaves themselves, where the tree sees all columns. Nothing tells yet how far off they are."""
        centers = seen.middle + thorough_kmeans(leaves.points, leaves.weights, self.k, self.rng)
        n_steps = self.tuning.steps or fewest_steps(self.d, self.desk.kind)
        return Placed(centers, np.ones(self.k), np.full(self.k, float(self.ground.reach))), n_steps

    def _recovered(self, frame: Frame, grown: Grown, seen: FirstLook) -> tuple[Placed, int, Synopsis]:
        """Centres in all columns from clusters found in the projection, and how many relative steps are left for them."""
        k, desk = self.k, self.desk
        n_steps = self._recovery_steps(seen)
        share = desk.left / (n_steps + 1) if self.is_pure or n_steps == 1 else self._recovery_share(grown.leaves, seen, n_steps)
        found = self.recovered(frame, grown.leaves, seen, share, thorough_kmeans, n_steps)
        synopsis = of_recovered(self.ground, seen, frame, grown, found, desk.deviation(0.05 * share))
        placed = Placed(found.moves, found.counts, found.errors)
        if len(found.counts) > k:
            placed = merged(placed, k, self.rng)
        return placed._replace(centers=within(seen.middle + placed.centers, self.ground.reach)), n_steps, synopsis

    def _recovery_share(self, leaves: Leaves, seen: FirstLook, n_steps: int) -> float:
        """What the recovery is given: less where noise bears more than k clusters then, and more would tell no more apart."""
        lean, full = LEAN_RECOVERY * self.desk.left, OF_RECOVERY * self.desk.left
        groups = [self.n_groups(leaves, seen, share, n_steps) for share in (lean, full)]
        is_enough = groups[0] == groups[1] and self.n_borne(seen, lean, n_steps, self.k + 1) > self.k
        return lean if is_enough else full

    def _recovery_steps(self, seen: FirstLook) -> int:
        """How many relative steps the recovery leaves budget for. Pure noise: fewer where it would be as long as a third of the
        radius of the rows, since a step like that moves centres at random. Else so few centres are asked for that it is not."""
        desk = self.desk
        if not self.is_pure:
            return self.tuning.steps or fewest_steps(self.d, desk.kind)

        def noise(n_draws: int) -> float:
            return float(np.sqrt(desk.spread(self.ground.width, 1.0, 0.9 * desk.left / n_draws))) * self.k / seen.n

        return next((t for t in (2, 1) if noise(t + 1) <= 0.1**0.5), 0)


def _filled(placed: Placed, k: int) -> tuple[Placed, tuple[str, ...]]:
    """k centres where the budget told fewer apart: the others repeat them, without weight."""
    missing = k - len(placed.centers)
    if not missing:
        return placed, ()
    again = np.arange(missing) % len(placed.centers)
    centers, errors = (np.concatenate([part, part[again]]) for part in (placed.centers, placed.errors))
    note = f"the budget tells {len(placed.centers)} centres apart, not {k}: the others repeat them, with weight 0."
    return Placed(centers, np.concatenate([placed.counts, np.zeros(missing)]), errors), (note,)
