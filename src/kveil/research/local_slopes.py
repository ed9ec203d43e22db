"""How the error of local protocols grows with people and with clusters: exponents, to be held against the paper's Table 1.

The table bounds the *additive* error, what is left of the cost where the optimal cost is 0. So rows sit on k places exactly: k/2
pairs of a large group and, 0.3 away, a small one, in three columns, where no image loses anything. All groups may be of one size.
Or small ones have a few times sqrt(n) people each, about what stands out of noise; of these sizes the hardest counts, since a
bound speaks of the worst data: groups that are smaller cost less if they are missed, and larger ones are not missed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Literal, NamedTuple

import numpy as np

from kveil.arrays import Floats, Integers

PROTOCOLS = {
    "lae": "LAE, four rounds", "lae-paper": 'LAE, preset="paper"', "lma": "LMA, one round", "refine": "refinement in rounds",
}  # fmt: skip
COLOURS = {"lae": "#D55E00", "lae-paper": "#E69F00", "lma": "#009E73", "refine": "#0072B2"}
SEED = 2022  # of the made-up rows and the simulated coins
COLUMNS, BESIDE, BETWEEN = 3, 0.3, 0.45  # distance within a pair, and at least that between pairs
RESAMPLES = 400
EQUAL = 0.0  # the factor that stands for groups of one size
Along = Literal["people", "k"]


@dataclass(frozen=True)
class Size:
    """What is spanned: `people` at the first k, and `clusters` at the middle number of people.

    factors: people of a small group over sqrt(n). paper_up_to: most people with the paper's constants, which take long.
    """

    people: tuple[int, ...] = (2**14, 2**16, 2**18, 2**20)
    clusters: tuple[int, ...] = (4, 2, 8)
    factors: tuple[float, ...] = (EQUAL, 8.0, 16.0, 32.0, 64.0, 128.0)
    epsilon: float = 0.9  # Theorems 1.3 and 1.4 are for epsilon < 1
    runs: int = 8
    paper_up_to: int = 2**18

    @property
    def places(self) -> list[tuple[int, int]]:
        """(people, k) of every campaign."""
        return [*((n, self.clusters[0]) for n in self.people), *((self.middle, k) for k in self.clusters[1:])]

    @property
    def middle(self) -> int:
        return self.people[len(self.people) // 2]


QUICK = Size(people=(2**12, 2**14), clusters=(4, 2), factors=(EQUAL, 8.0), runs=2, paper_up_to=0)


@dataclass(frozen=True)
class Cell:
    """Total cost of every run in one place; the optimum is 0."""

    protocol: str
    people: int
    k: int
    factor: float
    costs: tuple[float, ...]

    @property
    def median(self) -> float:
        """Theorem 1.3 promises its bound with constant probability: a bad start now and then does not count."""
        return float(np.median(self.costs))


class Slope(NamedTuple):
    """An exponent, and its standard error by drawing runs anew with replacement."""

    exponent: float
    error: float


def measure(size: Size, on_step: Callable[[str, int, int], None]) -> list[Cell]:
    """Campaigns of every protocol, everywhere; with the paper's constants over people alone, and not the most.

    The same run has the same places at every number of people.
    """
    cells = []
    for number, (n, k) in enumerate(size.places, start=1):
        on_step(f"{n} people, k = {k}", number, len(size.places))
        for factor in size.factors:
            if factor * sqrt(n) * k > n:
                continue  # small groups would hold more than half of all people
            worlds = [_world(n, k, factor, run) for run in range(size.runs)]
            is_cheap = n <= size.paper_up_to and k == size.clusters[0]
            for name in [name for name in PROTOCOLS if is_cheap or name != "lae-paper"]:
                costs = tuple(_cost(name, *world, size.epsilon, run) for run, world in enumerate(worlds))
                cells.append(Cell(name, n, k, factor, costs))
    return cells


def hardest(cells: Sequence[Cell], is_equal: bool = False) -> dict[tuple[str, int, int], Cell]:
    """For each protocol, number of people and k the size of small groups with the greatest cost; or groups of one size."""
    found: dict[tuple[str, int, int], Cell] = {}
    for cell in cells:
        key = (cell.protocol, cell.people, cell.k)
        if (cell.factor == EQUAL) == is_equal and (key not in found or cell.median > found[key].median):
            found[key] = cell
    return found


def slope(cells: Sequence[Cell], along: Along) -> Slope:
    """Least squares of the log of median costs on the log of people or k, over cells of one protocol."""
    x = np.log([getattr(cell, along) for cell in cells])
    costs, rng = np.array([cell.costs for cell in cells]), np.random.default_rng(SEED)
    again = rng.integers(0, costs.shape[1], (RESAMPLES, *costs.shape))
    drawn = np.take_along_axis(np.broadcast_to(costs, again.shape), again, axis=2)
    return Slope(float(_fitted(x, costs)), float(np.std(_fitted(x, drawn), ddof=1)))


def _fitted(x: Floats, costs: Floats) -> Floats:
    """Slopes of the log of medians over the last axis."""
    away = x - x.mean()
    return np.asarray(np.log(np.median(costs, axis=-1)) @ away / (away @ away))


def _world(n: int, k: int, factor: float, run: int) -> tuple[Floats, Integers]:
    """Places, and how many people are at each."""
    places = pairs(k // 2, np.random.default_rng([SEED, run]))
    small = n // k if factor == EQUAL else round(factor * sqrt(n))
    sizes = np.full(k, small)
    sizes[::2] = (n - k // 2 * small) // (k // 2)
    return places, sizes


def pairs(n_pairs: int, rng: np.random.Generator) -> Floats:
    """Places of large and small groups in turn: near in a pair, and no others so near."""
    while True:
        places = np.empty((0, COLUMNS))
        for _ in range(2_000):
            if len(places) == 2 * n_pairs:
                return places
            place, way = (unit / np.linalg.norm(unit) for unit in rng.standard_normal((2, COLUMNS)))  # made-up places
            place = 0.65 * rng.random() ** (1 / COLUMNS) * place
            both = np.vstack([place, place + BESIDE * way])
            if not len(places) or np.linalg.norm(places[:, None] - both, axis=2).min() >= BETWEEN:
                places = np.vstack([places, both])


def _cost(name: str, places: Floats, sizes: Integers, epsilon: float, run: int) -> float:
    from kveil.models.local_kmeans import LocalKMeans

    protocol, preset = ("lae", "paper") if name == "lae-paper" else (name, "lite")
    seed = int(np.random.default_rng([SEED, run, len(places), int(sizes.sum()), int(sizes[1])]).integers(2**31))
    model: Any = LocalKMeans(
        len(places), epsilon=epsilon, radius=1.0, protocol=protocol, preset=preset, random_state=seed  # type: ignore[arg-type]
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of too few people: the table shows it
        centres = model.fit(np.repeat(places, sizes, axis=0)).cluster_centers_
    apart = ((places[:, None] - centres) ** 2).sum(axis=2).min(axis=1)
    return float(sizes @ apart)
