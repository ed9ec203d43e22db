"""A campaign of 20 000 real clients in one process: signed manifests, 22-byte reports, ledgers, and a collector on disk.

The clients share one ledger in memory, with rows for each: on disk every answer waits for the disk three times, as it should on
a device, and here 20 000 devices would wait for the same one. The collector takes reports in by 10 000, durably. Four rounds, 5
columns: every device checks ten signatures in all.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.bar import Bar

PEOPLE, COLUMNS, K = 20_000, 5, 4

CAMPAIGN = f"""
import sys, time
import numpy as np
from benchmarks import memory
from kveil.collect.campaign import Campaign
from kveil.collect.rehearse import rehearse

rng = np.random.default_rng(0)
places = 0.6 * np.eye({COLUMNS})[rng.integers(0, {K}, {PEOPLE})]
points = places + rng.normal(0, 0.05, places.shape)
campaign = Campaign("benchmark", {PEOPLE}, {K}, 4, [0] * {COLUMNS}, 1.0, "refine")
start = time.perf_counter(), time.process_time()
played = rehearse(points, campaign, storage=sys.argv[1])
seconds, work = time.perf_counter() - start[0], time.process_time() - start[1]
cost = lambda centers: ((points[:, None] - centers) ** 2).sum(axis=2).min(axis=1).mean()
best = cost(0.6 * np.eye({COLUMNS})[:{K}])
print(sum(played.answered), seconds, work, memory.peak(), cost(played.result.centers) / best)
"""


def run() -> Iterator[Bar]:
    with tempfile.TemporaryDirectory() as folder:
        storage = Path(folder) / "collector.db"
        command = [sys.executable, "-c", CAMPAIGN, str(storage)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        answered, seconds, work, peak, ratio = map(float, done.stdout.split())
        size = f"({storage.stat().st_size / 2**20:.1f} MB on disk)"
    yield Bar("reports of 20 000 real clients that arrived", answered, PEOPLE, at_least=True)
    yield Bar(
        "processor time of a client in a campaign of four rounds", 1000 * work / PEOPLE, 10, " ms", note=f"({seconds:.0f} s)"
    )
    yield Bar("peak memory of the whole campaign in one process", peak, 1024, " MB", note=size)
    yield Bar("its cost over the cost of the true centres", ratio, 1.5)
