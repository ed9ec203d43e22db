"""Pictures in files: what is refused before anything is drawn, whatever the picture shows."""

from __future__ import annotations

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
        import_module("matplotlib")
        return import_module(module)
    except ImportError:
        pass
    raise MissingExtra('a picture in a file needs matplotlib. Install it: pip install "kveil[report]"')
