"""A universe of vertices, with shortest paths for distances. No n x n matrix is ever built."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from kveil.errors import InvalidType, InvalidValue
from kveil.space import _graph_kernels as kernels
from kveil.space.arcs import FARTHEST, Arcs, arcs
from kveil.space.edge_list import numbered, read_edges
from kveil.space.universe import Distances, Nearest, Universe, indices, seal
from kveil.space.untyped import are_places, is_typed, listed, text
from kveil.space.vertex_places import Ground, coordinates, node_attributes, read_xy, width_of

Names = NDArray[np.int64] | NDArray[np.str_]


class Graph(Universe):
    """A public universe of vertices whose distances are shortest paths along undirected edges.

    Made by `from_edges`, `from_scipy`, `from_networkx` or `read`. Whole lengths are kept; fractions are rounded up to multiples
    of `step`, a power of two. `truncate`, a public length, caps every distance: min(distance, truncate) is a metric again. It is
    the only way to take a graph of several pieces, and it lowers how much one person can weigh in a search.

    Points are numbered 0 to n_points - 1. Where vertices have names, `names` lists them and `find` turns them into numbers.
    Where they have coordinates (`xy`, kept as `points`), a demand may be positions: each counts at its nearest vertex, as `snap`
    says. Distances stay those along edges.

    Attributes
    ----------
    n_points : int
        Number of vertices.
    names : array or None
        Names of the vertices, if they have any.
    points : array (n_points, 2)
        Their coordinates, if they were given as `xy`.
    degrees : bool
        Whether these are longitude and latitude.
    step : float
        What one unit of an exact distance is, in the units of the lengths.
    diameter : int
        No distance is longer; in steps.
    indptr, heads, lengths : array
        The edges, as a sparse matrix keeps them.

    Examples
    --------
    >>> town = Graph.from_edges([[0, 1], [1, 2], [2, 3]], lengths=[2, 2, 5])
    >>> town.distances([0]).tolist()
    [[0, 2, 4, 9]]
    >>> town.nearest([0, 3])[0].tolist()
    [0, 0, 0, 1]
    """

    kind = "graph"

    def __init__(self, found: Arcs, names: Names | None = None, xy: ArrayLike | None = None, *, degrees: bool = False) -> None:
        if not isinstance(found, Arcs):
            raise InvalidType("a Graph is made by Graph.from_edges, from_scipy, from_networkx or read: call one of them.")
        self.indptr, self.heads, self.lengths = found.indptr, found.heads, found.lengths
        self.step, self.diameter = found.step, found.diameter
        self.n_points = len(found.indptr) - 1
        self.names = names
        self.degrees = degrees
        if names is not None:
            seal(names)
        if xy is not None:
            self.points = coordinates(xy, self.n_points, degrees=degrees)

    @classmethod
    def from_edges(
        cls, edges: ArrayLike, *, lengths: ArrayLike | None = None, n_points: int | None = None, truncate: float | None = None,
        xy: ArrayLike | None = None, degrees: bool = False,
    ) -> Self:  # fmt: skip
        """A graph from pairs of vertex numbers, (m, 2), and a length each; 1 if none are given.

        Parameters
        ----------
        edges : array-like
            (m, 2) pairs of vertex numbers.
        lengths : array-like, optional
            (m,) lengths; 1 each if none are given.
        n_points : int, optional
            How many vertices there are, if some have no edge.
        truncate : float, optional
            Distances above it count as it.
        xy : array-like, optional
            Public coordinates (n_points, 2) of the vertices, in their order: for positions as a demand, pictures and maps.
        degrees : bool, default False
            Whether they are longitude and latitude. A degree of longitude is then as long as it is at the middle latitude.
        """
        return cls(arcs(edges, lengths, n_points, truncate), None, xy, degrees=degrees)

    @classmethod
    def from_scipy(cls, adjacency: Any, *, truncate: float | None = None) -> Self:
        """A graph from a SciPy sparse matrix of lengths. Every stored entry is an edge, stored zeros too.

        As with `directed=False` in SciPy: if both (u, v) and (v, u) are stored, the shorter one counts.

        Parameters
        ----------
        adjacency : sparse matrix
            (n_points, n_points) lengths.
        truncate : float, optional
            As in `from_edges`.
        """
        if not hasattr(adjacency, "tocoo"):
            raise InvalidType("adjacency must be a SciPy sparse matrix of lengths. A matrix of distances goes to Precomputed.")
        stored = adjacency.tocoo()
        if len(stored.shape) != 2 or stored.shape[0] != stored.shape[1]:
            raise InvalidValue("adjacency must be square: one row and one column a vertex.")
        lengths = stored.data.astype(np.int8) if stored.dtype.kind == "b" else stored.data
        edges = np.column_stack([stored.row, stored.col])
        return cls.from_edges(edges, lengths=lengths, n_points=stored.shape[0], truncate=truncate)

    @classmethod
    def from_networkx(
        cls, graph: Any, *, length: str | None = "weight", truncate: float | None = None, xy: tuple[str, str] | str | None = None,
        degrees: bool = False,
    ) -> Self:  # fmt: skip
        """A graph from an undirected networkx graph; `length` names the edge attribute, None counts every edge as 1.

        The usual "weight" may be missing on all edges, which then count as 1, but not on some; another attribute must be on all.

        Nodes 0 to n - 1 keep their numbers; others are numbered in sorted order and listed in `names`.

        Parameters
        ----------
        graph : networkx.Graph
            The graph.
        length : str or None, default "weight"
            The edge attribute that holds lengths.
        truncate : float, optional
            As in `from_edges`.
        xy : (str, str) or str, optional
            Node attributes that hold coordinates: two names, such as ("x", "y") of OSMnx, or one name of pairs, such as "pos".
        degrees : bool, default False
            As in `from_edges`.
        """
        if not hasattr(graph, "is_directed") or not hasattr(graph, "edges"):
            raise InvalidType("graph must be a networkx graph.")
        if graph.is_directed():
            raise InvalidValue("graph is directed, so its distances are not symmetric. Pass graph.to_undirected() instead.")
        n_missing = 0 if length is None else sum(length not in held for _, _, held in graph.edges(data=True))
        if n_missing and (length != "weight" or n_missing < graph.number_of_edges()):
            raise InvalidValue(
                f"some edges have no attribute {length!r}, so their length is not known. Name another with length=..., or pass "
                "length=None to count every edge as 1."
            )
        number, names = numbered(list(graph.nodes))
        triples = [(number[u], number[v], 1 if length is None else x) for u, v, x in graph.edges(data=length or True, default=1)]
        edges, lengths = np.array([t[:2] for t in triples], dtype=np.int64), np.array([t[2] for t in triples])
        spots = None if xy is None else node_attributes(graph, number, xy)
        return cls(arcs(edges, lengths, len(number), truncate), names, spots, degrees=degrees)

    @classmethod
    def read(
        cls, path: str | Path, *, truncate: float | None = None, xy: str | Path | ArrayLike | None = None, degrees: bool = False
    ) -> Self:
        """A graph from an edge list: a text file of lines `u v [length]`, or an .npz with edges, and perhaps w and n.

        Columns are parted by commas or tabs, or else by spaces, which names may then not hold; whatever follows # is a comment.
        Vertices 0 to n - 1 are used as they are, others are numbered in sorted order and listed in `names`.

        Parameters
        ----------
        path : str or path
            The file.
        truncate : float, optional
            As in `from_edges`.
        xy : array-like, str or path, optional
            Coordinates of the vertices: an array in their order, an .npy of one, or a text file of lines `vertex x y`. An .npz
            with an array xy holds them already.
        degrees : bool, default False
            As in `from_edges`.
        """
        edges, lengths, n_points, names = read_edges(Path(path))
        found = arcs(edges, lengths, n_points, truncate)
        beside = path if xy is None and Path(path).suffix == ".npz" else xy
        if isinstance(beside, str | Path):
            beside = read_xy(Path(beside), names, len(found.indptr) - 1)
        return cls(found, names, beside, degrees=degrees)

    def distances(self, sources: ArrayLike, targets: ArrayLike | None = None) -> Distances:
        """Shortest paths in steps, one row a source, one column a target; all points if no targets are given.

        One search a source, or a target if those are fewer, that stops once all it is asked for are settled.
        """
        rows = indices(sources, self.n_points, "sources")
        if targets is None:
            return self._searched(rows, None)
        columns = indices(targets, self.n_points, "targets")
        if len(columns) < len(rows):
            return np.ascontiguousarray(self._searched(columns, rows).T)
        return self._searched(rows, columns)

    def claim(self, site: int, label: int, best: Distances, owner: NDArray[np.int32]) -> None:
        """Give every point strictly nearer to `site` than best[u] to `label`, in place; looks at no others but their edges."""
        start = self._one(site, best, owner)
        kernels.claim(self.indptr, self.heads, self.lengths, start, int(label), self.diameter, best, owner)

    def nearest(self, centers: ArrayLike) -> Nearest:
        """Nearest and second nearest centre of every point, by one search; ties to the lowest position."""
        sites = indices(centers, self.n_points, "centers")
        if not sites.size:
            raise InvalidValue("centers must hold at least one point.")
        owner, first, second, runner = (np.empty(self.n_points, dtype=np.int32) for _ in range(4))
        kernels.two_nearest(self.indptr, self.heads, self.lengths, sites, self.diameter, owner, first, second, runner)
        return owner, first, second, runner

    def reach(self, site: int, limit: Distances) -> tuple[NDArray[np.int32], Distances]:
        """The points u nearer to `site` than limit[u], in order of distance, and their distances.

        limit: at most `diameter`, and no steeper than distance itself: |limit[u] - limit[v]| <= distance(u, v). Distances to the
        nearest or second nearest of some centres are such limits, and so is their minimum with a number.
        """
        start = self._one(site, limit)
        tentative, found = np.full(self.n_points, FARTHEST, dtype=np.int32), np.empty(self.n_points, dtype=np.int32)
        count = kernels.reach(self.indptr, self.heads, self.lengths, start, limit, tentative, found)
        return found[:count].copy(), tentative[found[:count]]

    def find(self, names: Any) -> NDArray[np.int64]:
        """The point number of every name, one by one. A name that no vertex has is point 0: demand never raises.

        >>> import networkx
        >>> Graph.from_networkx(networkx.path_graph(["home", "work", "zoo"])).find(["zoo", "home", "moon"]).tolist()
        [2, 0, 0]
        """
        if isinstance(names, str) or getattr(names, "ndim", 1) != 1:
            raise InvalidType("names must be flat, one name a row of the demand.")
        return np.array([self._points.get(text(name), 0) for name in listed(names)], dtype=np.int64)

    def snap(self, positions: Any) -> NDArray[np.int64]:
        """The vertex nearest to every position (m, 2), as the crow flies; ties to the smallest number. Needs `xy`.

        Row by row, and nothing that a row holds raises: a position outside is moved to the border of the vertices' box first, and
        one with NaN or infinity counts at the vertex nearest to the middle of that box. For whoever holds the rows: a vertex
        of a private row is as private as the row. `PrivateKMedian(universe=graph).fit(positions)` does it inside the fit.

        >>> square = Graph.from_edges([[0, 1], [1, 2], [2, 3], [3, 0]], xy=[[0, 0], [0, 1], [1, 1], [1, 0]])
        >>> square.snap([[0.1, 0.8], [9.0, 0.2], [float("nan"), 0.0]]).tolist()
        [1, 3, 0]
        """
        return self._ground.snap(positions)

    def locate(self, rows: Any) -> NDArray[np.int64]:
        """Rows are point numbers, (m,) or (m, 1), or names where they are text; or positions (m, 2), where vertices have some.

        In a list each element is one of these by itself. What is neither a number of a vertex nor a name is point 0; of
        positions see `snap`.
        """
        is_place = None if self.points is None else are_places(rows, self.points.shape[1])
        if is_place is not None:  # a list has no type: were one row to say what it holds, it would move all others
            others = self._named([None if one else row for row, one in zip(rows, is_place, strict=True)])
            return np.where(is_place, self.snap(rows), others).astype(np.int64)
        if self.points is not None and width_of(rows) == self.points.shape[1]:
            return self.snap(rows)
        return self._named(rows)

    def _named(self, rows: Any) -> NDArray[np.int64]:
        """Rows that are numbers or names of points."""
        if is_typed(rows):
            return super().locate(rows)
        if getattr(rows, "ndim", 1) > 2:
            raise InvalidType("demand must be point numbers or names: one column of them.")
        entries = listed(rows)
        numbers = super().locate([None if isinstance(entry, str) else entry for entry in entries])
        names = self.find([entry if isinstance(entry, str) else None for entry in entries])
        return np.where([isinstance(entry, str) for entry in entries], names, numbers).astype(np.int64)

    def locations(self) -> NDArray[np.int64]:
        """For every vertex the smallest vertex that edges of length 0 connect it to."""
        is_free = self.lengths == 0
        tails = np.repeat(np.arange(self.n_points), np.diff(self.indptr))[is_free]
        merged = coo_array((np.ones(len(tails)), (tails, self.heads[is_free])), shape=(self.n_points, self.n_points))
        _, piece = connected_components(merged, directed=False)
        return np.asarray(np.unique(piece, return_index=True)[1][piece], dtype=np.int64)

    def identity(self) -> dict[str, Any]:
        """Kind, number of points and a digest of all distances; of coordinates what they are, and a digest."""
        return super().identity() if self.points is None else {**super().identity(), **self._ground.identity()}

    @cached_property
    def _ground(self) -> Ground:
        return Ground(self.points, degrees=self.degrees)

    @cached_property
    def _points(self) -> dict[str | None, int]:
        """The point of every name, as it is written."""
        names = range(self.n_points) if self.names is None else self.names.tolist()
        return {str(name): point for point, name in enumerate(names)}

    def __repr__(self) -> str:
        return f"Graph(n_points={self.n_points}, n_edges={len(self.heads) // 2}, diameter={self.diameter * self.step:g})"

    def _searched(self, sources: NDArray[np.int64], targets: NDArray[np.int64] | None) -> Distances:
        wanted = np.ones(self.n_points, dtype=np.int8)
        if targets is not None:
            wanted[:] = 0
            wanted[targets] = 1
        out = np.empty((len(sources), self.n_points if targets is None else len(targets)), dtype=np.int32)
        apart = np.empty(self.n_points, dtype=np.int32)
        for i, site in enumerate(sources):
            kernels.sweep(self.indptr, self.heads, self.lengths, site, self.diameter, wanted, apart)
            out[i] = apart if targets is None else apart[targets]
        return out

    def _contents(self) -> tuple[NDArray[np.signedinteger[Any]], ...]:
        return self.indptr, self.heads, self.lengths
