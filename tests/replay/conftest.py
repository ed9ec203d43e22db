"""The tests of this room share modules that lie beside them: `replaying`, `neighbours`."""

import sys
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

from kveil.source.threads import one_blas_thread

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """The tables are tiny: taking threads up and down for every pass would cost more than the passes."""
    with one_blas_thread(), threadpool_limits(1):
        yield
