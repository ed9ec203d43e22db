"""Bounding what one person contributes: of each person's rows at most m stay.

Which rows stay is decided by a hash of the row's content, not by its place, so order and partitions do not matter, and
a person's rows never decide about another's. Ids are compared exactly: two people who shared a hash would share a bound.
Rows without an id are left out, because nobody could be charged for them.

While bounding, about 80 bytes per row are held in memory, more by the length of ids that are text; afterwards one byte per
row. (Measured with ten million rows of three million people.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kveil.arrays import Floats

SALT = 0x6B7665696C2F7631  # "kveil/v1"; fixed, so that every pass and every worker chooses the same rows
_NAN = np.float64(np.nan).view(np.uint64)


class Fingerprints(NamedTuple):
    """Of each row: whose it is, and a hash of what it holds."""

    ids: Any  # a pyarrow array, null where the id is missing
    hashes: NDArray[np.uint64]


def row_hashes(values: Floats) -> NDArray[np.uint64]:
    """A 64-bit hash of every row, from the bits of its float64 cells; all NaNs are one, and so are 0.0 and -0.0."""
    hashes = np.full(len(values), SALT, dtype=np.uint64)
    for column in values.T:
        with np.errstate(all="ignore"):  # adding to a signalling NaN would warn
            numbers = column + 0.0
        hashes = _mix(hashes ^ np.where(np.isnan(column), _NAN, numbers.view(np.uint64)))
    return hashes


def sparse_row_hashes(rows: Any) -> NDArray[np.uint64]:
    """The same for a canonical CSR matrix: from the columns and bits of entries that are not 0, stored or not."""
    with np.errstate(all="ignore"):
        numbers = rows.data + 0.0
    places = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    cells = _mix(np.where(np.isnan(numbers), _NAN, numbers.view(np.uint64)) ^ _mix(rows.indices.astype(np.uint64)))
    sums = np.zeros(rows.shape[0], dtype=np.uint64)
    np.add.at(sums, places, np.where(numbers == 0, np.uint64(0), cells))
    return _mix(sums ^ np.uint64(SALT))


def kept_rows(found: Sequence[Fingerprints], limit: int) -> list[NDArray[np.bool_]]:
    """For each piece of the table which rows stay: of every person the `limit` rows with the smallest hashes."""
    persons = _person_codes([piece.ids for piece in found])
    hashes = np.concatenate([piece.hashes for piece in found]) if found else np.empty(0, dtype=np.uint64)
    order = np.lexsort((hashes, persons))
    sorted_persons = persons[order]
    keep = np.ones(len(persons), dtype=np.bool_)
    keep[order[limit:]] = sorted_persons[limit:] != sorted_persons[:-limit]  # the row `limit` places before is another's
    keep &= persons >= 0
    return np.split(keep, np.cumsum([len(piece.hashes) for piece in found])[:-1]) if found else []


def matching_rows(kept: Fingerprints, found: Fingerprints) -> NDArray[np.bool_]:
    """Which of the rows found now are among those that were kept, each counted once.

    For rows whose order may differ from one pass to the next: a person never has more rows than were kept.
    """
    persons = _person_codes([kept.ids, found.ids])
    hashes = np.concatenate([kept.hashes, found.hashes])
    is_found = np.arange(len(persons)) >= len(kept.hashes)
    order = np.lexsort((is_found, hashes, persons))
    starts = _starts(persons[order], hashes[order])
    group = np.cumsum(starts) - 1
    allowed = np.bincount(group, weights=~is_found[order]).astype(np.int64)
    chosen = np.zeros(len(persons), dtype=np.bool_)
    chosen[order] = _rank(starts) < 2 * allowed[group]  # the kept come first in their group
    return (chosen & (persons >= 0))[len(kept.hashes) :]


def _person_codes(ids: Sequence[Any]) -> NDArray[np.int64]:
    """A number for each person, the same wherever the same id appears; -1 for a missing id."""
    if not ids:
        return np.empty(0, dtype=np.int64)
    coded = pa.chunked_array(ids).dictionary_encode()  # one dictionary for all chunks
    codes = [pc.fill_null(pc.cast(part.indices, pa.int64()), -1).to_numpy() for part in coded.chunks]
    return np.concatenate([np.empty(0, dtype=np.int64), *codes])  # empty chunks are dropped, perhaps all


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64: a permutation of 64-bit numbers that leaves no pattern."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _starts(*keys: NDArray[Any]) -> NDArray[np.bool_]:
    """True where a group of equal keys begins."""
    starts = np.ones(len(keys[0]), dtype=np.bool_)
    if len(starts):
        starts[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return starts


def _rank(starts: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The place of each entry within its group."""
    places = np.arange(len(starts), dtype=np.int64)
    return places - np.maximum.accumulate(np.where(starts, places, 0))
