"""The tests of collectors and devices share the module `campaigns` that lies beside them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from campaigns import OPEN, make_campaign, make_collector


@pytest.fixture
def collector():
    made = make_collector()
    yield made
    made.dispose()


@pytest.fixture
def signed(collector):
    """The first manifest of a one-round campaign."""
    return collector.open(make_campaign(), *OPEN)
