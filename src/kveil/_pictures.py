"""Pictures in files: what is refused before anything is drawn, whatever the picture shows."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from kveil.errors import InvalidValue, MissingExtra

FORMATS = (".svg", ".png")


def save(module: str, shown: Any, path: Path) -> Path:
    """Draw `shown` into an SVG or PNG file, by its suffix, with the `draw` of a module that needs matplotlib."""
    format = format_of(path)
    drawing(module).draw(shown, path, format)
    return path


def format_of(path: Path) -> str:
    """The format of a picture, by the suffix of its path."""
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise InvalidValue("a picture is saved as .svg or .png. Give the path one of these suffixes.")
    return suffix[1:]


def drawing(module: str) -> Any:
    """A module that needs matplotlib; an error in words where that is missing."""
    try:
        import_matplotlib()
        return import_module(module)
    except ImportError:
        pass
    raise MissingExtra('a picture in a file needs matplotlib. Install it: pip install "kveil[report]"')


def import_matplotlib() -> None:
    """Import it, whatever MPLBACKEND names: kveil draws without a backend, and a missing one would end the import."""
    if sys.modules.get("matplotlib"):
        return
    named = os.environ.pop("MPLBACKEND", None)
    try:
        matplotlib = import_module("matplotlib")
    finally:
        if named is not None:
            os.environ["MPLBACKEND"] = named
    if named:
        with suppress(ValueError):
            matplotlib.rcParams["backend"] = named  # for pictures of the user's own
