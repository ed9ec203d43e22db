"""A campaign's end without a result, signed by its key: nobody is asked again, and nothing was decoded."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Literal, Self, get_args

from kveil import canonical
from kveil.errors import ManifestError
from kveil.signing import SigningKey, is_signed

Reason = Literal["few reports", "withdrawn", "fault"]
SCHEMA = "kveil.end/1"
FIELDS = {"campaign", "date", "reason", "round", "schema"}


@dataclass(frozen=True)
class EndNotice:
    """The statement that a campaign ended in this round. What devices have spent stays spent: their reports were sent.

    >>> from kveil.signing import SigningKey
    >>> key = SigningKey(bytes(32))
    >>> made = EndNotice.make(key, "ab" * 32, 1, "few reports", date(2030, 2, 1))
    >>> EndNotice.from_bytes(made.to_bytes()).verified(key.public)["reason"]
    'few reports'
    """

    body: bytes
    signature: bytes

    @classmethod
    def make(cls, key: SigningKey, campaign: str, number: int, reason: Reason, day: date) -> Self:
        stated = {"schema": SCHEMA, "campaign": campaign, "round": number, "reason": reason, "date": day.isoformat()}
        body = canonical.DEVICE.write(stated)
        return cls(body, key.sign(body))

    def verified(self, pinned: str) -> dict[str, object]:
        """What it states, if the pinned key has signed it."""
        if not is_signed(pinned, self.signature, self.body):
            raise ManifestError("this notice is not signed by the key that this device trusts. Nothing was changed.")
        stated = canonical.DEVICE.read(self.body)
        is_known = isinstance(stated, dict) and set(stated) == FIELDS and stated["schema"] == SCHEMA
        if not is_known or not canonical.is_digest(stated["campaign"]) or stated["reason"] not in get_args(Reason):
            raise ManifestError("this notice is not of a kind that this version knows. Nothing was changed.")
        return dict(stated)

    def to_bytes(self) -> bytes:
        return canonical.DEVICE.write({"notice": self.body.decode("ascii"), "signature": self.signature.hex()})

    @classmethod
    def from_bytes(cls, text: bytes) -> Self:
        """Read what `to_bytes` wrote; whether to trust it is for `verified` to say."""
        data = canonical.DEVICE.read(text)
        try:
            return cls(data["notice"].encode("ascii"), bytes.fromhex(data["signature"]))
        except (TypeError, KeyError, ValueError, AttributeError):
            wrong = ManifestError("this is no notice of a campaign's end, or a damaged one.")
        raise wrong
