"""What a fresh interpreter and a fresh machine take: CPU time to load names, and to fit for the first time.

Seconds of CPU beyond what starting the interpreter takes, the least of several processes. An estimator is one of scikit-learn's,
so that its name cannot be loaded faster than `sklearn.base`.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from resource import RUSAGE_CHILDREN, getrusage

from benchmarks.bar import Bar

SKLEARN = "from sklearn.base import BaseEstimator; from sklearn.utils.validation import validate_data"
LOAD = "from kveil import PrivateKMeans"
FIT = (
    LOAD
    + """
import numpy as np
PrivateKMeans(4, delta=1e-6, bounds=(-4, 4)).fit(np.random.default_rng(0).normal(size=(2000, 30)))
"""
)


def cpu_seconds(code: str, repeats: int = 5, **environment: str) -> float:
    """The least CPU time of a process that runs this."""
    taken = []
    for _ in range(repeats):
        before = getrusage(RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, env=os.environ | environment)
        after = getrusage(RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(taken)


def cold_fit() -> float:
    """With nothing compiled before."""
    with tempfile.TemporaryDirectory() as empty:
        return cpu_seconds(FIT, repeats=1, NUMBA_CACHE_DIR=empty)


def run() -> Iterator[Bar]:
    start, load, base = cpu_seconds("pass"), cpu_seconds(LOAD), cpu_seconds(SKLEARN)
    yield Bar("import kveil", cpu_seconds("import kveil") - start, 0.4, " s of CPU")
    note = f"({load - start:.2f} s and {base - start:.2f} s)"
    yield Bar("PrivateKMeans, loaded, beyond sklearn.base", load - base, 1.0, " s of CPU", note=note)
    yield Bar("first fit, compiled before", cpu_seconds(FIT) - load, 1.0, " s of CPU")
    yield Bar("first fit on a fresh machine", min(cold_fit() for _ in range(3)) - load, 5.0, " s of CPU")
