"""Streams: 10 000 000 x 10 rows through 10 000 points, in memory, cost and speed; and what a private stream costs.

Every stream is generated batch by batch in a process of its own, so that its peak memory is the stream's.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from benchmarks.bar import Bar
from benchmarks.made_stream import batches
from kveil import StreamKMeans

ROWS, COLUMNS, BATCH, CLUSTERS, SAMPLE = 10_000_000, 10, 10_000, 20, 1_000_000
MEMORIES = (10_000, 65_536)

RUN = """
import json, sys, time
from benchmarks import memory
from benchmarks.made_stream import batches
from kveil import StreamKMeans

rows, columns, batch, clusters, is_sorted = json.loads(sys.argv[1])
StreamKMeans(clusters, memory=100).partial_fit(next(batches(batch, columns, batch, clusters, False)))  # load what is compiled
model, seconds = StreamKMeans(clusters, memory=10_000, random_state=0), 0.0
for block in batches(rows, columns, batch, clusters, is_sorted):
    start = time.perf_counter()
    model.partial_fit(block)
    seconds += time.perf_counter() - start
start = time.perf_counter()
centers = model.cluster_centers_.tolist()
found = time.perf_counter() - start
total = int(model.synopsis_.weights.sum())
print(json.dumps({"centers": centers, "seconds": seconds, "found": found, "peak": memory.peak(), "rows": total}))
"""

PEER = """
import json, sys, time
from sklearn.cluster import MiniBatchKMeans
from benchmarks.made_stream import batches

rows, columns, batch, clusters, is_sorted = json.loads(sys.argv[1])
model, seconds = MiniBatchKMeans(clusters, random_state=0), 0.0
for number, block in enumerate(batches(rows, columns, batch, clusters, is_sorted)):
    start = time.perf_counter()
    model.partial_fit(block)
    seconds += (time.perf_counter() - start) * (number > 0)  # the first one seeds
print(json.dumps({"seconds": seconds, "centers": model.cluster_centers_.tolist()}))
"""


def run() -> Iterator[Bar]:
    _process(RUN, [2 * BATCH, COLUMNS, BATCH, CLUSTERS, False])  # the first stream on a machine compiles: 40 MB more, once
    for is_sorted in (False, True):
        yield from _one_stream("sorted" if is_sorted else "shuffled", is_sorted)
    yield from _private()


def _one_stream(name: str, is_sorted: bool) -> Iterator[Bar]:
    terms = [ROWS, COLUMNS, BATCH, CLUSTERS, is_sorted]
    ours, peer = _process(RUN, terms), _process(PEER, terms)
    assert ours["rows"] == ROWS
    sample = _sample(terms)
    floor = KMeans(CLUSTERS, n_init=3, random_state=0).fit(sample)  # one run of Lloyd may end 20 % above
    cost, other = (_cost(sample, np.array(found["centers"])) / floor.inertia_ for found in (ours, peer))
    note = f"({ours['found']:.1f} s for the centres; MiniBatchKMeans costs {other:.3f})"
    yield Bar(
        f"{name} stream of 10 000 000 x 10: peak memory", ours["peak"], 300, " MB", note="(about 280 of them are libraries)"
    )
    yield Bar(f"{name} stream: cost over k-means++ and Lloyd on 1 000 000 of its rows", cost, 1.1, note=note)
    note = f"({ROWS / ours['seconds'] / 1e6:.2f} and {ROWS / peer['seconds'] / 1e6:.2f} million rows a second)"
    yield Bar(f"{name} stream: time over that of MiniBatchKMeans.partial_fit", ours["seconds"] / peer["seconds"], 2.0, note=note)


def _private() -> Iterator[Bar]:
    """Mixtures in the unit ball as in the study of k-variates++: 100 000 rows, epsilon 1, bounds that fit."""
    limits = {(2, 8): 1.003, (2, 20): 1.010, (10, 8): 1.030, (10, 20): 1.056}
    for (d, k), limit in limits.items():
        ratios = np.array([_private_ratios(d, k, seed) for seed in range(12)])
        for memory, found in zip(MEMORIES, ratios.T, strict=True):
            note = f"+- {found.std() / len(found) ** 0.5:.2g}, mean of 12 sets"
            yield Bar(f"private stream, d={d}, k={k}, memory={memory}: cost ratio", float(found.mean()), limit, note=note)


def _private_ratios(d: int, k: int, seed: int) -> list[float]:
    rows, half = mixture(d, k, np.random.default_rng(seed))
    floor = KMeans(k, n_init=10, random_state=0).fit(rows).inertia_
    terms = {"epsilon": 1.0, "bounds": (-half, half), "random_state": seed}
    return [-StreamKMeans(k, memory=memory, **terms).fit(rows).score(rows) / floor for memory in MEMORIES]


def mixture(d: int, k: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Gaussians in the unit ball, 0.06 wide (0.03 for 20 in the plane), in a cube of half-side min(1, 2.5/sqrt(d))."""
    places = rng.standard_normal((k, d))
    places *= rng.random((k, 1)) ** (1 / d) / np.linalg.norm(places, axis=1, keepdims=True)
    rows = places[rng.integers(k, size=100_000)] + (0.03 if (d, k) == (2, 20) else 0.06) * rng.standard_normal((100_000, d))
    half = min(1.0, 2.5 / d**0.5)
    return np.clip(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0), -half, half), half


def _process(code: str, terms: list[object]) -> dict[str, object]:
    done = subprocess.run([sys.executable, "-c", code, json.dumps(terms)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def _sample(terms: list[Any]) -> np.ndarray:
    """Every tenth row of every batch."""
    return np.concatenate([block[:: ROWS // SAMPLE] for block in batches(*terms)])


def _cost(rows: np.ndarray, centers: np.ndarray) -> float:
    return sum(
        float(((block[:, None] - centers[None]) ** 2).sum(axis=2).min(axis=1).sum()) for block in np.array_split(rows, 100)
    )
