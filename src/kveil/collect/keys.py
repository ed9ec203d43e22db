"""Who may ask: Ed25519 keys of collectors, and how a device moves from one key to the next.

A device trusts the key that came with its application, never the first one that it meets. A new key is announced by a statement
that the old and the new key both sign; its serial only rises, so an old statement cannot be played again.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import date
from typing import Any, Self

from kveil import canonical
from kveil.errors import InvalidValue, ManifestError, MissingExtra

KEY_BYTES, SIGNATURE_BYTES = 32, 64
ROTATION_FIELDS = {"date", "new", "old", "schema", "serial"}
ROTATION_SCHEMA = "kveil.rotation/1"


class SigningKey:
    """The secret key of a collector or a witness. `public` is what devices pin.

    >>> SigningKey(bytes(range(32))).public[:16]
    '03a107bff3ce10be'
    """

    def __init__(self, secret: bytes) -> None:
        if not isinstance(secret, bytes) or len(secret) != KEY_BYTES:
            raise InvalidValue(f"a signing key is {KEY_BYTES} secret bytes.")
        self._key = _library().Ed25519PrivateKey.from_private_bytes(secret)
        self._secret = secret
        self.public = self._key.public_key().public_bytes_raw().hex()

    @classmethod
    def generate(cls) -> Self:
        """A new key from the operating system's entropy."""
        return cls(os.urandom(KEY_BYTES))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The key that `save` wrote."""
        try:
            with open(path, encoding="ascii") as file:
                secret = bytes.fromhex(file.read(4 * KEY_BYTES))
        except (OSError, ValueError):
            secret = b""
        if len(secret) != KEY_BYTES:
            raise InvalidValue(f"there is no signing key at {os.fspath(path)!r}. Make one: SigningKey.generate().save(path).")
        return cls(secret)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the key to a new file that only its owner can read."""
        try:
            place = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except OSError as error:
            is_there = isinstance(error, FileExistsError)
            why = "exists already; a key is never overwritten. Load it, or choose" if is_there else "cannot be written. Choose"
            raise InvalidValue(f"{os.fspath(path)!r} {why} another place.") from None
        with open(place, "w", encoding="ascii") as file:
            file.write(self._secret.hex() + "\n")

    def sign(self, message: bytes) -> bytes:
        return bytes(self._key.sign(message))

    def __repr__(self) -> str:
        return f"SigningKey(public={self.public!r})"  # the secret is in no log


def require_signatures() -> None:
    """Raise `MissingExtra` now rather than refuse every manifest later."""
    _library()


def is_key(text: Any) -> bool:
    """Whether this is a public key in hexadecimal."""
    return isinstance(text, str) and re.fullmatch(r"[0-9a-f]{64}", text) is not None


def is_signed(key: str, signature: bytes, message: bytes) -> bool:
    """Whether `key` (hexadecimal) signed the message."""
    library = _library()
    if not is_key(key) or not isinstance(signature, bytes) or len(signature) != SIGNATURE_BYTES:
        return False
    try:
        library.Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(signature, message)
    except Exception:  # InvalidSignature, or whatever the library says to bytes that are no key
        return False
    return True


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


def _library() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519

        return ed25519
    except ImportError:
        missing = MissingExtra('signatures need the library cryptography. Install it: pip install "kveil[service]"')
    raise missing
