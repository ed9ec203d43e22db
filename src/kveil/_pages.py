"""A page of HTML that needs no other file: read in light and dark, on a phone and on paper. And what notebooks show."""

from __future__ import annotations

from html import escape

STYLE = (
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,'Segoe UI',sans-serif;max-width:75em;margin:2em auto;"
    "padding:0 1em}svg{display:block}.wide{overflow-x:auto}.wide svg{max-width:100%;height:auto}"
    "table{border-collapse:collapse;font-size:90%}"
    "td,th{border-bottom:1px solid #8888;padding:.35em .7em;text-align:left;vertical-align:top}td:first-child{white-space:nowrap}"
    "tr.round td{opacity:.75;font-size:90%}code{min-width:9em;display:inline-block;word-break:break-all}"
    "@media(max-width:44rem){.wide svg{max-width:none}}"
    "@media print{body{margin:0;font-size:10pt}.wide{overflow:visible}}"
)


def page(title: str, body: str) -> str:
    """A page with a heading of its title. Both are HTML."""
    wide = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    head = f'<head><meta charset="utf-8">{wide}<title>{title}</title><style>{STYLE}</style></head>'
    return f'<!doctype html>\n<html lang="en">{head}\n<body><h1>{title}</h1>\n{body}\n</body></html>\n'


def scrolling(content: str) -> str:
    """HTML that scrolls by itself where it is wider than the page, with a keyboard too."""
    return f'<div class="wide" tabindex="0">{content}</div>'


class Preformatted:
    """What a notebook shows as it is printed: a table with its lines below each other."""

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"
