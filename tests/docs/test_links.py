"""Every link leads somewhere: files, anchors, pictures, the table of contents, and the page that comes next."""

import itertools
import re
from pathlib import Path

import pytest
from tools.docs.blocks import pages
from tools.docs.following import contents

ROOT = Path(__file__).parents[2]
PAGES = [*pages(), ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]+))?\)|src(?:set)?=\"([^\"]+)\"")
MADE = {"index.md", "contributing.md", "security.md", "changelog.md"}  # of files in the root, when the site is built


def prose(page: Path) -> str:
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)


def anchors(page: Path) -> set[str]:
    """As MkDocs and most viewers make them of headings."""
    heads = re.findall(r"^#+ (.*)$", prose(page), flags=re.M)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", head).lower() for head in heads]
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", head).strip()) for head in plain} | set(
        re.findall(r'id="([^"]+)"', page.read_text(encoding="utf-8"))
    )


def broken(page: Path) -> list[str]:
    found = []
    for target, anchor, source in LINK.findall(prose(page)):
        path = page.parent / (target or source) if target or source else page
        if (target or source).startswith("https://"):
            continue
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path)):
            found.append(f"{target or source}#{anchor}")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_anchors_lead_somewhere(page):
    assert broken(page) == []


def test_a_broken_link_and_a_broken_anchor_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Head\n\n[a](page.md#head) [b](page.md#tail) [c](no.md) ![d](no.svg)\n\n```\n[e](no.md)\n```\n")
    assert broken(page) == ["page.md#tail", "no.md#", "no.svg#"]


def test_the_table_of_contents_has_every_page_once():
    there = {page.name for page in (ROOT / "docs").glob("*.md")} | MADE
    assert sorted(contents()) == sorted(there)


def test_every_page_ends_with_the_page_that_comes_next():
    order = contents()
    for page, after in itertools.pairwise(order):
        if page in MADE:
            continue
        last = (ROOT / "docs" / page).read_text(encoding="utf-8").rstrip().splitlines()[-1]
        after = f"../{Path(after).stem.upper()}.md" if after in MADE else after
        assert re.fullmatch(rf"Next: \[.+\]\({re.escape(after)}\)", last), f"{page}: the last line links to {after}"
