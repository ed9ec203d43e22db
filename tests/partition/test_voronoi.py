"""The flat partition of a universe: every point in one cell, sites in the middle, nothing but public facts."""

import numpy as np
import pytest

from kveil import Euclidean, Graph, Precomputed
from kveil.partition.voronoi import divided, spread, voronoi

RNG = np.random.default_rng(3)
POINTS = RNG.random((300, 2))
PAIRS = [[i, j] for i in range(300) for j in np.argsort(((POINTS - POINTS[i]) ** 2).sum(1))[1:5].tolist()]
SPACES = {
    "points": Euclidean(POINTS),
    "road": Graph.from_edges(PAIRS, lengths=[float(np.linalg.norm(POINTS[i] - POINTS[j])) for i, j in PAIRS], truncate=5.0),
    "matrix": Precomputed(np.abs(np.arange(60)[:, None] // 2 - np.arange(60) // 2)),  # every location twice
    "apart": Graph.from_edges([[0, 1], [2, 3], [4, 5]], n_points=8, truncate=9),  # five pieces
}


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("n_cells", [1, 4, 30, 1000])
def test_every_point_is_in_the_cell_of_a_nearest_site(name, n_cells):
    space = SPACES[name]
    cells = voronoi(space, n_cells, np.random.default_rng(0))
    assert len(cells.sites) <= min(n_cells, len(np.unique(space.locations())))
    apart = space.distances(cells.sites)
    assert (apart[cells.owner, np.arange(space.n_points)] == apart.min(axis=0)).all()
    assert (cells.owner[cells.sites] == np.arange(len(cells.sites))).all()
    assert (cells.sizes == np.bincount(cells.owner, minlength=len(cells.sites))).all()
    assert cells.sizes.min() >= 1
    assert len(np.unique(cells.groups)) == cells.groups.max() + 1 <= np.ceil(np.sqrt(len(cells.sites)))


@pytest.mark.parametrize("name", SPACES)
def test_points_at_one_location_share_a_cell(name):
    space = SPACES[name]
    cells = voronoi(space, 1000, np.random.default_rng(1))
    assert (cells.owner == cells.owner[space.locations()]).all()
    assert len(cells.sites) == len(np.unique(space.locations()))


def test_moving_sites_to_the_middle_makes_cells_narrower():
    space, pool = SPACES["points"], np.arange(300)
    spreads, rounds = [], []
    for seed in range(10):
        sites = spread(space, pool, 12, np.random.default_rng(seed))
        spreads.append(space.nearest(sites)[1].sum())
        sites, _ = divided(space, pool, pool, 12, np.random.default_rng(seed))
        rounds.append(space.nearest(sites)[1].sum())
    assert np.mean(rounds) < 0.9 * np.mean(spreads)


def test_sites_are_drawn_by_their_distance():
    """Three sites of four points at 0, 1, 3, 10 on a line, against the exact law of k-median++, drawn 6000 times.

    A batch of draws from one table must have the law of one draw after another. False alarm below 1e-9: 6.5 deviations.
    """
    places = np.array([0, 1, 3, 10])
    space = Precomputed(np.abs(places[:, None] - places))
    law, n = {}, 6_000
    for first in range(4):
        near = np.abs(places - places[first])
        for second in range(4):
            then = np.minimum(near, np.abs(places - places[second]))
            for third in range(4):
                chance = near[second] / near.sum() * (then[third] / then.sum() if then.any() else 0) / 4
                if chance:
                    law[first, second, third] = chance
    rng, pool = np.random.default_rng(0), np.arange(4)
    found = [tuple(spread(space, pool, 3, rng).tolist()) for _ in range(n)]
    assert set(found) <= set(law)
    for sites, chance in law.items():
        assert abs(found.count(sites) - n * chance) < 6.5 * np.sqrt(n * chance * (1 - chance))


@pytest.mark.filterwarnings("ignore:some distances")
def test_what_is_no_metric_is_divided_all_the_same():
    space = Precomputed(np.abs(np.arange(60)[:, None] - np.arange(60)) // 2)  # 1 is at distance 0 from 0 and from 2
    cells = voronoi(space, 59, np.random.default_rng(0))
    assert cells.sizes.sum() == 60
    assert cells.sizes.min() >= 1


def test_the_same_public_choices_give_the_same_cells():
    one, other = (voronoi(SPACES["road"], 20, np.random.default_rng(5)) for _ in range(2))
    assert (one.owner == other.owner).all()
    assert (one.groups == other.groups).all()
