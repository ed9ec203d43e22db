"""Who may send a report: anyone, or whoever has a one-time code or a token (`tokens`).

The proof travels beside the report, never in it.

A code is 80 random bits as 16 letters; the storage holds digests alone. Whoever hands codes out can tie a report to a person, so
the guarantee is then the plain local one: epsilon about the point, and taking part is known.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from typing import Protocol

from kveil.errors import InvalidValue
from kveil.service.settings import Settings
from kveil.service.tokens import Tokens

CODE_BYTES = 16
SPELLED = re.compile(r"[A-Z2-7]{16}")


class Admission(Protocol):
    """proof_bytes: of a proof beside a report in a body. is_listed: whether the storage must know the key beforehand."""

    proof_bytes: int
    is_listed: bool

    def key(self, proof: bytes, campaign: str) -> bytes | None:
        """32 bytes that admit one report of a campaign; None if this is no proof."""

    def asks(self, campaign: str) -> bytes:
        """What the answer 401 says in `WWW-Authenticate`."""

    def proof(self, header: bytes) -> bytes | None:
        """The proof in `Authorization`; None if there is none."""


class Codes:
    """One-time codes that the collector has made."""

    proof_bytes, is_listed = CODE_BYTES, True

    def key(self, proof: bytes, campaign: str) -> bytes | None:
        text = proof.decode("ascii", "replace").upper()
        return digest(text, campaign) if SPELLED.fullmatch(text) else None

    def asks(self, campaign: str) -> bytes:
        return b"Bearer"

    def proof(self, header: bytes) -> bytes | None:
        scheme, _, code = header.partition(b" ")
        return code if scheme.lower() == b"bearer" else None


def new_code() -> str:
    """80 bits of the operating system's entropy: a password, no noise."""
    return base64.b32encode(os.urandom(10)).decode("ascii")


def digest(code: str, campaign: str) -> bytes:
    """What is stored of a code; another campaign's is another."""
    return hashlib.sha256(bytes.fromhex(campaign) + code.encode("ascii")).digest()


def named(settings: Settings) -> Admission | None:
    if settings.admission not in ("none", "codes", "tokens"):
        raise InvalidValue('admission must be "none", "codes" or "tokens".')
    if settings.admission == "tokens":
        return Tokens(settings.token_key, settings.token_issuer, settings.token_origin)
    return Codes() if settings.admission == "codes" else None
