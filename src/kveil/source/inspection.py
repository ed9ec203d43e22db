"""An openly non-private look at a table, for whoever holds it: is this what the fit should see?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.source.dispatch import read


@dataclass(frozen=True)
class Inspection:
    """Exact facts about rows. NOT PRIVATE: do not publish them, and do not set bounds by them."""

    n_rows: int
    columns: tuple[str, ...]
    least: NDArray[np.float64]
    greatest: NDArray[np.float64]
    n_broken: NDArray[np.int64]  # NaN or infinite cells; each makes its whole row the centre of the domain

    def __str__(self) -> str:
        lines = [f"NOT PRIVATE. {self.n_rows} rows. Choose bounds from public knowledge, not from this.", ""]
        lines.append(f"{'column':24} {'least':>12} {'greatest':>12} {'NaN or infinite':>16}")
        for name, low, high, broken in zip(self.columns, self.least, self.greatest, self.n_broken, strict=True):
            lines.append(f"{name:24} {_end(low):>12} {_end(high):>12} {broken:16}")
        return "\n".join(lines)


def _end(number: float) -> str:
    """The end of a range; a column without a number has none."""
    return f"{number:.6g}" if np.isfinite(number) else "none"


def inspect(data: Any) -> Inspection:
    """Rows, ranges and broken cells of whatever `kveil.read` takes, exactly. Not private: for the eyes of its holder.

    Parameters
    ----------
    data : table, path or Source
        Rows, in any form that `kveil.read` takes.

    Returns
    -------
    Inspection
        Exact numbers of rows and broken cells, and the least and greatest value per column. `print` shows a table.

    Examples
    --------
    >>> print(inspect([[1.0, 5.0], [2.0, float("nan")]]).n_broken)
    [0 1]
    """
    source = read(data)
    d = source.n_columns
    n_rows, broken, least, greatest = 0, np.zeros(d, dtype=np.int64), np.full(d, np.inf), np.full(d, -np.inf)
    for block in source.raw_blocks():
        rows = np.asarray(block.toarray() if hasattr(block, "toarray") else block, dtype=np.float64)
        is_number = np.isfinite(rows)
        n_rows += len(rows)
        broken += (~is_number).sum(axis=0)
        least = np.minimum(least, np.where(is_number, rows, np.inf).min(axis=0, initial=np.inf))
        greatest = np.maximum(greatest, np.where(is_number, rows, -np.inf).max(axis=0, initial=-np.inf))
    return Inspection(n_rows, source.names or tuple(f"x{i}" for i in range(d)), least, greatest, broken)
