"""Real sparse rows by direction: the cosine cost of the default over that of a clustering without privacy, beside the tree.

Reuters took part in choosing constants of the method; docstrings and friends did not. Rows of few columns are made dense, so they
must cost what dense rows cost. `python -m benchmarks text [name ...] [runs=N] [epsilon=E]`: names are these, and few-columns.
"""

import warnings
from collections.abc import Iterator
from math import inf

import numpy as np
from scipy.sparse import csr_array

from benchmarks import corpora
from benchmarks.bar import Bar
from benchmarks.options import parted
from benchmarks.sets import MAKERS, SHARED
from kveil import PrivateKMeans

RUNS, FEW_RUNS, DELTA, K = 10, 3, 1e-6, 8
LIMITS = {
    "reuters": {0.5: 1.12, 1.0: 1.085, 2.0: 1.06, 4.0: 1.035},
    "docstrings": {0.5: inf, 1.0: inf, 2.0: inf},
    "friends": {0.5: inf, 1.0: inf, 2.0: inf},
}


def run(*given: str) -> Iterator[Bar]:
    warnings.simplefilter("ignore")
    names, options = parted(given)
    runs = int(options.get("runs", RUNS))
    for name, limits in LIMITS.items():
        if names and name not in names:
            continue
        if name != "docstrings" and not SHARED.exists():
            print(f"{name}: not run, ../shared/data is not here")
            continue
        rows = corpora.unit_rows(getattr(corpora, name)())
        floor = corpora.without_privacy(rows, K)
        one = corpora.cosine_cost(rows, np.asarray(rows.sum(axis=0)).reshape(1, -1)) / floor
        print(f"{name}: {rows.shape[0]} rows, {rows.shape[1]} columns, one direction costs {one:.3f}", flush=True)
        for epsilon, limit in limits.items():
            if float(options.get("epsilon", epsilon)) != epsilon:
                continue
            mine, tree = (ratios(rows, floor, K, epsilon, method, runs) for method in ("auto", "tree"))
            yield Bar(f"{name}, epsilon {epsilon:g}: cosine ratio", float(mine.mean()), limit, note=_told(mine))
            slack = float(np.hypot(*(each.std(ddof=1) / len(each) ** 0.5 for each in (mine, tree))))
            yield Bar(
                f"{name}, epsilon {epsilon:g}: over the tree", float(mine.mean() / tree.mean()), 1 + slack, note=_told(tree)
            )
    if not names or "few-columns" in names:
        yield from _of_few_columns()


def _of_few_columns() -> Iterator[Bar]:
    """Word vectors, digits and categories as sparse rows, beside the same as dense ones."""
    for name, make, k in (("wordvec", MAKERS["wordvec"], 20), ("MNIST", MAKERS["MNIST"], 10), ("adult one-hot", one_hot, 10)):
        if not SHARED.exists():
            print(f"{name}: not run, ../shared/data is not here")
            continue
        rows = np.asarray(make()[0])[:20_000]
        unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
        dense, sparse = (
            np.mean([1 - PrivateKMeans(k, epsilon=1.0, delta=DELTA, metric="cosine", random_state=seed).fit(X).score(X)
                     for seed in range(FEW_RUNS)])
            for X in (unit, csr_array(unit))
        )  # fmt: skip
        yield Bar(f"{name}, epsilon 1: sparse rows over dense rows", float(sparse / dense), 1.01)


def one_hot() -> tuple[np.ndarray]:
    """The eight categories of adult, a column for every level."""
    with np.load(SHARED / "adult.npz") as file:
        codes = file["c"]
    return (np.hstack([np.eye(int(column.max()) + 1)[column] for column in codes.T]),)


def ratios(rows: csr_array, floor: float, k: int, epsilon: float, method: str, runs: int) -> np.ndarray:
    models = (
        PrivateKMeans(k, epsilon=epsilon, delta=DELTA, metric="cosine", method=method, random_state=seed) for seed in range(runs)
    )
    return np.array([corpora.cosine_cost(rows, model.fit(rows).cluster_centers_) / floor for model in models])


def _told(found: np.ndarray) -> str:
    return f"{found.mean():.4g}+-{found.std(ddof=1) / len(found) ** 0.5:.2g} ({found.min():.3f} to {found.max():.3f})"
