"""Which picture of a release is drawn: a line, a map, or a profile of many columns. By matplotlib, from the release alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kveil.release import map_figure, profile_figure
from kveil.release.look import Theme, look_of
from kveil.release.picture import scene
from kveil.release.sheet import Sheet, settings

if TYPE_CHECKING:
    from kveil.release.release import Release


@dataclass(frozen=True)
class Options:
    """What `Release.plot` takes besides a path."""

    theme: Theme = "light"
    level: float = 0.95
    columns: tuple[str | int, ...] | None = None
    universe: Any = None


def draw(release: Release, path: Path, format: str) -> None:
    """Draw `release` into the file at `path`."""
    sheet_of(release, Options()).save(path, format)


def save(sheet: Sheet, path: Path, format: str) -> None:
    """Write a picture into the file at `path`."""
    sheet.save(path, format)


def sheet_of(release: Release, options: Options) -> Sheet:
    """The picture of a release."""
    look = look_of(options.theme)
    view = scene(release, options.columns)
    with settings():
        if len(view.names) <= 2:
            return map_figure.draw(release, view, look, options)
        return profile_figure.draw(release, view, look, is_adaptive=options.theme == "auto")
