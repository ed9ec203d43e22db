"""What a method of clustering is: a budget that is fixed before the data, a run at a desk, and what it found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import Floats
from kveil.desk.fixed import Fixed
from kveil.desk.pool import Pool
from kveil.errors import InvalidValue
from kveil.solve.synopsis import Synopsis, UniverseSynopsis

WIDEST = 2.0**49  # deviation of noise, in grid steps; the vault refuses wider noise, and that would be in the middle of a fit


@dataclass(frozen=True)
class Found:
    """What a method found: centres in the units of the data (or indices of points of a universe), noisy shares, why it went as
    it did, and how sure it is.

    errors: (k,) the standard error of every centre: the root mean squared length of the noise in it, in the units of the
        data, by released counts and public variances. How rows were drawn, and which were clipped, is not in it.
    """

    centers: NDArray[Any]
    weights: Floats | None
    notes: tuple[str, ...] = ()
    errors: Floats | None = None
    names: tuple[str, ...] | None = None  # of centres that are points of a universe
    places: Floats | None = None  # (k, c) public coordinates of such points, where the universe has them
    synopsis: Synopsis | UniverseSynopsis | None = None  # what else it released, for questions that come later
    scales: Any = None  # `methods.scales.Scales`, where the box of the fit was found privately
    sample: Mapping[str, Any] | None = None  # what became of a public sample, where there was one


class Facts(NamedTuple):
    """Public facts that the width of a grid may depend on."""

    n_features: int
    epsilon: float
    expected_rows: float | None
    max_rows: int


class Method(Protocol):
    """One way to cluster. The constructor and `bits` see public parameters only; `run` sees answers, and never a row."""

    takes_sparse: ClassVar[bool]
    options: ClassVar[frozenset[str]]  # which of "n_steps", "init" and "private init" it takes
    tuning: ClassVar[type[Any]]  # its constants, a frozen dataclass of kveil.tuning
    task: Any  # a `Task`, or a `UniverseTask`

    @property
    def budget(self) -> Pool | Fixed:
        """Its `plan` lists every charge, and its `open` makes the desk that `run` stands before."""

    def __init__(self, task: Any) -> None: ...

    @staticmethod
    def bits(facts: Facts) -> int:
        """The width of the grid, unless its tuning says otherwise."""

    def run(self, desk: Any, rng: np.random.Generator) -> Found:
        """Cluster by the answers of a desk that the budget has opened. `rng` is for public choices."""


def check_width(pool: Pool, length: int, share: float) -> None:
    """Refuse noise that the vault would refuse, from public parameters and before anything is charged."""
    if pool.spread(1, length, share) ** 0.5 > WIDEST:
        raise InvalidValue("this budget is too small: its noise would be wider than any result. Raise epsilon or use fewer bits.")


def shares(counts: Floats) -> Floats:
    """Noisy shares of the clusters; equal if nothing is left after cutting negative counts."""
    positive = np.maximum(counts, 0.0)
    total = positive.sum()
    return positive / total if total > 0 else np.full(len(counts), 1.0 / len(counts))
