"""Who may ask: how a device moves from one key of a collector to the next.

A device trusts the key that came with its application, never the first one that it meets. A new key is announced by a statement
that the old and the new key both sign; its serial only rises, so an old statement cannot be played again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Self

from kveil import canonical
from kveil.errors import ManifestError
from kveil.signing import SigningKey, is_signed

ROTATION_FIELDS = {"date", "new", "old", "schema", "serial"}
ROTATION_SCHEMA = "kveil.rotation/1"


@dataclass(frozen=True)
class Rotation:
    """The statement that `new` follows `old`, with the signatures of both. Devices take it between campaigns."""

    body: bytes
    by_old: bytes
    by_new: bytes

    @classmethod
    def make(cls, old: SigningKey, new: SigningKey, serial: int, day: date) -> Self:
        stated = {"schema": ROTATION_SCHEMA, "old": old.public, "new": new.public, "serial": serial, "date": day.isoformat()}
        body = canonical.DEVICE.write(stated)
        return cls(body, old.sign(body), new.sign(body))

    def to_bytes(self) -> bytes:
        """As it is published."""
        signatures = {"by_new": self.by_new.hex(), "by_old": self.by_old.hex()}
        return canonical.DEVICE.write({"statement": self.body.decode("ascii"), **signatures})

    @classmethod
    def from_bytes(cls, text: bytes) -> Self:
        """Read what `to_bytes` wrote; whether to trust it is for `verified` to say."""
        data = canonical.DEVICE.read(text)
        try:
            return cls(data["statement"].encode("ascii"), bytes.fromhex(data["by_old"]), bytes.fromhex(data["by_new"]))
        except (TypeError, KeyError, ValueError, AttributeError):
            wrong = ManifestError("this is no change of keys, or a damaged one.")
        raise wrong

    def verified(self, pinned: str) -> tuple[str, int]:
        """The new key and the serial, if `pinned` is the old one and both have signed."""
        if not is_signed(pinned, self.by_old, self.body):
            raise ManifestError("this change of keys is not signed by the key that this device trusts. Nothing was changed.")
        stated = canonical.DEVICE.read(self.body)
        is_known = isinstance(stated, dict) and set(stated) == ROTATION_FIELDS and stated["schema"] == ROTATION_SCHEMA
        if not is_known or stated["old"] != pinned or type(stated["serial"]) is not int or stated["serial"] < 1:
            raise ManifestError("this change of keys is not of a kind that this version knows. Nothing was changed.")
        if not is_signed(stated["new"], self.by_new, self.body):
            raise ManifestError("this change of keys is not signed by the new key. Nothing was changed.")
        return stated["new"], stated["serial"]
