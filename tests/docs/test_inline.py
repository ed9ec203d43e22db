"""What is done to pages when the site is built: output that wraps, links by title, types as they are written."""

import importlib.util
from pathlib import Path

import pytest
from tools.docs.inline import with_prose_marked

ROOT = Path(__file__).parents[2]
SENTENCE = "Verdict: good. Noise in at least three quarters of the centres is at most 0.01 times the spread."
SHORT = "It also shows the ledger's budget, and who asked if stated."
MARKDOWN = "| a table | in the form that pages are written in | 1.0 |"
ROW = "     0  33.0 %  1.9938 ± 0.0082  3.0211 ± 0.0082         yes                     "


def output(*lines: str) -> str:
    text = "\n".join(lines)
    return f'<div class="language-text highlight"><pre><span></span><code>{text}\n</code></pre></div>'


def test_sentences_of_an_output_may_wrap_the_first_one_too_and_rows_of_tables_do_not():
    marked, short = (f'<span class="prose">{text}</span>' for text in (SENTENCE, SHORT))
    assert with_prose_marked(output(SENTENCE, ROW, MARKDOWN, SHORT)) == output(marked, ROW, MARKDOWN, short)


@pytest.fixture(scope="module")
def hooks():
    pytest.importorskip("mkdocs")
    spec = importlib.util.spec_from_file_location("hooks_of_the_site", ROOT / "tools" / "docs" / "hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_link_called_after_a_file_is_called_after_its_page(hooks):
    page = "See [units.md](units.md#which-scaling), [Choose k](choose-k.md) and `units.md`.\n"
    shown = hooks.on_page_markdown(page, page=None, config=None, files=None)
    assert shown == "See [Columns in different units](units.md#which-scaling), [Choose k](choose-k.md) and `units.md`.\n"


def test_array_like_is_no_subtraction(hooks):
    html = '<code><span title="array">array</span> - <span title="like">like</span></code>'
    assert hooks.on_post_page(html, page=None, config=None) == "<code>array-like</code>"
