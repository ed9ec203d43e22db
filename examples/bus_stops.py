"""At which six junctions should buses stop, if nobody's address may be given away?

The roads are public, the addresses are not. Private stops are compared with those that everybody's address would give, and with
those of somebody who knows the roads alone.
"""

import numpy as np
from scipy.spatial import Delaunay

from kveil import Graph, KMedian, PrivateKMedian

rng = np.random.default_rng(4)
junctions = rng.random((1500, 2)) * 20  # a made-up town, 20 km wide
corners = Delaunay(junctions).simplices
roads = np.unique(np.sort(np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]]), axis=1), axis=0)
lengths = np.linalg.norm(junctions[roads[:, 0]] - junctions[roads[:, 1]], axis=1)
town = Graph.from_edges(roads, lengths=lengths)

# 3000 made-up people live in three quarters of the town; who rides is nobody's business
quarters = np.array([[4.0, 5.0], [15.0, 4.0], [11.0, 15.0]])
homes = quarters[rng.integers(0, 3, 3000)] + rng.normal(0, 1.2, (3000, 2))
addresses = np.array([np.argmin(((junctions - home) ** 2).sum(axis=1)) for home in homes])


def way(stops: np.ndarray) -> float:
    """How far people walk to the nearest stop, on average, in km."""
    return float(town.nearest(stops)[1][addresses].mean() * town.step)


everybody = np.bincount(addresses, minlength=town.n_points)
open_books = way(KMedian(6, n_perturbations=20, random_state=0).fit(town, sample_weight=everybody).center_indices_)
roads_alone = way(KMedian(6, random_state=0).fit(town).center_indices_)
model = PrivateKMedian(6, universe=town, epsilon=1.0, random_state=0).fit(addresses)

print(f"average way to a stop: {open_books:.2f} km with open books, {roads_alone:.2f} km by the roads alone")
print(f"with privacy: {way(model.center_indices_):.2f} km, stops at junctions {np.sort(model.center_indices_)}")
print(model.guarantee_)

assert way(model.center_indices_) < 1.15 * open_books < roads_alone, "with 3000 people privacy should cost a short walk at most"
