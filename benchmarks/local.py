"""k-means when nobody is trusted: cost against k-means without privacy, the time of a million devices, and real tables.

Campaigns are simulated by the law of their reports (devices="fast"); tests hold that law against real devices.
"""

import subprocess
import sys
import warnings
from collections.abc import Iterator

import numpy as np

from benchmarks.bar import Bar
from benchmarks.sets import SHARED

RUNS, REAL_RUNS = 12, 12
HARD, HARD_RUNS = (8, 10, 300_000), 40  # k, columns, people at epsilon 1: few enough for bad starts
# k, columns, people: {epsilon: most times the cost without privacy, as a median of RUNS data sets}
MEDIANS = {(8, 10, 1_000_000): {1.0: 1.35, 2.0: 1.10, 4.0: 1.04}, (16, 10, 1_000_000): {2.0: 1.30}, (4, 2, 100_000): {4.0: 1.03}}
MOST_SECONDS, MOST_MEMORY = 60.0, 2048.0  # of a campaign of a million people, 20 columns; MB of the whole process

CHILD = """
import time
from benchmarks import memory
from kveil import LocalKMeans
from kveil.research.local_table import made_up

rows, _ = made_up(1_000_000, 10, 20, 1)
wall, busy = time.perf_counter(), time.process_time()
LocalKMeans(10, epsilon=4.0, radius=1.0).fit(rows)
wall, busy = time.perf_counter() - wall, time.process_time() - busy
print(wall, busy, memory.peak())
"""


def run() -> Iterator[Bar]:
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=True)
    wall, busy, peak = map(float, done.stdout.split())
    yield Bar("a million simulated people, 20 columns, k = 10", wall, MOST_SECONDS, " s", note=f"({busy:.1f} s of CPU)")
    yield Bar("the same: peak memory of the process, its table included", peak, MOST_MEMORY, " MB")
    for (k, d, n), limits in MEDIANS.items():
        ratios = np.array([_ratios(k, d, n, list(limits), seed) for seed in range(RUNS)])
        for (epsilon, limit), some in zip(limits.items(), ratios.T, strict=True):
            note = f"(worst {some.max():.3g}, forecast {_forecast(n, k, d, epsilon)})"
            yield Bar(f"k = {k}, D = {d}, n = {n}, epsilon {epsilon:g}: median of {RUNS}", np.median(some), limit, note=note)
    good = sum(_ratios(10, 20, 1_000_000, [4.0], seed)[0] <= 1.15 for seed in range(6))
    yield Bar("k = 10, D = 20, n = 1000000, epsilon 4: of 6 campaigns within 1.15", good, 5, at_least=True)
    hard = np.array([_ratios(*HARD, [1.0], seed)[0] for seed in range(HARD_RUNS)])
    told = f"median {np.median(hard):.3g}, forecast {_forecast(HARD[2], HARD[0], HARD[1], 1.0)}"
    print(f"k = 8, D = 10, n = 300000, epsilon 1: {_mean(hard)}, mean of {HARD_RUNS}; {told}", flush=True)
    yield from _real()


def _mean(some: np.ndarray) -> str:
    return f"{some.mean():.3f} ± {some.std(ddof=1) / np.sqrt(len(some)):.3f}"


def _ratios(k: int, d: int, n: int, epsilons: list[float], seed: int) -> list[float]:
    """Cost of the default over that of k-means, on one made-up table, at each epsilon."""
    from kveil.research.local_table import made_up

    rows, least = made_up(n, k, d, 100 + seed)
    return [_cost(rows, _centres(rows, k, epsilon, seed)) / least for epsilon in epsilons]


def _centres(rows: np.ndarray, k: int, epsilon: float, seed: int) -> np.ndarray:
    """What a campaign with the default protocol finds; also where "auto" would refuse."""
    from kveil import LocalKMeans
    from kveil.collect.forecast import plan

    protocol = plan(len(rows), k, rows.shape[1], epsilon).protocol
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LocalKMeans(k, epsilon=epsilon, radius=1.0, protocol=protocol, random_state=seed).fit(rows)
    return np.asarray(model.cluster_centers_)


def _forecast(n: int, k: int, d: int, epsilon: float, cost: float | None = None) -> str:
    from kveil.collect.forecast import plan

    told = plan(n, k, d, epsilon, cost=cost)
    return f"{told.ratio:.3g}" + (" and refused" if told.refusal else "")


# name: array, k, and a public centre and scale of each column; rows are clipped to the unit ball after scaling
REAL = {
    "geo_uk_accidents": ("lonlat_e6", 8, [-2.5e6, 54e6], [5.5e6, 5.5e6]),
    "geo_world_cities": ("lonlat_e6", 8, [0.0, 10e6], [180e6, 180e6]),
    "adult": ("x", 4, [40, 2e5, 10, 0, 0, 40], [40, 4e5, 8, 2e4, 2e3, 40]),
}


PLACES = {"geo_uk_accidents": 1.25, "geo_world_cities": 1.35}  # wanted at epsilon 1, or a forecast as near as this:
FORECAST_OFF = 0.1


def _real() -> Iterator[Bar]:
    """Means of REAL_RUNS campaigns beside the forecast. Nothing does harm at epsilon 4, and places are as good as is foretold."""
    if not SHARED.is_dir():
        print("real tables: not run, ../shared/data is not here")
        return
    for name, (array, k, center, scale) in REAL.items():
        rows = _unit_rows(name, array, center, scale)
        n, d = rows.shape
        least, alone = _without_privacy(rows, k)
        for epsilon in (1.0, 2.0, 4.0):
            ratios = np.array([_cost(rows, _centres(rows, k, epsilon, seed)) for seed in range(REAL_RUNS)]) / least
            ratio = float(ratios.mean())
            told = f"{_forecast(n, k, d, epsilon)}, given the cost {_forecast(n, k, d, epsilon, cost=least)}"
            where = f"{name}, {n} people, D = {d}, k = {k}, epsilon {epsilon:g}"
            print(f"{where}: {_mean(ratios)} times k-means; forecast {told}; one mean {alone / least:.3g}", flush=True)
            if epsilon == 1 and name in PLACES:
                off = 0.0 if ratio <= PLACES[name] else abs(ratio - float(_forecast(n, k, d, epsilon, cost=least)))
                wanted = f"at most {PLACES[name]} times k-means, or this far from the forecast given the cost"
                yield Bar(f"{where}: {wanted}", off, FORECAST_OFF, note=f"(found {_mean(ratios)}, forecast {told})")
        yield Bar(f"{name}, epsilon 4: cost over that of one mean for all", ratio * least / alone, 1.0)


def _unit_rows(name: str, array: str, center: list[float], scale: list[float]) -> np.ndarray:
    with np.load(SHARED / f"{name}.npz") as file:
        rows = (file[array].astype(float) - center) / scale
    return rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))


def _without_privacy(rows: np.ndarray, k: int) -> tuple[float, float]:
    """Mean cost of k-means, and of the mean alone."""
    from sklearn.cluster import KMeans

    return _cost(rows, KMeans(k, n_init=30, random_state=0).fit(rows).cluster_centers_), _cost(rows, rows.mean(axis=0)[None])


def _cost(rows: np.ndarray, centres: np.ndarray) -> float:
    from kveil.research.local_table import cost

    return cost(rows, centres)
