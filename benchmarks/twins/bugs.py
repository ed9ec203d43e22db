"""The bugs themselves. Each function returns the twin, or the same code without the bug. Noise is the vault's, unless that is the
bug. Tables have one column in [-1, 1]."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np

from kveil import Graph, Ledger, PrivateKMeans, PrivateKMedian
from kveil.auditing.released import fitted
from kveil.kernel import gate, noise
from kveil.kernel.loss import Plan
from kveil.kernel.noise import laplace_noise
from kveil.questions import demand
from kveil.tuning import Counts

Act = Callable[[Any], dict[str, Any]]
STEPS = 1000  # of the grid, from the middle to the edge
COLUMNS = 64
TOWN = Graph.from_edges([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0], [4, 5]], lengths=[2, 3, 2, 4, 3, 9])


def drawn(raw: Any, sensitivity: int, epsilon: float) -> Any:
    """Whole numbers with discrete Laplace noise; the ledger has room for whatever is asked of it."""
    measurement = laplace_noise("twin", sensitivity, Fraction(epsilon).limit_denominator(2**30))
    return gate.run(measurement, np.array(raw), Ledger.memory("twin", 100.0, relation="add-remove"))[0]


def steps(table: Any) -> Any:
    """Rows as whole steps of the grid, clipped."""
    return np.rint(np.clip(table[:, 0], -1, 1) * STEPS).astype(np.int64)


def noise_halved(is_broken: bool) -> Act:
    real, times = noise.discrete_laplace, 2 if is_broken else 1

    def release(table: Any) -> dict[str, Any]:
        with mock.patch.object(noise, "discrete_laplace", lambda source, rate, n: real(source, times * rate, n)):
            return {"count": drawn([len(table)], 1, 1.0)}

    return release


def split_swapped(is_broken: bool) -> Act:
    """One count and the sums of 64 columns in [0, 1], split as c to 1 each, c = cbrt(4 d 0.225**2); the twin swaps the two."""
    c = (4 * COLUMNS * 0.225**2) ** (1 / 3)
    of_count, of_column = (share / (COLUMNS + c) for share in ((1.0, c) if is_broken else (c, 1.0)))

    def release(table: Any) -> dict[str, Any]:
        sums = np.clip(table, 0, 1).astype(np.int64).sum(axis=0)
        return {"count": drawn([len(table)], 1, of_count), "sums": drawn(sums, COLUMNS, COLUMNS * of_column)}

    return release


def empty_cells_skipped(is_broken: bool) -> Act:
    def release(table: Any) -> dict[str, Any]:
        cells = np.floor(np.clip(table[:, 0], -1, 0.999) * 2).astype(int) + 2
        shown = sorted(set(cells.tolist())) if is_broken else range(4)
        counts = drawn([int((cells == cell).sum()) for cell in shown], 1, 1.0)
        return {f"cell {cell}": count for cell, count in zip(shown, counts, strict=True)}

    return release


def radius_from_rows(is_broken: bool) -> Act:
    def release(table: Any) -> dict[str, Any]:
        rows = steps(table)
        radius = max(1, int(np.abs(rows).max(initial=0))) if is_broken else STEPS
        return {"sum": drawn([rows.sum()], radius, 1.0)}

    return release


def exact_count(is_broken: bool) -> Act:
    """A mean: a noisy sum over the number of rows, which the twin takes as it is. The sum is whole, so a fraction tells n."""

    def release(table: Any) -> dict[str, Any]:
        total = drawn([steps(table).sum()], STEPS, 0.5)
        mean = total / (max(1, len(table)) if is_broken else np.maximum(1, drawn([len(table)], 1, 0.5)))
        return {"mean": mean, "fraction": mean % 1}

    return release


def levels_of_two_epsilon(is_broken: bool) -> Act:
    """Counts of all nodes of a tree. The twin gives every node twice the weight, so a path from root to leaf costs 2 epsilon."""
    real, times = demand.tree_weights, 2 if is_broken else 1
    terms = {"universe": TOWN, "epsilon": 1.0, "random_state": 0, "tuning": Counts(partition="hst")}

    def release(table: Any) -> dict[str, Any]:
        with mock.patch.object(demand, "tree_weights", lambda tree, **more: times * real(tree, **more)):
            return fitted(PrivateKMedian(2, **terms).fit(table))

    return release


def labels_in_the_pickle(is_broken: bool) -> Act:
    def release(table: Any) -> dict[str, Any]:
        model = PrivateKMeans(2, epsilon=1.0, bounds=(-1, 1), random_state=0).fit(table)
        if is_broken:
            vars(model)["labels_"] = model.predict(table)  # the property has no setter, a pickle takes all the same
        return fitted(model)

    return release


def seed_reaches_the_noise(is_broken: bool) -> Act:
    def release(table: Any) -> dict[str, Any]:
        if not is_broken:
            return {"count": drawn([len(table)], 1, 1.0)}
        up, down = np.random.default_rng(0).geometric(1 - math.exp(-1), size=2)  # the law is right, and everybody can repeat it
        return {"count": len(table) + up - down}

    return release


def charge_after_the_draw(is_broken: bool) -> Callable[[], bool]:
    """The contract: when entropy is read, the ledger has been charged, so a crash from then on leaves nothing unpaid."""

    def late(measurement: Any, secret: Any, account: Ledger) -> Any:
        noisy = measurement.draw(None, secret)
        account.reserve(Plan((measurement.charge,), account.relation, account.unit, Fraction(0)))
        return noisy, None

    def is_kept() -> bool:
        ledger, measurement = Ledger.memory("clinic", 1.0, relation="add-remove"), laplace_noise("rows", 1, Fraction(1))
        spent: list[float] = []
        watching = type(measurement)(measurement.charge, lambda source, raw: spent.append(ledger.spent().epsilon))
        (late if is_broken else gate.run)(watching, np.array([3]), ledger)
        return spent == [1.0]

    return is_kept


def float_laplace(is_broken: bool) -> Act:
    """The attacker asks of a released number whether the sampler can have made it from no rows at all."""

    def release(table: Any) -> dict[str, Any]:
        if not is_broken:
            return {"count": drawn([len(table)], 1, 1.0)}
        noisy = len(table) + _laplace(int.from_bytes(os.urandom(8)))
        return {"count": noisy, "possible without rows": float(_is_possible(noisy))}

    return release


def _laplace(bits: int) -> float:
    """Laplace noise of scale 1 as textbooks have it: minus the logarithm of a uniform float, with a sign."""
    return (1 if bits & 1 else -1) * -math.log(((bits >> 11) + 1) / 2**53)


def _is_possible(noisy: float) -> bool:
    near = round(math.exp(-abs(noisy)) * 2**53)
    sign = math.copysign(1.0, noisy)
    return any(0 + sign * -math.log(k / 2**53) == noisy for k in range(max(1, near - 3), min(2**53, near + 3) + 1))


def steps_from_the_exact_n(is_broken: bool) -> Act:
    def release(table: Any) -> dict[str, Any]:
        n_steps = 2 + (len(table) >= 10 if is_broken else 0)
        return fitted(PrivateKMeans(2, epsilon=1.0, bounds=(-1, 1), method="lloyd", n_steps=n_steps, random_state=0).fit(table))

    return release


def deviation_of_the_data(is_broken: bool) -> Act:
    """Rows over their standard deviation, and then a private mean in public bounds. The twin takes that of the rows."""

    def release(table: Any) -> dict[str, Any]:
        width = max(float(table.std()), 1e-9) if is_broken else 0.5
        return fitted(PrivateKMeans(1, epsilon=1.0, bounds=(-5, 5), method="mean", random_state=0).fit(table / width))

    return release
