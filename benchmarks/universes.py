"""Public universes and private demands of the benchmarks. Some are read from ../shared/data."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits

from benchmarks.sets import SHARED
from kveil import Euclidean, Graph, Precomputed
from kveil.space.universe import Space

NEIGHBOURHOOD = 560  # junctions
TABULATED = 5000  # points


class Setting(NamedTuple):
    """A universe and, where it has any, the class of every point."""

    space: Space
    classes: np.ndarray | None = None


def clusters(far: float, n: int = 3000, n_clusters: int = 10) -> Setting:
    """The paper's synthetic graph: clusters of near vertices, ten links between any two, of length 0.5 to `far`."""
    rng, size = np.random.default_rng(0), n // n_clusters
    edges, lengths = [], []
    for a in range(n_clusters):
        i, j = np.triu_indices(size, 1)
        kept = rng.random(len(i)) < 0.2
        edges.append(np.column_stack([i[kept], j[kept]]) + a * size)
        lengths.append(rng.random(int(kept.sum())))
        for b in range(a):
            edges.append(np.column_stack([rng.integers(0, size, 10) + a * size, rng.integers(0, size, 10) + b * size]))
            lengths.append(rng.uniform(0.5, far, 10))
    space = Graph.from_edges(np.concatenate(edges), lengths=np.concatenate(lengths), n_points=n)
    return Setting(tabulated(space), np.repeat(np.arange(n_clusters), size))


def mnist(n: int = 10_000) -> Setting:
    with np.load(SHARED / "mnist.npz") as file:
        picked = np.random.default_rng(0).choice(len(file["y"]), n, replace=False)
        return Setting(Euclidean(file["x"][picked].astype(float)), file["y"][picked])


def digits() -> Setting:
    table = load_digits()
    return Setting(Euclidean(table.data), table.target)


def words() -> Setting:
    with np.load(SHARED / "wordvec_top20k.npz") as file:
        rows = file["xq"].astype(float)
    return Setting(Euclidean(rows / np.linalg.norm(rows, axis=1, keepdims=True)))


def roads(name: str) -> Callable[[], Setting]:
    def make() -> Setting:
        with np.load(SHARED / f"{name}.npz") as file:
            lengths = file["w"].astype(float) if "w" in file.files else None
            return Setting(tabulated(Graph.from_edges(file["edges"], lengths=lengths, n_points=int(file["n"]))))

    return make


def tabulated(space: Graph) -> Space:
    """Small graphs as a table of their distances, which dozens of fits then share."""
    return Precomputed(space.distances(np.arange(space.n_points))) if space.n_points <= TABULATED else space


def demand(setting: Setting, kind: str, size: int, rng: np.random.Generator) -> np.ndarray:
    """ "spread": anywhere. "two": in two random classes, or two neighbourhoods where points have no class."""
    space, classes = setting
    if kind == "spread":
        return rng.integers(0, space.n_points, size)
    if classes is not None:
        return rng.choice(np.flatnonzero(np.isin(classes, rng.choice(np.unique(classes), 2, replace=False))), size)
    middles = space.distances(rng.choice(space.n_points, 2, replace=False))
    return rng.choice(np.unique(np.argsort(middles, axis=1, kind="stable")[:, :NEIGHBOURHOOD]), size)


MAKERS: dict[str, Callable[[], Setting]] = {
    "graph, r = 1": lambda: clusters(1.0),
    "graph, r = 100": lambda: clusters(100.0),
    "digits": digits,
    "MNIST": mnist,
    "Chicago": roads("road_chicago"),
    "Facebook": roads("graph_facebook_ego"),
    "power grid": roads("graph_power_grid"),
    "Sydney": roads("road_sydney"),
    "words": words,
}
EVERYWHERE = ("graph, r = 1", "graph, r = 100", "digits")  # made without ../shared/data
