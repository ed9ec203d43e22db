"""One text for each value: JSON whose bytes can be signed, hashed and compared.

Objects, arrays, strings, booleans and integers below 2**53; no floats and no null: their texts differ between languages.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, NoReturn

from kveil.errors import InvalidValue

LARGEST = 2**53 - 1  # every language with JSON has integers up to here
DEEPEST = 16
MOST_BYTES = 2**24  # of a text that is read at all
MOST_ENTRIES = 2**18  # a value of a few bytes takes a hundred in memory; a manifest of 4096 queries has half as many


def dumps(value: Any) -> bytes:
    """The canonical bytes of a value.

    >>> dumps({"b": [1, True], "a": "x"})
    b'{"a":"x","b":[1,true]}'
    """
    _check(value, 0)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode("ascii")


def loads(text: bytes) -> Any:
    """The value whose canonical bytes these are; any other bytes raise `InvalidValue`.

    Writing the value again and comparing rules out spaces, other orders, escapes and repeated names at once.
    """
    if not isinstance(text, bytes):
        raise InvalidValue("a message is bytes, as it was written: read its file with open(path, 'rb').read().")
    if len(text) > MOST_BYTES:
        raise InvalidValue(f"a message is at most {MOST_BYTES} bytes. This one was not read.")
    if sum(text.count(mark) for mark in (b",", b"[", b"{")) > MOST_ENTRIES:
        raise InvalidValue(f"a message has at most {MOST_ENTRIES} entries. This one was not read.")
    try:
        value = json.loads(text.decode("ascii"), parse_float=_no_number, parse_constant=_no_number)
        is_canonical = dumps(value) == text
    except (ValueError, RecursionError):  # InvalidValue is a ValueError
        is_canonical = False
    if not is_canonical:
        raise InvalidValue("this is not canonical JSON: it is damaged, or another program wrote it. Nothing of it was used.")
    return value


def digest(text: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(text).hexdigest()


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


def _no_number(text: str) -> NoReturn:
    raise InvalidValue("canonical JSON has no floats.")
