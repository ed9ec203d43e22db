"""`python -m benchmarks public [set ...] [option=value ...]`: what a public sample is worth, and what a useless one costs.

Private and public rows are disjoint. Ratios are costs of the private rows over the best of ten k-means runs without privacy, mean
and standard error of the runs; a bar over the tree has room for two standard errors. "alone" is k-means of the sample, with no
private row read. "used" counts the runs whose gate let the sample pass. Sets: made-up, wordvec, shifted, mnist, adult, diamonds,
kdd99. Options choose other parts of the sets, or fewer cells: seed=1000 is added to their seeds; runs, sample, epsilon, delta.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from math import inf
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans

from benchmarks import sets
from benchmarks.bar import Bar
from benchmarks.options import parted
from kveil import PrivateKMeans

RUNS, FEW_RUNS = 10, 5  # the second for tables of many numbers
GAUSSIAN, PURE = tuple((e, 1e-6) for e in (0.1, 0.3, 1.0)), tuple((e, 0.0) for e in (0.3, 1.0, 3.0))
USELESS = 1.05  # times the tree: what a useless, far or tiny sample may cost


class Case(NamedTuple):
    """Private rows, how many centres, their domain, samples by name, budgets, and what a good sample must reach, by epsilon."""

    rows: np.ndarray
    k: int
    domain: dict[str, Any]
    samples: dict[str, np.ndarray]
    budgets: tuple[tuple[float, float], ...]
    limits: Mapping[float, float] = MappingProxyType({})
    runs: int = RUNS


def run(*given: str) -> Iterator[Bar]:
    warnings.simplefilter("ignore")
    names, options = parted(given)
    for name in names or list(CASES):
        if name != "made-up" and not sets.SHARED.is_dir():
            print(f"{name}: not run, ../shared/data is not here")
            continue
        yield from bars(name, _chosen(CASES[name](int(options.get("seed", 0))), options))


def _chosen(case: Case, options: dict[str, str]) -> Case:
    """The cells of a case that options name."""
    return case._replace(
        runs=int(options.get("runs", case.runs)),
        samples={kind: rows for kind, rows in case.samples.items() if options.get("sample", kind) == kind},
        budgets=tuple(
            (epsilon, delta)
            for epsilon, delta in case.budgets
            if float(options.get("epsilon", epsilon)) == epsilon and float(options.get("delta", delta)) == delta
        ),
    )


def bars(name: str, case: Case) -> Iterator[Bar]:
    floor = min(float(KMeans(case.k, n_init=1, random_state=seed).fit(case.rows).inertia_) for seed in range(10))
    alone = {kind: _alone(case, sample) / floor for kind, sample in case.samples.items()}
    for epsilon, delta in case.budgets:
        cell = f"{name}, epsilon {epsilon:g}, delta {delta:g}"
        tree, _ = ratios(case, floor, None, epsilon, delta)
        for kind, sample in case.samples.items():
            mine, used = ratios(case, floor, sample, epsilon, delta)
            note = f"tree {_told(tree)}, alone {alone[kind]:.4f}, used {used}/{case.runs}"
            over = float(mine.mean() / tree.mean())
            chance = 2 * over * float(np.hypot(_error(mine) / mine.mean(), _error(tree) / tree.mean()))
            if kind in ("same", "shifted"):
                limit = min(case.limits.get(epsilon, inf) if delta else inf, float(tree.mean()))
                yield Bar(f"{cell}, {kind}: ratio {_told(mine)}", float(mine.mean()), limit, note=note)
            else:
                yield Bar(f"{cell}, {kind}: ratio {_told(mine)}, over the tree", over, round(USELESS + chance, 4), note=note)
            if kind == "shifted":
                yield Bar(f"{cell}, {kind}: over the sample alone", float(mine.mean()) / alone[kind], 1.0)


def ratios(case: Case, floor: float, sample: Any, epsilon: float, delta: float) -> tuple[np.ndarray, int]:
    found, used = [], 0
    for seed in range(case.runs):
        model = PrivateKMeans(case.k, epsilon=epsilon, delta=delta, random_state=seed, **case.domain)
        model.fit(case.rows, public=sample)
        found.append(-model.score(case.rows) / floor)
        used += sample is not None and model.release_.parameters["public_sample"]["used"]
    return np.array(found), used


def _alone(case: Case, sample: np.ndarray) -> float:
    centers = KMeans(case.k, n_init=3, random_state=0).fit(sample).cluster_centers_
    return float(np.min([((case.rows - center) ** 2).sum(axis=1) for center in centers], axis=0).sum())


def _told(costs: np.ndarray) -> str:
    return f"{costs.mean():.4f} ± {_error(costs):.4f}"


def _error(costs: np.ndarray) -> float:
    return float(costs.std(ddof=1) / len(costs) ** 0.5)


def made_up(seed: int) -> Case:
    """Unit rows in 384 columns: topic + 0.6 subtopic + 0.5 common + noise; the sample has other shares and more noise."""
    rng = np.random.default_rng(2024 + seed)
    topics, common, subtopics = _units(rng, 50, 384), _units(rng, 1, 384), _units(rng, 400, 384).reshape(50, 8, 384)

    def draw(n: int, length: float) -> np.ndarray:
        topic = rng.choice(50, n, p=rng.dirichlet(np.ones(50)))
        rows = topics[topic] + 0.6 * subtopics[topic, rng.integers(0, 8, n)] + 0.5 * common
        return _unit(rows + length * _units(rng, n, 384))

    rows, sample = draw(30_000, 1.2), draw(4_000, 1.3)
    samples = {"same": sample, "small": sample[:200], **_useless_on_the_sphere(rng, 4_000, 384)}
    return Case(
        rows, 50, {"radius": 1.0}, samples, GAUSSIAN, dict(zip((0.1, 0.3, 1.0), (1.10, 1.08, 1.04), strict=True)), FEW_RUNS
    )


def wordvec(seed: int) -> Case:
    rows, k, domain = sets.wordvec()
    rng = np.random.default_rng(2025 + seed)
    own, sample = _parted(rows, 5_000, rng)
    samples = {"same": sample, "small": sample[:200], **_useless_on_the_sphere(rng, 5_000, 100)}
    return Case(own, k, domain, samples, GAUSSIAN + PURE)


def shifted(_seed: int) -> Case:
    """Frequent words are private and rarer ones public: there is nothing to draw."""
    rows, k, domain = sets.wordvec()
    limits = dict(zip((0.1, 0.3, 1.0), (1.13, 1.08, 1.04), strict=True))
    return Case(rows[:15_000], k, domain, {"shifted": rows[15_000:]}, GAUSSIAN + PURE, limits)


def mnist(seed: int) -> Case:
    rows, k, domain = sets.mnist()
    rng = np.random.default_rng(2026 + seed)
    own, sample = _parted(rows[:43_000], 8_000, rng)
    samples = {"same": sample, "small": sample[:100], **_useless_in_the_box(rng, 4_000, 784)}
    return Case(own, k, domain, samples, (*GAUSSIAN[1:], (1.0, 0.0)), runs=FEW_RUNS)


def adult(seed: int) -> Case:
    with np.load(sets.SHARED / "adult.npz") as file:
        rows = file["x"].astype(float)
    low, high = np.array([17, 1e4, 1, 0, 0, 1]), np.array([90, 1e6, 16, 1e4, 3000, 99])
    mapped = np.clip((rows - low) / (high - low), 0, 1)
    rng = np.random.default_rng(2027 + seed)
    own, sample = _parted(mapped, 2_442, rng)
    is_young = np.flatnonzero(own[:, 0] * 73 + 17 < 30)[:2_400]  # the order of rows is random
    samples = {"same": sample, "small": sample[:100], "below 30": own[is_young]}
    own = np.delete(own, is_young, axis=0)
    return Case(own, 10, {"bounds": (0, 1)}, samples | _useless_in_the_box(rng, 2_442, 6), GAUSSIAN + PURE)


def diamonds(seed: int) -> Case:
    return _five_percent(*sets.MAKERS["diamonds"](), np.random.default_rng(2028 + seed))


def kdd99(seed: int) -> Case:
    """100 000 of its rows, drawn at random."""
    rng = np.random.default_rng(2029 + seed)
    rows, k, domain = sets.kdd99()
    return _five_percent(rows[rng.permutation(len(rows))[:105_000]], k, domain, rng)


def _five_percent(rows: np.ndarray, k: int, domain: dict[str, Any], rng: np.random.Generator) -> Case:
    own, sample = _parted(np.clip(rows, 0, 1), len(rows) // 20, rng)
    samples = {"same": sample, "small": sample[:100], **_useless_in_the_box(rng, len(sample), rows.shape[1])}
    return Case(own, k, domain, samples, GAUSSIAN + PURE[:2])


def _parted(rows: np.ndarray, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    order = rng.permutation(len(rows))
    return rows[order[n:]], rows[order[:n]]


def _useless_on_the_sphere(rng: np.random.Generator, n: int, d: int) -> dict[str, np.ndarray]:
    return {"uniform": _units(rng, n, d), "far": _unit(_units(rng, 1, d) + 0.05 * _units(rng, n, d))}


def _useless_in_the_box(rng: np.random.Generator, n: int, d: int) -> dict[str, np.ndarray]:
    return {"uniform": rng.random((n, d)), "far": 0.95 + 0.05 * rng.random((n, d))}


def _units(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    return _unit(rng.standard_normal((n, d)))


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


CASES: dict[str, Callable[[int], Case]] = {
    "made-up": made_up, "wordvec": wordvec, "shifted": shifted, "mnist": mnist, "adult": adult, "diamonds": diamonds,
    "kdd99": kdd99,
}  # fmt: skip
