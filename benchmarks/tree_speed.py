"""The default fit against one scikit-learn fit on the same rows: CPU time, and memory beyond the table itself."""

import subprocess
import sys
from collections.abc import Iterator

from benchmarks.bar import Bar
from benchmarks.sets import SHARED

# name, most times the CPU of KMeans(n_init=1)
SHAPES = {"MNIST, k = 10": 1.0, "100 000 x 100, k = 16": 2.0, "1 000 000 x 20, k = 16": 2.0}
MOST_EXTRA = 200  # MB

# Each shape in a process of its own. VmHWM is set back before the fit, since a child inherits its parent's peak elsewhere.
CHILD = """
import sys, time, warnings
import numpy as np
from sklearn.cluster import KMeans
from benchmarks import memory
from benchmarks.sets import mnist
from kveil import PrivateKMeans

warnings.simplefilter("ignore")
name, rng = sys.argv[1], np.random.default_rng(0)
if name.startswith("MNIST"):
    rows, k, domain = mnist()
else:
    n, d = (100_000, 100) if name.startswith("100 000 x") else (1_000_000, 20)
    k, domain = 16, {"bounds": (-4, 4)}
    rows = rng.uniform(-2, 2, (k, d))[rng.integers(0, k, n)] + 0.5 * rng.standard_normal((n, d))
PrivateKMeans(k, delta=1e-6, **domain).fit(rows[:2000])  # compiles

memory.reset()
before, start = memory.now(), time.process_time()
PrivateKMeans(k, delta=1e-6, **domain).fit(rows)
mine, extra = time.process_time() - start, memory.peak() - before
start = time.process_time()
KMeans(k, n_init=1, random_state=0).fit(rows)
print(mine, time.process_time() - start, extra)
"""


def run() -> Iterator[Bar]:
    for name, limit in SHAPES.items():
        if name.startswith("MNIST") and not SHARED.is_dir():
            print(f"{name}: not run, ../shared/data is not here")
            continue
        runs = [subprocess.run([sys.executable, "-c", CHILD, name], capture_output=True, text=True, check=True) for _ in range(3)]
        mine, theirs, extra = (min(part) for part in zip(*(map(float, run.stdout.split()) for run in runs), strict=True))
        yield Bar(f"default fit, {name}: CPU", mine / theirs, limit, " times", note=f"({mine:.1f} s against {theirs:.1f} s)")
        yield Bar(f"default fit, {name}: memory beyond the table", extra, MOST_EXTRA, " MB")
