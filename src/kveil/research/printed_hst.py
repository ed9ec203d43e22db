"""Noise of the HST paper as printed, which is sound by one of its numberings only: to show that, and to draw its figures.

"k-Median Clustering via Metric Embedding: Towards Better Initialization with Differential Privacy" adds Lap(2**(L - h) / epsilon)
to the counts of level h and claims epsilon. That holds if level L is the root and is not counted. With the first partition as
level L, which its section 3.1 says as well, m levels cost 2 - 2**(1 - m) times epsilon. The proof of Lemma B.3 has
2**((L - h) / 2), perhaps a misprint. Never used by a model.
"""

from __future__ import annotations

from kveil.research.tree_law import Depth


def printed_first_level_is_l(height: int, epsilon: float) -> tuple[Depth, ...]:
    """Noise by depth if the first partition is level L: scales 1, 2, 4, ... over epsilon. Costs up to twice epsilon."""
    return tuple(Depth(epsilon / 2 ** (depth - 1)) for depth in range(1, height + 1))


def printed_root_is_l(height: int, epsilon: float) -> tuple[Depth, ...]:
    """Noise by depth if the root is level L and not counted: scales 2, 4, 8, ... Sound for add-remove, not for replace-one."""
    return tuple(Depth(epsilon / 2**depth) for depth in range(1, height + 1))


def printed_cost(height: int, *, base: float, first: int) -> float:
    """What scales base**first, base**(first + 1), ... over epsilon cost along a path, in units of epsilon, for add-remove."""
    return float(sum(base ** -(first + depth) for depth in range(height)))
