"""Pictures in files: what is refused before anything is drawn, whatever the picture shows."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from kveil.errors import InvalidValue, MissingExtra


def save(module: str, shown: Any, path: Path) -> Path:
    """Draw `shown` into an SVG or PNG file, by its suffix, with the `draw` of a module that needs matplotlib."""
    suffix = path.suffix.lower()
    if suffix not in (".svg", ".png"):
        raise InvalidValue("a picture is saved as .svg or .png. Give the path one of these suffixes.")
    try:
        draw = import_module(module).draw
    except ImportError:
        draw = None
    if draw is None:  # out here, so that no other error is carried along
        raise MissingExtra('a picture in a file needs matplotlib. Install it: pip install "kveil[report]"')
    draw(shown, path, suffix[1:])
    return path
