"""How far a neighbour moves what a charge protects, in the norm of the noise that hides it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kveil.kernel.loss import Charge


@dataclass
class Draw:
    """One question to the vault: what it was charged as, the law of its noise, what was secret, and the answer."""

    charge: Charge
    law: dict[str, bytes]
    raw: Any
    rows: int  # that a person may have
    noisy: Any = None


class Spied:
    """Places that rows own, and which of them were asked for."""

    def __init__(self, places: Any) -> None:
        self._places, self.total, self.most = places, places.total, places.score.most
        self.asked: list[int] = []
        self.codes: Any = None

    def at(self, places: list[int]) -> Any:
        self.asked, self.codes = places, self._places.at(places)
        return self.codes


def moved(one: Draw, other: Draw) -> list[str]:
    """By how much too far a neighbour moved what a charge protects, in the norm of its noise: in words, none if it did not."""
    charge, a, b = one.charge, one.raw, other.raw
    if charge.mechanism == "randomiser":
        return []  # any two points are neighbours
    if isinstance(a, Spied):
        return _picks_moved(one, other)
    if isinstance(a, Mapping):
        away = np.array([a.get(key, 0) - b.get(key, 0) for key in a.keys() | b.keys()], dtype=object)
    elif a.shape != b.shape:
        return [f"raw values of shape {a.shape} became {b.shape}"]
    else:
        away = a.astype(object) - b.astype(object)  # whole numbers of any size
    found = []
    if charge.one_coordinate and np.count_nonzero(away) > 1:
        found.append("more than one coordinate moved")
    far = length(charge, away) if charge.mechanism != "peel" else _peeled(away, one.noisy.shape[1])
    if far > charge.sensitivity * (1 + 1e-12):
        found.append(f"moved by {far}, charged for {charge.sensitivity}")
    return found


def length(charge: Charge, away: Any) -> float:
    """How long a difference of raw values is, in the norm of the charge."""
    if charge.mechanism == "threshold":
        return float(np.count_nonzero(away)) if max(map(abs, away), default=0) <= 1 else np.inf
    if charge.norm == "range":
        return float(sum(max(row) - min(row) for row in np.atleast_2d(away).tolist()))
    if charge.norm == "l1":
        return float(sum(map(abs, away.ravel().tolist())))
    rows = np.atleast_2d(away).tolist() if charge.mechanism == "k-norm" else [away.ravel().tolist()]
    return float(sum(sum(x * x for x in row) ** 0.5 for row in rows))


def _peeled(away: Any, rounds: int) -> float:
    rows = np.abs(np.atleast_2d(away)).tolist()
    return float(sum((rounds - 1) * max(row) + sum(row) for row in rows))


def _picks_moved(one: Draw, other: Draw) -> list[str]:
    """Any two codes may stand at one place, so all must lie within the diameter; and a person owns a bounded number of places."""
    codes = np.concatenate([one.raw.codes, other.raw.codes]).astype(np.float64)
    order = 1 if one.charge.norm == "l1" else 2
    far = max(float(np.linalg.norm(codes - code, ord=order, axis=1).max()) for code in codes)
    found = [f"two codes lie {far} apart, charged for {one.charge.sensitivity}"] if far > one.charge.sensitivity else []
    if abs(one.raw.total - other.raw.total) > one.rows * one.raw.most:
        found.append("a person owned more places than their rows may score")
    return found
