"""Noise of tests: the same for the same name, in processes too; real where its law is tested, and in what a test forks."""

import os
import secrets

import numpy as np
import pytest

import repeated
import warm
from kveil import PrivateKMeans
from kveil.kernel.exact import SystemEntropy
from kveil.signing import SigningKey

SHOWN = "from kveil.kernel.exact import SystemEntropy; print(SystemEntropy().bits(256))"


def drawn():
    public = np.random.default_rng().random(), np.random.random()  # noqa: NPY002
    tokens = SigningKey.generate().public, secrets.token_hex(8)
    return SystemEntropy().bits(256), SystemEntropy().words(4).tolist(), public, tokens


def centers():
    model = PrivateKMeans(2, epsilon=1.0, bounds=(0, 1)).fit(np.eye(2))
    assert model.guarantee_.valid, "as users see it"
    return model.cluster_centers_.tolist()


@pytest.mark.parametrize("draw", [drawn, centers])
def test_a_name_decides_about_noise_and_public_choices(draw):
    found = []
    for name in ("one", "one", "other"):
        with repeated.repeated(name):
            found.append(draw())
    assert found[0] == found[1] != found[2]


def test_what_came_before_goes_on():
    with repeated.repeated("one"):
        whole = [SystemEntropy().bits(256) for _ in range(2)]
    with repeated.repeated("one"):
        first = SystemEntropy().bits(256)
        with repeated.repeated("inner"):
            drawn()
        secrets.token_hex(8)
        assert [first, SystemEntropy().bits(256)] == whole


@pytest.fixture(scope="module", params=[1, 2])
def shared(request):
    return request.param, repeated.current().name


def test_a_shared_fixture_draws_by_its_own_name(shared, request):
    param, name = shared
    assert name.endswith(f"tests/test_repeated.py shared {param - 1}")
    assert repeated.current().name.endswith(request.node.nodeid)


@pytest.mark.statistical
def test_noise_is_real_where_its_law_is_tested():
    """False alarm: 2**-256."""
    assert repeated.current() is None
    assert drawn() != drawn()


def test_processes_repeat_too_and_no_two_of_them_draw_the_same(tmp_path):
    found = []
    for _ in range(2):
        with repeated.repeated("a test"):
            found.append([warm.run(SHOWN, cwd=tmp_path).stdout for _ in range(2)])
    assert found[0] == found[1]
    assert len(set(found[0])) == 2
    assert found[0][0].strip().isdigit()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_fork_does_not_repeat_its_parent():
    """False alarm: 2**-256."""
    ours, theirs = os.pipe()
    if not (child := os.fork()):
        os.write(theirs, str(SystemEntropy().bits(256)).encode())
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as said:
        assert int(said.read()) != SystemEntropy().bits(256)
    os.waitpid(child, 0)
