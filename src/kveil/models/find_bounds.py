"""Bounds of the data, found privately and charged for, where nobody knows them beforehand."""

from __future__ import annotations

import math
import os
from fractions import Fraction
from math import floor
from numbers import Integral
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kveil.arrays import Floats
from kveil.desk.fixed import Fixed
from kveil.desk.law import Law
from kveil.errors import BoundsNotFound, InvalidType, InvalidValue
from kveil.kernel.grid import Box
from kveil.kernel.ledger import UNIT, Ledger
from kveil.kernel.loss import Plan, Receipt, floor_epsilon
from kveil.questions.column_bins import Cells, ColumnBins, even_edges
from kveil.questions.octaves import OctaveCounts, Octaves, Shape
from kveil.source import read
from kveil.source.base import blocks_of
from kveil.space.bounds import Bounds, numbers_of

EVEN_BINS, FALSE_BINS = 64, 0.1  # of a column, with refine; empty ones among them that are expected to pass the threshold
GRID = 16  # bits of the grid that even bins are cut from
CHANCE = 1e-3  # that some empty bin passes the threshold, and the bounds come out too wide


def find_bounds(
    data: Any,
    epsilon: float,
    *,
    ledger: Ledger | str | os.PathLike[str],
    shape: Shape = "box",
    exponents: tuple[int, int] = (-20, 40),
    center: ArrayLike = 0.0,
    refine: bool = False,
) -> tuple[Any, Receipt]:
    """Bounds that hold nearly all rows, as powers of two, and the receipt of a charge of `epsilon`.

    Parameters
    ----------
    data : table, path or Source
        Rows, in any form that `kveil.read` takes.
    epsilon : float
        The whole cost of the search.
    ledger : Ledger or path
        The budget that is charged.
    shape : {"box", "cube", "ball"}, default "box"
        "box" gives `kveil.Bounds` by column, with the names of the columns if they have any; "cube" one (low, high) for
        all columns, "ball" a radius about `center`. Use them as PrivateKMeans(bounds=...) or PrivateKMeans(center=...,
        radius=...). Bounds with names are refused for a table with other columns.
    exponents : tuple[int, int], default (-20, 40)
        Public; sizes below 2**low count as 0, above 2**high as 2**high.
    center : array-like, default 0.0
        A public point that sizes are measured from.
    refine : bool, default False
        For a box: half of epsilon finds powers of two, and half looks at 64 even bins between them, which narrows a
        column such as latitude, 49.5 to 61, that powers of two hold in 32 to 64. Worth it from about 4000 rows times
        epsilon per column; with fewer, columns with long tails lose them. The receipt is that of the second half.

    Notes
    -----
    It needs about 25/epsilon rows (times the columns, for a box) in the outermost octave; rows farther out are clipped later.

    - Private: the rows.  Public: the shape, exponents, center, columns, and that a search took place.
    - Neighbours: those of the ledger.
    - Sensitivity: a row adds 1 to at most one bin of every histogram: L1 <= m histograms (a person with m rows), twice to replace
      one. So do the even bins, which follow from released counts.
    - Cost: epsilon, once, on top of what a fit with these bounds costs: whoever sees that release sees the bounds too,
      so their promise is the sum, which the ledger keeps. With refine two charges of half of it, reserved at once.
      All that follows looks at the noisy counts. If no bin stands out, `BoundsNotFound` says so, and the whole
      stays spent.

    Examples
    --------
    >>> from kveil import Ledger, find_bounds
    >>> ages = np.random.default_rng(0).uniform(1, 90, size=(5000, 1))
    >>> find_bounds(ages, 1.0, ledger=Ledger.memory("ages", 1.0, relation="add-remove"))[0]
    Bounds(low=(0.0,), high=(128.0,))
    """
    source = read(data)
    _check_refine(refine, shape)
    if blocks_of(source):
        raise InvalidValue("levels of categories have bounds of their own. Choose the columns of numbers with columns=[...].")
    account = ledger if isinstance(ledger, Ledger) else _open(ledger)
    octaves = Octaves(_center(center, source.n_columns), *_exponents(exponents), _shape(shape))
    source.check(octaves)
    question, law, budget = OctaveCounts(octaves), Law("pure", account.relation, source.unit), floor_epsilon(epsilon)
    first = Fraction(floor(budget / 2 * UNIT), UNIT) if refine else budget
    charges = law.charges(question.parts, 1, (first,))
    if refine:
        even = even_bins(source.n_columns)
        charges += law.charges(even.parts, 1, (budget - first,))
    fixed = Fixed(law, charges)
    with account.reserve(Plan(fixed.charges, account.relation, source.unit)) as ticket:
        (counts,) = fixed.open(source, octaves, ticket).draw(question, first)  # (histograms, bins)  public, charged
        threshold = math.ceil(law.moved(question.parts[0]) / float(first) * math.log(counts.size / (2 * CHANCE)))
        found = _bounds(counts, threshold, octaves)
        if not refine:
            return (Bounds(found[0], found[1], source.names) if shape == "box" else found), ticket.receipts[0]
        low, high = np.array(found[0]), np.maximum(found[1], np.nextafter(found[0], np.inf))
        cells = Cells(Box(low, high, GRID), clips=False)
        (counts,) = fixed.open(source, cells, ticket).draw(even, budget - first)  # (columns, bins)  public, charged
    least = law.moved(even.parts[0]) / float(budget - first) * math.log(EVEN_BINS / FALSE_BINS)
    low, high = _narrowed(counts, least, low, high)
    return Bounds(low, high, source.names), ticket.receipts[-1]


def even_bins(n_columns: int) -> ColumnBins:
    """Asks for 64 even bins of every column of a box, all at once."""
    top = 2 ** (GRID - 1) - 1
    edges = np.tile(even_edges(top, EVEN_BINS), (n_columns, 1))
    return ColumnBins("finer bounds", tuple(range(n_columns)), edges, -top, is_joint=True)


def _narrowed(counts: NDArray[np.int64], least: float, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The outermost bins that stand out and one more on either side, where there are some. All is public."""
    low, width, high = low.copy(), (high / EVEN_BINS - low / EVEN_BINS), high.copy()
    for place, row in enumerate(counts):
        shown = np.flatnonzero(row > least)
        if len(shown):
            first, last = max(0, int(shown[0]) - 1), min(EVEN_BINS, int(shown[-1]) + 2)
            ends = low[place] + first * width[place], low[place] + last * width[place]
            low[place], high[place] = ends[0], high[place] if last == EVEN_BINS else ends[1]
    return low, high


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


def _check_refine(refine: Any, shape: Any) -> None:
    if not isinstance(refine, bool):
        raise InvalidValue("refine must be True or False.")
    if refine and shape != "box":
        raise InvalidValue('refine must go with shape="box": it looks at every column by itself.')


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
