"""Constants of methods, for those who want to turn them. All are public choices, fixed before the data is seen."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Lloyd"]


@dataclass(frozen=True)
class Lloyd:
    """bits: width of the fixed-point grid; default 16, or 20 where `expected_rows` says that 16 would be too coarse.
    reseed: move centres whose noisy count shows no rows beside the largest clusters (free: it looks at released values);
        False is the plain method of the literature.
    """

    bits: int | None = None
    reseed: bool = True
