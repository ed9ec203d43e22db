"""signature.json: who vouches for a release. It signs the digest of release.json, which holds the digests of all other files."""

from __future__ import annotations

from typing import Any, NamedTuple

from kveil.canonical import DEVICE, digest
from kveil.errors import InvalidValue
from kveil.signing import SIGNATURE_BYTES, SigningKey, is_key, is_signed

SIGNATURE, SCHEMA = "signature.json", "kveil.signature/1"
LARGEST_SIGNATURE = 1024  # bytes; a file of our own has about 320
FIELDS = {"key", "release", "schema", "signature"}


class Signature(NamedTuple):
    """A public key, the digest of the release.json that it signed, and the signature."""

    key: str
    release: str
    signature: bytes

    def holds_for(self, document: bytes) -> bool:
        """Whether the key signed this very release.json."""
        return self.release == digest(document) and is_signed(self.key, self.signature, _message(self.key, self.release))


def write_signature(document: bytes, key: SigningKey) -> bytes:
    """The file that signs the bytes of a release.json."""
    signature = key.sign(_message(key.public, digest(document)))
    return DEVICE.write({"schema": SCHEMA, "key": key.public, "release": digest(document), "signature": signature.hex()})


def read_signature(data: bytes) -> Signature | None:
    """What a signature file says; None for any bytes but those that `write_signature` could have written."""
    try:
        said: Any = DEVICE.read(data)
        if set(said) != FIELDS or said["schema"] != SCHEMA or not is_key(said["key"]) or not is_key(said["release"]):
            return None
        found = Signature(said["key"], said["release"], bytes.fromhex(said["signature"]))
        return found if len(found.signature) == SIGNATURE_BYTES and found.signature.hex() == said["signature"] else None
    except (InvalidValue, TypeError, ValueError):
        return None


def _message(key: str, release: str) -> bytes:
    return DEVICE.write({"schema": SCHEMA, "key": key, "release": release})  # nothing else that a key of ours signs looks so
