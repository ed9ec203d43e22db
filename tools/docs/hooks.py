"""What MkDocs asks while it builds the site: pages made from other files, commands, pictures in the page."""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # MkDocs loads this file by its path

from tools.docs.commands import commands  # noqa: E402
from tools.docs.inline import inlined, with_outputs_marked  # noqa: E402

MADE_FROM = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
    "changelog.md": "CHANGELOG.md",
}
HOME = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
COMMANDS = "<!-- commands -->"
log = logging.getLogger("mkdocs.hooks.kveil")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Pages of the root, with links as the site needs them."""
    for made, source in MADE_FROM.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, made, content=_links(text)))
    return files


def _links(text: str) -> str:
    text = re.sub(r"<picture>.*?</picture>", _both_schemes, text, flags=re.S)
    text = re.sub(r"(\]\(|src=\")docs/", r"\1", text)
    for source, made in HOME.items():
        text = text.replace(f"]({source}", f"]({made}")
    return text


def _both_schemes(found: re.Match[str]) -> str:
    """A picture that follows the system, as two that follow the page."""
    given = dict(re.findall(r'(srcset|src|alt)="([^"]*)"', found[0]))
    return f"![{given['alt']}]({given['src']}#only-light)\n![{given['alt']}]({given['srcset']}#only-dark)"


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The command line as it is now; no line "Next: ...", which the foot of every page has already."""
    markdown = re.sub(r"\nNext: \[[^\n]*\n*\Z", "\n", markdown)
    markdown = re.sub(
        r"\]\(\.\./(README|CONTRIBUTING|SECURITY|CHANGELOG)\.md", lambda found: "](" + HOME[found[1] + ".md"], markdown
    )
    return markdown.replace(COMMANDS, commands()) if COMMANDS in markdown else markdown


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Pictures as part of the page, so that their text follows its colours."""
    return with_outputs_marked(inlined(html, Path(config["docs_dir"])))
