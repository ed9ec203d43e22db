"""How large the noise of a fit will be, exactly, from public numbers alone: the real method is rehearsed before no rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, sqrt

import numpy as np

from kveil.arrays import Floats
from kveil.desk.pool import Pool
from kveil.desk.rehearsal import Draw, Rehearsal
from kveil.kernel.loss import zcdp_epsilon
from kveil.methods.base import Method
from kveil.methods.task import Task
from kveil.methods.tree.method import Tree, fewest_steps
from kveil.models.trial import LARGEST
from kveil.questions.cells import Residuals, Stage
from kveil.questions.midpoint_cells import TileCounts
from kveil.questions.public_sample import Votes
from kveil.solve.evidence import thresholds

PLENTY = 1e12  # rows: so many that no method gives up
CURVE = tuple(2.0**power for power in range(-5, 6))  # times smaller noise, for a curve

# Noise of an average centre over its clip radius: up to the first number costs were mostly within 1.25 times those without
# privacy, beyond the second results were noise, on 817 fits of real and generated tables. By the most columns that they are for.
Ends = tuple[float, float]
PURE_LIMITS: dict[float, Ends] = {3: (0.3, 3.0), 12: (0.01, 0.3)}
ZCDP_LIMITS: dict[float, Ends] = {16: (0.03, 0.3), inf: (0.3, 1.0)}


@dataclass(frozen=True)
class Figures:
    """The noise in the last step of `method="tree"` on dense rows, for clusters of equal size.

    Exact, but for some cases. At most three columns: a fit looks up to three times before it counts cells, and this is for three
    looks; with fewer, the noise of a cell is up to 17 % smaller. Looks at few rows cost as much as the noisy number of rows says,
    so the noise of a cell may be half or twice as large. Above 12 columns (Gaussian noise: 16) released values decide how
    many steps there are: pure noise is as the noisy number of rows says, and long Gaussian noise means fewer centres, each with
    less. Where noise is so small that a fit takes more steps, the last one is as it would be
    without them.

    noise_share: the root mean squared length of the noise in a centre of rows/k rows, over the radius at which rows are clipped
        in that step (most rows are nearer to their centre).
    count_deviation: standard deviation of the noise in a cluster's number of rows.
    cells: cells that the last stage of the tree counts, or prototypes of a public sample. cell_deviation: of the noise in such a
        count.
    rows_to_stand_out: rows that a cell needs to be told from an empty one by itself.
    word: "good", "rough" or "noise", by what such noise did on many tables; None where that was not measured.
    good, noise: the ends of these words for `noise_share`.
    least_rows, least_epsilon: from where on the word is "good", the other number being as it is; None where there is none.
    curve: pairs of an epsilon and the noise_share that it gives, around the model's own.
    """

    noise_share: float
    count_deviation: float
    cells: int
    cell_deviation: float
    rows_to_stand_out: float
    word: str | None
    good: float | None
    noise: float | None
    least_rows: float | None
    least_epsilon: float | None
    curve: tuple[tuple[float, float], ...]


def figures(method: Tree, rows: float) -> tuple[Figures, tuple[str, ...]]:
    """The figures of a fit of so many rows, and notes."""
    pool, k, d = method.budget, method.task.n_clusters, method.task.domain.n_columns
    draws = _draws(method, rows)
    told_apart, notes = draws[-1].shape[0], []
    if told_apart < k:
        notes.append(
            f"the budget tells {told_apart} of {k} centres apart: a fit would return "
            + ("one mean, repeated." if told_apart == 1 else "these, the others repeated.")
        )
    elif not _has_cells(draws):  # one centre was asked for
        notes.append("the budget is too small for a tree: a fit would return the mean of all rows.")
    if told_apart < k or not _has_cells(draws):
        draws = _draws(method, PLENTY)
    of_counts, of_sums = (_last(draws, Residuals, part) for part in (0, 1))
    stage = _last(draws, Votes if method.task.sample is not None else (Stage, TileCounts), 0)
    share = sqrt(pool.spread(d, 1.0, of_sums.share)) * k / rows
    limits = _limits(method)
    if limits is None:
        notes.append("for this noise, this number of columns or this tuning nobody measured when a result is good: simulate it.")
    good, noise = limits or (None, None)
    word = None if limits is None else _word(share, *limits)
    over = None if good is None else share / good
    deviation, n_cells = pool.deviation(stage.share), stage.shape[0]
    least = 1.0  # a vote counts by how far it stands out
    if not isinstance(stage.question, Votes):
        is_only = not isinstance(stage.question, Stage) or len(stage.question.order) == stage.question.new_bits
        least, sure = thresholds(n_cells, is_pure=pool.kind == "pure", is_only=is_only)
        least = max(least, sure) if is_only else least
    return Figures(
        noise_share=share, count_deviation=pool.deviation(of_counts.share), cells=n_cells, cell_deviation=deviation,
        rows_to_stand_out=max(0.5, deviation * least), word=word, good=good, noise=noise,
        least_rows=None if over is None else rows * over, least_epsilon=None if over is None else epsilon_for_noise(pool, over),
        curve=tuple((epsilon, share / by) for by in CURVE if (epsilon := epsilon_for_noise(pool, by)) is not None),
    ), tuple(notes)  # fmt: skip


def of_sample(task: Task, rows: Floats) -> Task:
    """The task of a fit that uses these public rows. A rehearsal has no rows that could say whether they fit: so nobody asks."""
    return replace(task, sample=rows, tuning=replace(task.tuning, trust_public=True))


def epsilon_for_noise(pool: Pool, factor: float) -> float | None:
    """The epsilon whose noise is `factor` times as small; None if budgets end before."""
    is_pure, total = pool.kind == "pure", pool.total
    epsilon = float(total) * factor if is_pure else zcdp_epsilon(total * Fraction(factor) ** 2, pool.delta)
    return epsilon if epsilon <= LARGEST else None


def _draws(method: Tree, rows: float) -> list[Draw]:
    desk = Rehearsal(method.budget, method.task.domain, rows, method.task.n_clusters)
    task = method.task  # more steps than the fewest leave the last one as it is
    steps = task.tuning.steps or fewest_steps(task.domain.n_columns, method.budget.kind)
    runs: Method = Tree(replace(task, tuning=replace(task.tuning, steps=steps)))  # at any desk
    with np.errstate(all="ignore"):
        runs.run(desk, np.random.default_rng(0))
    return desk.draws


def _has_cells(draws: list[Draw]) -> bool:
    return any(isinstance(draw.question, Stage | TileCounts | Votes) for draw in draws)


def _last(draws: list[Draw], kind: type | tuple[type, ...], part: int) -> Draw:
    return [draw for draw in draws if isinstance(draw.question, kind) and draw.part == part][-1]


def _limits(method: Tree) -> Ends | None:
    d, tuning = method.task.domain.n_columns, method.task.tuning
    if tuning != type(tuning)() or (method.budget.kind == "zcdp" and d <= 3):
        return None
    table = PURE_LIMITS if method.budget.kind == "pure" else ZCDP_LIMITS
    return next((ends for most, ends in table.items() if d <= most), None)


def _word(share: float, good: float, noise: float) -> str:
    return "good" if share < good else "rough" if share <= noise else "noise"
