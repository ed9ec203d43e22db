"""The one message that leaves a device: 22 bytes, whatever the point, and the seed that both sides derive from it.

    u8 version | u8 flags | u16 query | 16 bytes id | u16 index         little-endian

The seed of the public hashing is not sent: it follows from the round's manifest and the id, so a report that is replayed in
another round is noise that tells nothing there.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kveil.errors import InvalidValue

BYTES, ID_BYTES, VERSION = 22, 16, 1
LAYOUT = struct.Struct(f"<BBH{ID_BYTES}sH")
_PERSON = b"kveil.local/1"


@dataclass(frozen=True, slots=True)
class Report:
    """Which sub-query was answered, under which fresh random id, with which of its values."""

    query: int
    report_id: bytes
    index: int

    def to_bytes(self) -> bytes:
        return LAYOUT.pack(VERSION, 0, self.query, self.report_id, self.index)

    @classmethod
    def from_bytes(cls, message: bytes) -> Self:
        """Read 22 bytes; anything else raises `InvalidValue`."""
        if not isinstance(message, bytes) or len(message) != BYTES:
            raise InvalidValue(f"a report is {BYTES} bytes.")
        version, flags, query, report_id, index = LAYOUT.unpack(message)
        if version != VERSION:
            raise InvalidValue(f"a report of version {version}; this collector reads version {VERSION}.")
        if flags:
            raise InvalidValue("the flags of a report must be zero: a set one could mark its sender.")
        return cls(query, report_id, index)


def seed(manifest_hash: str, report_id: bytes) -> int:
    """The seed of one report: the little-endian 64-bit BLAKE2b of the round and the id."""
    return int.from_bytes(_digest(bytes.fromhex(manifest_hash) + report_id), "little")


def seeds(manifest_hash: str, report_ids: list[bytes]) -> NDArray[np.uint64]:
    """The same for many."""
    start = bytes.fromhex(manifest_hash)
    return np.frombuffer(b"".join(_digest(start + one) for one in report_ids), dtype="<u8").astype(np.uint64)


def _digest(message: bytes) -> bytes:
    return hashlib.blake2b(message, digest_size=8, person=_PERSON).digest()
