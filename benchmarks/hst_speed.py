"""Trees of large universes on one core: CPU seconds, and the memory of the whole process."""

import os
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.bar import Bar

# name, most seconds; the universe itself is made before
TREES = {"1 000 000 x 16 points": 15, "1 000 000 x 16 points, one cloud": 15, "graph of 1 000 000 vertices, 7 000 000 arcs": 15}
MOST_MEMORY = 2000  # MB, points and tree and libraries

CHILD = """
import sys, time
import numpy as np
from benchmarks import memory
from kveil.partition.hst import Hst
from kveil.space.graph import Graph
from kveil.space.vectors import Euclidean

name, rng, n = sys.argv[1], np.random.default_rng(0), 1_000_000
if name.startswith("graph"):
    edges = np.concatenate([np.column_stack([np.arange(n - 1), np.arange(1, n)]), rng.integers(0, n, (5 * n // 2, 2))])
    make = lambda part: Graph.from_edges(part, lengths=rng.integers(1, 1000, len(part)))
    few, all_of_it = edges[:1000], edges
elif name.endswith("cloud"):
    make, all_of_it = Euclidean, rng.standard_normal((n, 16))
    few = all_of_it[:1000]
else:
    make, all_of_it = Euclidean, rng.uniform(-2, 2, (16, 16))[rng.integers(0, 16, n)] + 0.5 * rng.standard_normal((n, 16))
    few = all_of_it[:1000]
Hst.of(make(few), random_state=0)  # compiles
space = make(all_of_it)
start = time.process_time()
tree = Hst.of(space, random_state=0)
seconds = time.process_time() - start
print(seconds, memory.peak(), tree.n_nodes)
"""


def run() -> Iterator[Bar]:
    for name, limit in TREES.items():
        alone = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
        out = subprocess.run([sys.executable, "-c", CHILD, name], capture_output=True, text=True, check=True, env=alone).stdout
        seconds, peak, nodes = map(float, out.split())
        yield Bar(f"tree of {name}: CPU", seconds, limit, " s", note=f"({nodes:.0f} nodes)")
        yield Bar(f"tree of {name}: memory", peak, MOST_MEMORY, " MB")
