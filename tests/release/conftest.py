"""Releases to try things on, made without any data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from kveil.kernel.loss import Charge, Guarantee, Plan, PrivacyUnit, guarantee, no_guarantee
from kveil.release import Release


def promise(**changes: Any) -> Guarantee:
    charge = Charge("discrete-laplace", "counts", 3, "l1", epsilon=Fraction(1, 10), times=5)
    return replace(guarantee(Plan((charge,), "add-remove", PrivacyUnit()), trust="curator"), **changes)


def build(**changes: Any) -> Release:
    centers = np.asarray(changes.pop("centers", [[1 / 3, -2.0, 1e-17], [0.5, 0.1 + 0.2, -0.0]]))
    is_index = centers.ndim == 1
    fields: dict[str, Any] = {
        "centers": centers,
        "weights": np.linspace(0.1, 0.9, len(centers)),
        "errors": np.linspace(0.0, 0.2, len(centers)),
        "features": None if is_index else tuple(f"feature {place}" for place in range(centers.shape[1])),
        "guarantee": promise(),
        "receipt": {"token": "t-1", "ledger": "clinic", "charges": 5, "secure": True},
        "kind": "PrivateKMeans",
        "method": {"asked": "auto", "used": "lloyd", "why": "the only method so far"},
        "parameters": {"n_clusters": len(centers), "epsilon": 0.5, "bounds": [-4, 4], "bits": 16, "scaling": None},
        "notes": ("one centre stayed where it was",),
    }
    return Release(**{**fields, **changes})


@pytest.fixture
def make() -> Callable[..., Release]:
    return build


@pytest.fixture
def invalid() -> Guarantee:
    return promise(valid=False, reasons=("the noise was scripted",))


@pytest.fixture
def none() -> Guarantee:
    return no_guarantee("add-remove", PrivacyUnit(), "curator")
