"""Pages read well: no sentence of more than 25 words, and no phrase that readers stumble over."""

import re

import pytest
from tools.docs.blocks import ROOT, pages
from tools.docs.prose import LONGEST, count, faults, sentences

PAGES = [*pages(), ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sentences_are_short_and_words_are_plain(page):
    assert list(faults(page)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_opens_with_prose_that_says_what_it_is_for(page):
    """A title, then at least two sentences before the first heading, list, table or block of code."""
    text = re.sub(r"<!--.*?-->\s*", "", page.read_text(encoding="utf-8"), flags=re.S)
    opening = re.split(r"^(?:## |```|\||- |:::|!\[|<)", text.split("\n", 1)[1], maxsplit=1, flags=re.M)[0]
    assert text.startswith("# ")
    assert len(list(sentences(opening))) >= 2


def test_the_checker_finds_what_it_looks_for(tmp_path):
    page = tmp_path / "page.md"
    long = " ".join(["word"] * (LONGEST + 1))
    page.write_text(f"# Title\n\nShort. {long.capitalize()}.\n\n> {long}\n\n```\n{long}\n```\n\n- Two bytes a row.\n")
    found = list(faults(page))
    assert len(found) == 2
    assert "26 words" in found[0]
    assert "say 'per'" in found[1]


def test_code_links_and_brackets_count_little():
    assert count("Pass `a = [1, 2, 3]` to [the page](page.md) (or not, as you like).") == 5
