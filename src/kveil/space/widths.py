"""What bounds say in words: low and high by column, and whether one column decides every distance. All of it is public."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.kernel.grid import Box
from kveil.space.bounds import Names, called
from kveil.space.euclidean import Scaling

MOST_UNEVEN = 100  # widths of columns that differ by more make the narrow ones count for nothing
MOST_NAMED = 12  # columns in a sentence


def domain_notes(domain: Any, scaling: Scaling, names: Names) -> tuple[str, ...]:
    """What a release notes about its bounds; nothing for a ball or a universe."""
    if not isinstance(domain, Box):
        return ()
    found = uneven(domain, scaling, names)
    return (f"bounds: {by_column(domain.lower, domain.upper, names)}", *([f"not scaled: {found}"] if found else []))


def by_column(low: NDArray[np.float64], high: NDArray[np.float64], names: Names) -> str:
    """Low and high by column, in words.

    >>> by_column(np.array([0.0, 0.0]), np.array([120.0, 1e5]), ("age", "income"))
    '"age" low 0, high 120; "income" low 0, high 100000'
    """
    ends = [f"low {a:.12g}, high {b:.12g}" for a, b in zip(low, high, strict=True)]
    if len(ends) > 1 and len(set(ends)) == 1:
        return f"{ends[0]} in every column"
    more = [f"and {len(ends) - MOST_NAMED} more"] if len(ends) > MOST_NAMED else []
    return "; ".join([f"{called(names, place)} {end}" for place, end in enumerate(ends[:MOST_NAMED])] + more)


def uneven(domain: Any, scaling: Scaling, names: Names) -> str | None:
    """Which column decides every distance, and beside which: if widths differ by more than 100 and nothing scales them.

    >>> uneven(Box([0, 0], [120, 1e5]), None, ("age", "income"))
    '"income" is 833 times as wide as "age" and decides every distance'
    """
    if not isinstance(domain, Box) or scaling is not None or domain.half.max() <= MOST_UNEVEN * domain.half.min():
        return None
    widest, narrowest = int(domain.half.argmax()), int(domain.half.argmin())
    times = domain.half[widest] / domain.half[narrowest]
    ratio = f"{times:,.0f}" if times < 1e9 else f"{times:.3g}"
    others = [int(place) for place in np.flatnonzero(MOST_UNEVEN * domain.half < domain.half[widest]) if place != narrowest]
    more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
    also = ", ".join(called(names, place) for place in others[:MOST_NAMED])
    beside = f" (and more than {MOST_UNEVEN} times as wide as {also}{more})" if others else ""
    return f"{called(names, widest)} is {ratio} times as wide as {called(names, narrowest)}{beside} and decides every distance"
