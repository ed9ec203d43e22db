"""Admission by Privacy Pass tokens (RFC 9577, RFC 9578 type 2: blind RSA, 2048 bits).

Only redeeming: the issuer is another party. It signs blindly, so what it has seen cannot be joined with a
token. A token's challenge names the campaign, so another campaign's token is none. Each token admits one report; one of
every round, where everyone answers in all of them. The collector then sees which reports came with the same token.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from pathlib import Path
from struct import pack
from typing import TYPE_CHECKING

from kveil.errors import InvalidValue

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

TYPE, TOKEN_BYTES, SIGNED_BYTES, KEY_BITS, SALT = 2, 354, 98, 2048, 48
SPELLED = re.compile(rb'(?i:privatetoken) +token="?([A-Za-z0-9_=-]{1,600})"?')
NO_KEY = "the issuer's key is not readable: a public RSA key of 2048 bits for PSS, as PEM or DER, as its issuer publishes it."


class Tokens:
    """Tokens of one issuer. origin: whom they are redeemed at; empty if the issuer's challenges name nobody."""

    proof_bytes, is_listed = TOKEN_BYTES, False

    def __init__(self, key: str, issuer: str, origin: str = "") -> None:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding

        if not issuer or not all(name.isascii() and name.isprintable() and len(name) < 256 for name in (issuer, origin)):
            raise InvalidValue("tokens need the name of their issuer, in ASCII; the origin is a name in ASCII, too, or empty.")
        self._issuer, self._origin = issuer.encode("ascii"), origin.encode("ascii")
        self._der = _der(key)
        self._key = _public(self._der)
        self._key_id = hashlib.sha256(self._der).digest()
        self._hash = hashes.SHA384()
        self._padding = padding.PSS(padding.MGF1(hashes.SHA384()), SALT)

    def key(self, proof: bytes, campaign: str) -> bytes | None:
        """What is used once: the hash of what was signed, which a fresh nonce is part of."""
        from cryptography.exceptions import InvalidSignature

        signed = proof[:SIGNED_BYTES]
        meant = hashlib.sha256(self.challenge(campaign)).digest() + self._key_id
        if len(proof) != TOKEN_BYTES or signed[:2] != pack(">H", TYPE) or signed[34:] != meant:
            return None
        try:
            self._key.verify(proof[SIGNED_BYTES:], signed, self._padding, self._hash)
        except InvalidSignature:
            return None
        return hashlib.sha256(signed).digest()

    def challenge(self, campaign: str) -> bytes:
        """A TokenChallenge of RFC 9577, whose redemption context is the campaign."""
        issuer, origin, context = self._issuer, self._origin, bytes.fromhex(campaign)
        parts = pack(">HH", TYPE, len(issuer)) + issuer + pack(">B", len(context)) + context
        return parts + pack(">H", len(origin)) + origin

    def asks(self, campaign: str) -> bytes:
        """The header by which a client learns what to ask the issuer for."""
        challenge, key = (base64.urlsafe_b64encode(one) for one in (self.challenge(campaign), self._der))
        return b'PrivateToken challenge="%b", token-key="%b"' % (challenge, key)

    def proof(self, header: bytes) -> bytes | None:
        found = SPELLED.fullmatch(header)
        try:
            return None if found is None else base64.b64decode(found[1], b"-_", validate=True)
        except binascii.Error:
            return None


def _der(path: str) -> bytes:
    """The bytes as the issuer publishes them: their hash names the key, so they are not written anew."""
    try:
        text = Path(path).read_bytes()
        if text.startswith(b"-----BEGIN PUBLIC KEY-----"):
            return base64.b64decode(b"".join(text.split(b"-----")[2].split()), validate=True)
    except (OSError, ValueError, IndexError):
        raise InvalidValue(NO_KEY) from None
    return text


def _public(der: bytes) -> RSAPublicKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import load_der_public_key

    try:
        key = load_der_public_key(der)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, rsa.RSAPublicKey) or key.key_size != KEY_BITS:
        raise InvalidValue(NO_KEY)
    return key
