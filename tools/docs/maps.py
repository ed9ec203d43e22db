"""Maps of the made-up town: its rows, its cells and its centres, drawn alike in all pictures."""

from __future__ import annotations

from typing import Any

import numpy as np

from tools.docs.drawing import BLUE, DENSITY, ORANGE, bare

CELLS, TINY = 20, 0.25  # cells per side, and an epsilon at which noise is seen


def dots(axes: Any, rows: Any, colour: str = BLUE) -> None:
    axes.plot(*rows.T, ".", ms=1.8, color=colour, alpha=0.55, rasterized=True)
    frame(axes)


def cells(axes: Any, table: Any, most: float) -> None:
    axes.imshow(np.clip(table.T, 0, None), origin="lower", extent=(0, 10, 0, 10), cmap=DENSITY, vmin=0, vmax=most)
    frame(axes)


def frame(axes: Any) -> None:
    bare(axes)
    axes.set(xlim=(0, 10), ylim=(0, 10))


def centres(axes: Any, centers: Any) -> None:
    axes.plot(*centers.T, "o", color=ORANGE, ms=9, mec="white")
