"""Rows in a text file with a header (CSV, TSV), read in blocks of bytes cut at line ends, out of core and in parallel."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from kveil.arrays import Floats
from kveil.errors import SourceError
from kveil.source import ids
from kveil.source import numbers as cells
from kveil.source.base import RawRows
from kveil.source.guard import each_quietly, quietly
from kveil.source.intake import Choice, choose
from kveil.source.levels import Levels
from kveil.source.lines import LONGEST_LINE, Shape, split_cells, split_quoted
from kveil.source.options import Options
from kveil.source.packed import packed_lines, unpacked
from kveil.source.places import Place, kind_of

USUAL = (";", "\t", "|", ",")  # delimiters that a file may have been written with
_MISSING = {"", "na", "n/a", "nan", "null", "none", "?", "-"}  # no names of columns


class Layout(NamedTuple):
    """What is public about a text file: the names in its header, the byte where lines of rows begin, and how it is written.

    size: bytes of the file as it lies there.  is_packed: by gzip; then `begin` counts unpacked bytes.
    """

    path: Place
    names: tuple[str, ...]
    begin: int
    size: int
    delimiter: bytes = b","
    is_packed: bool = False


class CsvReader:
    """Reads the chosen columns of a text file. A part is a range of bytes; it holds the lines that begin in it.

    A packed file can be read from its beginning only, so it is one part, which one thread reads.
    """

    is_sparse = False

    def __init__(self, layout: Layout, choice: Choice) -> None:
        self.choice = choice
        self.names = choice.names
        self.n_columns = self.width = len(choice.features)
        self._layout = layout

    def parts(self, rows: int) -> Sequence[tuple[int, int]]:
        begin, size = self._layout.begin, self._layout.size
        if self._layout.is_packed:
            return [(0, size)]
        step = _step(self._layout, rows)
        return [(start, min(start + step, size)) for start in range(begin, size, step)]

    def sizes(self, parts: Sequence[tuple[int, int]]) -> Sequence[int]:
        return [end - start for start, end in parts]

    def blocks(self, part: tuple[int, int], rows: int, with_ids: bool) -> Iterator[RawRows]:
        wanted = [*self.choice.features, *([self.choice.person] if with_ids else [])]
        if not self._layout.is_packed:
            yield from self._rows(_columns(self._layout, part, wanted), rows, with_ids)
            return
        chunks = packed_lines(self._layout.path, self._layout.begin, self._layout.size, _step(self._layout, rows))
        for block, read in each_quietly(chunks, f"{self._layout.path} is damaged, or can no longer be read."):
            yield from self._rows(_cells(self._layout, block, wanted), rows, with_ids, read)

    def _rows(self, columns: list[Any], rows: int, with_ids: bool, read: float | None = None) -> Iterator[RawRows]:
        values = np.empty((len(columns[0]), self.n_columns), order="F")
        for place, name in enumerate(self.choice.features):
            values[:, place] = _numbers(columns[place], self.choice.levels.get(name))
        people = _ids(columns[-1]) if with_ids else None
        least = 0 if read is None else 1  # a block without rows, too: what was read is told whatever lines held
        for start in range(0, max(least, len(values)), rows):
            yield RawRows(values[start : start + rows], None if people is None else people.slice(start, rows), read)


def open_csv(path: Place, options: Options) -> CsvReader:
    """A reader of a text file. Its header is read now, and nothing more: a refusal that looked at cells could turn on one row."""
    is_packed, usual = path.name.lower().endswith(".gz"), "\t" if ".tsv" in kind_of(path) else ","
    delimiter = (options.delimiter or usual).encode()
    how = "CSV" if usual == "," else "TSV"
    layout = quietly(
        partial(_layout, path, delimiter, is_packed),
        f"{path} cannot be read as {how}: its header must be a line of names in UTF-8{', packed by gzip' * is_packed}.",
    )
    if options.delimiter is None:
        _check_delimiter(layout, usual)
    _check_header(layout)
    return CsvReader(layout, choose(layout.names, options))


def _layout(path: Place, delimiter: bytes = b",", is_packed: bool = False) -> Layout:
    with path.open("rb") as file:
        start = (unpacked(file) if is_packed else file).read(LONGEST_LINE)
        size = file.seek(0, 2)
    skipped = len(codecs.BOM_UTF8) if start.startswith(codecs.BOM_UTF8) else 0
    end = _line_end(start, skipped)
    line = start[skipped : len(start) if end < 0 else end]
    is_whole = len(start) < LONGEST_LINE if is_packed else size <= len(start)
    if (end < 0 and not is_whole) or line.count(b'"') % 2:
        raise ValueError("no end to the header")
    names = tuple(name.decode("utf-8").strip() for name in split_quoted(line, delimiter))
    return Layout(path, names, (len(start) if end < 0 else end + 1), size, delimiter, is_packed)


def _check_delimiter(layout: Layout, usual: str) -> None:
    """Refuse a header that was not split where it seems to be meant: all rows would be missing, without a word."""
    joined = "".join(layout.names)
    other = max(USUAL, key=joined.count)
    if joined and joined.count(other) >= len(layout.names):
        told = "a tab" if other == "\t" else f'"{other}"'
        point = " Numbers need a decimal point: 3,14 would count as missing." if other == ";" else ""
        raise SourceError(  # names of columns are public, and what stands there may be a row, so it is not quoted
            f"the header of {layout.path} holds {told} more often than {'a tab' if usual != ',' else 'a comma'}. If it stands "
            f"between columns, pass delimiter={other!r}.{point}"
        )


def _check_header(layout: Layout) -> None:
    names = layout.names
    if layout.size == 0:
        raise SourceError(f"{layout.path} is empty. Its first line must be a header: the names of the columns.")
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
    return _cells(layout, block, wanted)


def _cells(layout: Layout, block: bytes, wanted: Sequence[Any]) -> list[Any]:
    places = [layout.names.index(name) for name in wanted]
    return split_cells(block, Shape(len(layout.names), layout.delimiter), places)


def _step(layout: Layout, rows: int) -> int:
    return min(2**23, max(2**16, rows * len(layout.names) * 10))  # about ten bytes per cell


def _lines_of(layout: Layout, part: tuple[int, int]) -> Any:
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
