"""Made-up audience tags: sparse binary rows of 75 688 columns in nine families, with clusters that share background and cores.

Constants are those of an unreleased OpenDP branch, as its description gives them; the generator is written anew.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array


class Family(NamedTuple):
    """Columns side by side: how many, their share of a row's background, core tags of a cluster, and the chance of one."""

    columns: int
    share: float
    core: int
    chance: float


class Preset(NamedTuple):
    """A factor on all chances, the share of a core that comes from a pool which clusters share, and clusters."""

    factor: float
    shared: float
    k: int


FAMILIES = (
    Family(24000, 0.32, 30, 0.22),
    Family(14000, 0.18, 22, 0.18),
    Family(7000, 0.08, 8, 0.32),
    Family(5000, 0.06, 7, 0.26),
    Family(6000, 0.08, 12, 0.20),
    Family(5000, 0.08, 12, 0.18),
    Family(4000, 0.07, 8, 0.24),
    Family(4000, 0.06, 8, 0.16),
    Family(6688, 0.07, 14, 0.20),
)
PRESETS = {
    "default": Preset(1.0, 0.15, 16),
    "weak": Preset(0.4, 0.15, 16),
    "overlap": Preset(1.0, 0.5, 16),
    "many": Preset(1.0, 0.15, 40),
    "hard": Preset(0.4, 0.5, 40),
}
N_COLUMNS = sum(family.columns for family in FAMILIES)
FIRST = np.concatenate([[0], np.cumsum([family.columns for family in FAMILIES])])
N_HOT, HOT = 3000, 8.0  # columns that are drawn more often, and how much
SKEW, MEAN, SPREAD = 0.55, 64.0, 0.35  # of cluster sizes; of the background of a row, its mean and relative spread


def tags(preset: str, seed: int, n: int = 50_000) -> tuple[csr_array, Any]:
    """Rows (n, 75688) of ones, and the cluster of each."""
    made, rng = PRESETS[preset], np.random.default_rng(seed)
    weights = np.ones(N_COLUMNS)
    weights[rng.choice(N_COLUMNS, N_HOT, replace=False)] = HOT
    cores = _cores(made, rng)
    sizes = np.arange(1, made.k + 1) ** -SKEW
    label = rng.choice(made.k, n, p=sizes / sizes.sum())
    found = [_background(n, weights, rng)]
    for cluster, (columns, chances) in enumerate(cores):
        own = np.flatnonzero(label == cluster)
        rows, places = np.nonzero(rng.random((len(own), len(columns))) < made.factor * chances)
        found.append(own[rows] * N_COLUMNS + columns[places])
    row, column = np.divmod(np.unique(np.concatenate(found)), N_COLUMNS)
    starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))])
    return csr_array((np.ones(len(column)), column, starts), shape=(n, N_COLUMNS)), label


def _cores(made: Preset, rng: np.random.Generator) -> list[tuple[Any, Any]]:
    """For every cluster its core columns, without repeats, and the chance of each, before the factor."""
    pools = [
        first + rng.choice(family.columns, min(family.columns, round(made.shared * family.core * made.k)), replace=False)
        for first, family in zip(FIRST, FAMILIES, strict=False)
    ]
    cores = []
    for _ in range(made.k):
        columns, chances = [], []
        for first, family, pool in zip(FIRST, FAMILIES, pools, strict=False):
            shared = max(1, int(made.shared * family.core))
            of_pool = rng.choice(pool, min(shared, len(pool)), replace=False)
            own = first + rng.choice(family.columns, max(1, family.core - shared), replace=False)
            both = np.union1d(of_pool, own)
            columns.append(both)
            chances.append(np.full(len(both), family.chance))
        cores.append((np.concatenate(columns), np.concatenate(chances)))
    return cores


def _background(n: int, weights: Any, rng: np.random.Generator) -> Any:
    """Tags of the background as row * columns + column: by family, drawn by weight without replacement in it."""
    shape = 1 / SPREAD**2
    many = np.maximum(1, rng.poisson(rng.gamma(shape, MEAN / shape, n)))
    shares = np.array([family.share for family in FAMILIES])
    split, found = rng.multinomial(many, shares / shares.sum()), []
    for number, family in enumerate(FAMILIES):
        first = FIRST[number]
        cumulative = np.cumsum(weights[first : first + family.columns])
        rows = np.repeat(np.arange(n), split[:, number])
        kept = np.empty(0, dtype=np.int64)
        while len(rows):  # repeats are drawn again: the law of drawing without replacement
            columns = first + np.searchsorted(cumulative, rng.random(len(rows)) * cumulative[-1], side="right")
            kept = np.unique(np.concatenate([kept, rows * N_COLUMNS + columns]))
            missing = split[:, number] - np.bincount(kept // N_COLUMNS, minlength=n)
            rows = np.repeat(np.arange(n), missing)
        found.append(kept)
    return np.concatenate(found)


def lloyd96(rows: csr_array, k: int, rho: float, seed: int, *, steps: int = 5, width: int = 96, most: int = 128) -> Any:
    """Centres (k, d) of spherical DP-Lloyd as an unreleased OpenDP branch describes it: rows cut to 128 tags, 5 equal steps,
    Gaussian noise for a row of length sqrt(128), the 96 largest columns of every centre. For comparison: noise has a seed."""
    rng = np.random.default_rng(seed)
    kept = np.concatenate(
        [np.arange(start, min(stop, start + most)) for start, stop in zip(rows.indptr, rows.indptr[1:], strict=False)]
    )
    owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))[kept]
    starts = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=rows.shape[0]))])
    cut = csr_array((rows.data[kept], rows.indices[kept], starts), shape=rows.shape)
    centers = np.zeros((k, rows.shape[1]))
    for center in centers:
        center[rng.choice(rows.shape[1], width, replace=False)] = rng.random(width)
    centers /= np.linalg.norm(centers, axis=1, keepdims=True)
    for _ in range(steps):
        label = np.asarray(cut @ centers.T).argmax(axis=1)
        belongs = csr_array((np.ones(len(label)), label, np.arange(len(label) + 1)), shape=(len(label), k))
        sums = (belongs.T @ cut).toarray() + rng.normal(0.0, np.sqrt(most * steps / (2 * rho)), centers.shape)
        for place, sum_ in enumerate(sums):
            first = np.argpartition(-sum_, width)[:width]
            centers[place] = 0.0
            centers[place, first] = np.maximum(sum_[first], 0.0)
            centers[place] /= max(np.linalg.norm(centers[place]), 1e-300)
    return centers
