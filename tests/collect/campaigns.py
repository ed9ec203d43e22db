"""A small campaign for tests: a key, a clock that stands still, devices and a collector."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

from kveil import canonical
from kveil.collect.campaign import Campaign
from kveil.collect.client import LocalClient
from kveil.collect.collector import Collector
from kveil.collect.manifest import Signed
from kveil.signing import SigningKey

KEY = SigningKey(bytes(range(32)))
OPEN = (date(2030, 1, 1), date(2030, 1, 31))


def noon(day: int = 5, month: int = 1, year: int = 2030) -> Any:
    """A clock that always says so."""
    return lambda: datetime(year, month, day, 12, tzinfo=UTC)


def make_device(path: Any = None, *, n_features: int = 2, **more: Any) -> LocalClient:
    return LocalClient(path, **{"n_features": n_features, "key": KEY.public, "is_first": True, "clock": noon()} | more)


def make_campaign(**more: Any) -> Campaign:
    terms = {"name": "survey", "n": 100, "n_clusters": 2, "epsilon": 1, "center": [0, 0], "radius": 1.0, "protocol": "grid"}
    return Campaign(**{**terms, **more})


def make_collector(place: Any = "sqlite://", **more: Any) -> Collector:
    return Collector(place, key=KEY, clock=noon(), **more)


def forged(signed: Signed, change: Callable[[dict[str, Any]], Any], *, key: SigningKey = KEY) -> Signed:
    """What a collector with the right key could sign instead: the manifest after `change`, its campaign named anew."""
    data = json.loads(signed.body)
    change(data)
    data["campaign"] = canonical.digest(_text(data["header"]))
    body = _text(data)
    return Signed(body, key.sign(body))


def _text(data: Any) -> bytes:
    """As a `Dialect` of `kveil.canonical`, but it also writes what must not be written."""
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


class Unread:
    """A point that must not be read; a device catches every `Exception` of a point, so this is none."""

    def __call__(self) -> Any:
        raise WasRead


class WasRead(BaseException):
    pass
