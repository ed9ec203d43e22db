"""Compiled hashing, codebooks and decoding. Arrays in, arrays out; no privacy logic.

Every number here is an unsigned 64-bit word, and arithmetic wraps. A seed and a key are mixed once each before the loops over
pairs, so that a pair costs one mix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
N11, N27, N30, N31, N32, N63 = (np.uint64(n) for n in (11, 27, 30, 31, 32, 63))
ONE = np.uint64(1)
UNIT = 2.0**24  # of the integers of a codeword


@njit(cache=True, nogil=True)
def mix(x: Any) -> Any:
    x ^= x >> N30
    x *= FIRST
    x ^= x >> N27
    x *= SECOND
    return x ^ (x >> N31)


@njit(cache=True, nogil=True)
def mixed_seeds(seeds: Any, tag: Any, out: Any) -> None:
    for i in range(len(seeds)):
        out[i] = mix(seeds[i] + tag * GOLDEN)


@njit(cache=True, nogil=True)
def mixed_keys(keys: Any, out: Any) -> None:
    for i in range(len(keys)):
        out[i] = mix(keys[i] + GOLDEN)


@njit(cache=True, nogil=True)
def pairs(seeds: Any, keys: Any, out: Any) -> None:
    """The hash of every mixed seed with its own mixed key."""
    for i in range(len(seeds)):
        out[i] = mix(seeds[i] ^ keys[i])


@njit(cache=True, nogil=True)
def support(seeds: Any, reported: Any, keys: Any, n_values: Any, out: Any) -> None:
    """For every key, how many reports are the value that it is hashed to."""
    for i in range(len(seeds)):
        seed, value = seeds[i], reported[i]
        for j in range(len(keys)):
            out[j] += ((mix(seed ^ keys[j]) >> N32) * n_values) >> N32 == value


@njit(cache=True, nogil=True)
def walsh_hadamard(values: Any) -> None:
    """In place: out[v] = sum over r of (-1)^popcount(r & v) values[r]; the length is a power of 2."""
    half = 1
    while half < len(values):
        for start in range(0, len(values), 2 * half):
            for i in range(start, start + half):
                a, b = values[i], values[i + half]
                values[i], values[i + half] = a + b, a - b
        half *= 2


@njit(cache=True, nogil=True)
def codeword(seed: Any, j: Any, dim: Any, word: Any) -> None:
    """Codeword j of a seed (mixed) in `word`: a direction from pairs of normal deviates (Box, Muller), in units of 2**-24."""
    total = 0.0
    for i in range(0, dim, 2):
        place = np.uint64(65536) * np.uint64(j) + np.uint64(i)
        first = mix(seed ^ mix(place + GOLDEN))
        second = mix(seed ^ mix(place + ONE + GOLDEN))
        radius = np.sqrt(-2.0 * np.log((np.float64(first >> N11) + 1.0) * 2.0**-53))
        angle = 2.0 * np.pi * (np.float64(second >> N11) * 2.0**-53)
        word[i] = radius * np.cos(angle)
        total += word[i] * word[i]
        if i + 1 < dim:
            word[i + 1] = radius * np.sin(angle)
            total += word[i + 1] * word[i + 1]
    norm = np.sqrt(total)
    for i in range(dim):
        word[i] = np.rint(word[i] / norm * UNIT) if norm > 0 else 0.0


@njit(cache=True, nogil=True)
def codewords(seeds: Any, reported: Any, out: Any) -> None:
    """The codeword that each report names, as integers."""
    n, dim = out.shape
    word = np.empty(dim)
    for i in range(n):
        codeword(seeds[i], reported[i], dim, word)
        for j in range(dim):
            out[i, j] = np.int64(word[j])


@njit(cache=True, nogil=True)
def best_aligned(seeds: Any, directions: Any, n_values: Any, size: Any, out: Any) -> None:
    """The `size` codewords of each report's own codebook with the largest product with its direction; ties to the lower one.

    A product that is no number counts as the least of all.
    """
    n, dim = directions.shape
    word, products = np.empty(dim), np.empty(n_values)
    for i in range(n):
        for j in range(n_values):
            codeword(seeds[i], j, dim, word)
            total = 0.0
            for c in range(dim):
                total += word[c] * directions[i, c]
            products[j] = -total if total == total else np.inf
        order = np.argsort(products, kind="mergesort")
        for j in range(size):
            out[i, j] = order[j]


@njit(cache=True, nogil=True)
def signed_sums(seeds: Any, words: Any, keys: Any, out: Any) -> None:
    """For every key, the sum of codewords, each with the sign that its report gives to the key."""
    n, dim = words.shape
    for i in range(n):
        for j in range(len(keys)):
            if mix(seeds[i] ^ keys[j]) >> N63:
                for c in range(dim):
                    out[j, c] -= words[i, c]
            else:
                for c in range(dim):
                    out[j, c] += words[i, c]
