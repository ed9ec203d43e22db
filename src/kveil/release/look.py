"""Colours of pictures, for light and dark pages. Blue and orange are told apart by everyone (Okabe and Ito).

Areas are translucent, so that they look right on both; only lines and text change. In theme "auto" an SVG asks the page, or the
reader's system, which of the two it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any, Literal

from kveil.errors import InvalidValue

Theme = Literal["light", "dark", "auto"]
BLUE, ORANGE = "#2a84c6", "#d55e00"  # of areas: below and above, rows and centres


@dataclass(frozen=True)
class Look:
    """ink: text; muted: text that matters less; faint: grids and frames; paper: the ground; mark: centres; warn: no promise."""

    ink: str
    muted: str
    faint: str
    paper: str
    mark: str
    warn: str


LIGHT = Look(ink="#1f2328", muted="#59636e", faint="#d1d9e0", paper="#fffffe", mark="#b34700", warn="#cf222e")
DARK = Look(ink="#e6edf3", muted="#9ea7b3", faint="#3d444d", paper="#1e2129", mark="#ffa657", warn="#ff7b72")


def look_of(theme: Any) -> Look:
    """The colours of a theme; "auto" is drawn light, and changes when it is shown."""
    if theme not in ("light", "dark", "auto"):
        raise InvalidValue(f'theme must be "light", "dark" or "auto", got {theme!r}.')
    return DARK if theme == "dark" else LIGHT


def with_variables(svg: str) -> str:
    """An SVG drawn light whose colours are variables, --kveil-ink and so on, which the page that it is part of sets."""
    for field in fields(Look):
        svg = re.sub(getattr(LIGHT, field.name), f"var(--kveil-{field.name})", svg, flags=re.IGNORECASE)
    return svg


def adaptive(svg: str) -> str:
    """An SVG drawn light whose colours follow the reader's system."""
    svg = with_variables(svg)
    light, dark = (variables(look) for look in (LIGHT, DARK))
    style = f"<style>:root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}</style>"
    return re.sub(r"(<svg\b[^>]*>)", lambda found: found[1] + style, svg, count=1)


def variables(look: Look) -> str:
    """The colours as declarations of CSS."""
    return "".join(f"--kveil-{field.name}:{getattr(look, field.name)};" for field in fields(Look))
