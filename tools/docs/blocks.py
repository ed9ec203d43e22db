"""Code blocks of a page, and the output that is shown below each of them.

A block is a fence marked `python` or `sh`. The fence marked `text` that follows it directly is its output. Python blocks have
names of their own, unless the page says `<!-- blocks share names -->`. Of a shell block, lines that begin with `kveil ` are run,
each with the lines that continue it after a backslash. A fence marked `bash` is shown and not run: it waits for other terminals.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHARED = "<!-- blocks share names -->"
LINES_SHOWN = 24
LONGEST_LINE, LONGEST_DATA = 500, 160  # characters: a sentence is shown to its end, JSON and HTML are not
FENCED = re.compile(r"^```(python|sh)\n(.*?)^```\n(?:\n?```text\n(.*?)^```\n)?", flags=re.S | re.M)


@dataclass(frozen=True)
class Block:
    language: str
    code: str
    output: str | None  # as the page shows it
    start: int
    end: int

    @property
    def unbroken(self) -> str:
        """The code, with each command of a shell block on one line."""
        return re.sub(r" *\\\n *", " ", self.code) if self.language == "sh" else self.code

    @property
    def lines(self) -> list[str]:
        """The commands of a shell block that are run."""
        return [line for line in self.unbroken.splitlines() if line.startswith("kveil ")]


def pages() -> list[Path]:
    return sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


def blocks_of(text: str) -> list[Block]:
    return [Block(found[1], found[2], found[3], *found.span()) for found in FENCED.finditer(text)]


def with_outputs(text: str, outputs: list[str]) -> str:
    """The page with these outputs, one per block; a block that prints nothing has no fence."""
    parts, end = [], 0
    for block, output in zip(blocks_of(text), outputs, strict=True):
        parts += [text[end : block.start], f"```{block.language}\n{block.code}```\n"]
        parts += [f"\n```text\n{shortened(output)}\n```\n"] if output.strip() else []
        end = block.end
    return "".join([*parts, text[end:]])


def shortened(output: str) -> str:
    """At most some lines: of a block, or of each of several commands."""
    commands = re.split(r"\n\n(?=\$ )", output.strip("\n"))
    most = LINES_SHOWN if len(commands) == 1 else 2 * LINES_SHOWN // 3
    return "\n\n".join(_head(command.splitlines(), most) for command in commands)


def _head(lines: list[str], most: int) -> str:
    lines = [_start(line) for line in lines]
    return "\n".join(lines if len(lines) <= most + 1 else [*lines[:most], "..."])


def _start(line: str) -> str:
    longest = LONGEST_DATA if line.startswith(("{", "[", "<")) else LONGEST_LINE
    return line.rstrip() if len(line) <= longest else f"{line[:longest]} ..."


def words(output: str) -> list[str]:
    """What stays the same when noise is drawn anew: the words, without numbers, digests and rulers."""
    return re.findall(r"(?<![\w.])[^\W\d_]{2,}(?!\w)", output)
