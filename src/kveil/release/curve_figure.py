"""A figure of a cost curve, by matplotlib. It may leave the house: its caption carries the guarantee."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kveil.release.look import BLUE, LIGHT
from kveil.release.sheet import Sheet, dress, finish, new_sheet, settings

if TYPE_CHECKING:
    from kveil.release.curve import CostCurve


def draw(curve: CostCurve, path: Path, format: str) -> None:
    """Draw `curve` into the file at `path`: the cost, where it is known, over the silhouette."""
    with settings():
        sheet_of(curve).save(path, format)


def sheet_of(curve: CostCurve) -> Sheet:
    """The figure of a cost curve."""
    sheet = new_sheet(LIGHT, 7.0, 5.0 if curve.cost is not None else 3.2, is_adaptive=False)
    panels = sheet.subplots(2 if curve.cost is not None else 1, 1, sharex=True, squeeze=False)[:, 0]
    if curve.cost is not None:
        _line(panels[0], curve, curve.cost, "estimated mean\nsquared distance")
        panels[0].set_ylim(bottom=0.0)
    _line(panels[-1], curve, np.where(curve.k > 1, curve.silhouette, np.nan), "silhouette")
    panels[-1].set_xlabel("number of clusters")
    panels[-1].xaxis.get_major_locator().set_params(integer=True)
    title = f"How many clusters? {curve.suggested} {'is clear' if curve.is_clear else 'is a guess'}"
    finish(sheet, title, curve.guarantee)
    return sheet


def _line(axes: Any, curve: CostCurve, values: Any, label: str) -> None:
    axes.plot(curve.k, values, marker="o", markersize=3.5, color=BLUE, linewidth=1.2)
    axes.axvline(curve.suggested, color=LIGHT.muted, linewidth=0.8, linestyle="-" if curve.is_clear else ":")
    axes.set_ylabel(label)
    axes.grid(color=LIGHT.faint, linewidth=0.6)
    dress(axes, LIGHT)
