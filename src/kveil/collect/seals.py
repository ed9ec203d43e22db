"""Keyed hashes over a device's ledger, so that a damaged row, and a missing one, is told from what was written.

A row's hash is over all of its columns and all rows before it. Its state, which changes, is in the row's own hash alone, which is
then written anew. The device's hash closes the chain, with the number of rows and the changes of keys. The key comes from the
device's secret, in the same file: one beside it would be lost when the file is moved. So this tells damage, and not the work of
somebody who can write the file: who controls a device controls its ledger. An older copy of the whole file passes, too.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import Any

VERSION = 2  # of the ledger
FIXED = "campaign, round, mode, eps_num, eps_den, manifest_hash, report_blob, day, send_at, secure, covers"  # never change


class Seals:
    """The hashes of one device."""

    def __init__(self, name: str, secret: bytes, quiet_until: Any, version: Any = VERSION) -> None:
        self._key = hmac.digest(secret, b"seals of the ledger", "sha256")
        self.start = self._hash(b"", name, version, quiet_until)

    def link(self, before: bytes, fixed: Sequence[Any]) -> bytes:
        """The chain up to a row with these columns."""
        return self._hash(before, *fixed)

    def row(self, link: bytes, state: Any) -> bytes:
        """The hash that is stored with a row."""
        return self._hash(link, state)

    def device(self, end: bytes, n_rows: int, changes: Sequence[tuple[Any, ...]]) -> bytes:
        """The hash that is stored with the device: of the chain up to its last row, and of the keys that followed each other."""
        return self._hash(end, n_rows, [tuple(change) for change in changes])

    def _hash(self, before: bytes, *values: Any) -> bytes:
        text = ascii(values).encode("ascii")  # whatever SQLite gives back, with its type, in a way that can be read back
        return hmac.digest(self._key, before + text, "sha256")
