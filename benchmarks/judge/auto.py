"""What n_clusters="auto" chooses, and whether it calls it clear: how far off in the worst of the runs, and how often clear."""

from collections.abc import Iterator
from math import inf

import numpy as np

from benchmarks.bar import Bar
from benchmarks.judge.tables import made
from kveil import PrivateKMeans

RUNS, FEW_RUNS = 5, 1  # with hundreds of clusterings of thousands of cells, one takes a minute
RANGE, WIDE = (2, 30), (2, 100)
CLEAR = {"s1": 1.0, "s2": 1.0, "s4": 1.0, **{f"mixture d={d}": 0.25 for d in (2, 4, 8, 16)}}  # by epsilon: within 1, and clear
NEAR = {"mixture d=32": 0.25}  # within 1, and not always clear: few leaves
NEVER = {"a1": 0.25, "unbalance": 1.0, "digits": 1.0, "dim032": 1.0}  # never clear
HEAVY = tuple(f"heavy tails d={d}" for d in (2, 3, 6, 12, 24))
UNSEEN = ("a1", "unbalance", "birch1", "birch3", "kdd99", "adult", "diamonds", "UK accidents", *HEAVY)


def run() -> Iterator[Bar]:
    for name, epsilon in CLEAR.items():
        yield from _judged(name, epsilon, farthest=1.0, clear=(RUNS, True))
    for name, epsilon in NEAR.items():
        yield from _judged(name, epsilon, farthest=1.0, clear=(inf, False))
    for name, epsilon in NEVER.items():
        yield from _judged(name, epsilon, farthest=inf, clear=(0, False))
    for name in UNSEEN:
        for epsilon in (0.1, 0.25, 1.0):
            yield from _judged(name, epsilon, farthest=inf, clear=(inf, False))


def _judged(name: str, epsilon: float, farthest: float, clear: tuple[float, bool]) -> Iterator[Bar]:
    table = made(name)
    if table is None:
        return
    rows, true, domain = table
    k_range, delta = WIDE if (true or 0) > 30 else RANGE, 0.0 if rows.shape[1] <= 3 else 1e-6
    runs = FEW_RUNS if k_range == WIDE else RUNS
    fits = [PrivateKMeans("auto", k_range=k_range, epsilon=epsilon, delta=delta, **domain).fit(rows) for _ in range(runs)]
    chosen = [len(fit.cluster_centers_) for fit in fits]
    said = [" is clear" in fit.release_.notes[0] for fit in fits]
    told = " ".join(f"{k}{'' if is_clear else '?'}" for k, is_clear in zip(chosen, said, strict=True))
    what = f"{name} (true {true or 'unknown'}), eps {epsilon}"
    if true is not None:
        yield Bar(f"{what}: farthest from the true k", float(np.abs(np.array(chosen) - true).max()), farthest, note=told)
    yield Bar(f"{what}: said to be clear", float(sum(said)), clear[0], f" of {runs}", at_least=clear[1], note=told)
