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
from tools.docs.example import example_report  # noqa: E402
from tools.docs.inline import inlined, with_prose_marked  # noqa: E402

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
LINK_BY_FILE = re.compile(r"\[([a-z-]+\.md)\]\(\1")
EXAMPLE = "example-report.html"
log = logging.getLogger("mkdocs.hooks.kveil")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Pages of the root, with links as the site needs them."""
    for made, source in MADE_FROM.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, made, content=_links(text)))
    files.append(File.generated(config, EXAMPLE, content=example_report()))
    return files


def _links(text: str) -> str:
    text = re.sub(r"<picture>.*?</picture>", _both_schemes, text, flags=re.S)
    text = re.sub(r"^\[[^]\n]*\]\([^)\n]*\)(?: · \[[^]\n]*\]\([^)\n]*\))+$", _buttons, text, count=1, flags=re.M)
    text = re.sub(r"(\]\(|src=\")docs/", r"\1", text)
    for source, made in HOME.items():
        text = text.replace(f"]({source}", f"]({made}")
    return text


def _both_schemes(found: re.Match[str]) -> str:
    """A picture that follows the system, as two that follow the page; a tall one for phones, where there is one."""
    alt, light = (re.search(rf'{name}="([^"]*)"', found[0])[1] for name in ("alt", "src"))  # type: ignore[index]
    return "".join(_one_scheme(light, scheme, alt, found[0]) for scheme in ("light", "dark"))


def _one_scheme(light: str, scheme: str, alt: str, picture: str) -> str:
    wide, tall = (light.replace("-light.", f"{shape}-{scheme}.") for shape in ("", "-tall"))
    phone = f'<source media="(max-width: 600px)" srcset="{tall.removeprefix("docs/")}">' if tall in picture else ""
    return f'<picture>{phone}<img alt="{alt}" src="{wide}#only-{scheme}"></picture>'


def _buttons(found: re.Match[str]) -> str:
    """A line of nothing but links, as buttons; and one more to what only the site has."""
    links = [*found[0].strip().split(" · "), f"[See a report]({EXAMPLE})"]
    styles = ["{ .md-button .md-button--primary }", *["{ .md-button }"] * (len(links) - 1)]
    return "\n" + "\n".join(map("".join, zip(links, styles, strict=True))) + "\n{ .ways }\n"


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The command line as it is now; no line "Next: ...", which the foot of every page has already."""
    markdown = re.sub(r"\nNext: \[[^\n]*\n*\Z", "\n", markdown)
    markdown = re.sub(
        r"\]\(\.\./(README|CONTRIBUTING|SECURITY|CHANGELOG)\.md", lambda found: "](" + HOME[found[1] + ".md"], markdown
    )
    markdown = LINK_BY_FILE.sub(_by_title, markdown)
    return markdown.replace(COMMANDS, commands()) if COMMANDS in markdown else markdown


def _by_title(found: re.Match[str]) -> str:
    """A link called after its file, such as [units.md](units.md#...), called after its page: readers of the site see no files."""
    title = (ROOT / "docs" / found[1]).read_text(encoding="utf-8").partition("# ")[2].partition("\n")[0]
    return f"[{title}]({found[1]}"


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Pictures as part of the page, so that their text follows its colours."""
    return with_prose_marked(inlined(html, Path(config["docs_dir"])))


def on_post_page(output: str, *, page: Page, config: MkDocsConfig) -> str:
    """Types as they are written: "array-like" is read as a subtraction."""
    return output.replace('<span title="array">array</span> - <span title="like">like</span>', "array-like")
