"""Bounds of the data, found privately and charged for, where nobody knows them beforehand."""

from __future__ import annotations

import math
import os
from numbers import Integral
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kveil.desk.fixed import Fixed
from kveil.desk.law import Law
from kveil.errors import BoundsNotFound, InvalidType, InvalidValue
from kveil.kernel.ledger import Ledger
from kveil.kernel.loss import Plan, Receipt, floor_epsilon
from kveil.questions.octaves import OctaveCounts, Octaves, Shape
from kveil.source import read
from kveil.space.bounds import numbers_of

CHANCE = 1e-3  # that some empty bin passes the threshold, and the bounds come out too wide


def find_bounds(
    data: Any,
    epsilon: float,
    *,
    ledger: Ledger | str | os.PathLike[str],
    shape: Shape = "box",
    exponents: tuple[int, int] = (-20, 40),
    center: ArrayLike = 0.0,
) -> tuple[Any, Receipt]:
    """Bounds that hold nearly all rows, as powers of two, and the receipt of one charge of `epsilon`.

    shape: "box" gives (lows, highs) by column, "cube" one (low, high) for all columns, "ball" a radius about `center`. Use them
        as PrivateKMeans(bounds=...) or PrivateKMeans(center=..., radius=...).
    exponents: public; sizes below 2**low count as 0, above 2**high as 2**high.
    center: a public point that sizes are measured from.

    It needs about 25/epsilon rows (times the columns, for a box) in the outermost octave; rows farther out are clipped later.

    Private:      the rows.  Public: the shape, exponents, center, columns, and that a search took place.
    Neighbours:   those of the ledger.
    Sensitivity:  a row adds 1 to one bin of every histogram: L1 <= m histograms (a person with m rows), twice to replace one.
    Cost:         epsilon, once, on top of what a fit with these bounds costs: whoever sees that release sees the bounds too,
                  so their promise is the sum, which the ledger keeps. All that follows looks at the noisy counts. If no bin
                  stands out, `BoundsNotFound` says so, and the charge stays spent.

    >>> from kveil import Ledger, find_bounds
    >>> ages = np.random.default_rng(0).uniform(1, 90, size=(5000, 1))
    >>> find_bounds(ages, 1.0, ledger=Ledger.memory("ages", 1.0, relation="add-remove"))[0]
    ([0.0], [128.0])
    """
    source = read(data)
    account = ledger if isinstance(ledger, Ledger) else _open(ledger)
    octaves = Octaves(_center(center, source.n_columns), *_exponents(exponents), _shape(shape))
    source.check(octaves)
    question, law, budget = OctaveCounts(octaves), Law("pure", account.relation, source.unit), floor_epsilon(epsilon)
    fixed = Fixed(law, law.charges(question.parts, 1, (budget,)))
    with account.reserve(Plan(fixed.charges, account.relation, source.unit)) as ticket:
        (counts,) = fixed.open(source, octaves, ticket).draw(question, budget)  # (histograms, bins)  public, charged
    threshold = math.ceil(law.moved(question.parts[0]) / float(budget) * math.log(counts.size / (2 * CHANCE)))
    return _bounds(counts, threshold, octaves), ticket.receipts[0]


def _bounds(counts: NDArray[np.int64], threshold: int, octaves: Octaves) -> Any:
    """From here on all is public."""
    full = [np.flatnonzero(row > threshold) + octaves.first_code for row in counts]
    if any(not found.size for found in full):
        raise BoundsNotFound(
            "no range of sizes holds enough rows to stand out from the noise. The charge stays spent. Use a larger epsilon, "
            'fewer columns or shape="cube", or bounds from public knowledge.'
        )
    if octaves.shape != "box":
        radius = octaves.edges(int(full[0].max()))[1]
        return radius if octaves.shape == "ball" else (octaves.center - radius, octaves.center + radius)
    pairs = [_widened(octaves.edges(int(found.min()))[0], octaves.edges(int(found.max()))[1]) for found in full]
    low, high = np.array(pairs).T + octaves.center
    return low.tolist(), high.tolist()


def _widened(low: float, high: float) -> tuple[float, float]:
    """Reach to 0 where it is near anyway: values from 1 to 90 have a natural zero."""
    if 0 < low <= high / 4:
        low = 0.0
    if low / 4 <= high < 0:
        high = 0.0
    return low, high


def _open(ledger: Any) -> Ledger:
    if not isinstance(ledger, str | os.PathLike):
        raise InvalidType("ledger must be a kveil Ledger or the path of one: finding bounds costs budget.")
    return Ledger.open(ledger)


def _shape(shape: Any) -> Shape:
    if shape not in get_args(Shape):
        raise InvalidValue(f'shape must be "box", "cube" or "ball", got {shape!r}.')
    return shape  # type: ignore[no-any-return]


def _exponents(exponents: Any) -> tuple[int, int]:
    if not (isinstance(exponents, tuple | list) and len(exponents) == 2 and all(map(_is_whole, exponents))):
        raise InvalidValue("exponents must be two whole numbers (low, high): sizes are searched between 2**low and 2**high.")
    low, high = int(exponents[0]), int(exponents[1])
    if not -900 <= low < high <= 900:
        raise InvalidValue("exponents must satisfy -900 <= low < high <= 900.")
    return low, high


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _center(center: ArrayLike, n_columns: int) -> NDArray[np.float64]:
    given = numbers_of("center", center)
    if given.shape not in ((), (n_columns,)) or not np.isfinite(given).all() or np.abs(given).max() > 1e290:
        raise InvalidValue("center must be one finite number, or one per feature, from public knowledge.")
    return np.full(n_columns, float(given)) if given.ndim == 0 else given
