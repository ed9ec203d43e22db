"""Public hashing of (seed, key): which value a key falls on, which sign it has, and the words of a codebook.

mix is the finisher of SplitMix64; H(seed, tag, key) = mix(mix(seed + tag G) ^ mix(key + G)). Tags keep the uses independent.
The seed of a report follows from its id, which is uniform and drawn without looking at the point.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kveil.arrays import Integers, Words
from kveil.collect import _kernels

OLH, SIGN, ROW, CODEBOOK, DIRECTION, BIN = range(1, 7)


def hashed(seeds: ArrayLike, tag: int, keys: ArrayLike) -> Words:
    """H(seed, tag, key) of every pair.

    >>> hex(int(hashed([1], 1, [0])[0]))
    '0x8e58975f6d0dc556'
    """
    some, others = np.broadcast_arrays(words(seeds), words(keys))
    out = np.empty(some.shape, dtype=np.uint64)
    _kernels.pairs(mixed_seeds(some, tag), mixed_keys(others), out)
    return out


def values(seeds: ArrayLike, keys: ArrayLike, n_values: int) -> Integers:
    """The value in 0 .. n_values-1 that each seed hashes its key to."""
    return (((hashed(seeds, OLH, keys) >> np.uint64(32)) * np.uint64(n_values)) >> np.uint64(32)).astype(np.int64)


def signs(seeds: ArrayLike, keys: ArrayLike) -> Integers:
    """+1 or -1 that each seed gives to its key."""
    return 1 - 2 * (hashed(seeds, SIGN, keys) >> np.uint64(63)).astype(np.int64)


def rows(seeds: ArrayLike, bits: int) -> Words:
    """A row of the Hadamard matrix of size 2**bits for each seed."""
    return hashed(seeds, ROW, 0) & np.uint64((1 << bits) - 1)


def parities(some: Words, others: Words) -> Integers:
    """Whether the number of common bits is odd."""
    common = some & others
    for half in (32, 16, 8, 4, 2, 1):  # numpy 1.26 has no bitwise_count
        common = common ^ (common >> np.uint64(half))
    return (common & np.uint64(1)).astype(np.int64)


def bins(seed: int, keys: ArrayLike, n_bins: int) -> Words:
    """The bin of every key under one public seed; n_bins is a power of 2."""
    return hashed(np.uint64(seed), BIN, keys) & np.uint64(n_bins - 1)


def uniforms(seeds: ArrayLike, tag: int) -> NDArray[np.float64]:
    """A number in [0, 1) for each seed."""
    return (hashed(seeds, tag, 0) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def mixed_seeds(seeds: Words, tag: int) -> Words:
    out = np.empty(len(seeds), dtype=np.uint64)
    _kernels.mixed_seeds(words(seeds), np.uint64(tag), out)
    return out


def mixed_keys(keys: Words) -> Words:
    out = np.empty(len(keys), dtype=np.uint64)
    _kernels.mixed_keys(words(keys), out)
    return out


def words(given: ArrayLike) -> Words:
    return np.ascontiguousarray(np.asarray(given, dtype=np.uint64))
