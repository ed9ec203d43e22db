"""The replay itself: tiny runs that are private pass, and each broken twin is noticed."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from kveil import Ledger
from kveil.auditing.tape import play as replay
from kveil.kernel import gate
from kveil.kernel.choice import active_cells, selection
from kveil.kernel.exact import entropy
from kveil.kernel.noise import gaussian_noise, k_norm_noise, laplace_noise
from kveil.progress import step

ONE = Fraction(1)


def drawn(measurement: Any, secret: Any, run: Any = None) -> Any:
    ledger = Ledger.memory("one", 10.0, 1e-3, relation="add-remove", rule="approx")
    return (run or gate.run)(measurement, secret, ledger)[0]


def counted(table: Any) -> Any:
    """A noisy number of rows."""
    return drawn(laplace_noise("rows", 1, ONE), np.array([len(table)]))


def row_sums(table: Any) -> Any:
    return np.asarray(table, dtype=np.int64).sum(axis=0, keepdims=True)


def warned(table: Any) -> Any:
    warnings.warn(f"{len(table)} rows", UserWarning, stacklevel=1)
    return counted(table)


def stepped(table: Any) -> Any:
    step("reading", len(table), 9)
    return counted(table)


TABLE, OTHER = [[3, 4]] * 5, [[3, 4]] * 6
SOUND = {
    "counts": counted,
    "l2": lambda table: drawn(gaussian_noise("sums", 5, ONE), row_sums(table)),
    "k-norm": lambda table: drawn(k_norm_noise("sums", 5, ONE), row_sums(table)),
    "l1": lambda table: drawn(laplace_noise("sums", 7, ONE), row_sums(table)),
    "choice": lambda table: drawn(selection("best", 1, ONE), np.array([len(table), 0])),
    "keys": lambda table: drawn(active_cells("keys", 9, 5, 1, ONE), {1: len(table), 2: 90}),
}
BROKEN = {
    "a raw value leaves": lambda table: counted(table) + len(table),
    "a warning": warned,
    "a step": stepped,
    "a print": lambda table: (print(len(table)), counted(table)),
    "l2": lambda table: drawn(gaussian_noise("sums", 4, ONE), row_sums(table)),
    "k-norm": lambda table: drawn(k_norm_noise("sums", 4, ONE), row_sums(table)),
    "l1": lambda table: drawn(laplace_noise("sums", 6, ONE), row_sums(table)),
    "one coordinate": lambda table: drawn(laplace_noise("sums", 7, ONE, one_coordinate=True), row_sums(table)),
    "choice": lambda table: drawn(selection("best", 1, ONE), np.array([len(table), -len(table)])),
    "keys": lambda table: drawn(active_cells("keys", 9, 5, 1, ONE), {1: len(table), 2: len(table)}),
    "a shape": lambda table: drawn(laplace_noise("rows", 1, ONE), np.zeros(len(table), dtype=np.int64)),
    "a charge": lambda table: drawn(laplace_noise("rows", len(table), ONE), np.array([len(table)])),
    "a law": lambda table: drawn(gaussian_noise("rows", 1, ONE), np.array([len(table)]), _wider(table)),
    "fewer draws": lambda table: [counted(table) for _ in range(11 - len(table))],
    "more draws": lambda table: [counted(table) for _ in table],
    "secret words": lambda table: (gate.secret_words(len(table)), counted(table)),
    "beside the gate": lambda table: (counted(table), laplace_noise("rows", 1, ONE).draw(entropy(), np.zeros(1))),
}


def _wider(table: Any) -> Any:
    """The charge of one mechanism and the noise of another."""

    def run(measurement: Any, secret: Any, ledger: Any) -> Any:
        other = gaussian_noise("rows", 1, ONE / len(table))
        return gate.run(type(measurement)(measurement.charge, other.draw), secret, ledger)

    return run


@pytest.mark.parametrize("name", SOUND)
def test_a_run_that_is_private_passes(name):
    replay(lambda table: {"answer": SOUND[name](table)}, TABLE, [OTHER])
    replay(lambda table: {"answer": SOUND[name](table)}, OTHER, [TABLE])


@pytest.mark.parametrize("name", BROKEN)
def test_a_run_that_is_not_is_noticed(name):
    with pytest.raises(AssertionError):
        replay(lambda table: {"answer": BROKEN[name](table)}, TABLE, [OTHER])


def test_a_fault_is_noticed_also_where_the_run_swallows_it():
    def act(table: Any) -> dict[str, Any]:
        try:
            answer = BROKEN["a charge"](table)
        except Exception:
            answer = None
        return {"answer": answer}

    with pytest.raises(AssertionError):
        replay(act, TABLE, [OTHER])
