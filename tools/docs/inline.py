"""SVG pictures as part of a page: their lines and text then follow the colours of the page, light or dark."""

from __future__ import annotations

import re
from pathlib import Path

IMAGE = re.compile(r'<img\b[^>]*?\bsrc="(images/[\w/-]+\.svg)"[^>]*?>')
OUTPUT = re.compile(r'(<div class="language-text highlight"><pre>(?:<span></span>)?<code>)(.*?)(</code>)', re.S)
FITS = 44  # characters of an output that a phone shows without scrolling


def inlined(html: str, docs: Path) -> str:
    return IMAGE.sub(lambda found: _one(found[0], docs / found[1]), html)


def _one(image: str, path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if "currentColor" not in text and "--kveil-ink" not in text:  # drawn for a ground of its own
        return image
    text = re.sub(r"<style>:root.*?</style>|<metadata>.*?</metadata>", "", text, flags=re.S)  # the page has these colours
    alt = re.search(r'\balt="([^"]*)"', image)
    svg = text[text.index("<svg") :]
    svg = re.sub(r'\bid="', f'id="{path.stem}-', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\1{path.stem}-", svg)
    svg = re.sub(r'<svg\b([^>]*?) width="[^"]*"', r"<svg\1", svg, count=1)
    svg = re.sub(r'<svg\b([^>]*?) height="[^"]*"', r"<svg\1", svg, count=1)
    return svg.replace("<svg", f'<svg class="drawn" role="img" aria-label="{alt[1] if alt else path.stem}"', 1)


def with_prose_marked(html: str) -> str:
    """Lines of outputs that may wrap. Rows of tables, by rulers or by columns of spaces, keep their length."""
    return OUTPUT.sub(_marked, html)


def _marked(found: re.Match[str]) -> str:
    return found[1] + re.sub(rf"[^\n]{{{FITS + 1},}}", _line, found[2]) + found[3]


def _line(found: re.Match[str]) -> str:
    is_row = re.search(r"^\||[┃│<]|\S {2,}\S[^\n]* {2,}\S", found[0])
    return found[0] if is_row else f'<span class="prose">{found[0]}</span>'
