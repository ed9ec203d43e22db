"""The local randomiser: what a person's own device does to its report before anyone sees it.

There is one. Randomised response, its k-ary form, local hashing, Hadamard bits and vectors from a codebook are all this
mechanism after public hashing, which decides with floats at will which values a point prefers and never with what chance.
"""

from fractions import Fraction
from typing import Any

import numpy as np

from kveil.arrays import Integers
from kveil.errors import InvalidValue
from kveil.kernel.exact import Entropy
from kveil.kernel.loss import Charge, Measurement, response_weights

MOST_VALUES = 2**16  # all weights together then stay below 2**63


def subset_select(
    label: str, n_values: int, size: int, epsilon: Fraction, *, n_reports: int = 1, **more: Any
) -> Measurement[Any, Integers]:
    """Reports (n_reports,), each one of `n_values` public values: one of the `size` preferred ones a/b times as likely as others.

    Private:      which values are preferred: a row (size,) of distinct integers a report. A row that is anything else counts as
                  0 .. size-1: after a point was read nothing may raise.  Public: all parameters.
    Neighbours:   any two rows. Each report belongs to another person, so what one of them spends is charged once.
    Sensitivity:  an output has weight a if preferred and b if not, and all weights add up to the same for every row.
    Cost:         epsilon: the ratio of any output on two inputs is 1, a/b or b/a, and a/b <= e**epsilon.
    """
    if not (1 <= size < n_values <= MOST_VALUES) or n_reports < 0:
        raise InvalidValue(f"a report needs 1 <= size < n_values <= {MOST_VALUES}: some values preferred, and some not.")
    a, b = response_weights(epsilon)

    def draw(source: Entropy, raw: Any) -> Integers:
        total = size * a + (n_values - size) * b
        return chosen(_below(source, total, n_reports), _subsets(raw, n_reports, n_values, size), a, b)

    return Measurement(Charge("randomiser", label, 1, "range", epsilon, **more), draw)


def chosen(draws: Integers, subsets: Integers, a: int, b: int) -> Integers:
    """The value of weight a or b that a uniform integer below all weights falls on: preferred values first, both in order."""
    n, size = subsets.shape
    is_preferred = draws < size * a
    rank = np.where(is_preferred, draws // a, (draws - size * a) // b)
    preferred = subsets[np.arange(n), np.where(is_preferred, rank, 0)]
    skipped = (subsets - np.arange(size) <= rank[:, None]).sum(axis=1)  # preferred values before the other of that rank
    return np.where(is_preferred, preferred, rank + skipped)


def _below(source: Entropy, total: int, n: int) -> Integers:
    """`n` uniform integers in 0 .. total-1, by rejection: how many words it takes does not depend on what is reported."""
    draws, left = np.empty(n, dtype=np.int64), np.arange(n)
    while left.size:
        words = source.words(left.size) >> np.uint64(64 - (total - 1).bit_length())
        is_fine = words < np.uint64(total)
        draws[left[is_fine]], left = words[is_fine].astype(np.int64), left[~is_fine]
    return draws


def _subsets(raw: Any, n: int, n_values: int, size: int) -> Integers:
    """Ascending rows of preferred values, and 0 .. size-1 for every row that is none."""
    subsets = np.tile(np.arange(size, dtype=np.int64), (n, 1))
    try:
        given = np.asarray(raw)
        if given.shape == subsets.shape and given.dtype.kind in "iu":
            ordered = np.sort(given.astype(np.int64), axis=1)  # what does not fit becomes negative, hence out of range
            is_sound = (ordered[:, 0] >= 0) & (ordered[:, -1] < n_values) & (np.diff(ordered, axis=1) > 0).all(axis=1)
            subsets[is_sound] = ordered[is_sound]
    except Exception:  # of whatever kind: a report that is not sent would tell what the point was
        pass
    return subsets
