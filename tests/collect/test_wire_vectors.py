"""The published example of one round, byte for byte: another implementation must agree with every line."""

import json

import numpy as np

from kveil import canonical
from kveil.collect import hashing, oracles, report, vector
from kveil.collect.encoding import keys_of, preferred
from kveil.collect.manifest import Manifest, Signed, verified
from kveil.kernel.loss import response_weights
from kveil.kernel.response import chosen
from kveil.signing import SigningKey

KEY = SigningKey(bytes(range(32)))
BODY = (
    b'{"campaign":"da4eacee78739c21412b19e5aa6f43ed48d85020afe43674e90ce04d85049a5b","header":{"cohorts":[[0,65535]],"domain":'
    b'{"D":2,"Rad":"AACAPw==","o":"AAAAAAAAAAA="},"k":2,"key":"03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"'
    b',"method":"grid","n":8,"name":"demo","privacy":{"a":11674931554,"b":4294967296,"eps":"1","mode":"one_round"},'
    b'"report_bytes":22,"schema":"kveil.local/1"},"min_reports":8,"not_after":"2030-01-31","not_before":"2030-01-01","prev":'
    b'"0000000000000000000000000000000000000000000000000000000000000000","queries":[{"M":4,"depth":4,"id":0,"kappa":1,"key_rule":'
    b'"cell","kind":"olh","map":{"A":"AACAPwAAAAAAAAAAAACAPw==","d":2,"gamma":"AAAAAAAAAAA="},"weight":1}],"round":1}'
)
HASH = "77b121bd9722dd337b77f29b1374d03d61995042a9f6749fec6a0026716008e0"
SIGNATURE = (
    "eb8e2874d90a06b5866fbfb1e0f7b4dbd00d2da5889626cb9ce6b68fb135cea1"
    "d72a4a0873094dc98cf924d393ff6787a3af73e3454573754555a83f01f3fc0e"
)
USERS = np.array([[0.5, 0.5]] * 5 + [[-0.5, -0.5]] * 3)
IDS = [bytes([i] * 16) for i in range(8)]


def test_a_manifest_is_read_and_written_as_the_same_703_bytes():
    manifest = Manifest.from_bytes(BODY)
    assert len(BODY) == 703
    assert manifest.body == BODY == canonical.DEVICE.write(json.loads(BODY))
    assert manifest.hash == HASH
    assert manifest.header.campaign == "da4eacee78739c21412b19e5aa6f43ed48d85020afe43674e90ce04d85049a5b"


def test_its_signature():
    signed = Manifest.from_bytes(BODY).signed(KEY)
    assert signed.signature.hex() == SIGNATURE
    (again,) = verified([Signed.from_bytes(signed.to_bytes())], KEY.public)
    assert again.body == BODY


def test_a_report_and_its_seed():
    read = report.Report.from_bytes(bytes.fromhex("01000000020202020202020202020202020202020200"))
    assert (read.query, read.report_id, read.index) == (0, bytes([2] * 16), 2)
    assert read.to_bytes().hex() == "01000000020202020202020202020202020202020200"
    assert f"{report.seed(HASH, read.report_id):016x}" == "48849b56a6995cbe"
    assert report.seeds(HASH, IDS).tolist() == [report.seed(HASH, one) for one in IDS]


def test_reports_and_what_they_are_decoded_to():
    """Eight people, the i-th with the draw floor(2 i W / 17) of W = a + 3 b."""
    (query,) = Manifest.from_bytes(BODY).queries
    seeds, (a, b) = report.seeds(HASH, IDS), response_weights(Manifest.from_bytes(BODY).epsilon)
    draws = np.array([2 * i * (a + 3 * b) // 17 for i in range(8)])
    assert draws[2] == 5778784339
    assert keys_of(query, USERS).tolist() == [12] * 5 + [3] * 3
    wanted = preferred(query, USERS, seeds)
    assert wanted[2] == 2
    index = chosen(draws, wanted, a, b)
    assert index.tolist() == [1, 3, 2, 0, 1, 0, 1, 2]
    support = oracles.support(query, seeds, index, np.arange(16, dtype=np.uint64))
    assert support.tolist() == [3, 1, 2, 0, 0, 1, 2, 2, 1, 2, 3, 2, 7, 2, 1, 0]
    told = oracles.estimates(query, support, 8, Manifest.from_bytes(BODY).epsilon)
    assert told[[12, 0, 2, 3]].round(4).tolist() == [22.186, 4.4372, 0.0, -8.8744]


def test_hashes_and_codewords():
    assert f"{int(hashing.hashed([1], 1, [0])[0]):016x}" == "8e58975f6d0dc556"
    words = vector.codewords(np.array([1, 1], dtype=np.uint64), np.array([0, 255]), 3)
    expected = [[15475326, 5730882, -3024280], [-12540624, -2598478, 10837695]]
    assert np.abs(words - expected).max() <= 1  # another libm may round the last bit the other way
    assert hashing.signs(np.ones(8, dtype=np.uint64), np.arange(8)).tolist() == [-1, -1, 1, 1, 1, 1, -1, 1]
