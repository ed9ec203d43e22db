"""Parts of a report that its sections share: text as HTML, warnings, and frames that scroll."""

from __future__ import annotations

from html import escape

from kveil.release.numbers import with_powers
from kveil.release.words import printable

HINT = '<p class="wider" aria-hidden="true">What is wider than the page scrolls sideways.</p>'  # many hide the bar


def shown(text: str, *, keep_lines: bool = False) -> str:
    """Text as HTML that shows it literally, without characters that steer what shows it."""
    lines = text.split("\n") if keep_lines else [with_powers(text)]
    return "\n".join(escape(printable(line, len(line))) for line in lines)


def facts(rows: list[tuple[str, str]]) -> str:
    """Names and values, for a list of them."""
    return "".join(f"<div><dt>{name}</dt><dd>{shown(text)}</dd></div>" for name, text in rows)


def warning(title: str, text: str) -> str:
    return f'<section class="warning" role="alert"><h2>{shown(title)}</h2><p>{shown(text)}</p></section>'


def scrolling(tag: str, label: str, content: str) -> str:
    """HTML in a frame that scrolls by itself, with a keyboard too; it says so where it does (report.css)."""
    frame = f'class="scroll" tabindex="0" role="region" aria-label="{label}"'
    return f'<{tag} {frame}><div class="inside">{HINT}{content}</div></{tag}>'
