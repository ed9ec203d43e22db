"""Made-up rows of the pictures, and what a table of cells tells about them."""

from __future__ import annotations

from typing import Any

import numpy as np


def city(n: int = 4000) -> Any:
    """A town of uneven crowds in [0, 10]^2."""
    rng = np.random.default_rng(4)
    places, sizes, spreads = [(2.2, 7.2), (7.4, 7.8), (6.6, 2.6), (3.0, 2.4)], [0.4, 0.15, 0.3, 0.15], [0.9, 0.5, 0.8, 0.4]
    who = rng.choice(4, n, p=sizes)
    return np.clip(np.array(places)[who] + rng.normal(size=(n, 2)) * np.array(spreads)[who, None], 0, 10)


def counts(rows: Any, cells: int) -> Any:
    """How many rows each of cells x cells holds: (x, y)."""
    return np.histogram2d(*rows.T, bins=cells, range=[(0, 10), (0, 10)])[0]


def noisy(exact: Any, epsilon: float, seed: int) -> Any:
    """Counts as one who saw the rows may tell them. A picture needs no entropy: this noise protects nobody."""
    return exact + np.random.default_rng(seed).laplace(0, 1 / epsilon, exact.shape).round()
