"""A tree for people to look at: lines of text, or a picture in a file. Small trees whole, large ones down to where it fits."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kveil import _pictures
from kveil.errors import InvalidValue

if TYPE_CHECKING:
    from kveil.partition.hst import Hst


def text(tree: Hst, width: int = 100, height: int = 60) -> str:
    """At most `height` lines of at most `width` characters, plain ASCII: a terminal may know no others."""
    if width < 24 or height < 2:
        raise InvalidValue("a drawing needs at least 24 columns and 2 lines.")
    is_open = expanded(tree, height - 1)
    lines = [
        f"points: {tree.space.n_points}, leaves: {len(tree.leaves)}, height: {tree.height}, factor of radii: {tree.factor:.3g}"
    ]
    stack = [(0, "", "")]
    while stack:
        node, before, below = stack.pop()
        lines.append(before + _words(tree, node, bool(is_open[node])))
        children = tree.children(node).tolist() if is_open[node] else []
        for child in reversed(children):
            is_last = child == children[-1]
            stack.append((child, below + ("`-- " if is_last else "|-- "), below + ("    " if is_last else "|   ")))
    return "\n".join(line if len(line) <= width else line[: width - 3] + "..." for line in lines)


def save(tree: Hst, path: str | PathLike[str]) -> Path:
    """Draw the tree into an SVG or PNG file, by its suffix; needs matplotlib."""
    return _pictures.save("kveil.partition.tree_figure", tree, Path(path))


def expanded(tree: Hst, most: int) -> NDArray[np.bool_]:
    """Which nodes show their children, if at most `most` nodes are shown. Nodes near the root have the lowest numbers."""
    is_open = (tree.n_children > 0) & (tree.first_child + tree.n_children <= most)
    for node in np.flatnonzero(is_open[1:]) + 1:  # parents come first
        is_open[node] = is_open[tree.parent[node]]
    return np.asarray(is_open)


def label(tree: Hst, node: int) -> str:
    """The members of a node in a word or two."""
    size = int(tree.stop[node] - tree.start[node])
    return f"point {tree.members[tree.start[node]]}" if size == 1 else f"{size} places"


def _words(tree: Hst, node: int, is_open: bool) -> str:
    words = label(tree, node)
    if tree.stop[node] - tree.start[node] > 1:
        words += f" within {tree.radius[node] * tree.space.step:.4g}"
        if not tree.n_children[node]:
            words += f", around point {tree.representative[node]}"
    if tree.n_children[node] and not is_open:
        words += f", {tree.n_children[node]} cells not shown"
    return words
