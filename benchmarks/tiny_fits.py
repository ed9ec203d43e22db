"""CPU of a fit of a tiny table, for every model and method: 20 rows, 2 columns, 2 centres. The limit of every audit by many fits.

    python -m benchmarks tiny_fits

The bar is 24 ms: 10 000 fits in two minutes on two cores.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import kveil
from benchmarks.bar import Bar
from kveil import Euclidean, FederatedKMeans, Ledger, LocalKMeans, PrivateKMeans, PrivateKMedian, StreamKMeans
from kveil.federate.plan import Protocol
from kveil.federate.protocols import PROTOCOLS
from kveil.methods.task import PRIVATE_INITS
from kveil.models.private_kmedian import METHODS, UNIVERSE_METHODS

MOST = 24.0  # ms
FITS = 40
ROWS = np.random.default_rng(0).uniform(-1, 1, (20, 2))
PUBLIC = np.random.default_rng(1).uniform(-1, 1, (200, 2))
CORNERS = [[-0.5, -0.5], [0.5, 0.5]]
TOWN = Euclidean(np.array([[x, y] for x in range(4) for y in range(4)], dtype=float))
HOMES = np.random.default_rng(2).integers(0, 16, 20)
GAUSSIAN = {"delta": 1e-6}

Fit = Callable[[], object]


def cases() -> Iterator[tuple[str, Fit]]:
    """Every model, method and private start, by name."""
    for name in PrivateKMeans.methods:
        domain = {"metric": "cosine"} if name == "spherical" else {"bounds": (-1, 1)}
        yield f"PrivateKMeans {name}", fit(PrivateKMeans, ROWS, method=name, **GAUSSIAN if name == "spherical" else {}, **domain)
    for init in PRIVATE_INITS:
        yield f"PrivateKMeans lloyd, {init}", fit(PrivateKMeans, ROWS, method="lloyd", init=init, bounds=(-1, 1))
    yield "PrivateKMeans tree, Gaussian", fit(PrivateKMeans, ROWS, method="tree", bounds=(-1, 1), **GAUSSIAN)
    yield "PrivateKMeans tree, replace-one", fit(PrivateKMeans, ROWS, method="tree", bounds=(-1, 1), relation="replace-one")
    yield "PrivateKMeans tree, scaling", fit(PrivateKMeans, ROWS, method="tree", bounds=(-1, 1), scaling="private")
    yield "PrivateKMeans tree, auto k", fit(PrivateKMeans, ROWS, n_clusters="auto", method="tree", bounds=(-1, 1))
    yield "PrivateKMeans tree, public", lambda: PrivateKMeans(2, method="tree", bounds=(-1, 1)).fit(ROWS, public=PUBLIC)
    for name in METHODS:
        yield f"PrivateKMedian {name}", fit(PrivateKMedian, ROWS, method=name, bounds=(-1, 1))
    for name in UNIVERSE_METHODS:
        yield f"PrivateKMedian {name}, universe", fit(PrivateKMedian, HOMES, method=name, universe=TOWN)
    yield "StreamKMeans", fit(StreamKMeans, ROWS, bounds=(-1, 1))
    for name in ("refine", "grid", "lae", "lma"):
        yield f"LocalKMeans {name}", fit(LocalKMeans, ROWS, protocol=name, radius=1.0, devices="exact")
    for protocol in PROTOCOLS:
        yield f"FederatedKMeans {protocol}, two parties", federated(protocol)
    yield "private_candidates", lambda: kveil.private_candidates(ROWS, 1.0, ledger=ledger(), bounds=(-1, 1), n_clusters=2)
    yield "find_bounds", lambda: kveil.find_bounds(ROWS, 8.0, ledger=ledger(8.0))
    release = PrivateKMeans(2, method="lloyd", init=CORNERS, bounds=(-1, 1)).fit(ROWS).release_
    yield "evaluate", lambda: kveil.evaluate(release, ROWS, 1.0, ledger=ledger())
    worded = np.column_stack([ROWS, ROWS[:, 0] > 0])
    yield "describe", lambda: kveil.describe(release, worded, ["corn"], 1.0, ledger=ledger())


def fit(model: Any, rows: Any, **options: Any) -> Fit:
    return lambda: model(**{"n_clusters": 2, "epsilon": 1.0} | options).fit(rows)


def ledger(epsilon: float = 1.0) -> Ledger:
    return Ledger.memory("tiny", epsilon, relation="add-remove")


def federated(protocol: Protocol) -> Fit:
    epsilon = None if protocol == "dk" else 1.0  # "dk" promises nothing
    return lambda: FederatedKMeans(2, epsilon=epsilon, bounds=(-1, 1), protocol=protocol).fit([ROWS[:10], ROWS[10:]])


def milliseconds(go: Fit, fits: int) -> float:
    """CPU of one fit, after the first, which compiles and fills caches."""
    go()
    go()
    start = time.process_time()
    for _ in range(fits):
        go()
    return (time.process_time() - start) / fits * 1000


def run(only: str = "") -> Iterator[Bar]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, go in cases():
            if only in name:
                yield Bar(f"tiny fit, {name}: CPU", milliseconds(go, FITS), MOST, " ms")
