"""Claims of the high-dimensional paper about candidates and recovery, measured on public data, as tables of docs/methods.md.

Bars are generous: what the paper prints without its constants. `python -m benchmarks candidate_claims`; KVEIL_RUNS=1 for a
quick look.
"""

import os
from collections.abc import Iterator
from math import log
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from benchmarks.bar import Bar
from benchmarks.sets import MAKERS, SHARED, is_here
from kveil import Ledger, PrivateKMeans, private_candidates
from kveil.research.candidate_claims import Excess, Quality, median_excess, quality, sparse_excess, sparse_rows, swap_ratio
from kveil.space.bounds import check_domain
from kveil.tuning import Candidates, Tree

RUNS = int(os.environ.get("KVEIL_RUNS", "5"))
SETS = ("s1", "unbalance", "digits", "15 in the ball, d=4", "15 in the ball, d=32")
REPETITIONS = (1, 2, 8)


def run() -> Iterator[Bar]:
    yield from of_candidates()
    yield from of_swaps()
    yield from of_sparse_means()
    yield from of_sparse_fits()
    yield from of_medians()


def of_candidates() -> Iterator[Bar]:
    """Theorems 1 and 5: how many points, and how good the best k of them are."""
    for name in SETS:
        if not is_here(MAKERS[name]):
            print(f"{name}: not run, ../shared/data is not here")
            continue
        X, k, domain = MAKERS[name]()
        for epsilon in (0.25, 1.0):
            for repetitions in REPETITIONS:
                found = [candidate_quality(X, k, epsilon, repetitions, seed, domain) for seed in range(RUNS)]
                alphas = np.array([each.alpha for each in found])
                note = (
                    f"+- {deviation(alphas):.2g}, {np.mean([each.points for each in found]):.0f} points, captured within "
                    f"{np.mean([each.captured for each in found]):.2f} radii (log^1.5 n = {found[0].captured_bound:.0f})"
                )
                yield Bar(f"{name}, epsilon {epsilon}, T = {repetitions}: alpha", alphas.mean(), log(len(X)) ** 3, note=note)
                most = max(each.points / each.points_bound for each in found)
                yield Bar(f"{name}, epsilon {epsilon}, T = {repetitions}: points over T n log n", most / repetitions, 1.0)


def candidate_quality(X: Any, k: int, epsilon: float, repetitions: int, seed: int, domain: dict[str, Any]) -> Quality:
    ledger, tuning = Ledger.memory("public", epsilon, relation="add-remove"), Candidates(repetitions=repetitions, most=10**6)
    made = private_candidates(X, epsilon, ledger=ledger, n_clusters=k, tuning=tuning, random_state=seed, **domain)
    return quality(made, X, k, n_init=3 if len(X) > 50_000 else 10)


def of_swaps() -> Iterator[Bar]:
    """Theorem 7: k candidates after private swaps."""
    for name in ("s1", "digits", "15 in the ball, d=4"):
        if not is_here(MAKERS[name]):
            continue
        X, k, domain = MAKERS[name]()
        X = X[np.random.default_rng(0).permutation(len(X))[:20_000]]
        held = check_domain(domain.get("bounds"), None, domain.get("radius"), X.shape[1], 20)
        for epsilon in (1.0, 8.0):
            for swaps in (k, 4 * k):
                ratios = np.array([swap_ratio(X, k, epsilon, swaps, held, seed=seed) for seed in range(RUNS)])
                yield Bar(
                    f"{name}, epsilon {epsilon}, {swaps} swaps: cost ratio", ratios.mean(), 30, note=f"+- {deviation(ratios):.2g}"
                )


def of_sparse_means() -> Iterator[Bar]:
    """Theorem 11: one mean of sparse rows, by chosen columns and by a threshold."""
    X = sparse_rows(20_000, 10_000, 1, 5, 60)
    for epsilon in (0.125, 0.5, 2.0):
        for eta in (0.25, 0.5, 0.75):
            tuning = Candidates(nonzeros=5, recovery="columns", eta=eta, levels=1)
            found = [sparse_excess(X, 5, epsilon, tuning, seed=seed) for seed in range(RUNS)]
            printed = eta / (1 - eta) * found[0].least + found[0].scale
            yield of_excess(f"columns, epsilon {epsilon}, eta {eta}", found, printed)
        found = [sparse_excess(X, 5, epsilon, Candidates(nonzeros=5, levels=1), seed=seed) for seed in range(RUNS)]
        printed = found[0].least + found[0].scale  # as of eta = 1/2
        yield of_excess(f"threshold, epsilon {epsilon}", found, printed)


