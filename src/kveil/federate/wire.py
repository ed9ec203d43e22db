"""Messages as bytes: canonical JSON of whole numbers and text. A float, a key twice or an odd spelling is no message.

One value has one spelling, so that equal requests are equal bytes: idempotence and receipts compare bytes, not meanings.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from fractions import Fraction
from operator import lt
from typing import Any, NoReturn

from kveil.errors import InvalidValue

LARGEST = 2**23  # bytes of a message; `limits` says what is allowed where
NUMBER_SIZE = 21  # bytes of a number of 64 bits, with its comma
MOST_NUMBERS = LARGEST // (NUMBER_SIZE + 1)  # in a message: however long they are, it is not too long to be sent
MOST_DIGITS = 20  # of a whole number; all that are sent fit into 64 bits
FRACTION = re.compile(r"(0|[1-9][0-9]{0,39})/([1-9][0-9]{0,39})")

Reader = Callable[[Any], Any]


class WireError(InvalidValue):
    """Bytes that are no message of ours. The text never quotes them."""


def encode(message: Any) -> bytes:
    """The one spelling of a message."""
    return json.dumps(message, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def decode(data: bytes) -> Any:
    """The message that these bytes spell: objects, lists, text and whole numbers."""
    if len(data) > LARGEST:
        raise WireError("a message is larger than the protocol allows.")
    try:
        message = json.loads(
            data.decode(), parse_float=_refuse, parse_constant=_refuse, parse_int=_whole, object_pairs_hook=_sorted
        )
        is_canonical = is_plain(data) or encode(message) == data
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
        is_canonical = False
    if not is_canonical:
        raise WireError("a message is not canonical JSON of whole numbers and text.")
    return message


def is_plain(data: bytes) -> bool:
    """Whether a message has one spelling, but for its numbers and the order of its keys, which are checked as they are read."""
    return data.isascii() and not any(byte in data for byte in b" \t\n\r\\")


def digest(*parts: bytes) -> str:
    """SHA-256 in hex; parts are bound by their own digests, so that no two lists of parts look alike."""
    if len(parts) == 1:
        return hashlib.sha256(parts[0]).hexdigest()
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def fields(value: Any, readers: dict[str, Reader]) -> dict[str, Any]:
    """The fields of an object that has exactly these keys, each read by its reader."""
    if type(value) is not dict or value.keys() != readers.keys():
        raise WireError(f"a message must have exactly the fields {', '.join(readers) or 'none'}.")
    return {key: read(value[key]) for key, read in readers.items()}


def whole(low: int, high: int) -> Reader:
    def read(value: Any) -> int:
        if type(value) is not int or not low <= value <= high:
            raise WireError(f"a number in a message is not whole, or not between {low} and {high}.")
        return value

    return read


def text(pattern: str) -> Reader:
    compiled = re.compile(pattern)

    def read(value: Any) -> str:
        if type(value) is not str or not compiled.fullmatch(value):
            raise WireError("a text in a message is not of the form that belongs there.")
        return value

    return read


def one_of(*words: str) -> Reader:
    allowed = frozenset(words)

    def read(value: Any) -> str:
        if type(value) is not str or value not in allowed:
            raise WireError("a word in a message is none of those that belong there.")
        return value

    return read


def many(read: Reader, least: int, most: int) -> Reader:
    def read_all(value: Any) -> list[Any]:
        if type(value) is not list or not least <= len(value) <= most:
            raise WireError(f"a list in a message must have between {least} and {most} entries.")
        return [read(item) for item in value]

    return read_all


def ratio(value: Any) -> Fraction:
    """A fraction "p/q" in lowest terms."""
    found = FRACTION.fullmatch(value) if type(value) is str else None
    if found is None or spelled(fraction := Fraction(int(found[1]), int(found[2]))) != value:
        raise WireError('a fraction in a message must be "p/q" in lowest terms.')
    return fraction


def spelled(fraction: Fraction) -> str:
    return f"{fraction.numerator}/{fraction.denominator}"


HEX32, HEX64 = text("[0-9a-f]{32}"), text("[0-9a-f]{64}")
NAME = text("[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def _sorted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    return dict(pairs) if all(map(lt, keys, keys[1:])) else _refuse("")


def _whole(digits: str) -> int:
    return int(digits) if len(digits) <= MOST_DIGITS and digits != "-0" else _refuse("")


def _refuse(_: str) -> NoReturn:
    raise ValueError
