"""Local randomisers: what a person's own device does to its report before anyone sees it."""

from fractions import Fraction
from typing import Any

import numpy as np

from kveil.errors import InvalidValue
from kveil.kernel.choice import select
from kveil.kernel.exact import Entropy
from kveil.kernel.loss import Charge, Measurement


def kary_response(label: str, n_values: int, epsilon: Fraction, **more: Any) -> Measurement[int, int]:
    """One of `n_values` public values: the true one e**epsilon times as likely as each other.

    Private:      the value; outside 0 .. n_values-1 it is taken as 0.  Public: how many values there are and epsilon.
    Sensitivity:  neighbours are any two values (the local model has nothing weaker).
    Cost:         epsilon. It is the exponential mechanism with cost 0 for the truth and 1 for the rest: two inputs share
                  the normaliser, so the ratio of any output is e**epsilon, e**-epsilon or 1.
    """
    if n_values < 2:
        raise InvalidValue("a randomised response needs at least two possible values.")

    def draw(source: Entropy, raw: int) -> int:
        costs = np.ones(n_values, dtype=np.int64)
        costs[raw if isinstance(raw, int | np.integer) and 0 <= raw < n_values else 0] = 0
        return select(source, costs, epsilon)

    return Measurement(Charge("randomiser", label, 1, "range", epsilon, **more), draw)