def of_excess(what: str, found: list[Excess], printed: float) -> Bar:
    ratios, above = np.array([each.ratio for each in found]), np.mean([each.above for each in found])
    note = f"ratio of costs {ratios.mean():.4f} +- {deviation(ratios):.2g}, excess {above:.3g}"
    return Bar(f"{what}: excess over what is printed", float(above) / printed, 1.0, note=note)


def of_sparse_fits() -> Iterator[Bar]:
    """Whole fits, pure: candidates with either recovery, and the tree."""
    tables = {"made up": (sparse_rows(20_000, 10_000, 8, 5, 40), 5)}
    if SHARED.is_dir():
        tables["Reuters R8"] = (reuters(), 60)
    for name, (X, s) in tables.items():
        nothing = float(X.multiply(X).sum())
        methods = {
            "candidates, threshold": Candidates(nonzeros=s),
            "candidates, columns": Candidates(nonzeros=s, recovery="columns"),
            "tree": Tree(nonzeros=s),
        }
        for epsilon in (0.5, 2.0, 8.0):
            for what, tuning in methods.items():
                costs = np.array([sparse_cost(X, epsilon, tuning, seed) / nothing for seed in range(RUNS)])
                yield Bar(
                    f"{name}, {what}, epsilon {epsilon}: cost over that of 0", costs.mean(), 3, note=f"+- {deviation(costs):.2g}"
                )


def sparse_cost(X: csr_array, epsilon: float, tuning: Any, seed: int) -> float:
    model = PrivateKMeans(8, epsilon=epsilon, radius=1.0, tuning=tuning, random_state=seed).fit(X)
    centers = model.cluster_centers_
    squares = np.asarray(X.multiply(X).sum(axis=1)).reshape(-1, 1) - 2 * (X @ centers.T) + (centers**2).sum(axis=1)
    return float(squares.min(axis=1).sum())


def reuters() -> csr_array:
    """Unit tf-idf, with logarithms of counts."""
    with np.load(SHARED / "text_reuters_r8.npz") as file:
        parts, d = (
            (1 + np.log(file["counts"].astype(float)), file["indices"].astype(np.int64), file["indptr"]),
            int(file["n_features"]),
        )
    counts = csr_array(parts, shape=(len(parts[2]) - 1, d))
    weighted = counts * (np.log((1 + counts.shape[0]) / (1 + np.bincount(counts.indices, minlength=d))) + 1)
    return csr_array(weighted / np.sqrt(weighted.multiply(weighted).sum(axis=1)).reshape(-1, 1))


def of_medians() -> Iterator[Bar]:
    """Lemma 2: one median, drawn from the whole domain, and by the ways that replace it."""
    for d in (1, 2, 3):
        rng = np.random.default_rng(d)
        X = np.clip(0.3 + 0.1 * rng.standard_normal((5000, d)), -1, 1)
        X[:500] = rng.uniform(-1, 1, (500, d))
        for epsilon in (0.1, 1.0):
            for recovery in ("all", "grid", "weiszfeld"):
                found = [median_excess(X, epsilon, recovery, seed=seed) for seed in range(4 * RUNS)]
                above, ratio = np.array([each.above for each in found]), np.mean([each.ratio for each in found])
                note = f"+- {deviation(above / found[0].scale):.2g}, ratio of costs {ratio:.4f}"
                what = f"{d} columns, epsilon {epsilon}, {recovery}: excess over d Lambda/epsilon"
                yield Bar(what, above.mean() / found[0].scale, 20, note=note)


def deviation(values: np.ndarray) -> float:
    """The standard error of the mean."""
    return float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else float("nan")
