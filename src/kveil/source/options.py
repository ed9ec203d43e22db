"""The options of `read`, checked: everything a source is told beside the data."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from numbers import Integral, Real
from typing import Any

from kveil.errors import InvalidType, InvalidValue
from kveil.kernel.loss import PrivacyUnit
from kveil.source.levels import Levels, check_categories, check_weight
from kveil.source.threads import n_threads

DEFAULT_MEMORY = "256MB"
DEFAULT_MAX_ROWS = 2**40

Missing = str | Mapping[Hashable, Any]

LARGEST_BLOCK = 65_536  # rows
MOST_COPIES = 100  # of a row with a weight, so that no weight can fill the memory
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


@dataclass(frozen=True)
class Options:
    """Options of `read` after checking; `memory` in bytes."""

    columns: tuple[Hashable, ...] | None = None
    person: Hashable | None = None
    max_rows_per_person: int = 1
    memory: int = 256 * 10**6
    max_rows: int = DEFAULT_MAX_ROWS
    categories: Mapping[Hashable, Levels] = field(default_factory=dict)
    category_weight: float = 1.0
    missing: Missing = "middle"
    weight: Hashable | None = None
    private: bool = False
    delimiter: str | None = None

    @property
    def most_rows(self) -> int:
        """How many rows there can be to add up: a row with a weight counts as often as a person's rows may."""
        return self.max_rows * (1 if self.weight is None else self.max_rows_per_person)

    @property
    def unit(self) -> PrivacyUnit:
        if self.person is None:
            return PrivacyUnit()
        return PrivacyUnit("person", self.max_rows_per_person, str(self.person))

    def block_rows(self, width: int) -> int:
        """Rows a block may have, so that every thread can hold one with all that is made of it.

        Floats, the grid's copy, codes and a kernel's own arrays come to about 64 bytes per cell, in a quarter of the memory.
        Blocks of about 2 MB of floats stay in the processor's cache, which made encoding a third faster.
        """
        by_memory = self.memory // (4 * n_threads() * 64 * (width + 1))
        by_cache = max(1024, 2**21 // (8 * width))
        return max(1, min(LARGEST_BLOCK, by_memory, by_cache))


def check_options(
    columns: Any, person: Any, max_rows_per_person: Any, memory: Any, max_rows: Any, categories: Any = None,
    category_weight: Any = 1.0, missing: Any = "middle", weight: Any = None, private: Any = False,
    delimiter: Any = None,
) -> Options:  # fmt: skip
    """The options as `Options`, or an error that says which one is wrong."""
    m = _whole("max_rows_per_person", max_rows_per_person)
    if person is None and m != 1:
        raise InvalidValue(
            'max_rows_per_person bounds what one person contributes, so it needs person="the column of ids". Without it '
            "every record is protected on its own."
        )
    if weight is not None and person is None:
        raise InvalidValue(
            'weight repeats rows, so a record would count more than once. Pass person="the column of ids", and '
            "max_rows_per_person: then all that a person's rows weigh together is bounded by it."
        )
    if not isinstance(private, bool):  # a mark that is misread would protect nobody
        raise InvalidType("private must be True or False.")
    if weight is not None and m > MOST_COPIES:
        raise InvalidValue(
            f"with weight, max_rows_per_person must be at most {MOST_COPIES}: a row counts up to so often, and noise is as wide. "
            "Divide the weights by a public number."
        )
    return Options(
        _columns(columns), _label_of("person", person), m, parse_memory(memory), _whole("max_rows", max_rows),
        check_categories(categories), check_weight(category_weight), check_missing(missing), _label_of("weight", weight), private,
        check_delimiter(delimiter),
    )  # fmt: skip


def check_delimiter(delimiter: Any) -> str | None:
    """What stands between cells of a text file: one ASCII character that no number has in it."""
    if delimiter is None:
        return None
    is_one = isinstance(delimiter, str) and len(delimiter) == 1 and delimiter.isascii()
    if not is_one or delimiter.isalnum() or delimiter in "\"'\r\n.+-_\0":
        raise InvalidValue('delimiter must be one character that is in no number, such as ",", ";", "|" or a tab.')
    return str(delimiter)


def check_missing(missing: Any) -> Missing:
    """What becomes of missing cells: a word, or public values by column."""
    if isinstance(missing, Mapping):
        bad = [column for column, value in missing.items() if not (isinstance(value, str) or _is_finite(value))]
        if bad:
            raise InvalidValue(f"missing must give a finite number, or a level, for each column. Look at {bad[0]!r}.")
        return dict(missing)
    if not isinstance(missing, str) or missing not in ("middle", "drop", "mean"):
        raise InvalidValue('missing must be "middle", "drop", "mean" or public values by column, {column: value}.')
    return missing


def _is_finite(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)


def parse_memory(memory: Any) -> int:
    """Bytes, from a number of bytes or a text such as "256MB" or "1.5 GiB"."""
    if isinstance(memory, Real) and not isinstance(memory, bool):
        size = float(memory)
    else:
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", memory) if isinstance(memory, str) else None
        size = float(found[1]) * _UNITS.get(found[2].upper(), 0) if found else 0.0
    if not 2**20 <= size < 2**60:  # also false for NaN
        raise InvalidValue(f'memory must be a number of bytes or a text such as "256MB" or "2GB", at least 1MiB; got {memory!r}.')
    return int(size)


def _columns(columns: Any) -> tuple[Hashable, ...] | None:
    if columns is None:
        return None
    if isinstance(columns, str | bytes) or not isinstance(columns, Sequence):
        columns = getattr(columns, "tolist", lambda: None)()  # an array or an index of names
    if not isinstance(columns, Sequence) or not all(_is_label(name) for name in columns):
        raise InvalidType("columns must be a list. Pass the names of columns, or their numbers for arrays.")
    return tuple(name if isinstance(name, str) else int(name) for name in columns)


def _label_of(option: str, name: Any) -> Hashable | None:
    if name is not None and not _is_label(name):
        holds = "ids" if option == "person" else "weights"
        raise InvalidType(f"{option} must be the name of the column of {holds}, or its number for arrays.")
    return name if name is None or isinstance(name, str) else int(name)


def _is_label(name: Any) -> bool:
    return isinstance(name, str | Integral) and not isinstance(name, bool)


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InvalidType(f"{name} must be a whole number.")
    if not 1 <= int(value) <= 2**62:
        raise InvalidValue(f"{name} must be between 1 and 2**62.")
    return int(value)
