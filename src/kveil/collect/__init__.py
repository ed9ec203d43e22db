"""The local model: devices that randomise their own reports, and what a collector learns from them.

Names are loaded when they are first used: a device needs no database, and a simulation neither keys nor storage.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kveil.collect.campaign import Campaign, Result
    from kveil.collect.client import LocalClient, Refusal
    from kveil.collect.collector import Collector, Status
    from kveil.collect.forecast import plan
    from kveil.collect.keys import Rotation
    from kveil.collect.ledger_file import LedgerFile
    from kveil.collect.manifest import Signed
    from kveil.collect.notice import EndNotice
    from kveil.signing import SigningKey

_HOMES = {
    "Campaign": "campaign",
    "Collector": "collector",
    "EndNotice": "notice",
    "LedgerFile": "ledger_file",
    "LocalClient": "client",
    "Refusal": "client",
    "Result": "campaign",
    "Rotation": "keys",
    "Signed": "manifest",
    "SigningKey": "keys",
    "Status": "collector",
    "plan": "forecast",
}

__all__ = [
    "Campaign", "Collector", "EndNotice", "LedgerFile", "LocalClient", "Refusal", "Result", "Rotation", "Signed", "SigningKey",
    "Status", "plan",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"kveil.collect.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'kveil.collect' has no attribute {name!r}")
