"""Edge lists on disk, and how vertices that have names get numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.errors import InvalidValue, SourceError

Names = NDArray[np.int64] | NDArray[np.str_]
_SAVE = "Save a graph with numpy.savez(path, edges=pairs, w=lengths)."

EdgeList = tuple[NDArray[np.int64], NDArray[np.float64] | None, int | None, Names | None]


def read_edges(path: Path) -> EdgeList:
    """Edges, lengths, number of vertices and names, each but the first only where the file has them."""
    if not path.is_file():
        raise SourceError(f"there is no file {path}. Pass the path of an edge list: text lines `u v [length]`, or an .npz.")
    return _from_npz(path) if path.suffix == ".npz" else _from_text(path)


def numbered(nodes: Sequence[Any]) -> tuple[dict[Any, int], Names | None]:
    """A number for every distinct node, and the names in that order; no names if the nodes are 0 to n - 1."""
    if all(isinstance(node, int | np.integer) and not isinstance(node, bool) and abs(int(node)) < 2**63 for node in nodes):
        whole = np.array(sorted({int(node) for node in nodes}), dtype=np.int64)
        number = {int(name): place for place, name in enumerate(whole)}
        return number, None if np.array_equal(whole, np.arange(len(whole))) else whole
    texts = {node: str(node) for node in nodes}
    if len(set(texts.values())) < len(texts):
        raise InvalidValue("two vertices have names that read alike, such as 1 and '1': rename one of them.")
    if any(text.endswith("\0") for text in texts.values()):
        raise InvalidValue("the name of a vertex ends in a zero byte, which no array of names keeps: rename it.")
    names = np.array(sorted(texts.values()), dtype=np.str_)
    place = {str(name): i for i, name in enumerate(names)}
    return {node: place[text] for node, text in texts.items()}, names


def _from_npz(path: Path) -> EdgeList:
    try:
        with np.load(path, allow_pickle=False) as held:
            arrays = {name: held[name] for name in held.files if name in ("edges", "w", "lengths", "n")}
    except Exception:  # numpy, zipfile and zlib complain each in their own way
        raise SourceError(f"{path} is no .npz file, or damaged. {_SAVE}") from None
    if "edges" not in arrays:
        raise SourceError(f"{path} has no array edges. {_SAVE}")
    n = arrays.get("n", np.empty(0))
    n_points = int(n.item()) if n.size == 1 and n.dtype.kind in "iuf" and np.isfinite(n).all() else None
    return arrays["edges"], arrays.get("w", arrays.get("lengths")), n_points, None


def _from_text(path: Path) -> EdgeList:
    ends: list[str] = []
    lengths: list[float] = []
    n_columns = 0
    for place, line in enumerate(lines_of(path), start=1):
        cells = cells_of(line.partition("#")[0])
        if not cells:
            continue
        n_columns = n_columns or len(cells)
        if len(cells) != n_columns or n_columns not in (2, 3):
            raise SourceError(f"{path}, line {place}: every line must be `u v` or every line `u v length`.")
        ends += cells[:2]
        if n_columns == 3:
            lengths.append(_length(cells[2], path, place))
    if not ends:
        raise SourceError(f"{path} holds no edges: lines `u v` or `u v length` are expected.")
    called = _whole(ends)
    number, names = numbered(called)
    edges = np.array([number[end] for end in called], dtype=np.int64).reshape(-1, 2)
    return edges, np.array(lengths) if n_columns == 3 else None, len(number), names


def cells_of(line: str) -> list[str]:
    """The columns of a line: parted by commas if it has some, else by tabs, else by blanks, so that names may hold blanks."""
    mark = next((mark for mark in ",\t" if mark in line), None)
    return line.split() if mark is None else [cell.strip() for cell in line.strip().split(mark)]


def lines_of(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").split("\n")
    except (UnicodeDecodeError, OSError) as trouble:
        raise SourceError(f"{path} cannot be read as text in UTF-8.") from trouble


def _whole(names: list[str]) -> Sequence[Any]:
    """Whole numbers, if all names are such, written as Python writes them."""
    if all(name.removeprefix("-").isdecimal() and name.isascii() for name in set(names)):
        whole = [int(name) for name in names]
        if all(str(number) == name for number, name in zip(whole, names, strict=True)):
            return whole
    return names


def _length(cell: str, path: Path, place: int) -> float:
    try:
        return float(cell)
    except ValueError:
        raise SourceError(f"{path}, line {place}: the length is not a number. Put # before headings.") from None
