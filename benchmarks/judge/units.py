"""`python -m benchmarks.judge.units [scales | bounds | categories | missing ...]`: units, bounds, categories and missing cells.

Tables of real sets (../shared/data) and made ones. `ratio` is the cost of released centres over that of scikit-learn's k-means
(3 starts), mean and standard error over runs. Costs of `scales` are in true units of deviation, clipped at 6 of them.
"""

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans

import kveil
from benchmarks.bar import Bar
from benchmarks.sets import ADULT, DIAMONDS, SHARED
from kveil import PrivateKMeans

K, MOST_ROWS, CUT = 8, 20_000, 6.0


class Set(NamedTuple):
    """Rows, and public bounds: lows and highs by column."""

    name: str
    rows: np.ndarray
    low: np.ndarray
    high: np.ndarray


def load(name: str) -> Any:
    return np.load(SHARED / f"{name}.npz")


def adult() -> Set:
    with load("adult") as file:
        return Set("adult", file["x"].astype(float), *(np.array(end, float) for end in ADULT))


def diamonds() -> Set:
    with load("diamonds") as file:
        return Set("diamonds", file["x"].astype(float), *(np.array(end, float) for end in DIAMONDS))


def flights() -> Set:
    """Minute of the quarter, where from, where to, how far, how late: 100 000 flights."""
    with load("flights_2001_q1") as file:
        which = np.sort(np.random.default_rng(0).permutation(len(file["delay"]))[:100_000])
        where, minute = file["airport_lonlat"], np.cumsum(file["dminute"])
        rows = np.column_stack(
            [minute, where[file["origin"]], where[file["destination"]], file["distance"], file["delay"]]
        )[which].astype(float)  # fmt: skip
    return Set("flights", rows, np.array([0, -170, 15, -170, 15, 0, -180.0]), np.array([133_000, -60, 75, -60, 75, 5000, 1800.0]))


def kdd99() -> Set:
    """35 columns of 60 000 connections; three that hardly ever differ from 0 are left out. Bounds are those of its format."""
    with load("kdd99_10pct") as file:
        rows = file["x"].astype(float)
    rows = rows[np.random.default_rng(0).permutation(len(rows))[:60_000]]
    varies = rows.std(axis=0) > 0
    rows = rows[:, varies]
    top = rows.max(axis=0)  # a benchmark may look; these are powers of ten above what the format allows
    high = np.where(top <= 1, 1.0, 10.0 ** np.ceil(np.log10(np.maximum(top, 1.0))))
    return Set("kdd99", rows, np.zeros(rows.shape[1]), high)


def made() -> Set:
    """Incomes, ages, numbers of visits and dates of 50 000 people in 6 groups, in bounds up to 500 deviations wide."""
    rng = np.random.default_rng(1)
    group = rng.integers(0, 6, 50_000)
    rows = np.column_stack([
        np.exp(rng.normal(10 + 0.25 * group, 0.4)), rng.normal(20 + 9 * group, 5), rng.poisson(2 + 4 * (group % 3)),
        20_000 + 40 * (group % 2) + rng.normal(0, 6, 50_000),
    ])  # fmt: skip
    return Set("generated", rows, np.array([0, 0, 0, 0.0]), np.array([1e7, 150, 1000, 30_000.0]))


def heavy() -> Set:
    """Student's t with 2 degrees of freedom about 8 places in 5 columns: tails that no bounds hold."""
    rng = np.random.default_rng(2)
    places = rng.uniform(-30, 30, (8, 5))
    rows = places[rng.integers(0, 8, 50_000)] + rng.standard_t(2, (50_000, 5))
    return Set("heavy tails", rows, np.full(5, -1000.0), np.full(5, 1000.0))


SCALED: tuple[Callable[[], Set], ...] = (adult, diamonds, flights, kdd99, made, heavy)


