"""Does `kveil.plan` foretell the cost? Ratios simulated on a fifth and a twentieth of a table beside those of the whole table.

The table plays the private one, and rows drawn from it the public sample: here both are public. Where the actual ratio is below
1.3 the simulated one must be within 0.15 of it, means of three runs; elsewhere it is only reported. Then the words "good" and
"noise", which come from public numbers alone, on tables that their thresholds were not set on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from math import inf

import numpy as np

from benchmarks.bar import Bar
from benchmarks.sets import MAKERS, SHARED, Made, Maker
from kveil import PrivateKMeans, plan
from kveil.models.trial import MOST_ROWS, PublicRows, Trials, public_rows

RUNS, EPSILONS, PARTS = 3, (0.03, 0.1, 0.3, 1.0), (5, 20)
CLOSE, BELOW, MOST_SECONDS = 0.15, 1.3, 60.0
MOST_TABLE, MOST_WORDS = 200_000, 60_000  # rows of a table


def uk_accidents() -> Made:
    with np.load(SHARED / "geo_uk_accidents.npz") as file:
        return file["lonlat_e6"] / 1e6, 20, {"bounds": ([-8.0, 49.5], [2.0, 61.0])}


def heavy_tails(d: int) -> Maker:
    """12 clusters of unequal size, with Student's t of two degrees of freedom about each: a few rows lie very far out."""

    def make() -> Made:
        rng = np.random.default_rng(d)
        places, sizes = rng.uniform(0.2, 0.8, (12, d)), rng.dirichlet(np.full(12, 2.0))
        rows = places[rng.choice(12, 60_000, p=sizes)] + 0.02 * rng.standard_t(2, (60_000, d))
        return np.clip(rows, 0, 1), 12, {"bounds": (0, 1)}

    return make


TABLES = {name: MAKERS[name] for name in ("adult", "diamonds", "flights")} | {"UK accidents": uk_accidents}


UNSEEN = {name: MAKERS[name] for name in ("kdd99", "wordvec", "64 overlapping, d=100")} | {
    f"heavy tails, d={d}": heavy_tails(d) for d in (2, 6, 12)
}  # fmt: skip
WORD_EPSILONS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
GOOD = 1.25  # a ratio up to which a result is called good


def run(names: tuple[str, ...] = tuple(TABLES), epsilons: tuple[float, ...] = EPSILONS, runs: int = RUNS) -> Iterator[Bar]:
    yield from ratios(names, epsilons, runs)
    yield from words()


def ratios(names: tuple[str, ...], epsilons: tuple[float, ...], runs: int) -> Iterator[Bar]:
    for number, name in enumerate(names):
        rng = np.random.default_rng(number)
        rows, k, domain = TABLES[name]()
        rows = rng.permutation(rows)[:MOST_TABLE]
        whole = Trials(PublicRows(rows, None), 1.0, runs, rng)
        samples = {part: public_rows(rows[: len(rows) // part], MOST_ROWS, rng) for part in PARTS}
        tried = {part: Trials(sample, len(rows) / len(sample.rows), runs, rng) for part, sample in samples.items()}
        for delta in (0.0, 1e-6):
            for epsilon in epsilons:
                model = PrivateKMeans(k, epsilon=epsilon, delta=delta, **domain)
                actual = whole.run(model)
                for part, trials in tried.items():
                    found = trials.run(model)
                    yield Bar(
                        f"{name}, epsilon {epsilon:g}, delta {delta:g}: ratio on n/{part} off by",
                        abs(found.ratio - actual.ratio), CLOSE if actual.ratio < BELOW else inf,
                        note=f"({found.ratio:.3f}+-{found.error or 0:.3f} for {actual.ratio:.3f}+-{actual.error or 0:.3f})",
                    )  # fmt: skip
        begun = time.process_time()
        plan(PrivateKMeans(k, epsilon=0.3, delta=1e-6, **domain), len(rows), sample=samples[PARTS[0]].rows)
        yield Bar(f"{name}: processor time of a plan", time.process_time() - begun, MOST_SECONDS, " s")


def words() -> Iterator[Bar]:
    """One fit each. How often "good" costs more than 1.25, and "noise" less."""
    found: dict[str, list[tuple[str, float]]] = {"good": [], "rough": [], "noise": []}
    for number, (name, make) in enumerate(UNSEEN.items()):
        rng = np.random.default_rng(100 + number)
        rows, k, domain = make()
        rows = rng.permutation(rows)[:MOST_WORDS]
        trials = Trials(PublicRows(rows, None), 1.0, 1, rng)
        for delta in (0.0, 1e-6):
            for epsilon in WORD_EPSILONS:
                model = PrivateKMeans(k, epsilon=epsilon, delta=delta, **domain)
                told = plan(model, len(rows), rows.shape[1]).figures
                if told is not None and told.word is not None:
                    what = f"{name}, epsilon {epsilon:g}, delta {delta:g}"
                    found[told.word].append((what, trials.run(model).ratio))
    for word, is_wrong in (("good", lambda ratio: ratio > GOOD), ("noise", lambda ratio: ratio <= GOOD)):
        wrong = [f"{what}: {ratio:.2f}" for what, ratio in found[word] if is_wrong(ratio)]
        share = len(wrong) / max(1, len(found[word]))
        yield Bar(f'"{word}", of {len(found[word])} plans wrong', share, inf, note=f"({'; '.join(wrong)})")
    middle = np.quantile([ratio for _, ratio in found["rough"]], [0.1, 0.5, 0.9])
    yield Bar(f'"rough", {len(found["rough"])} plans: median ratio', middle[1], inf, note=f"({middle[0]:.2f} to {middle[2]:.2f})")
