"""Do screening and merging serve squared distances, too? Sparse unit rows: the tree, and directions that got their best lengths.

A direction u with the mean product m of its rows is the centre m u. The lengths are read off the rows, for free, so what is shown
is the least that `method="spherical"` could cost here. Ratios are squared distances over those of the default, the tree.
"""

import warnings
from collections.abc import Iterator
from math import inf

import numpy as np
from scipy.sparse import csr_array

from benchmarks import corpora
from benchmarks.bar import Bar
from benchmarks.made_tags import PRESETS, tags
from benchmarks.sets import SHARED
from kveil import PrivateKMeans

RUNS, DELTA, EPSILONS = 5, 1e-6, (0.5, 1.0, 2.0, 4.0)
TABLES = (("reuters", 8), ("friends", 8), *((preset, PRESETS[preset].k) for preset in ("default", "weak", "hard")))


def run(*names: str) -> Iterator[Bar]:
    warnings.simplefilter("ignore")
    for name, k in TABLES:
        if names and name not in names:
            continue
        if name not in PRESETS and not SHARED.exists():
            print(f"{name}: not run, ../shared/data is not here")
            continue
        rows = corpora.unit_rows(tags(name, 0)[0] if name in PRESETS else getattr(corpora, name)())
        one = 1 - float((np.asarray(rows.mean(axis=0)) ** 2).sum())
        for epsilon in EPSILONS:
            tree, mine = np.array([_costs(rows, k, epsilon, seed) for seed in range(RUNS)]).T
            note = f"(tree {_told(tree)}, directions {_told(mine)}, one mean {one:.4f}; {RUNS} runs)"
            yield Bar(f"{name}, epsilon {epsilon:g}: directions over the tree", float(mine.mean() / tree.mean()), inf, note=note)


def _costs(rows: csr_array, k: int, epsilon: float, seed: int) -> tuple[float, float]:
    """Mean squared distance of rows to the nearest centre: of the tree, and of directions of the best lengths."""
    terms = {"epsilon": epsilon, "delta": DELTA, "random_state": seed}
    tree = PrivateKMeans(k, radius=1.0, **terms).fit(rows)
    centers = PrivateKMeans(k, metric="cosine", **terms).fit(rows).cluster_centers_
    products = np.asarray(rows @ centers.T)
    owner, best = products.argmax(axis=1), products.max(axis=1)
    lengths = np.bincount(owner, best, k) / np.maximum(np.bincount(owner, minlength=k), 1)
    return -tree.score(rows) / rows.shape[0], float((1 - 2 * products * lengths + lengths**2).min(axis=1).mean())


def _told(found: np.ndarray) -> str:
    return f"{found.mean():.4f} ± {found.std(ddof=1) / len(found) ** 0.5:.4f}"
