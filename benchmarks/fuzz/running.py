"""Cases of one reader, counted. A case follows from the reader's name, a seed and a number, so each can be made again.

Ledgers and streams differ in what is random or of the day in every file of theirs: tokens, secrets, dates.
"""

from __future__ import annotations

import random
import resource
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from benchmarks.fuzz import kept, tables, wire
from benchmarks.fuzz.mutating import mutated
from benchmarks.fuzz.reading import Reader
from kveil.errors import KveilError


@cache
def all_readers() -> dict[str, Reader]:
    """Every reader of kveil by name. Their files are in a folder that is removed with the process."""
    place = tempfile.TemporaryDirectory(prefix="kveil-fuzz-")
    _kept.append(place)
    folder = Path(place.name)
    return {**dict(tables.readers(folder)), **dict(kept.readers(folder)), **dict(wire.readers())}


_kept: list[tempfile.TemporaryDirectory[str]] = []


@dataclass
class Found:
    """What happened: cases, those that were refused, and where others broke, each with the number of its first case."""

    cases: int = 0
    refused: int = 0
    broken: Counter[str] = field(default_factory=Counter)
    first: dict[str, int] = field(default_factory=dict)


def case(name: str, seed: int, number: int) -> bytes:
    """The bytes of one case."""
    rng = random.Random(f"{name} {seed} {number}")
    return mutated(rng.choice(all_readers()[name].seeds), rng)


def tried(reader: Reader, data: bytes) -> tuple[bool, str]:
    """Whether a reader refused these bytes, and how it broke; "" if it did not."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reader.read(data)
    except KveilError as error:
        return True, "" if reader.refuses else _place(error)
    except Exception as error:
        return False, _place(error)
    return False, ""


def run(name: str, seed: int, numbers: range, told: Callable[[int], None] = lambda number: None) -> Found:
    """Read so many cases; none may break."""
    reader, found = all_readers()[name], Found()
    for number in numbers:
        told(number)
        refused, broken = tried(reader, case(name, seed, number))
        found.cases, found.refused = found.cases + 1, found.refused + refused
        if broken:
            found.broken[broken] += 1
            found.first.setdefault(broken, number)
    return found


def limit_memory(more: int) -> None:
    """From now on this process gets at most so many bytes more; what asks for them fails."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def peak() -> int:
    """The most memory that this process had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _place(error: BaseException) -> str:
    """The kind of an error and the last line of kveil on its way."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/kveil/" in frame.filename]
    where = f"{frames[-1].filename.rpartition('/kveil/')[2]}:{frames[-1].lineno}" if frames else "beside kveil"
    return f"{type(error).__name__} at {where}"
