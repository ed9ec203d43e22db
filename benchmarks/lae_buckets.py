"""What the buckets of LAE add: how many stand out, and the cost with their means among the candidates and without."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.bar import Bar
from kveil.collect.lae import Family, Lae
from kveil.collect.queries import Answers, Query, Terms
from kveil.collect.simulate import simulate
from kveil.research.contest import cost
from kveil.research.local_table import SEED, made_up

SHAPES, PEOPLE, RUNS = ((4, 2), (8, 5), (8, 10)), 100_000, 6


class Counting(Lae):
    """LAE that counts the means of its buckets, and may leave them out."""

    def __init__(self, *given: Any, keep: bool) -> None:
        super().__init__(*given)
        self.keep, self.found = keep, 0

    def _bucket_means(self, answers: Answers, part: Family, queries: tuple[Query, ...]) -> np.ndarray:
        means = super()._bucket_means(answers, part, queries)
        self.found += len(means)
        return means if self.keep else means[:0]


def run() -> Iterator[Bar]:
    for k, d in SHAPES:
        tables = [made_up(PEOPLE, k, d, SEED + run) for run in range(RUNS)]
        for epsilon in (1, 4):
            kept, dropped = (
                np.array([_played(*table, k, epsilon, run, keep) for run, table in enumerate(tables)]).T for keep in (True, False)
            )
            where = f"k = {k}, D = {d}, epsilon {epsilon}"
            told = f"{np.median(kept[1]):.3g} times k-means with them, {np.median(dropped[1]):.3g} without"
            print(
                f"{where}: {min(kept[0]):.0f} to {max(kept[0]):.0f} means of buckets; median of {RUNS} campaigns {told}",
                flush=True,
            )
            if epsilon == 4:
                yield Bar(f"{where}: means of buckets, the fewest of {RUNS} campaigns", min(kept[0]), 1, at_least=True)


def _played(rows: np.ndarray, least: float, k: int, epsilon: int, seed: int, keep: bool) -> tuple[int, float]:
    protocol = Counting(Terms(len(rows), k, rows.shape[1], Fraction(epsilon)), b"run %d" % seed, keep=keep)
    outcome = simulate(rows, protocol, Fraction(epsilon), np.random.default_rng(seed)).outcome
    return protocol.found, cost(rows, outcome.centres) / least
