"""Table 2 of "k-variates++: more pluses in the k-means++" (ICML 2016), in shape: private seeds beside Forgy-DP and GUPT.

Rows are mixtures of the sizes of the paper's sets, in the unit L2 ball and in the unit L1 ball of Theorem 12, and files given
by path. All calibrations hold but the one that is marked as conditional. No number here is the paper's own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from kveil.arrays import Floats
from kveil.errors import SourceError
from kveil.research.contest import Contestant, Setting, centers_of, cost
from kveil.research.seeders import Seeds, conditional_seeds, private_seeds
from kveil.solve.instances import kmeans_plusplus

OnStep = Callable[[str, int, int], None]

SEED = 2016  # of made-up rows and of public choices; the noise has none
CONDITIONAL = "sigma_1, conditional"
NO_DATA = "one centre, no data"
UK, GLOBE = ([-8.7, 49.8], [1.8, 60.9]), ([-180.0, -90.0], [180.0, 90.0])  # (longitude, latitude): lows, highs
MADE = ((26_733, 10, 3, 4.5), (34_112, 3, 2, 7.9), (34_112, 3, 3, 7.9), (169_308, 2, 5, 13.0), (20_000, 2, 15, None))
IN_L2, IN_L1 = "in the unit L2 ball", "in the unit L1 ball, as in Theorem 12"
BALLS = {IN_L2: 2, IN_L1: 1}
SEEDED = {"sigma_2": "sigma-2", "Forgy-DP": "forgy-dp", "Forgy, amplified": "amplified-forgy", "bounded share": "variates"}
FITTED = (
    Contestant("GUPT", "sample-aggregate", "#E69F00"),
    Contestant("amplified sample, then steps", "lloyd", "#56B4E9", {"init": "noisy-sample"}),
    Contestant("bounded share, then steps", "lloyd", "#8A6D00", {"init": "variates"}),
    Contestant("DP-Lloyd", "lloyd", "#009E73"),
    Contestant("kveil's default", "auto", "#0072B2"),
)


@dataclass(frozen=True)
class Case:
    """A data set, and the paper's epsilon_tilde for its own set of this size, if it tabulates one."""

    name: str
    setting: Setting
    k: int
    tilde: float | None = None
    domain: str = "in bounds from an atlas"  # as a heading says it

    @property
    def of_seeds(self) -> Mapping[str, Any]:
        """What seeds are told; fits know no L1 ball, and are told the L2 ball around it."""
        return {"l1_radius": 1.0} if self.domain == IN_L1 else self.setting.domain


@dataclass(frozen=True)
class Entry:
    """Costs of a method over that of k-means without privacy: with centres inside the domain, and, of seeds, as drawn."""

    case: str
    method: str
    inside: tuple[float, ...]
    drawn: tuple[float, ...] | None = None
    domain: str = ""

    @property
    def mean(self) -> float:
        return float(np.mean(self.inside))

    @property
    def error(self) -> float:
        return float(np.std(self.inside, ddof=1) / np.sqrt(len(self.inside))) if len(self.inside) > 1 else 0.0


def cases(most_rows: int, runs: int, files: Mapping[str, Floats]) -> list[Case]:
    """Mixtures of the paper's sizes in the unit balls, and the files, with five clusters, in bounds from an atlas."""
    found = []
    for (domain, order), (m, d, k, tilde) in product(BALLS.items(), MADE):
        setting = Setting(mixture(min(m, most_rows), d, k, order), {"radius": 1.0}, 0.0, runs)
        found.append(Case(f"{len(setting.rows)} x {d}, k = {k}", setting, k, tilde, domain))
    for name, places in files.items():
        bounds = UK if name.startswith("geo_uk") else GLOBE
        rows = np.random.default_rng(SEED).permutation(places)[:most_rows]
        found.append(Case(f"{name}, k = 5", Setting(rows, {"bounds": bounds}, 0.0, runs), 5))
    return found


