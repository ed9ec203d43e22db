"""Plain English, checked: sentences of fewer than 25 words, and phrases that readers stumble over.

`python -m tools.docs.prose` lists what to mend. Code, tables and quoted text are left alone.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.docs.blocks import ROOT, pages

LONGEST = 24  # words of a sentence
PHRASES = {
    r"\b(?:bytes|lines?|draws?|seconds?|charges?|fits?|MB|ms) a (?:row|release|run|second|draw|step|person|day)\b": "say 'per'",
    r"\bof the house\b": "say what it is: of kveil, of the project",
    r"\b(?:the|our) vault\b": "say kernel",
    r"\b(?:this|that|the|one|highest) rooms?\b": "say package or module",
    r"\b(?:leaves|in) th(?:e|is) house\b": "say: may be shared; of kveil",
    r"\bdrowns?\b": "say: noise hides",
    r"\bprint the version and leave\b": "show the version and exit",
    r"\bwhoever else\b": "say: anybody else",
    r"\bby itself alone\b": "say: on its own",
}
HOUSE = ("CONTRIBUTING.md",)  # it shows how not to write


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of each sentence of prose."""
    for line, paragraph in paragraphs(text):
        for sentence in split(paragraph):
            yield line, sentence


def split(paragraph: str) -> list[str]:
    """Its sentences, and what stands before a colon or a semicolon and a capital letter."""
    return [each.strip() for each in re.split(r"(?<=[.!?:;])[\"*_)”]*\s+(?=[\"*_`(“\[A-Z0-9])", paragraph)]


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    text = re.sub(r"^(```|~~~).*?^\1", lambda found: "\n" * found[0].count("\n"), text, flags=re.S | re.M)
    text = re.sub(r"<!--.*?-->", lambda found: "\n" * found[0].count("\n"), text, flags=re.S)
    start, held = 0, []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        bare = line.strip()
        begins = not bare or re.match(r"([-*+]|\d+\.)\s|#|\||>|!\[|:::|<", bare)
        if begins and held:
            yield start, " ".join(held)
            held = []
        if bare and not re.match(r"#|\||>|!\[|:::|<", bare):
            start = start if held else number
            held.append(re.sub(r"^([-*+]|\d+\.)\s+", "", bare))


def count(sentence: str) -> int:
    """Words; a piece of code, a link or a formula is one."""
    plain = re.sub(r"`[^`]*`", "code", sentence)
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", plain)
    plain = re.sub(r"\([^()]*\)", "", plain)
    return len([word for word in plain.split() if re.search(r"\w", word)])


def faults(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    for line, sentence in sentences(text):
        if (words := count(sentence)) > LONGEST:
            yield f"{path.name}:{line}: {words} words: {sentence}"
        for phrase, advice in PHRASES.items():
            if path.name not in HOUSE and re.search(phrase, sentence, flags=re.I):
                yield f"{path.name}:{line}: {advice}: {sentence}"


def long_texts(path: Path) -> Iterator[str]:
    """Long sentences of messages and help: of what a module holds as text, but for docstrings and SQL."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings are
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if id(node) in statements | inner or not isinstance(node, ast.Constant | ast.JoinedStr):
            continue
        text = re.sub(r"</?\w[^<>]*>", "", _told(node))  # a page's marks are no words
        for part in re.split(r"\n\n|\n(?=- )", text) if "CREATE " not in text else ():
            yield from (f"{path.name}:{node.lineno}: {sentence}" for sentence in split(part) if count(sentence) > LONGEST)


def _told(node: ast.expr) -> str:
    """The text, with a word for whatever is filled in."""
    if isinstance(node, ast.JoinedStr):
        return "".join(_told(part) for part in node.values)
    return str(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, str) else "X"


if __name__ == "__main__":
    found = [
        fault
        for path in ([Path(name) for name in sys.argv[1:]] or [*pages(), ROOT / "CONTRIBUTING.md"])
        for fault in faults(path)
    ]
    print("\n".join(found))
    sys.exit(bool(found))
