"""`Release.plot`: a picture of a release, refused in words before anything is drawn."""

from __future__ import annotations

from dataclasses import fields, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kveil._pictures import drawing, format_of
from kveil.errors import InvalidValue

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kveil.release.release import Release


def plot(release: Release, path: str | PathLike[str] | None = None, **options: Any) -> Figure:
    """The figure; saved to `path` too, if there is one."""
    format = None if path is None else format_of(Path(path))
    figure = drawing("kveil.release.figure")
    known = [field.name for field in fields(figure.Options)]
    if unknown := sorted(set(options) - set(known)):
        raise InvalidValue(f"plot has no option {', '.join(unknown)}. It takes {', '.join(known)}.")
    if options.get("universe") is not None:
        release = on_universe(release, options["universe"])
    drawn: Figure = figure.sheet_of(release, figure.Options(**options))
    if path is not None and format is not None:
        figure.save(drawn, Path(path), format)
    return drawn


def on_universe(release: Release, universe: Any) -> Release:
    """The release with the coordinates that its universe has; refused if it is another universe."""
    points = getattr(universe, "points", None)
    if release.n_features is not None or points is None:
        raise InvalidValue(
            "universe is for a release among points with coordinates. Make the graph with xy=..., and pass the one of the fit."
        )
    told = release.parameters.get("universe")
    if isinstance(told, dict) and told.get("sha256") != universe.identity()["sha256"]:
        raise InvalidValue("this is not the universe of the release: its digest differs. Pass the one that was fitted on.")
    coordinates = {key: value for key, value in universe.identity().items() if key == "coordinates"}
    parameters = {**release.parameters, "universe": {**(told if isinstance(told, dict) else {}), **coordinates}}
    return replace(release, places=np.asarray(points)[release.centers], parameters=parameters)
