"""How far the hardest bars could be met: what is left of the cost when one loss of the default is taken away at a time.

Costs over the best of ten runs without privacy. "no noise": the same method with epsilon infinite. "exact steps": ordinary
k-means from the centres that a fit released, so what its start allows. "perfect labels": the whole budget on one noisy sum of
rows about their exact mean, by the labels of the reference, with the best clip radius, and shrunken as an oracle would.
The last is evidence and no bound: sums about centres that are known roughly have less noise, and so have fewer centres.
`python -m benchmarks bounds [set ...]`.
"""

import warnings
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from sklearn.cluster import KMeans

from benchmarks.bar import Bar
from benchmarks.sets import MAKERS, is_here
from kveil import PrivateKMeans
from kveil.desk.pool import Pool
from kveil.kernel.loss import PrivacyUnit, floor_delta

RUNS, QUANTILES = 10, (0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
CELLS = (  # set, epsilon, delta, bar
    ("digits", 0.25, 1e-6, 1.84), ("digits", 1.0, 1e-6, 1.33), ("64 tight, d=100", 0.25, 1e-6, 1.45), ("MNIST", 0.1, 1e-6, 1.1),
    ("MNIST", 1.0, 1e-6, 1.015), ("MNIST", 1.0, 0.0, 1.15), ("unbalance", 1.0, 0.0, 1.05), ("adult", 1.0, 0.0, 1.03),
)  # fmt: skip


def run(*names: str) -> Iterator[Bar]:
    warnings.simplefilter("ignore")
    for name, epsilon, delta, bar in CELLS:
        if (names and name not in names) or not is_here(MAKERS[name]):
            continue
        rows, k, domain = MAKERS[name]()
        best = min((KMeans(k, n_init=1, random_state=seed).fit(rows) for seed in range(RUNS)), key=lambda fit: fit.inertia_)
        fits = [PrivateKMeans(k, epsilon=epsilon, delta=delta, random_state=seed, **domain).fit(rows) for seed in range(RUNS)]
        costs = np.array([-fit.score(rows) for fit in fits]) / best.inertia_
        starts = [KMeans(k, init=fit.cluster_centers_, n_init=1).fit(rows).inertia_ / best.inertia_ for fit in fits]
        exact = -PrivateKMeans(k, epsilon=np.inf, random_state=0, **domain).fit(rows).score(rows) / best.inertia_
        known = perfect_labels(rows, best.labels_, k, epsilon, delta) / best.inertia_
        told = f"no noise {exact:.4f}, exact steps {np.mean(starts):.4f}, perfect labels {known:.4f}"
        note = f"± {costs.std(ddof=1) / RUNS**0.5:.4f}; {told}"
        yield Bar(f"{name}, epsilon {epsilon:g}, delta {delta:g}", costs.mean(), bar, note=note)


def perfect_labels(rows: np.ndarray, labels: np.ndarray, k: int, epsilon: float, delta: float) -> float:
    """Expected cost of noisy means of known clusters, for the best of several clip radii. Shrinking a mean of squared length s
    with noise of squared length e by s / (s + e) leaves s e / (s + e) of them: no factor leaves less."""
    pool = Pool(Fraction(epsilon), floor_delta(delta), "add-remove", PrivacyUnit(), is_pure=not delta)
    away = rows - rows.mean(axis=0)
    lengths, sizes = np.linalg.norm(away, axis=1), np.bincount(labels, minlength=k)
    costs = []
    for radius in np.quantile(lengths, QUANTILES):
        clipped = away * np.minimum(1.0, radius / np.maximum(lengths, 1e-300))[:, None]
        means = np.array([clipped[labels == cluster].mean(axis=0) for cluster in range(k)])
        squares, noise = (means**2).sum(axis=1), pool.spread(rows.shape[1], float(radius), 1.0) / sizes**2
        costs.append(((away - means[labels]) ** 2).sum() + (sizes * squares * noise / (squares + noise)).sum())
    return float(min(costs))
