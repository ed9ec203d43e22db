"""Constants of methods, for those who want to turn them. All are public choices, fixed before the data is seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Grid", "Lloyd", "Mean", "SampleAggregate", "Tree"]


@dataclass(frozen=True)
class Lloyd:
    """bits: width of the fixed-point grid; default 16, or 20 where `expected_rows` says that 16 would be too coarse.
    reseed: move centres whose noisy count shows no rows beside the largest clusters (free: it looks at released values);
        False is the plain method of the literature.
    noise: "vector" draws one noise vector a sum, in whichever law is smaller; "coordinates" is the improved DPLloyd of
        Su et al. (2016), Laplace noise on every coordinate, up to sqrt(2) times as wide and pure only: for comparison.
    """

    bits: int | None = None
    reseed: bool = True
    noise: Literal["vector", "coordinates"] = "vector"


@dataclass(frozen=True)
class Grid:
    """bits: width of the fixed-point grid that rows are read on.
    hybrid: half of the budget for the grid, half for one Lloyd step from its centres.
    """

    bits: int | None = None
    hybrid: bool = False


@dataclass(frozen=True)
class Mean:
    """bits: width of the fixed-point grid."""

    bits: int | None = None


@dataclass(frozen=True)
class SampleAggregate:
    """blocks: how many; default N^0.4, from `expected_rows` or a noisy number of rows.
    n_steps: Lloyd steps of every block.
    bits: width of the fixed-point grid.
    """

    blocks: int | None = None
    n_steps: int = 10
    bits: int | None = None


@dataclass(frozen=True)
class Tree:
    """bits: width of the fixed-point grid; default as fine as exact sums allow."""

    bits: int | None = None
