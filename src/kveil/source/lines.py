"""Lines of a CSV file become cells, each line on its own.

In a CSV file a quote may open a cell that runs over many lines. One person's unbalanced quote would then swallow the
lines of others, so here a cell ends with its line, and a line with too few or too many cells is left out.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

LONGEST_LINE = 2**22  # bytes; longer ones are left out, so that one line cannot fill the memory

_BOM = b"\xef\xbb\xbf"


class Shape(NamedTuple):
    """What a line must be like: so many cells with this byte between them."""

    n_fields: int
    delimiter: bytes = b","

    def fits(self, line: bytes) -> bool:
        return line.count(self.delimiter) == self.n_fields - 1


def split_cells(block: bytes, shape: Shape, wanted: Sequence[int]) -> list[Any]:
    """The wanted columns of a block of whole lines, in the order of the lines, as arrow strings that may not be UTF-8."""
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b'"' not in block and _is_utf8(block) and not _has_long_line(block):
        return _plain_cells(block, shape, wanted)
    return _mixed_cells(block.split(b"\n"), shape, wanted)


def _mixed_cells(lines: list[bytes], shape: Shape, wanted: Sequence[int]) -> list[Any]:
    """Plain lines of the right length go the fast way, quoted ones one by one; then both are put back in order."""
    plain: list[int] = []
    quoted: list[int] = []
    rows: list[list[bytes]] = []
    for number, line in enumerate(lines):
        if not line or len(line) > LONGEST_LINE:
            continue
        if b'"' not in line:
            if shape.fits(line):
                plain.append(number)
        elif len(fields := split_quoted(line, shape.delimiter)) == shape.n_fields:
            quoted.append(number)
            rows.append(fields)
    fast = _plain_cells(b"\n".join([lines[number] for number in plain]), shape, wanted)
    order = pa.array(np.argsort(np.array(plain + quoted, dtype=np.int64)))
    slow = [pa.array([row[place] for row in rows], pa.binary()).view(pa.string()) for place in wanted]
    return [pa.concat_arrays([a, b]).take(order) for a, b in zip(fast, slow, strict=True)]


def split_quoted(line: bytes, delimiter: bytes = b",") -> list[bytes]:
    """The cells of one line, quotes resolved; no cells if Python's csv module cannot make any of it."""
    try:
        fields = next(csv.reader([line.decode("utf-8", "surrogateescape")], delimiter=delimiter.decode()), [])
    except csv.Error:  # a cell of more than 128 kB
        return []
    return [field.encode("utf-8", "surrogateescape") for field in fields]


def _plain_cells(block: bytes, shape: Shape, wanted: Sequence[int]) -> list[Any]:
    """Lines without quotes: split at delimiters, lines of another length skipped. By pyarrow, or by hand should it refuse."""
    if not block.strip(b"\n"):
        return [pa.array([], pa.string()) for _ in wanted]
    try:
        return _by_pyarrow(block, shape, wanted)
    except Exception:  # its message may quote a line
        pass
    return _by_hand(block, shape, wanted)


def _by_pyarrow(block: bytes, shape: Shape, wanted: Sequence[int]) -> list[Any]:
    """Skipped lines must be UTF-8: pyarrow decodes them for the handler, and complains of those it cannot, quoting them."""
    if block.startswith(_BOM):
        block = b"\n" + block  # only the file may begin with a byte order mark; here pyarrow would drop it from a cell
    names = [str(place) for place in range(shape.n_fields)]
    table = pacsv.read_csv(
        io.BytesIO(block),
        read_options=pacsv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names),
        parse_options=pacsv.ParseOptions(delimiter=shape.delimiter.decode(), quote_char=False, invalid_row_handler=_skip),
        convert_options=pacsv.ConvertOptions(
            include_columns=[names[place] for place in wanted],
            column_types=dict.fromkeys(names, pa.binary()),
            strings_can_be_null=False,
        ),
    )
    return [_whole(column).view(pa.string()) for column in table.columns]


def _skip(row: Any) -> str:
    return "skip"


def _by_hand(block: bytes, shape: Shape, wanted: Sequence[int]) -> list[Any]:
    rows = [line.split(shape.delimiter) for line in block.split(b"\n") if line and shape.fits(line)]
    return [pa.array([row[place] for row in rows], pa.binary()).view(pa.string()) for place in wanted]


def _whole(column: Any) -> Any:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _is_utf8(block: bytes) -> bool:
    if block.isascii():
        return True
    try:
        block.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _has_long_line(block: bytes) -> bool:
    if len(block) <= LONGEST_LINE:
        return False
    ends = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n"))
    return bool(np.diff(ends, prepend=-1, append=len(block)).max() > LONGEST_LINE + 1)
