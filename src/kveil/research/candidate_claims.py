"""Claims of the high-dimensional paper that numbers can speak about, measured on public data.

How good a private candidate set is (Definition 2, Theorems 1 and 5), what private swaps among candidates reach (Theorem 7), and
what recovery adds to the cost of one cluster (Theorem 11 for sparse rows, Lemma 2 for medians).
"""

from __future__ import annotations

from fractions import Fraction
from math import log
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

from kveil.arrays import Floats
from kveil.desk.pool import Pool
from kveil.kernel.grid import Ball, Box
from kveil.kernel.ledger import Ledger
from kveil.kernel.loss import floor_epsilon
from kveil.methods.candidate_search import CandidateSearch
from kveil.methods.task import Task
from kveil.models.private_kmeans import PrivateKMeans
from kveil.models.private_kmedian import PrivateKMedian
from kveil.release.candidate_set import CandidateSet
from kveil.solve.wkmedian import thorough_kmedian
from kveil.source import read
from kveil.tuning import Candidates, KMedian

MOST_ROUNDS = 20


class Quality(NamedTuple):
    """Of a candidate set, in the space where its points are. Not private: it is made for public data."""

    points: int
    points_bound: float  # n log n, of Theorem 1
    alpha: float  # cost of k points over the best known cost of any k centres: with beta = 0
    captured: float  # the largest distance of a best centre to the nearest point, in root mean squared radii of its cluster
    captured_bound: float  # log(n)^(3/2), of the proof of Theorem 5; its square bounds alpha, up to constants


def quality(found: CandidateSet, X: Any, k: int, *, n_init: int = 10, seed: int = 0) -> Quality:
    """How near k of the points come to the best k centres. What is best is found by k-means from several starts, and the k
    points by exchanging, cluster by cluster: so alpha may be a little larger than it must be."""
    rows, n = found.project(X), len(X)
    best = KMeans(k, n_init=n_init, random_state=seed).fit(rows)
    apart = cdist(best.cluster_centers_, found.points)
    squared = ((rows - best.cluster_centers_[best.labels_]) ** 2).sum(axis=1)
    radii = np.sqrt(np.bincount(best.labels_, squared, k) / np.bincount(best.labels_, minlength=k))
    alpha = cost_of(rows, exchanged(rows, found.points, apart.argmin(axis=1))) / best.inertia_
    captured = float((apart.min(axis=1) / np.maximum(radii, 1e-12)).max())
    return Quality(len(found.points), n * log(n), float(alpha), captured, log(n) ** 1.5)


def exchanged(rows: Floats, points: Floats, chosen: Any) -> Floats:
    """k of the points, each exchanged for the one nearest to the mean of its rows, until nothing changes."""
    for _ in range(MOST_ROUNDS):
        owner = cdist(rows, points[chosen], "sqeuclidean").argmin(axis=1)
        means = [rows[owner == j].mean(axis=0) if (owner == j).any() else points[chosen[j]] for j in range(len(chosen))]
        again = cdist(np.array(means), points).argmin(axis=1)
        if (again == chosen).all():
            break
        chosen = again
    return np.asarray(points[chosen])


def cost_of(rows: Floats, centers: Floats) -> float:
    return float(cdist(rows, centers, "sqeuclidean").min(axis=1).sum())


def swap_ratio(X: Floats, k: int, epsilon: float, swaps: int, domain: Box | Ball, *, seed: int = 0) -> float:
    """Cost of k candidates after private swaps over the best known cost of any k centres, both in the projection.

    Half of epsilon is for the candidates and half for the swaps, which start from k of them at random.
    """
    rng, tuning = np.random.default_rng(seed), Candidates(swaps=swaps, most=10**6)
    budget, source = floor_epsilon(epsilon), read(X)
    task = Task(k, budget, Fraction(0), domain, None, "add-remove", source.unit, tuning)
    pool = Pool(budget, Fraction(0), "add-remove", source.unit, is_pure=True)
    plan = pool.plan()
    assert plan is not None
    with Ledger.memory("public", budget, relation="add-remove").reserve(plan) as ticket:
        desk = pool.open(source, domain, ticket)
        frame, points = CandidateSearch(desk, task, tuning, "k-means", rng).found_in_projection(len(X), 0.5, 0.5)
    rows = frame.projected(frame.centred(domain.encode(X))).astype(np.float64)
    best = KMeans(k, n_init=10, random_state=seed).fit(rows)
    return cost_of(rows, points.astype(np.float64)) / float(best.inertia_)


class Excess(NamedTuple):
    """What a private centre of one cluster costs over the best one, and the form of the printed bound without its constant."""

    least: float  # cost of the best centre
    above: float  # that cost taken off the cost of the private one
    scale: float  # of the printed additive term

    @property
    def ratio(self) -> float:
        return 1 + self.above / self.least


def sparse_excess(X: csr_array, nonzeros: int, epsilon: float, tuning: Candidates, *, seed: int = 0) -> Excess:
    """Of one mean of rows with norm 1 at most, and entries Lambda at most. Theorem 11 bounds the cost by OPT/(1 - eta) and
    O(Lambda^2 s^2 log(d s/(eta delta))/(eta^2 epsilon))."""
    model = PrivateKMeans(1, epsilon=epsilon, radius=1.0, method="candidates", tuning=tuning, random_state=seed).fit(X)
    mean = np.asarray(X.mean(axis=0)).ravel()
    best = float(X.multiply(X).sum()) - X.shape[0] * float(mean @ mean)
    found = model.cluster_centers_[0]
    above = X.shape[0] * float(((found - mean) ** 2).sum())
    largest = float(np.abs(X.data).max())
    scale = (largest * nonzeros / tuning.eta) ** 2 * log(X.shape[1] * nonzeros / tuning.eta) / epsilon
    return Excess(best, above, scale)


def median_excess(X: Floats, epsilon: float, recovery: Any, *, seed: int = 0) -> Excess:
    """Of one median of rows in [-1, 1]^d. Lemma 2 bounds the excess of the exponential mechanism by O(d Lambda/epsilon)."""
    d = X.shape[1]
    tuning, start = KMedian(recovery=recovery), np.zeros((1, d))
    model = PrivateKMedian(1, epsilon=epsilon, bounds=(-1, 1), init=start, tuning=tuning, random_state=seed).fit(X)
    best = thorough_kmedian(X, np.ones(len(X)), 1, np.random.default_rng(seed))
    found, least = (float(np.linalg.norm(X - center, axis=1).sum()) for center in (model.cluster_centers_[0], best[0]))
    return Excess(least, found - least, d * d**0.5 / epsilon)


def sparse_rows(n: int, d: int, k: int, nonzeros: int, wide: int, seed: int = 0) -> csr_array:
    """k clusters, each on `wide` columns of its own, the first of them more often; `nonzeros` equal entries, and norm 1."""
    rng = np.random.default_rng(seed)
    own, often = np.arange(n) % k, 0.9 ** np.arange(wide)
    ranked = np.argsort(rng.random((n, wide)) ** (1 / often), axis=1)[:, -nonzeros:]
    columns = rng.permutation(d)[: k * wide].reshape(k, wide)[own[:, None], ranked]
    return csr_array((np.full(n * nonzeros, nonzeros**-0.5), (np.repeat(np.arange(n), nonzeros), columns.ravel())), shape=(n, d))
