"""One JSON line per event, to standard error. No address, path, id, body or agent, and no time finer than the minute."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime


def tell(event: str, **numbers: object) -> None:
    minute = datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ")
    print(json.dumps({"event": event, "at": minute, **numbers}), file=sys.stderr, flush=True)
