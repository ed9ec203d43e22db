"""Lines of a text file that gzip has packed, read from its beginning to its end in chunks of whole lines."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import Any

from kveil.source.lines import LONGEST_LINE
from kveil.source.places import Place


def unpacked(file: Any) -> Any:
    """What a packed file holds."""
    return gzip.GzipFile(fileobj=file, mode="rb")


def packed_lines(path: Place, begin: int, size: int, step: int) -> Iterator[tuple[bytes, float]]:
    """Chunks of whole lines after the header, each with the share of the packed bytes that were read by then.

    A line longer than the limit is left out, as of files that are not packed. What is left at the end is a line, too.
    """
    with path.open("rb") as file:
        lines = unpacked(file)
        lines.seek(begin)
        rest, is_skipping = b"", False
        while chunk := lines.read(step):
            if is_skipping:
                first = _line_end(chunk)
                if first < 0:
                    continue
                chunk, is_skipping = chunk[first + 1 :], False
            text = rest + chunk
            end = max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
            whole, rest = text[:end], text[end:]
            if len(rest) > LONGEST_LINE:
                rest, is_skipping = b"", True
            yield whole, min(1.0, file.tell() / max(1, size))
        yield rest, 1.0


def _line_end(text: bytes) -> int:
    ends = [place for place in (text.find(b"\n"), text.find(b"\r")) if place >= 0]
    return min(ends, default=-1)
