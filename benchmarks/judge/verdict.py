"""Does the verdict tell good results from noise, and do its intervals hold? Real tables and mixtures, many budgets, k too small
and too large. rho is the cost of the released centres over that of scikit-learn's k-means on the same rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from benchmarks.bar import Bar
from benchmarks.sets import MAKERS, SHARED, is_here
from kveil import PrivateKMeans
from kveil.errors import NoisyResultWarning, ScaleWarning

REAL = (
    "s1",
    "s2",
    "s4",
    "a1",
    "unbalance",
    "birch1",
    "birch3",
    "UK",
    "cities",
    "adult",
    "diamonds",
    "flights",
    "kdd99",
    "digits",
)
EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 2.0)
MOST_ROWS = 20_000
REGIMES = ("d <= 3, pure", "4 to 12, pure", "4 to 16, Gaussian", "more, pure", "more, Gaussian")


@dataclass(frozen=True)
class Fit:
    """One fit: what was asked, what the verdict said, and what is true."""

    name: str
    regime: str
    word: str
    rho: float
    held: int  # numbers of centres inside their interval
    numbers: int
    false_apart: int  # centres called told apart whose rows' mean is farther away than a quarter of the way to the next centre
    told: int
    better: bool | None
    is_better: bool


def mixture(seed: int) -> tuple[Any, int, dict[str, Any]]:
    """A made-up table: unequal shares, columns from 2 to 40; every fourth one has heavy tails."""
    rng = np.random.default_rng(seed)
    d, k, n = int(rng.choice([2, 3, 5, 9, 14, 24, 40])), int(rng.integers(3, 16)), int(rng.choice([5000, 20_000]))
    places, shares = rng.uniform(-0.7, 0.7, (k, d)), rng.dirichlet(np.full(k, 3.0))
    noise = rng.standard_t(3, (n, d)) if seed % 4 == 0 else rng.standard_normal((n, d))
    rows = places[rng.choice(k, n, p=shares)] + rng.uniform(0.03, 0.12) * noise
    return np.clip(rows, -1, 1), k, {"bounds": (-1, 1)}


def tables(n_mixtures: int) -> Iterator[tuple[str, Any, int, dict[str, Any]]]:
    for name in REAL:
        if name in MAKERS and is_here(MAKERS[name]):
            rows, k, domain = MAKERS[name]()
            yield name, rows[np.random.default_rng(0).permutation(len(rows))[:MOST_ROWS]], k, domain
        elif (places := {"UK": "geo_uk_accidents", "cities": "geo_world_cities", "birch3": "sipu_birch3"}.get(name)) and (
            SHARED / f"{places}.npz"
        ).is_file():
            file = np.load(SHARED / f"{places}.npz")
            rows = file["x"].astype(float) if "x" in file else file["lonlat_e6"] / 1e6
            bounds = {"UK": ([-8, 49.5], [2, 61]), "cities": ([-180, -90], [180, 90]), "birch3": (0, 1e6)}[name]
            yield name, rows[np.random.default_rng(0).permutation(len(rows))[:MOST_ROWS]], 20, {"bounds": bounds}
    for seed in range(1000, 1000 + n_mixtures):
        yield f"mixture {seed}", *mixture(seed)


def fits(n_mixtures: int = 24) -> Iterator[Fit]:
    for number, (name, rows, natural, domain) in enumerate(tables(n_mixtures)):
        rng = np.random.default_rng(number)
        scaling = {"scaling": "bounds"} if np.ndim(domain.get("bounds", [0, 0])[0]) else {}
        for part, k in enumerate((max(2, natural // 2), natural, 2 * natural)):
            scale = _widths(domain, rows.shape[1]) if scaling else 1.0
            best = KMeans(k, n_init=3, random_state=0).fit(rows / scale).inertia_
            for epsilon in EPSILONS[part % 2 :: 2]:
                delta = float(rng.choice([0.0, 1e-6]))
                model = PrivateKMeans(k, epsilon=epsilon, delta=delta, random_state=number, **domain, **scaling)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", NoisyResultWarning)
                    warnings.simplefilter("ignore", ScaleWarning)
                    yield _judged(name, model.fit(rows), rows, best, scale)


def _widths(domain: dict[str, Any], d: int) -> Any:
    low, high = (np.broadcast_to(np.asarray(end, dtype=float), (d,)) for end in domain["bounds"])
    return (high - low) / 2


def _judged(name: str, model: PrivateKMeans, rows: Any, best: float, scale: Any) -> Fit:
    verdict, d, centers = model.verdict_, rows.shape[1], model.cluster_centers_
    labels = model.predict(rows)
    cost, spread = -model.score(rows), float((((rows - rows.mean(axis=0)) / scale) ** 2).sum())
    held = numbers = false_apart = told = 0
    for place in np.unique(labels):
        mean = rows[labels == place].mean(axis=0)
        held += int(((verdict.low[place] <= mean) & (mean <= verdict.high[place])).sum())
        numbers += d
    for place in np.flatnonzero(verdict.told_apart):
        told += 1
        others = np.delete(centers, place, axis=0)
        gap = np.sqrt((((others - centers[place]) / scale) ** 2).sum(axis=1)).min(initial=np.inf)
        mean = rows[labels == place].mean(axis=0) if (labels == place).any() else np.full(d, np.inf)
        false_apart += int(np.sqrt((((mean - centers[place]) / scale) ** 2).sum()) > gap / 4)
    kind = "pure" if model.guarantee_.route == "pure" else "Gaussian"
    regime = "d <= 3, pure" if d <= 3 else f"{'4 to 12' if kind == 'pure' else '4 to 16'}, {kind}"
    if d > (12 if kind == "pure" else 16):
        regime = f"more, {kind}"
    return Fit(
        name, regime, verdict.word, cost / best, held, numbers, false_apart, told, verdict.is_better_than_one_mean,
        cost < 0.9 * spread,
    )  # fmt: skip


def table(found: list[Fit]) -> str:
    lines = ["| verdict | fits | rho <= 1.25 | 1.25 to 2.5 | > 2.5 | rho 5 / 50 / 95 % |", "|---|---|---|---|---|---|"]
    for word in ("good", "rough", "noise"):
        rho = np.array([fit.rho for fit in found if fit.word == word])
        if len(rho):
            shares = f"{(rho <= 1.25).sum()} | {((rho > 1.25) & (rho <= 2.5)).sum()} | {(rho > 2.5).sum()}"
            lines.append(
                f"| {word} | {len(rho)} | {shares} | {' / '.join(f'{q:.2f}' for q in np.quantile(rho, (0.05, 0.5, 0.95)))} |"
            )
    return "\n".join(lines)


def run(n_mixtures: int = 24) -> Iterator[Bar]:
    found = list(fits(n_mixtures))
    print(table(found))
    for fit in found:
        if (fit.word == "good" and fit.rho > 1.25) or (fit.word == "noise" and fit.rho < 1.25):
            print(f"  {fit.word}, rho {fit.rho:.2f}: {fit.name}, {fit.regime}")
    good, noise = ([fit.rho for fit in found if fit.word == word] for word in ("good", "noise"))
    note = f"({len(found)} fits)"
    yield Bar('"good" with rho above 1.25', 100 * np.mean(np.array(good) > 1.25), 8, " %", note=note)
    yield Bar('"good" with rho above 2.5', 100 * np.mean(np.array(good) > 2.5), 2, " %", note=note)
    yield Bar('"noise" with rho below 1.25', 100 * np.mean(np.array(noise) < 1.25), 8, " %", note=note)
    told, false = sum(fit.told for fit in found), sum(fit.false_apart for fit in found)
    yield Bar("centres told apart that are not", 100 * false / max(told, 1), 5, " %", note=f"({told} centres)")
    calls = [fit for fit in found if fit.better]
    yield Bar(
        "called better than one mean and not",
        100 * np.mean([not fit.is_better for fit in calls]),
        5,
        " %",
        note=f"({len(calls)})",
    )
    for regime in REGIMES:
        here = [fit for fit in found if fit.regime == regime and fit.word != "noise"]
        if here:
            share = 100 * sum(fit.held for fit in here) / sum(fit.numbers for fit in here)
            yield Bar(f"numbers inside their interval, {regime}", share, 92, " %", at_least=True, note=f"({len(here)} fits)")
