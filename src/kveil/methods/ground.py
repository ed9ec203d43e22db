"""The public ground of one fit: lengths in steps of the grid, all columns alike, from the centre of the domain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kveil.arrays import Bools, Floats, Integers
from kveil.desk.base import Curator
from kveil.methods.base import Found
from kveil.methods.task import Task
from kveil.questions.frame import Frame
from kveil.solve.synopsis import Synopsis
from kveil.space.euclidean import clip, step_length, units
from kveil.space.unit_ball import is_cosine


class Ground:
    """What a fit knows before and besides its answers, and the desk that gives them. All of it is public.

    columns: public or released; sums of rows are asked for in these alone. None: in all.
    """

    def __init__(self, task: Task, desk: Curator, columns: Integers | None = None) -> None:
        self.task, self.desk = task, desk
        domain = task.domain
        self.k, self.d = task.n_clusters, domain.n_columns
        nonzeros = getattr(task.tuning, "nonzeros", None)
        self.whole = replace(Frame.of(domain, task.scaling), nonzeros=nonzeros, columns=columns)
        self.reach = self.whole.radius
        self.half = np.rint(domain.top * (np.ones(self.d) if self.whole.ratio is None else self.whole.ratio))

    @property
    def width(self) -> int:
        """In how many columns sums of rows have noise."""
        return self.d if self.whole.columns is None else len(self.whole.columns)

    @property
    def summed(self) -> Bools | None:
        """(d,) whether sums of rows are asked for in a column; None: in all."""
        return None if self.whole.columns is None else np.isin(np.arange(self.d), self.whole.columns)

    def narrowed(self, columns: Integers) -> Ground:
        """The same ground, with sums of rows in these columns alone."""
        return Ground(self.task, self.desk, columns)

    @property
    def length(self) -> float:
        """Of a step, in the units that distances have: those of the data, or half-widths of the bounds."""
        return step_length(self.task.domain, self.task.scaling)

    @property
    def unit(self) -> Any:
        """Of a step, in the units of the columns: one for all, or one per column where each has its own."""
        return self.whole.unit(self.task.domain)

    @property
    def widths(self) -> Any:
        """What counts as 1 in every column, in its own unit: half-widths of the bounds where columns are scaled, else 1."""
        return units(self.task.domain, self.task.scaling)

    def positions(self, points: Floats) -> Floats:
        """Points, in steps from the centre of the domain, in the units of the columns."""
        return np.asarray(self.task.domain.center + points * self.unit)

    def found(
        self, centers: Floats, weights: Floats, errors: Floats, notes: tuple[str, ...] = (), synopsis: Synopsis | None = None
    ) -> Found:
        """Centres in the units of the data."""
        length = float(np.sqrt(np.mean(np.square(self.unit))))  # of a step; exact unless columns are scaled apart
        found, errors = self.positions(centers), np.minimum(errors, self.reach) * length
        places = clip(self.task.domain, found)
        if is_cosine(self.task.domain):  # a centre that is made longer has longer noise, as a chord
            errors = np.minimum(errors / np.maximum(np.linalg.norm(found, axis=1), 1e-300), 2.0)
        return Found(places, weights, notes, errors, synopsis=synopsis)

    def frame(self, middle: Floats | None = None, radius: float | None = None) -> Frame:
        """Rows about a released middle, clipped to a released radius; by default the whole domain."""
        base = self.whole.middle if middle is None else np.rint(middle).astype(np.int64)
        return replace(self.whole, middle=base, radius=self.reach if radius is None else int(np.ceil(radius)))
