"""The default `KMedian` beside private centres on roads: what stands for the cost without privacy must not cost more."""

import time
import warnings
from collections.abc import Iterator

import numpy as np

from benchmarks.bar import Bar
from benchmarks.sets import SHARED
from benchmarks.universes import demand, roads
from kveil import KMedian, PrivateKMedian

K, PEOPLE, EPSILON = 20, 5000, 4.0
CITIES = {"road_rome99": 6, "road_chicago": 3, "road_sydney": 3, "road_seattle_osm": 2}  # demands of each kind


def run(*cities: str) -> Iterator[Bar]:
    if not SHARED.is_dir():
        print("roads: not run, ../shared/data is not here")
        return
    for city in cities or CITIES:
        n_demands = CITIES[city]
        space = (setting := roads(city)()).space
        for kind in ("spread", "two"):
            ratios, start = [], time.process_time()
            for seed in range(n_demands):
                people = demand(setting, kind, PEOPLE, np.random.default_rng(100 + seed))
                with warnings.catch_warnings(action="ignore"):
                    private = PrivateKMedian(K, epsilon=EPSILON, universe=space, random_state=seed).fit(people)
                plain = KMedian(K, random_state=seed).fit(space, sample_weight=np.bincount(people, minlength=space.n_points))
                costs = [space.nearest(m.center_indices_)[1][people].sum(dtype=np.int64) for m in (plain, private)]
                ratios.append(costs[0] / costs[1])
            took = (time.process_time() - start) / n_demands
            print(f"{city}, {kind}: mean {np.mean(ratios):.4f} of {n_demands} demands, {took:.1f} s of CPU per demand")
            yield Bar(f"{city}, {kind}, epsilon {EPSILON:g}: dearest KMedian over private centres", max(ratios), 1.0)
