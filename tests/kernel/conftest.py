"""The tests of the vault share two modules that lie beside them: `vault_laws` and `vault_sources`."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


def pytest_collection_modifyitems(items):
    """Coverage is measured by exact tests alone: tracing hundreds of thousands of real draws takes longer than making them."""
    for item in items:
        if item.get_closest_marker("statistical"):
            item.add_marker(pytest.mark.no_cover)
