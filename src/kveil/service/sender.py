"""A device's side of the wire in Python: fetch what is asked, and send reports until the collector has them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Literal, NamedTuple, Self

import httpx

from kveil.collect.book import Spend
from kveil.collect.client import LocalClient
from kveil.collect.manifest import Signed
from kveil.errors import InvalidValue, KveilError
from kveil.service.settings import MEDIA

Outcome = Literal["stored", "refused", "not admitted", "later"]
ALIKE = {"user-agent": "kveil", "accept-encoding": "identity"}  # the library's own tell its version, and what is installed
HEADERS = {"content-type": f"{MEDIA};message=upload-req"}
NOT_FINAL = 4  # the reason "admission": the same bytes may come again with another proof
SECONDS = 30.0


class CollectorUnreachable(KveilError):
    """No answer, or not one of a collector. Nothing was charged, and what was stored to be sent waits."""


class Code(NamedTuple):
    """A one-time code, and the campaign that it was made for."""

    campaign: str
    text: str


class Sender:
    """Requests to one collector. No cookies, and nothing that tells devices apart."""

    def __init__(self, url: str) -> None:
        if not url.startswith(("http://", "https://")):
            raise InvalidValue("the collector's address begins with https:// (or http://, on this machine).")
        none = CookieJar(DefaultCookiePolicy(allowed_domains=()))  # else the library keeps cookies and sends them back
        self._http = httpx.Client(base_url=url.rstrip("/"), timeout=SECONDS, headers=ALIKE, cookies=none)

    def campaigns(self) -> list[dict[str, Any]]:
        return list(json.loads(self._get("/v1/campaigns"))["campaigns"])

    def chain(self, hashes: Iterable[str]) -> list[Signed]:
        """The signed manifests of these rounds; whether to trust them is for the device to say."""
        return [Signed.from_bytes(self._get(f"/v1/manifests/{name}")) for name in hashes]

    def send(self, manifest_hash: str, report: bytes, code: str | None = None) -> Outcome:
        """ "stored": it is on the collector's disk. "refused": it will never be. "not admitted": send the same bytes again, with
        a right code. "later": send them again."""
        proof = {} if code is None else {"authorization": f"Bearer {code}"}
        try:
            told = self._http.post(f"/v1/manifests/{manifest_hash}/reports", content=report, headers={**HEADERS, **proof})
        except httpx.HTTPError:
            return "later"
        if told.status_code == 200 and not told.content:
            return "stored"
        if told.status_code == 401 or (told.status_code == 200 and told.content[16:17] == bytes([NOT_FINAL])):
            return "not admitted"
        return "refused" if told.status_code in (200, 410) else "later"

    def deliver(self, client: LocalClient, spend: Spend, code: Code | None = None) -> Outcome:
        """Send a stored report and note what became of it; a refusal is final, and what was spent stays spent.

        A code goes with reports of its own campaign alone: with those of another, it would tell that both are one person's.
        """
        own = code.text if code is not None and code.campaign == spend.campaign else None
        client.sent(spend.manifest_hash)
        outcome = self.send(spend.manifest_hash, spend.report, own)
        if outcome in ("stored", "refused"):
            client.acknowledged(spend.manifest_hash)
        return outcome

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _get(self, path: str) -> bytes:
        try:
            told = self._http.get(path)
        except httpx.HTTPError:
            told = None
        if told is None or told.status_code != 200:
            raise CollectorUnreachable("the collector does not answer, or not as one. Nothing was charged; try again later.")
        return bytes(told.content)
