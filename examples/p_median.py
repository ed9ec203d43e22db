"""Where should ten fire stations stand, so that the way to all junctions is short? A p-median problem, without privacy.

The town is made up. Give the path of an instance of the OR-Library (pmed1.txt to pmed40.txt: a line `n m p`, then m lines
`u v length`) to solve that one instead. Nothing here is private: for a demand made of people see PrivateKMedian.
"""

import sys
from pathlib import Path

import numpy as np

from kveil import Graph, KMedian


def town(n=400, n_stations=10, seed=1):
    """Junctions in a square; a street from each to its nearest neighbours, as long as it is straight."""
    rng = np.random.default_rng(seed)
    places = rng.random((n, 2))
    lengths = np.linalg.norm(places[:, None] - places, axis=2)
    edges = np.array([(u, v) for u in range(n) for v in np.argsort(lengths[u])[1:7]])
    return Graph.from_edges(edges, lengths=np.ceil(10_000 * lengths[edges[:, 0], edges[:, 1]]).astype(int)), n_stations


def or_library(path):
    """An instance as the OR-Library writes it: of an edge that is given twice the later one counts."""
    numbers = np.array(Path(path).read_text().split(), dtype=int)
    n, _, p = numbers[:3].tolist()
    lengths = {(min(u, v) - 1, max(u, v) - 1): length for u, v, length in numbers[3:].reshape(-1, 3).tolist()}
    return Graph.from_edges(list(lengths), lengths=list(lengths.values()), n_points=n), p


streets, p = or_library(sys.argv[1]) if len(sys.argv) > 1 else town()
print(f"{streets.n_points} junctions, {p} stations\n\nsearch                                  sum of distances")
costs = {}
for what, options in {
    'one local optimum, init="random"': {"init": "random", "n_restarts": 1},
    'one local optimum, init="k-median++"': {"init": "k-median++", "n_restarts": 1},
    'one local optimum, init="hst"': {"init": "hst", "n_restarts": 1},
    "the best of 20 of them": {"n_restarts": 20},
    "one of them, perturbed 500 times": {"n_perturbations": 500},
}.items():
    model = KMedian(p, random_state=0, **options).fit(streets)
    costs[what] = model.cost_
    print(f"{what:38}  {model.cost_:16,.0f}")

best = min(costs.values())
print(f"\nstations at {sorted(model.center_indices_.tolist())}")
assert max(costs.values()) < 1.05 * best, "a local optimum is a few percent from the best at most"
assert costs["one of them, perturbed 500 times"] == best, "perturbation should find the best of all"
