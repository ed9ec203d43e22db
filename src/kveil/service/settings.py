"""What an operator may set, and the limits that everyone meets."""

from __future__ import annotations

from dataclasses import dataclass

MEDIA = "application/vnd.kveil.collect"
MOST_REPORTS_AT_ONCE = 10_000
MOST_BODY = 500_000  # with proofs
BODY_SECONDS = 10.0


@dataclass(frozen=True)
class Settings:
    """storage: path or URL. origins: pages on other hosts whose browsers may send reports.

    admission: "none", "codes", or "tokens", with the file of the issuer's public key, the issuer's name, and whom tokens are
    redeemed at, if their challenges say so.

    most_requests: per second, over all senders; 0 for no limit. most_times: reports of a round, as a multiple of the people that
    it was laid out for. most_waiting: reports in the queue. has_marker: whether the page's server sets the cookie `kveil=1`.
    """

    storage: str
    host: str = "127.0.0.1"
    port: int = 8080
    admin_host: str = "127.0.0.1"
    admin_port: int = 8081
    workers: int = 1
    origins: tuple[str, ...] = ()
    admission: str = "none"
    token_key: str = ""
    token_issuer: str = ""
    token_origin: str = ""
    most_requests: int = 10_000
    most_times: float = 4.0
    most_waiting: int = 50_000
    most_connections: int = 2_000
    has_marker: bool = True
