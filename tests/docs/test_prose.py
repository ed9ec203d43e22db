"""Pages read well: no sentence of 25 words or more, and no phrase that readers stumble over."""

import re

import pytest
from tools.docs.blocks import ROOT, pages
from tools.docs.prose import LONGEST, count, faults, long_texts, sentences, split

from kveil.cli.commands import COMMANDS
from kveil.cli.door import loaded

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


def test_sentences_of_messages_are_short():
    assert [fault for path in sorted((ROOT / "src").rglob("*.py")) for fault in long_texts(path)] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_sentences_of_help_are_short(name):
    """As a reader sees it: with the texts that options share filled in."""

    def told(command):
        yield from (command.help, *(getattr(option, "help", None) for option in command.params))
        for each in getattr(command, "commands", {}).values():
            yield from told(each)

    texts = [" ".join(text.split()) for text in told(loaded(name)) if text]
    assert texts
    assert [sentence for text in texts for sentence in split(text) if count(sentence) > LONGEST] == []


def test_long_messages_are_found_and_docstrings_and_sql_are_not(tmp_path):
    module, long = tmp_path / "module.py", " ".join(["word"] * (LONGEST + 1))
    module.write_text(
        f'"""{long}"""\nSHORT = "{long[5:]}. Next."\nSQL = "CREATE {long}"\n\n\n'
        f'def f(x):\n    """{long}"""\n    raise ValueError(f"{{x}} {long[5:]}. Next.")\n'
    )
    assert list(long_texts(module)) == [f"module.py:8: X {long[5:]}."]


def test_the_checker_finds_what_it_looks_for(tmp_path):
    page = tmp_path / "page.md"
    long = " ".join(["word"] * (LONGEST + 1))
    page.write_text(f"# Title\n\nShort. {long.capitalize()}.\n\n> {long}\n\n```\n{long}\n```\n\n- Two bytes a row.\n")
    found = list(faults(page))
    assert len(found) == 2
    assert "25 words" in found[0]
    assert "say 'per'" in found[1]


def test_code_links_and_brackets_count_little():
    assert count("Pass `a = [1, 2, 3]` to [the page](page.md) (or not, as you like).") == 5
