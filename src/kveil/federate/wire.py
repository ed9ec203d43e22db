"""Messages as bytes, in canonical JSON of whole numbers and text, and what reads their fields: each value as it must be.

One value has one spelling, so that equal requests are equal bytes: idempotence and receipts compare bytes, not meanings.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from kveil.canonical import PARTY, WireError, digest, is_plain

LARGEST = PARTY.most_bytes  # of a message; `limits` says what is allowed where
NUMBER_SIZE = 21  # bytes of a number of 64 bits, with its comma
MOST_NUMBERS = LARGEST // (NUMBER_SIZE + 1)  # in a message: however long they are, it is not too long to be sent
FRACTION = re.compile(r"(0|[1-9][0-9]{0,39})/([1-9][0-9]{0,39})")

__all__ = [
    "HEX32", "HEX64", "LARGEST", "MOST_NUMBERS", "NAME", "NUMBER_SIZE", "Reader", "WireError", "decode", "digest", "encode",
    "fields", "is_plain", "many", "one_of", "ratio", "spelled", "text", "whole",
]  # fmt: skip

Reader = Callable[[Any], Any]


encode, decode = PARTY.write, PARTY.read


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
