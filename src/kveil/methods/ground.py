"""The public ground of one fit: lengths in steps of the grid, all columns alike, from the centre of the domain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kveil.arrays import Floats
from kveil.desk.base import Curator
from kveil.methods.base import Found
from kveil.methods.task import Task
from kveil.questions.frame import Frame
from kveil.space.euclidean import clip, units


class Ground:
    """What a fit knows before and besides its answers, and the desk that gives them. All of it is public."""

    def __init__(self, task: Task, desk: Curator) -> None:
        self.task, self.desk = task, desk
        domain = task.domain
        self.k, self.d = task.n_clusters, domain.n_columns
        self.whole = replace(Frame.of(domain, task.scaling), nonzeros=getattr(task.tuning, "nonzeros", None))
        self.reach = self.whole.radius
        self.half = np.rint(domain.top * (np.ones(self.d) if self.whole.ratio is None else self.whole.ratio))

    @property
    def length(self) -> float:
        """Of a step, in the units that distances have: those of the data, or half-widths of the bounds."""
        domain = self.task.domain
        return float((domain.half / units(domain, self.task.scaling)).max() / domain.top)

    def found(self, centers: Floats, weights: Floats, errors: Floats, notes: tuple[str, ...] = ()) -> Found:
        """Centres in the units of the data."""
        domain = self.task.domain
        unit = self.whole.unit(domain)
        length = float(np.sqrt(np.mean(np.square(unit))))  # of a step; exact unless columns are scaled apart
        return Found(clip(domain, domain.center + centers * unit), weights, notes, np.minimum(errors, self.reach) * length)

    def frame(self, middle: Floats | None = None, radius: float | None = None) -> Frame:
        """Rows about a released middle, clipped to a released radius; by default the whole domain."""
        base = self.whole.middle if middle is None else np.rint(middle).astype(np.int64)
        return replace(self.whole, middle=base, radius=self.reach if radius is None else int(np.ceil(radius)))
