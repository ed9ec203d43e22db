"""Published test vectors of the hash and the codebook, and that hashes of neighbouring keys look independent."""

import hashlib
from fractions import Fraction

import numpy as np
import pytest

from kveil.collect import _kernels, hashing, oracles
from kveil.collect.encoding import preferred
from kveil.collect.queries import Query
from kveil.collect.vector import codewords
from kveil.kernel.loss import response_weights
from kveil.kernel.response import chosen
from kveil.partition.public_map import PublicMap

PLAIN = PublicMap(np.eye(2, dtype=np.float32), np.zeros(2, dtype=np.float32))
CELLS = Query(id=0, kind="olh", M=4, kappa=1, key_rule="cell", maps=(PLAIN,), depth=4)
MANIFEST = bytes.fromhex("77b121bd9722dd337b77f29b1374d03d61995042a9f6749fec6a0026716008e0")


def test_the_hash_gives_its_published_words():
    assert int(_kernels.mix(np.uint64(1))) == 0x5692161D100B05E5
    assert int(hashing.hashed([1], 1, [0])[0]) == 0x8E58975F6D0DC556
    assert hashing.signs(np.ones(8), np.arange(8)).tolist() == [-1, -1, 1, 1, 1, 1, -1, 1]


def test_codewords_are_the_published_integers_to_one_unit():
    """Another libm may change a coordinate by one unit of 2**-24."""
    words = codewords(np.ones(2, dtype=np.uint64), np.array([0, 255]), 3)
    published = np.array([[15475326, 5730882, -3024280], [-12540624, -2598478, 10837695]])
    assert np.abs(words - published).max() <= 1


def test_eight_reports_decode_to_the_published_estimates():
    seeds = np.array(
        [
            int.from_bytes(hashlib.blake2b(MANIFEST + bytes([i]) * 16, digest_size=8, person=b"kveil.local/1").digest(), "little")
            for i in range(8)
        ],
        dtype=np.uint64,
    )
    assert int(seeds[2]) == int.from_bytes(bytes.fromhex("48849b56a6995cbe"), "big")
    points = np.array([[0.5, 0.5]] * 5 + [[-0.5, -0.5]] * 3)
    assert PLAIN.cells(points, 4).tolist() == [12] * 5 + [3] * 3
    a, b = response_weights(Fraction(1))
    draws = np.array([2 * i * (a + 3 * b) // 17 for i in range(8)])
    subsets = preferred(CELLS, points, seeds)
    assert (int(subsets[2, 0]), int(draws[2])) == (2, 5778784339)
    reported = chosen(draws, subsets, a, b)
    assert reported.tolist() == [1, 3, 2, 0, 1, 0, 1, 2]
    support = oracles.support(CELLS, seeds, reported, np.arange(16, dtype=np.uint64))
    assert support.tolist() == [3, 1, 2, 0, 0, 1, 2, 2, 1, 2, 3, 2, 7, 2, 1, 0]
    own, other = oracles.chances("olh", 4, Fraction(1))
    assert (own, other, 1 / (own - other)) == (pytest.approx(0.475366886, abs=1e-9), 0.25, pytest.approx(4.437209104, abs=1e-9))
    estimates = oracles.estimates(CELLS, support, 8, Fraction(1))
    assert estimates[[12, 0, 2, 3]] == pytest.approx([22.186, 4.4372, 0.0, -8.8744], abs=1e-3)


def test_a_hash_of_pairs_is_that_of_each():
    seeds, keys = np.arange(5, dtype=np.uint64) ** 7, np.array([3, 9, 2**63, 1, 0], dtype=np.uint64)
    together = hashing.hashed(seeds, 2, keys)
    assert together.tolist() == [int(hashing.hashed([s], 2, [k])[0]) for s, k in zip(seeds, keys, strict=True)]
    assert hashing.hashed(seeds, 2, 3).tolist() == hashing.hashed(seeds, 2, np.full(5, 3)).tolist()


def test_signs_and_collisions_of_adjacent_keys_are_as_often_as_they_should_be():
    """Fixed seeds 0 .. 400 000: no false alarm. Six deviations leave room for no visible dependence."""
    n, m = 400_000, 7
    seeds = np.arange(n, dtype=np.uint64)
    for one, other in [(0, 1), (6, 7), (2**40, 2**40 + 1)]:
        product = hashing.signs(seeds, one) * hashing.signs(seeds, other)
        assert abs(product.sum()) < 6 * np.sqrt(n)
        together = (hashing.values(seeds, one, m) == hashing.values(seeds, other, m)).sum()
        assert abs(together - n / m) < 6 * np.sqrt(n * (1 / m) * (1 - 1 / m))
    assert abs(np.bincount(hashing.values(seeds, 5, m)) - n / m).max() < 6 * np.sqrt(n / m)


def test_parities_are_those_of_common_bits():
    rows, keys = np.array([0, 1, 6, 2**63], dtype=np.uint64), np.array([7, 3, 7, 2**63 + 1], dtype=np.uint64)
    assert hashing.parities(rows, keys).tolist() == [bin(int(r) & int(k)).count("1") % 2 for r, k in zip(rows, keys, strict=True)]
