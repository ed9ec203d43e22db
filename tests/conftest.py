"""What all tests share: one thread of BLAS, the longest tests first, and rows of tests of methods and of models."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from kveil.source.threads import one_blas_thread

TIMES = json.loads(Path(__file__).with_name("times.json").read_text(encoding="utf-8"))  # seconds of the longest tests


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """The longest first, so that no worker is left with one of them at the end. `make test-times` writes the list anew."""
    items.sort(key=lambda item: -TIMES.get(item.nodeid, 0.0))  # stable: all others stay in their order


@pytest.fixture(autouse=True, scope="module")
def one_thread(request):
    """Tables of tests are small: taking BLAS threads up and down for every pass would cost more than the passes."""
    if "source" in request.node.nodeid:  # there the limit itself is tested
        yield
        return
    with one_blas_thread(), threadpool_limits(1):
        yield


@pytest.fixture(scope="session")
def commands_built_once():
    """Typer reads the signatures of all commands whenever `kveil` is run, which takes longer than most commands of tests."""
    import typer.main

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        yield


@pytest.fixture(scope="session")
def blobs():
    """3000 made-up rows around three places in [-5, 5]^2."""
    rng = np.random.default_rng(7)
    places = np.array([[-3.0, -3.0], [0.0, 3.0], [3.5, -1.0]])
    return np.repeat(places, 1000, axis=0) + 0.4 * rng.standard_normal((3000, 2))


@pytest.fixture(scope="session")
def postgresql_server():
    """A PostgreSQL server of this session's own."""
    import postgres

    if missing := postgres.why_not():
        pytest.skip(missing)
    server = postgres.Server()
    yield server
    server.close()


@pytest.fixture
def postgresql(postgresql_server):
    """The server, with no connection left open."""
    import postgres

    with postgres.connections_closed():
        yield postgresql_server


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """An empty storage of either kind: a path, or a URL."""
    return tmp_path / "collector.db" if request.param == "sqlite" else request.getfixturevalue("postgresql").database()