def mixture(m: int, d: int, k: int, order: int = 2) -> Floats:
    """k Gaussians, rows 0.05 from their places by root mean square, which are even in the ball of radius 0.8; in the unit ball.

    order: 2, or 1 for balls by the sum of absolute values. A normal vector over its L2 norm, and a Laplace vector over its L1
    norm, times U^(1/d), are even in the ball.
    """
    rng = np.random.default_rng([SEED, d, k])  # made-up places and rows, not noise for privacy
    places = rng.standard_normal((k, d)) if order == 2 else rng.laplace(size=(k, d))
    places *= 0.8 * rng.random((k, 1)) ** (1 / d) / np.linalg.norm(places, order, axis=1, keepdims=True)
    rows = places[rng.integers(0, k, m)] + 0.05 / np.sqrt(d) * rng.standard_normal((m, d))
    return np.asarray(rows / np.maximum(1.0, np.linalg.norm(rows, order, axis=1, keepdims=True)))


def read_places(path: Path) -> Floats:
    """Longitudes and latitudes from an .npz file: an array x in degrees, or lonlat_e6 in millionths of one; public data."""
    try:
        with np.load(path, allow_pickle=False) as file:
            found = file["x"] if "x" in file.files else file["lonlat_e6"] / 1e6
    except Exception:  # a parser fed with foreign bytes may raise anything
        found = None
    if found is None or found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "uif" or len(found) < 100:
        raise SourceError(
            f"{path} cannot be used as places. An .npz file with an array x of longitudes and latitudes in degrees is needed, "
            "at least 100 rows of two numbers. Leave out --data to do without."
        )
    return np.nan_to_num(np.asarray(found, dtype=np.float64))


def table_2(case: Case, epsilon: float, on_step: OnStep) -> list[Entry]:
    """Everyone on one case."""
    base = _best_cost(case)
    seeded, fitted = list(_seedings(case, epsilon)), FITTED
    found, total = [], len(seeded) + len(fitted)
    for number, (name, way) in enumerate(seeded, start=1):
        on_step(f"table 2, {case.name}: {name}", number, total)
        runs = [way(run) for run in range(1 if name == NO_DATA else case.setting.runs)]
        drawn, inside = (tuple(cost(case.setting.rows, centers) / base for centers in some) for some in zip(*runs, strict=True))
        found.append(Entry(case.name, name, inside, drawn, case.domain))
    for number, someone in enumerate(fitted, start=len(seeded) + 1):
        on_step(f"table 2, {case.name}: {someone.name}", number, total)
        centers = [centers_of(someone, case.setting, case.k, epsilon, run) for run in range(case.setting.runs)]
        inside = tuple(cost(case.setting.rows, some) / base for some in centers)
        found.append(Entry(case.name, someone.name, inside, None, case.domain))
    return found


def _seedings(case: Case, epsilon: float) -> Iterator[tuple[str, Callable[[int], Seeds]]]:
    rows, domain, k, tilde = case.setting.rows, case.of_seeds, case.k, case.tilde
    middle = np.zeros((1, rows.shape[1])) if "bounds" not in domain else np.mean(domain["bounds"], axis=0, keepdims=True)
    yield "k-means++, no privacy", lambda run: Seeds(*[kmeans_plusplus(rows, k, random_state=run)] * 2)
    yield NO_DATA, lambda run: Seeds(middle, middle)
    if tilde is not None:
        yield CONDITIONAL, lambda run: conditional_seeds(rows, k, tilde, domain)
    for name, how in SEEDED.items():
        yield name, lambda run, how=how: private_seeds(how, rows, k, epsilon, domain)  # type: ignore[misc]


def _best_cost(case: Case) -> float:
    from sklearn.cluster import KMeans

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        centers: Any = KMeans(case.k, n_init=5, random_state=SEED).fit(case.setting.rows).cluster_centers_
    return cost(case.setting.rows, np.asarray(centers, dtype=np.float64))
