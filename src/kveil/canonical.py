"""One text for each value: JSON whose bytes can be signed, hashed and compared. Three dialects, whose bytes never change.

Devices speak the narrowest, which every language can write: ASCII, no floats, no null, integers below 2**53. Parties send whole
numbers of 64 bits and names in UTF-8. Releases hold floats too.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from operator import lt
from typing import Any, NoReturn

from kveil.errors import InvalidValue


class WireError(InvalidValue):
    """Bytes that are no message of ours. The text never quotes them."""


@dataclass(frozen=True)
class Dialect:
    """What may be written, and how. Sorted keys, no blanks, one spelling for each number.

    is_ascii: whether other characters are escaped.
    is_strict: no floats and no null, and bounds on integers and depth, whoever writes; else readers and writers see to that.
    most_bytes, most_entries: of a text that is read at all.
    """

    is_ascii: bool
    is_strict: bool
    most_bytes: int
    most_entries: int

    def write(self, value: Any) -> bytes:
        """The canonical bytes of a value.

        >>> DEVICE.write({"b": [1, True], "a": "x"})
        b'{"a":"x","b":[1,true]}'
        """
        if self.is_strict:
            _check(value, 0)
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=self.is_ascii, allow_nan=False).encode()

    def read(self, text: bytes) -> Any:
        """The value whose canonical bytes these are; any other bytes raise `WireError`, which is an `InvalidValue`."""
        if not isinstance(text, bytes):
            raise InvalidValue("a message is bytes, as it was written: read its file with open(path, 'rb').read().")
        if len(text) > self.most_bytes:
            raise WireError(f"a message is at most {self.most_bytes} bytes. This one was not read.")
        if sum(text.count(mark) for mark in (b",", b"[", b"{")) > self.most_entries:
            raise WireError(f"a message has at most {self.most_entries} entries. This one was not read.")
        try:
            hooks: dict[str, Any] = {"parse_float": _refuse, "parse_constant": _refuse, "parse_int": _whole}
            value = json.loads(text.decode(), object_pairs_hook=_sorted, **hooks)
            is_canonical = (not self.is_strict and is_plain(text)) or self.write(value) == text
        except (ValueError, RecursionError):  # UnicodeDecodeError and InvalidValue are ValueErrors
            is_canonical = False
        if not is_canonical:
            raise WireError("this is not canonical JSON: it is damaged, or another program wrote it. Nothing of it was used.")
        return value


MOST_DIGITS = 20  # of a whole number that is read; all that are written fit into 64 bits
LARGEST, DEEPEST = 2**53 - 1, 16  # of a strict dialect: every language with JSON has integers up to here
DEVICE = Dialect(True, True, 2**24, 2**18)  # entries: a value of a few bytes takes a hundred in memory
PARTY = Dialect(False, False, 2**23, 2**23)  # `federate.limits` says how much of it is allowed where
RELEASE = Dialect(False, False, 2**28, 2**28)  # written alone: `release.document` reads with its own checks


def is_plain(text: bytes) -> bool:
    """Whether a text has one spelling, but for its numbers and the order of its keys, which are checked as they are read."""
    return text.isascii() and not any(byte in text for byte in b" \t\n\r\\")


def digest(*parts: bytes) -> str:
    """SHA-256 in hexadecimal; several parts are bound by their own digests, so that no two lists of parts look alike."""
    if len(parts) == 1:
        return hashlib.sha256(parts[0]).hexdigest()
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def is_digest(text: Any) -> bool:
    """Whether this may be what `digest` returns."""
    return isinstance(text, str) and re.fullmatch(r"[0-9a-f]{64}", text) is not None


def _check(value: Any, depth: int) -> None:
    if depth > DEEPEST:
        raise InvalidValue(f"canonical JSON here is at most {DEEPEST} deep.")
    if isinstance(value, dict):
        if not all(type(name) is str for name in value):
            raise InvalidValue("names in canonical JSON are strings.")
        for entry in value.values():
            _check(entry, depth + 1)
    elif isinstance(value, list | tuple):
        for entry in value:
            _check(entry, depth + 1)
    elif type(value) is int:
        if abs(value) > LARGEST:
            raise InvalidValue("integers in canonical JSON are below 2**53.")
    elif type(value) not in (str, bool):
        raise InvalidValue("canonical JSON has objects, arrays, strings, booleans and integers: no floats and no null.")


def _whole(digits: str) -> int:
    return int(digits) if len(digits) <= MOST_DIGITS and digits != "-0" else _refuse("")


def _sorted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    return dict(pairs) if all(map(lt, keys, keys[1:])) else _refuse("")


def _refuse(_: str) -> NoReturn:
    raise ValueError
