"""A private fit on the roads of Seattle, 147 063 junctions: CPU seconds, and the memory of the whole process."""

import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np

from benchmarks import memory
from benchmarks.bar import Bar
from benchmarks.sets import SHARED
from benchmarks.universes import demand, roads
from kveil import PrivateKMedian
from kveil.solve.demand import Demand
from kveil.solve.kmedian import solve_kmedian

K, PEOPLE = 20, 5000
MOST_SECONDS, MOST_MEMORY = 40.0, 1000.0  # CPU, compiling included; MB


def run() -> Iterator[Bar]:
    if not SHARED.is_dir():
        print("Seattle: not run, ../shared/data is not here")
        return
    for kind in ("spread", "two"):
        done = subprocess.run([sys.executable, "-m", "benchmarks.seattle", kind], capture_output=True, text=True, check=True)
        seconds, used, ratio = map(float, done.stdout.split())
        where = f"Seattle, k = {K}, {PEOPLE} people, {kind}"
        yield Bar(f"{where}: CPU of a private fit", seconds, MOST_SECONDS, " s")
        yield Bar(f"{where}: memory at most", used, MOST_MEMORY, " MB")
        yield Bar(f"{where}: cost over an ordinary search", ratio, 1.15, " times")


def main(kind: str) -> None:
    """One fit in a process of its own; prints seconds, MB and the ratio of costs."""
    setting = roads("road_seattle_osm")()
    people = demand(setting, kind, PEOPLE, np.random.default_rng(0))
    start = time.process_time()
    model = PrivateKMedian(K, universe=setting.space, random_state=0).fit(people)
    seconds, used = time.process_time() - start, memory.peak()
    ordinary = solve_kmedian(setting.space, Demand.of(people), K, np.random.default_rng(0)).centers
    costs = [setting.space.nearest(centers)[1][people].sum(dtype=np.int64) for centers in (model.center_indices_, ordinary)]
    print(seconds, used, costs[0] / costs[1])


if __name__ == "__main__":
    main(sys.argv[1])
