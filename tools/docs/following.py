"""The last line of every page names the page that comes next in the table of contents. `make docs-next` writes these lines."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]


def contents() -> list[str]:
    """All pages in order, as mkdocs.yml lists them."""
    return _listed(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])


def _listed(entry: Any) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    return [page for part in (entry if isinstance(entry, list) else entry.values()) for page in _listed(part)]


def with_next(text: str, title: str, target: str) -> str:
    return re.sub(r"\n*Next: \[[^\n]*\n*\Z", "\n", text).rstrip("\n") + f"\n\nNext: [{title}]({target})\n"


def _place(page: str) -> Path:
    file = ROOT / "docs" / page
    return file if file.exists() else ROOT / f"{file.stem.upper()}.md"


if __name__ == "__main__":
    order = contents()
    for page, after in itertools.pairwise(order):
        file, place = ROOT / "docs" / page, _place(after)
        if file.exists():  # the others are made from files in the root
            title = re.search(r"^# (.*)$", place.read_text(encoding="utf-8"), flags=re.M)
            assert title, after
            target = after if place.parent.name == "docs" else f"../{place.name}"
            file.write_text(with_next(file.read_text(encoding="utf-8"), title[1], target), encoding="utf-8")
