"""Peak memory of a fit of 1 000 000 x 100 000 sparse rows, 20 to 50 entries each, beyond the rows themselves."""

import subprocess
import sys
from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array

from benchmarks.bar import Bar

ROWS, COLUMNS, K, OWN = 1_000_000, 100_000, 16, 200
FEWEST, MOST = 20, 50  # entries of a row
LIMIT = 1024.0

FIT = """
import sys, time
from benchmarks import memory, sparse_memory
from kveil import PrivateKMeans
rows = sparse_memory.made()
terms = {"metric": "cosine"} if sys.argv[1] == "cosine" else {"radius": 1.0}
memory.reset()
before, start = memory.now(), time.process_time()
model = PrivateKMeans(sparse_memory.K, epsilon=1.0, delta=1e-6, random_state=0, **terms).fit(rows)
print(memory.peak() - before, before, time.process_time() - start, model.method_)
"""


def run(*metrics: str) -> Iterator[Bar]:
    for metric in metrics or ("cosine", "euclidean"):
        done = subprocess.run([sys.executable, "-c", FIT, metric], check=True, capture_output=True, text=True)
        peak, before, seconds, method = done.stdout.split()
        note = f"({method}; the process with its rows has {float(before):.0f} MB; {float(seconds):.0f} s of CPU)"
        yield Bar(f"memory of a fit of 1e6 x 1e5 sparse rows, metric {metric}", float(peak), LIMIT, " MB", note=note)


def made() -> csr_array:
    """Rows of about unit length: half of the entries of a row are among the 200 columns of its cluster, and half are anywhere."""
    rng = np.random.default_rng(0)
    many = rng.integers(FEWEST, MOST + 1, ROWS)
    starts = np.concatenate([[0], np.cumsum(many)])
    cluster = np.repeat(rng.integers(0, K, ROWS, dtype=np.int32), many)
    columns = rng.integers(0, COLUMNS, starts[-1], dtype=np.int32)
    is_own = rng.random(starts[-1], dtype=np.float32) < 0.5
    columns[is_own] = cluster[is_own] * OWN + columns[is_own] % OWN
    values = np.repeat(1 / np.sqrt(many), many)
    rows = csr_array((values, columns, starts.astype(np.int32)), shape=(ROWS, COLUMNS))
    rows.sum_duplicates()
    return rows
