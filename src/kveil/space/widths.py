"""What bounds say in words: low and high by column, and whether one column decides every distance. All of it is public."""

from __future__ import annotations

from typing import Any

import numpy as np

from kveil.arrays import Bools, Floats
from kveil.kernel.grid import Box
from kveil.space.bounds import Names, called
from kveil.space.column_box import is_level
from kveil.space.euclidean import Scaling

MOST_UNEVEN = 100  # widths of columns that differ by more make the narrow ones count for nothing
MOST_NAMED = 12  # columns in a sentence


def domain_notes(domain: Any, scaling: Scaling, names: Names) -> tuple[str, ...]:
    """What a release notes about its bounds; nothing for a ball or a universe."""
    if not isinstance(domain, Box):
        return ()
    found, ends = uneven(domain, scaling, names), by_column(domain.lower, domain.upper, names, is_level(domain))
    return (*([f"bounds: {ends}"] if ends else []), *([f"not scaled: {found}"] if found else []))


def by_column(low: Floats, high: Floats, names: Names, left_out: Bools | None = None) -> str:
    """Low and high by column, in words; but of columns left out, which stand for levels.

    >>> by_column(np.array([0.0, 0.0]), np.array([120.0, 1e5]), ("age", "income"))
    '"age" low 0, high 120; "income" low 0, high 100000'
    """
    ends = {place: f"low {a:.12g}, high {b:.12g}" for place, (a, b) in enumerate(zip(low, high, strict=True))}
    if left_out is not None:
        ends = {place: end for place, end in ends.items() if not left_out[place]}
    if len(ends) == len(low) > 1 and len(set(ends.values())) == 1:
        return f"{ends[0]} in every column"
    more = [f"and {len(ends) - MOST_NAMED} more"] if len(ends) > MOST_NAMED else []
    return "; ".join([f"{called(names, place)} {end}" for place, end in ends.items()][:MOST_NAMED] + more)


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
