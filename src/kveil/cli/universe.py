"""`kveil fit EDGES --metric graph --demand IDS`: a public graph, and who is where on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kveil.errors import InvalidValue, SourceError

if TYPE_CHECKING:
    from kveil.space.graph import Graph

LONGEST = 4096  # bytes of a name
LINES = (".txt", ".ids", "")  # one vertex per line; other files are tables


def check_graph_options(demand: Path | None, bounds: str | None, center: str | None, radius: float | None, scaling: Any) -> None:
    """Refuse options that say something else than a demand on a graph."""
    if demand is None:
        raise InvalidValue("--metric graph takes the roads from DATA and the people from --demand FILE, one vertex per line.")
    if any(option is not None for option in (bounds, center, radius, scaling)):
        raise InvalidValue("a graph is its own domain. Leave out --bounds, --center, --radius and --scaling.")


def read_graph(edges: Any, truncate: float | None, xy: Path | None, *, degrees: bool) -> Graph:
    """The public graph, with the coordinates of its vertices if there are some."""
    from kveil.space.graph import Graph

    if isinstance(edges, list):
        raise InvalidValue("a graph is one file of edges. Name one.")
    graph = Graph.read(edges, truncate=truncate, xy=xy, degrees=degrees)
    if degrees and graph.points is None:
        raise InvalidValue("this graph has no coordinates that could be longitude and latitude. Name a file of them with --xy.")
    return graph


def read_demand(graph: Graph, path: Path, columns: Any, person: Any, max_rows_per_person: int) -> Any:
    """Where people are. No row can raise here.

    Names of vertices, one per line; or a table with a column of their numbers, or with coordinates where the graph has them.
    """
    if path.suffix.lower() not in LINES:
        from kveil import read

        source = read(path, columns=columns, person=person, max_rows_per_person=max_rows_per_person)
        if graph.names is not None and (graph.points is None or source.n_columns != graph.points.shape[1]):
            raise InvalidValue(
                "the vertices of this graph are not called 0 to n - 1, so a column of numbers does not tell which is meant. Pass "
                "the demand as a text file with the name of one vertex per line."
            )
        return source
    if columns is not None or person is not None:
        raise InvalidValue(
            "a text file of vertices has no columns. For --columns or --person pass the demand as .csv or .parquet."
        )
    return graph.find(_lines(path))


def _lines(path: Path) -> Any:
    from kveil.source.guard import quietly

    if not path.is_file():
        raise SourceError(f"there is no file {path}. Pass a text file with one vertex per line, or a table, as --demand.")
    complaint = f"{path} cannot be read. Check that it may be."
    raw: bytes = quietly(path.read_bytes, complaint)
    lines = raw.removeprefix(b"\xef\xbb\xbf").removesuffix(b"\n").split(b"\n")  # a line is a row: no other character ends one
    rows = (line.strip() for line in lines)
    return [row[:LONGEST].decode("utf-8", "replace") for row in rows if row and not row.startswith(b"#")]