def in_deviations(data: Set) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows in true units of deviation, cut at 6, and the mean and deviation of every column."""
    mean, deviation = data.rows.mean(axis=0), data.rows.std(axis=0)
    return np.clip((data.rows - mean) / deviation, -CUT, CUT), mean, deviation


def cost(rows: np.ndarray, centers: np.ndarray) -> float:
    return float(sum(((part[:, None] - centers) ** 2).sum(axis=2).min(axis=1).sum() for part in np.array_split(rows, 20)))


def best(rows: np.ndarray, k: int = K) -> float:
    some = rows[np.random.default_rng(0).permutation(len(rows))[:MOST_ROWS]]
    return cost(rows, KMeans(k, n_init=3, random_state=0).fit(some).cluster_centers_)


def said(ratios: list[float]) -> str:
    return f"{np.mean(ratios):.3f} ± {np.std(ratios, ddof=1) / np.sqrt(len(ratios)):.3f}"


def scaled_fit(data: Set, epsilon: float, delta: float, scaling: str) -> PrivateKMeans:
    bounds = kveil.Bounds(data.low, data.high)
    return PrivateKMeans(K, epsilon=epsilon, delta=delta, bounds=bounds, scaling=scaling).fit(data.rows)


def scales(
    runs: int = 5, terms: tuple[tuple[float, float], ...] = ((0.1, 1e-6), (0.3, 1e-6), (1.0, 1e-6), (0.3, 0.0))
) -> Iterator[str]:
    """scaling="private" beside public bounds and beside true means and deviations, which leak."""
    yield "| set | epsilon, delta | public bounds | private scales | true (leaks) | one mean | deviations, found over true |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for make in SCALED:
        data = make()
        rows, mean, deviation = in_deviations(data)
        floor = best(rows)
        true = data._replace(low=np.maximum(mean - 4 * deviation, data.low), high=np.minimum(mean + 4 * deviation, data.high))
        one = cost(rows, rows.mean(axis=0, keepdims=True)) / floor
        for epsilon, delta in terms:
            found: dict[str, list[float]] = {"public": [], "private": [], "true": []}
            widths = []
            for _ in range(runs):
                for way, (given, scaling) in {
                    "public": (data, "bounds"), "private": (data, "private"), "true": (true, "bounds"),
                }.items():  # fmt: skip
                    model = scaled_fit(given, epsilon, delta, scaling)
                    centers = np.clip((model.cluster_centers_ - mean) / deviation, -CUT, CUT)
                    found[way].append(cost(rows, centers) / floor)
                    if way == "private":
                        widths.append(np.array(model.release_.parameters["scaled_by"]["deviation"]) / deviation)
            ends = f"{np.min(widths):.2g} to {np.max(widths):.2g}"
            ratios = " | ".join(said(found[way]) for way in ("public", "private", "true"))
            yield f"| {data.name} ({rows.shape[1]}) | {epsilon:g}, {delta:g} | {ratios} | {one:.2f} | {ends} |"


def places(name: str) -> Set:
    with load(name) as file:
        rows = file["lonlat_e6"] / 1e6
    return Set(name, rows, np.array([-180.0, -90.0]), np.array([180.0, 90.0]))


def weather() -> Set:
    """Pressure, temperature of a body, year: far from 0 and narrow."""
    rng = np.random.default_rng(3)
    rows = np.column_stack([rng.normal(1013, 8, 50_000), rng.normal(37.2, 0.5, 50_000), rng.normal(2020, 1, 50_000)])
    return Set("weather", rows, np.zeros(3), np.array([2000.0, 50.0, 3000.0]))


def bounds(runs: int = 20) -> Iterator[str]:
    """find_bounds with and without refine: widths over the range that holds the middle 99.8 % of rows, and rows that are cut."""
    yield "| set | epsilon | width, powers of two | width, refined | rows cut per column, refined | not found |"
    yield "| --- | --- | --- | --- | --- | --- |"
    makers = (lambda: places("geo_uk_accidents"), lambda: places("geo_world_cities"), diamonds, adult, weather, heavy)
    for make, epsilon in ((make, epsilon) for make in makers for epsilon in (0.5, 0.1)):
        data = make()
        whole = np.ptp(np.quantile(data.rows, [0.001, 0.999], axis=0), axis=0)
        widths: dict[bool, list[np.ndarray]] = {False: [], True: []}
        cut, lost = [], 0
        for refine in [False, True] * runs:
            ledger = kveil.Ledger.memory("bounds", epsilon, relation="add-remove")
            try:
                low, high = map(np.array, kveil.find_bounds(data.rows, epsilon, ledger=ledger, refine=refine)[0])
            except kveil.errors.BoundsNotFound:
                lost += 1
                continue
            widths[refine].append((high - low) / np.where(whole > 0, whole, 1.0))
            if refine:
                cut.append(((data.rows < low) | (data.rows > high)).mean(axis=0))
        if not all(widths.values()):
            yield f"| {data.name} | {epsilon:g} | | | | {lost} of {2 * runs} |"
            continue
        old, new = (", ".join(f"{w:.2f}" for w in np.mean(widths[refine], axis=0)) for refine in (False, True))
        yield f"| {data.name} | {epsilon:g} | {old} | {new} | {np.mean(cut):.3%} | {lost} of {2 * runs} |"


def with_levels(name: str) -> tuple[Any, dict[str, tuple[str, ...]], Set]:
    """A table with its columns of text, and their public levels."""
    import pandas as pd

    data = {"adult": adult, "diamonds": diamonds}[name]()
    with load(name) as file:
        frame = pd.DataFrame(data.rows, columns=file["x_names"].tolist())
        levels = [tuple(json.loads(text)) for text in file["c_levels"].tolist()]
        for place, column in enumerate(file["c_names"].tolist()):
            frame[column] = np.array(levels[place])[file["c"][:, place]]
        return frame, dict(zip(file["c_names"].tolist(), levels, strict=True)), data


def categories(runs: int = 5) -> Iterator[str]:
    """Columns of numbers scaled to their bounds beside levels of categories, two of them 1 apart."""
    yield "| set | columns | epsilon, delta | ratio |"
    yield "| --- | --- | --- | --- |"
    for name in ("adult", "diamonds"):
        frame, levels, data = with_levels(name)
        source = kveil.read(frame, categories=levels)
        numbers = data.rows.shape[1]
        rows = np.concatenate(list(source.raw_blocks()))
        rows[:, :numbers] = 2 * (rows[:, :numbers] - data.low) / (data.high - data.low) - 1
        floor = best(rows)
        for epsilon, delta in ((0.25, 1e-6), (1.0, 1e-6), (0.25, 0.0), (1.0, 0.0)):
            ratios = []
            for _ in range(runs):
                model = PrivateKMeans(
                    K, epsilon=epsilon, delta=delta, bounds=kveil.Bounds(data.low, data.high), scaling="bounds"
                ).fit(source)
                centers = model.cluster_centers_.copy()
                centers[:, :numbers] = 2 * (centers[:, :numbers] - data.low) / (data.high - data.low) - 1
                ratios.append(cost(rows, centers) / floor)
            yield f"| {name} | {numbers} + {rows.shape[1] - numbers} | {epsilon:g}, {delta:g} | {said(ratios)} |"


def mixture() -> Set:
    rng = np.random.default_rng(8)
    places = rng.uniform(0.1, 0.9, (12, 8))
    return Set("mixture", places[rng.integers(0, 12, 50_000)] + 0.04 * rng.standard_normal((50_000, 8)), np.zeros(8), np.ones(8))


def ratio_in_box(rows: np.ndarray, model: PrivateKMeans, k: int) -> float:
    """The ratio of the complete rows in the box that a fit found privately."""
    low, high = (np.array(end) for end in model.release_.parameters["bounds"])
    inside = np.clip(rows, low, high) / ((high - low) / 2)
    return cost(inside, model.cluster_centers_ / ((high - low) / 2)) / best(inside, k)


def missing(runs: int = 5) -> Iterator[str]:
    """Cells missing at random, epsilon 1, delta 1e-6: the ratio is that of the complete table, in half-widths of the box of the
    fit: the public bounds, or for released means the one that was found."""
    yield "| set | cells missing (rows hit) | row to middle | cells to middle | cells to released means | rows left out |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for make in (adult, diamonds, mixture):
        data = make()
        scale, k = (data.high - data.low) / 2, 12 if data.name == "mixture" else K
        rows = data.rows / scale
        floor = best(rows, k)
        for share in (0.02, 0.1):
            gone = np.random.default_rng(5).random(rows.shape) < share
            table = np.where(gone, np.nan, data.rows)
            middle = dict(enumerate(((data.low + data.high) / 2).tolist()))
            found = []
            for option in ("middle", middle, "mean", "drop"):
                scaling, ratios = "private" if option == "mean" else "bounds", []
                for _ in range(runs):
                    model = PrivateKMeans(
                        k, epsilon=1.0, delta=1e-6, bounds=kveil.Bounds(data.low, data.high), scaling=scaling
                    ).fit(kveil.read(table, missing=option))
                    own = (
                        ratio_in_box(data.rows, model, k)
                        if option == "mean"
                        else cost(rows, model.cluster_centers_ / scale) / floor
                    )
                    ratios.append(own)
                found.append(said(ratios))
            yield f"| {data.name} | {share:.0%} ({gone.any(axis=1).mean():.0%}) | {' | '.join(found)} |"


TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "scales": scales,
    "bounds": bounds,
    "categories": categories,
    "missing": missing,
}


def table() -> str:
    """All tables, as Markdown."""
    return "\n\n".join(f"## {name}\n\n" + "\n".join(make()) for name, make in TABLES.items())


def run() -> Iterator[Bar]:
    """The tables, printed. Their numbers are on the pages; the suite holds the bars of single ones."""
    print(table())
    yield from ()


def main() -> None:
    for name in sys.argv[1:] or TABLES:
        print(f"## {name}\n", flush=True)
        for line in TABLES[name]():
            print(line, flush=True)
        print()


if __name__ == "__main__":
    main()
