"""The default fit against one scikit-learn fit on the same rows, in turn: CPU and wall time, memory beyond the table, and how
time grows with the number of rows.

    python -m benchmarks tree_speed                 # all but the last
    python -m benchmarks tree_speed beside growth   # against scikit-learn; from 1e6 to 1e7 rows in memory
    python -m benchmarks tree_speed rows            # from 1e5 to 1e8 rows of a file on disk, 1.6 GB
"""

import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from benchmarks.bar import Bar
from benchmarks.sets import SHARED

SHAPES = ("MNIST, k = 10", "100 000 x 100, k = 16", "1 000 000 x 20, k = 16")
MOST = 1.0  # times one KMeans(n_init=1)
MOST_EXTRA = 200  # MB
GROWTH, SIZES = 1.05, (1_000_000, 10_000_000)  # time is n**growth between these, 20 columns, k = 16; at the default memory
REPEATS = 3
ON_DISK = tuple(10**power for power in range(5, 9))  # rows of 2 columns

# Each shape in a process of its own. VmHWM is set back before the fit, since a child inherits its parent's peak elsewhere.
SETUP = """
import sys, threading, time, warnings
import numpy as np
from sklearn.cluster import KMeans
from benchmarks import memory
from benchmarks.sets import mnist
from kveil import PrivateKMeans

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)

def made(n, d, k=16):
    rows, places = np.empty((n, d)), rng.uniform(-2, 2, (k, d))
    for start in range(0, n, 2**18):
        part = rows[start : start + 2**18]
        part[:] = places[rng.integers(0, k, len(part))] + 0.5 * rng.standard_normal(part.shape)
    return rows, k, {"bounds": (-4, 4)}

def took(action):
    cpu, wall = time.process_time(), time.perf_counter()
    action()
    return time.process_time() - cpu, time.perf_counter() - wall
"""
BESIDE = """
name, repeats = sys.argv[1], int(sys.argv[2])
n, d = (100_000, 100) if name.startswith("100 000 x") else (1_000_000, 20)
rows, k, domain = mnist() if name.startswith("MNIST") else made(n, d)
PrivateKMeans(k, delta=1e-6, **domain).fit(rows[:2000])  # compiles
for seed in range(repeats):
    memory.reset()
    before = memory.now()
    mine = took(lambda: PrivateKMeans(k, delta=1e-6, **domain).fit(rows))
    extra = memory.peak() - before
    print(*mine, *took(lambda: KMeans(k, n_init=1, random_state=seed).fit(rows)), extra)
"""
GROW = """
sizes = [int(size) for size in sys.argv[1:]]
rows, k, domain = made(max(sizes), 20)
PrivateKMeans(k, delta=1e-6, **domain).fit(rows[:2000])  # compiles
for size in sizes:
    memory.reset()
    before = memory.now()
    cpu, _ = took(lambda: PrivateKMeans(k, delta=1e-6, **domain).fit(rows[:size]))
    print(cpu, memory.peak() - before)
"""
# Rows are in a file: first it is written, in pieces, then its first rows are fitted, the file being mapped into memory.
ROWS = """
place, size = sys.argv[1], int(sys.argv[2])
if size < 0:
    rows = np.lib.format.open_memmap(place, "w+", "<f8", (-size, 2))
    places = rng.uniform(-2, 2, (16, 2))
    for start in range(0, -size, 2**20):
        part = rows[start : start + 2**20]
        part[:] = places[rng.integers(0, 16, len(part))] + 0.1 * rng.standard_normal(part.shape)
    raise SystemExit
rows = np.load(place, mmap_mode="r")[:size]
PrivateKMeans(16, delta=1e-6, bounds=(-4, 4)).fit(np.array(rows[:2000]))  # compiles
most = [memory.own()]
def watch():
    while True:
        most[0] = max(most[0], memory.own())
        time.sleep(0.05)
threading.Thread(target=watch, daemon=True).start()
cpu, wall = took(lambda: PrivateKMeans(16, delta=1e-6, bounds=(-4, 4)).fit(rows))
print(cpu, wall, most[0], memory.peak())
"""


def lines(code: str, *arguments: object) -> list[list[float]]:
    """The numbers that a child prints, line by line."""
    child = subprocess.run([sys.executable, "-c", SETUP + code, *map(str, arguments)], capture_output=True, text=True, check=True)
    return [[float(number) for number in line.split()] for line in child.stdout.splitlines()]


def run(*asked: str) -> Iterator[Bar]:
    """`asked`: of "beside", "growth" and "rows"; the first two if none is given."""
    parts = asked or ("beside", "growth")
    if "beside" in parts:
        yield from _beside()
    if "growth" in parts:
        yield from _growth()
    if "rows" in parts:
        yield from _rows()


def _beside() -> Iterator[Bar]:
    for name in SHAPES:
        if name.startswith("MNIST") and not SHARED.is_dir():
            print(f"{name}: not run, ../shared/data is not here")
            continue
        cpu, wall, other_cpu, other_wall, extra = (min(part) for part in zip(*lines(BESIDE, name, REPEATS), strict=True))
        yield Bar(f"default fit, {name}: CPU", cpu / other_cpu, MOST, " times", note=f"({cpu:.2f} s against {other_cpu:.2f} s)")
        yield Bar(
            f"default fit, {name}: wall", wall / other_wall, MOST, " times", note=f"({wall:.2f} s against {other_wall:.2f} s)"
        )
        yield Bar(f"default fit, {name}: memory beyond the table", extra, MOST_EXTRA, " MB")


def _growth() -> Iterator[Bar]:
    few, many = lines(GROW, *SIZES)
    exponent = math.log(many[0] / few[0]) / math.log(SIZES[1] / SIZES[0])
    note = f"({few[0]:.2f} s and {many[0]:.2f} s of CPU)"
    yield Bar(f"default fit, {SIZES[0]:.0e} to {SIZES[1]:.0e} rows: exponent of growth", exponent, GROWTH, note=note)
    yield Bar(f"default fit, {SIZES[1]:.0e} x 20: memory beyond the table", many[1], MOST_EXTRA, " MB")


def _rows() -> Iterator[Bar]:
    """Pages of the file that stay in memory are the system's, and go when others want it: what a fit takes is its own."""
    with tempfile.TemporaryDirectory() as folder:
        place = f"{folder}/rows.npy"
        lines(ROWS, place, -ON_DISK[-1])
        before, owned = None, []
        for size in ON_DISK:
            ((cpu, wall, own, peak),) = lines(ROWS, place, size)
            owned.append(own)
            print(
                f"{size:.0e} x 2 on disk: {cpu:.2f} s of CPU, {wall:.2f} s, {own:.0f} MB of its own, {peak:.0f} MB with the file"
            )
            if before is not None:
                exponent = math.log(cpu / before[0]) / math.log(size / before[1])
                yield Bar(f"default fit on disk, {before[1]:.0e} to {size:.0e} rows: exponent of growth", exponent, GROWTH)
            before = cpu, size
        most = f"default fit on disk, at most {ON_DISK[-1]:.0e} rows: memory beyond that of the fewest"
        yield Bar(most, max(owned) - owned[0], MOST_EXTRA, " MB")
