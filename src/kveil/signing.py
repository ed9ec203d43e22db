"""Ed25519 keys and signatures, as releases and campaigns have them."""

from __future__ import annotations

import os
import re
from typing import Any, Self

from kveil.errors import InvalidValue, MissingExtra

KEY_BYTES, SIGNATURE_BYTES = 32, 64
PUBLIC_SUFFIX = ".pub"  # of the file that `kveil keys new` puts beside the secret key
SECRET_WORD, PUBLIC_WORD = "kveil-secret-key", "kveil-public-key"  # first in a file of a key; older files have none


class SigningKey:
    """A secret key: of whoever signs releases, of a collector, of a witness. `public` is what others pin.

    Parameters
    ----------
    secret : bytes
        32 secret bytes. `SigningKey.generate()` draws them, and `SigningKey.load(path)` reads them from a file.

    Attributes
    ----------
    public : str
        The public key, in hexadecimal digits.

    Examples
    --------
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
        word, digits = _read(path)
        if word == PUBLIC_WORD or (not word and os.fsdecode(path).endswith(PUBLIC_SUFFIX)):  # it would sign, but all know it
            raise InvalidValue(f"{os.fspath(path)!r} is a public key, and signing takes the secret one: the file without .pub.")
        try:
            secret = bytes.fromhex(digits) if word in ("", SECRET_WORD) else b""
        except ValueError:
            secret = b""
        if len(secret) != KEY_BYTES:
            raise InvalidValue(
                f"there is no signing key at {os.fspath(path)!r}. Make one: `kveil keys new` or SigningKey.generate().save(path)."
            )
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
            file.write(f"{SECRET_WORD} {self._secret.hex()}\n")

    def save_public(self, path: str | os.PathLike[str]) -> None:
        """Write the public key to a file, for whoever verifies."""
        with open(path, "w", encoding="ascii") as file:
            file.write(f"{PUBLIC_WORD} {self.public}\n")

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


def public_key(given: str | os.PathLike[str]) -> str:
    """A public key in hexadecimal: as it is given, or out of the file at a path."""
    text = os.fspath(given)
    if not is_key(text):
        word, digits = _read(given)
        if word == SECRET_WORD or (not word and os.path.isfile(text) and os.path.isfile(text + PUBLIC_SUFFIX)):
            raise InvalidValue(f"{text!r} is a secret key, which only its owner should have. Pass {text + PUBLIC_SUFFIX!r}.")
        text = digits if word in ("", PUBLIC_WORD) else ""
    if not is_key(text):
        raise InvalidValue(
            f"there is no public key at {os.fspath(given)!r}. Pass the file that ends in .pub, from `kveil keys new`, or its 64 "
            "hexadecimal digits."
        )
    return text


def _read(path: str | os.PathLike[str]) -> tuple[str, str]:
    """The first word of a file of a key, and its digits. An older file has digits alone; one that cannot be read has nothing."""
    try:
        with open(path, encoding="ascii") as file:
            words = file.read(4 * KEY_BYTES).split()
    except (OSError, ValueError):
        words = []
    return ("", "".join(words)) if len(words) < 2 else (words[0], " ".join(words[1:]))


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


def _library() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519

        return ed25519
    except ImportError:
        missing = MissingExtra('signatures need the library cryptography. Install it: pip install "kveil[service]"')
    raise missing
