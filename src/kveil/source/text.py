"""Rows in a CSV file with a header, read in blocks of bytes cut at line ends, out of core and in parallel."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from kveil.arrays import Floats
from kveil.errors import SourceError
from kveil.source import ids
from kveil.source import numbers as cells
from kveil.source.base import RawRows
from kveil.source.guard import quietly
from kveil.source.intake import Choice, choose
from kveil.source.levels import Levels
from kveil.source.lines import LONGEST_LINE, split_cells, split_quoted
from kveil.source.options import Options

_MISSING = {"", "na", "n/a", "nan", "null", "none", "?", "-"}  # no names of columns


class Layout(NamedTuple):
    """What is public about a CSV file: the names in its header, and the byte where lines of rows begin."""

    path: Path
    names: tuple[str, ...]
    begin: int
    size: int


class CsvReader:
    """Reads the chosen columns of a CSV file. A part is a range of bytes; it holds the lines that begin in it."""

    is_sparse = False

    def __init__(self, layout: Layout, choice: Choice) -> None:
        self.choice = choice
        self.names = choice.names
        self.n_columns = self.width = len(choice.features)
        self._layout = layout

    def parts(self, rows: int) -> Sequence[tuple[int, int]]:
        begin, size = self._layout.begin, self._layout.size
        step = min(2**23, max(2**16, rows * len(self._layout.names) * 10))  # about ten bytes per cell
        return [(start, min(start + step, size)) for start in range(begin, size, step)]

    def blocks(self, part: tuple[int, int], rows: int, with_ids: bool) -> Iterator[RawRows]:
        wanted = [*self.choice.features, *([self.choice.person] if with_ids else [])]
        columns = _columns(self._layout, part, wanted)
        values = np.empty((len(columns[0]), self.n_columns), order="F")
        for place, name in enumerate(self.choice.features):
            values[:, place] = _numbers(columns[place], self.choice.levels.get(name))
        people = _ids(columns[-1]) if with_ids else None
        for start in range(0, len(values), rows):
            yield RawRows(values[start : start + rows], None if people is None else people.slice(start, rows))


def open_csv(path: Path, options: Options) -> CsvReader:
    """A reader of a CSV file. Its header is read now, and nothing more: a refusal that looked at cells could turn on one row."""
    layout = quietly(partial(_layout, path), f"{path} cannot be read as CSV: its header must be a line of names in UTF-8.")
    _check_header(layout)
    return CsvReader(layout, choose(layout.names, options))


def _layout(path: Path) -> Layout:
    with path.open("rb") as file:
        start = file.read(LONGEST_LINE)
        size = file.seek(0, 2)
    skipped = len(codecs.BOM_UTF8) if start.startswith(codecs.BOM_UTF8) else 0
    end = _line_end(start, skipped)
    line = start[skipped : len(start) if end < 0 else end]
    if (end < 0 and size > len(start)) or line.count(b'"') % 2:
        raise ValueError("no end to the header")
    names = tuple(name.decode("utf-8").strip() for name in split_quoted(line))
    return Layout(path, names, size if end < 0 else end + 1, size)


def _check_header(layout: Layout) -> None:
    names = layout.names
    if not names or any(_looks_like_data(name) for name in names) or len(set(names)) < len(names):
        raise SourceError(  # what stands there may be a row, so it is not quoted
            f"the first line of {layout.path} is not a header: every column needs a name of its own, no number and no NA. "
            "Put a line of names first (from pandas: to_csv(path, index=False))."
        )


def _looks_like_data(name: str) -> bool:
    """Whether a cell of the first line is a number or stands for a missing one, and so is no name."""
    try:
        float(name)
    except ValueError:
        return name.lower() in _MISSING
    return True


def _columns(layout: Layout, part: tuple[int, int], wanted: Sequence[Any]) -> list[Any]:
    block = quietly(partial(_lines_of, layout, part), f"{layout.path} can no longer be read.")
    return split_cells(block, len(layout.names), [layout.names.index(name) for name in wanted])


def _lines_of(layout: Layout, part: tuple[int, int]) -> bytes:
    """The lines that begin in a range of bytes. A line longer than the limit that runs out of the range is cut off whole."""
    start, end = part
    with layout.path.open("rb") as file:
        file.seek(start - 1 if start > layout.begin else start)
        block = file.read(end - file.tell())
        rest = file.readline(LONGEST_LINE + 1) if block and block[-1] not in b"\r\n" else b""
    if start > layout.begin:  # the line that runs into the range belongs to the part before
        first = _line_end(block, 0)
        if first < 0:
            return b""
        block = block[first + 1 :]
    if not block:
        return b""
    stop = _line_end(rest, 0)
    if stop < 0 and len(rest) > LONGEST_LINE:
        return block[: max(block.rfind(b"\n"), block.rfind(b"\r")) + 1]
    return block + (rest if stop < 0 else rest[:stop])


def _line_end(text: bytes, start: int) -> int:
    """Where the first line ends, at a line feed or a carriage return; -1 if it does not."""
    ends = [place for place in (text.find(b"\n", start), text.find(b"\r", start)) if place >= 0]
    return min(ends, default=-1)


def _numbers(column: Any, levels: Levels | None) -> Floats:
    if levels is None:
        return cells.from_text(column)
    return levels.of_text(_ids(column)) if levels.are_text else levels.of_numbers(cells.from_text(column))


def _ids(column: Any) -> Any:
    """Ids, or levels, as they are written, blanks around them removed; an empty one is missing."""
    trimmed = pc.ascii_trim_whitespace(column)
    return ids.from_arrow(pc.if_else(pc.equal(trimmed, ""), None, trimmed), ids.TEXT)
