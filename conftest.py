"""Noise of tests and doctests repeats: each draws bits that follow from its own name, so that it passes always or never.

Real entropy remains where the law of noise is tested: in tests marked `statistical`, which derive their false alarm, and in those
of the vault. `--noise 7` takes other bits for all others, which shows what rests on luck; `--noise real` takes real ones.
"""

import gc
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import just

TESTS = Path(__file__).parent / "tests"
sys.path.insert(0, str(TESTS))  # for what lies beside the rooms: `compiling`, `repeated`, `warm`

import compiling  # noqa: E402
import repeated  # noqa: E402

PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}  # a busy machine is no fault
settings.register_profile("kveil", derandomize=True, **PATIENT)
settings.register_profile("explore", **PATIENT)  # `--hypothesis-profile explore`: other examples in every run
settings.load_profile("kveil")


def pytest_addoption(parser):
    parser.addoption("--noise", default="0", help="which bits tests draw: a number, or `real` for those of the operating system")


def pytest_configure():
    repeated.install()
    compiling.install()
    gc.disable()  # until all tests are collected, as nothing of that is garbage: it halves the time of collecting


def pytest_collection_finish():
    given(just(0))(lambda _: None)()  # at its first use, older Hypothesis looks who refers to generators: it must find them
    gc.freeze()  # nor is it looked at again
    gc.enable()


def name_of(config, node):
    """What the bits of a test, or of a module while it is imported, follow from."""
    real = config.getoption("noise") == "real" or node.get_closest_marker("statistical") or TESTS / "kernel" in node.path.parents
    return None if real else f"{config.getoption('noise')} {node.nodeid}"


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    with repeated.repeated(name_of(collector.config, collector)):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    with repeated.repeated(name_of(item.config, item)):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    """What several tests share does not depend on which of them comes first."""
    if fixturedef.scope == "function" or repeated.current() is None:
        return (yield)
    shown = request.param_index if hasattr(request, "param") else ""
    with repeated.repeated(f"{request.config.getoption('noise')} {fixturedef.baseid} {fixturedef.argname} {shown}"):
        return (yield)
