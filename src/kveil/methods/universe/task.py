"""A fit on a finite public universe: what is asked, how a demand is read, and what released points answer."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import Integers
from kveil.errors import InvalidValue
from kveil.kernel.loss import PrivacyUnit, Relation
from kveil.methods.base import Facts, Found, shares
from kveil.methods.task import check_choice, check_count
from kveil.solve.demand import Demand
from kveil.solve.kmedian import solve_kmedian
from kveil.solve.loss import Objective
from kveil.space.places import Places
from kveil.space.universe import Space

INITS = ("auto", "hst", "k-median++", "random")
RESTARTS, LARGE = 3, 20_000  # of the search; one in universes of more points, where it takes longest
TAKEN_AS_NUMBERS = "The fit saw numbers of points, 0 to n - 1; universe.find(names) is what turns names into them."
PUBLIC_UNIVERSE = "the universe, its order and its distances were fixed without looking at the demand"


@dataclass(frozen=True)
class UniverseTask:
    """A checked request. `epsilon` is None for a noise-free result, which promises nothing."""

    n_clusters: int
    epsilon: Fraction | None
    delta: Fraction
    domain: Places  # how rows become points of the universe
    objective: Objective
    relation: Relation
    unit: PrivacyUnit
    tuning: Any
    max_rows: int
    n_steps: int | None = None
    init: str | Integers = "auto"
    expected_rows: float | None = None
    is_zcdp: bool = False

    @property
    def universe(self) -> Space:
        return self.domain.space

    def public(self) -> dict[str, Any]:
        """What a reader of the release needs to use it: everything here was known before the data."""
        init = self.init if isinstance(self.init, str) else self.init.tolist()
        return {
            "n_clusters": self.n_clusters,
            "epsilon": "inf" if self.epsilon is None else float(self.epsilon),
            "delta": float(self.delta),
            "universe": self.universe.identity(),
            "objective": self.objective,
            "relation": self.relation,
            **({} if init == "auto" else {"init": init}),
            **({} if self.n_steps is None else {"n_steps": self.n_steps}),
            "tuning": asdict(self.tuning),
        }


def found_points(
    task: UniverseTask, weights: NDArray[np.float64], rng: np.random.Generator, notes: tuple[str, ...] = ()
) -> Found:
    """An ordinary search for centres of weights (n,), public by now, and the shares of the weight near each."""
    space, k = task.universe, task.n_clusters
    if not weights.any():
        weights = np.ones(space.n_points)
    restarts = RESTARTS if space.n_points <= LARGE else 1
    demand = Demand.weighted(weights)
    centers = solve_kmedian(space, demand, k, rng, objective=task.objective, n_restarts=restarts).centers
    near = np.bincount(space.nearest(centers)[0], weights, minlength=k).astype(np.float64)
    return found_among(space, centers, shares(near), notes)


def found_among(space: Space, centers: Integers, weights: NDArray[np.float64] | None, notes: tuple[str, ...] = ()) -> Found:
    """Centres by index; by name and by place where points of the universe have names and coordinates."""
    names, places = getattr(space, "names", None), None if space.points is None else space.points[centers]
    if names is None:
        return Found(centers, weights, notes, places=places)
    called = tuple(_written(name) for name in names[centers])
    return Found(centers, weights, (*notes, TAKEN_AS_NUMBERS), names=called, places=places)


def _written(name: Any) -> str:
    """A name as UTF-8 can hold it: a release that was paid for must be possible to save."""
    return str(name).encode("utf-8", "backslashreplace").decode()


class OnUniverse:
    """What methods on a universe have in common."""

    takes_sparse: ClassVar[bool] = False

    @staticmethod
    def bits(facts: Facts) -> int:
        return Places.bits


def check_centers(value: Any, universe: Space) -> int:
    n_clusters = check_count("n_clusters", value)
    if n_clusters > universe.n_points:
        raise InvalidValue(
            f"n_clusters is {n_clusters} and the universe has {universe.n_points} point(s), of which centres are chosen. Ask for "
            "fewer centres, or give a larger universe."
        )
    return n_clusters


def check_start(init: Any, n_clusters: int, n_points: int) -> str | Integers:
    """The name of a start, or public points to start from."""
    if isinstance(init, str):
        return str(check_choice("init", init, INITS))
    start = np.asarray(init)
    is_points = start.dtype.kind in "iu" and start.shape == (n_clusters,) and len(np.unique(start)) == n_clusters
    if not is_points or start.min() < 0 or start.max() >= n_points:
        raise InvalidValue(
            f"init must be one of {', '.join(map(repr, INITS))}, or {n_clusters} different public points of the universe, by "
            "index. Points picked by the demand are not public."
        )
    return start.astype(np.int64)
