"""Real processes, and a way to wait for what they do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

LIMIT = 120.0  # seconds until a condition that never comes is called a failure; how long it took does not matter


@pytest.fixture
def until():
    """Wait until `condition()` is true and return its value."""

    def wait(condition: Callable[[], Any], what: str, limit: float = LIMIT) -> Any:
        end = time.monotonic() + limit
        while not (found := condition()):
            if time.monotonic() > end:
                pytest.fail(f"waited in vain: {what}")
            time.sleep(0.02)
        return found

    return wait
