"""Exact labels rest on exact products of whole numbers: a machine that rounds them is refused before anything is charged."""

import numpy as np
import pytest

from kveil import Ledger, PrivateKMeans, PrivateKMedian, StreamKMeans, find_bounds
from kveil.errors import InexactProducts
from kveil.kernel import grid

RIGHT = np.matmul


def narrow(a, b):
    """As a BLAS would that works in float32."""
    return RIGHT(a.astype(np.float32), b.astype(np.float32)).astype(np.float64)


def off_by_one(a, b):
    """One wrong unit, in the largest sum alone."""
    product = RIGHT(a, b)
    product[np.unravel_index(product.argmax(), product.shape)] -= 1
    return product


def added_before_multiplied(a, b):
    """One level of Winograd's way: fewer products of sums of entries, which pass 2**53."""
    if a.shape[1] % 2:
        return RIGHT(a, b)
    odd, even = slice(0, None, 2), slice(1, None, 2)
    own, other = (a[:, odd] * a[:, even]).sum(1), (b[odd] * b[even]).sum(0)
    pairs = zip(a[:, odd].T[:, :, None] + b[even][:, None], a[:, even].T[:, :, None] + b[odd][:, None], strict=True)
    return sum(x * y for x, y in pairs) - own[:, None] - other


WRONG = [narrow, off_by_one, added_before_multiplied]


@pytest.fixture(autouse=True)
def untried():
    grid.check_products.cache_clear()
    yield
    grid.check_products.cache_clear()


def only_floats(broken):
    return lambda a, b: broken(a, b) if a.dtype.kind == "f" else RIGHT(a, b)


def test_this_machine_is_exact():
    grid.check_products()


def test_what_is_tried_is_as_large_as_sums_may_get():
    for _, inner, _ in grid.SHAPES:
        top = grid.isqrt((2**53 - 1) // inner)
        assert 2**53 * 0.999 < inner * top**2 < 2**53


@pytest.mark.parametrize("broken", WRONG)
def test_inexact_products_are_refused(broken, monkeypatch):
    monkeypatch.setattr(np, "matmul", only_floats(broken))
    with pytest.raises(InexactProducts, match="BLAS"):
        grid.check_products()


@pytest.mark.parametrize(
    "asked",
    [
        lambda rows, ledger: PrivateKMeans(2, bounds=(0, 1), ledger=ledger).fit(rows),
        lambda rows, ledger: PrivateKMedian(2, bounds=(0, 1), ledger=ledger).fit(rows),
        lambda rows, ledger: StreamKMeans(2, epsilon=1, bounds=(0, 1), ledger=ledger).fit(rows),
        lambda rows, ledger: find_bounds(rows, 1.0, ledger=ledger),
    ],
    ids=["k-means", "k-median", "stream", "bounds"],
)
def test_no_model_is_charged_where_products_are_inexact(asked, monkeypatch):
    monkeypatch.setattr(np, "matmul", only_floats(narrow))
    ledger = Ledger.memory("untouched", 1.0, relation="add-remove")
    with pytest.raises(InexactProducts):
        asked(np.random.default_rng(0).random((50, 2)), ledger)
    assert ledger.charges() == ()


def test_products_are_tried_once_in_a_process(monkeypatch):
    grid.check_products()
    monkeypatch.setattr(np, "matmul", None)  # trying again would fail
    grid.check_products()


def test_a_guarantee_says_that_it_rests_on_them():
    assert any("matrix products" in text for text in PrivateKMeans(2, bounds=(0, 1)).guarantee(2).assumptions)
