"""The vectors that every client must agree with, held against Python. `tests/browser` holds the browser's client against them."""

import hashlib
import json
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from campaigns import KEY, noon

from kveil import canonical
from kveil.collect import LocalClient, hashing
from kveil.collect.book import Book, Spend
from kveil.collect.documents import read_query
from kveil.collect.encoding import preferred
from kveil.collect.keys import Rotation
from kveil.collect.manifest import Manifest, Signed, verified
from kveil.collect.report import Report
from kveil.errors import KveilError
from kveil.kernel import exact
from kveil.kernel.loss import response_weights
from kveil.kernel.response import chosen


def vectors(name):
    return json.loads(Path(__file__).with_name(f"{name}.json").read_text(encoding="ascii"))


def verdict(act):
    try:
        act()
    except KveilError:
        return "refused"
    return "taken"


def test_weights():
    for text, a, b in vectors("weights"):
        assert response_weights(Fraction(text)) == (int(a), int(b))


def test_digests_and_hashes():
    for message, key, person, size, digest in vectors("blake2b"):
        made = hashlib.blake2b(bytes.fromhex(message), key=bytes.fromhex(key), person=person.encode(), digest_size=size)
        assert made.hexdigest() == digest
    for seed, tag, key, expected in vectors("hash"):
        assert int(hashing.hashed([int(seed, 16)], tag, [int(key, 16)])[0]) == int(expected, 16)


def test_canonical_texts():
    cases = vectors("canonical")
    assert {told for _, told in cases} == {"taken", "refused"}
    for text, told in cases:
        assert verdict(lambda text=text: canonical.DEVICE.read(text.encode())) == told, text


def test_the_value_that_a_draw_falls_on():
    draws = []
    for text, _, kappa, shown, draw, value in vectors("chosen"):
        subset = shown if len(shown) == kappa else range(kappa)
        assert chosen(np.array([int(draw)]), np.array([subset]), *response_weights(Fraction(text)))[0] == value
        draws.append(int(draw))
    assert max(draws) > 2**53, "a client that draws with floats must fail"


def test_manifests():
    cases = vectors("manifests")
    assert len(cases) > 90
    for name, chain, told, in_browser in cases:
        assert verdict(lambda chain=chain: verified([Signed.from_bytes(one.encode()) for one in chain], KEY.public)) == told, name
        assert in_browser == told or (name, in_browser) == ("buckets", "refused")


def test_chains_are_of_both_versions_of_every_protocol_that_has_two():
    methods = {Manifest.from_bytes(signed(chain[0]).body).header.method for _, chain in vectors("chains")}
    assert methods == {"grid", "grid-2", "refine", "refine-2", "lma", "lma-2", "lae"}


def test_preferred_values():
    kinds = set()
    for document, n_columns, x, seed, values in vectors("preferred"):
        query = read_query(document, n_columns)
        got = preferred(query, np.array([x], dtype=np.float64), np.array([int(seed, 16)], dtype=np.uint64))
        assert sorted(got[0].tolist()) == values
        kinds.add((query.kind, query.key_rule))
    on_keys = {(kind, rule) for kind in ("olh", "grr", "hrr") for rule in ("cell", "nearest")}
    assert kinds == on_keys | {("vec", rule) for rule in ("nearest", "product", "cell")}


class Tape:
    secure = False

    def __init__(self, words):
        self.left = [int(word, 16) for word in words]

    def words(self, n):
        drawn, self.left = self.left[:n], self.left[n:]
        return np.array(drawn, dtype=np.uint64)


def test_answers():
    chains = {name: [signed(text) for text in chain] for name, chain in vectors("chains")}
    cases = vectors("answers")
    assert {(name, rounds) for name, rounds, *_ in cases} >= {("refine-2 in 10", number) for number in (1, 2, 3, 4)}
    for name, rounds, point, words, cohort, report, send_at in cases:
        token = exact._installed.set(tape := Tape(words))
        try:
            client = LocalClient(None, n_features=len(point), key=KEY.public, cap=10, is_first=True, clock=noon())
            told = client.answer(chains[name][:rounds], list(map(float, point)))
        finally:
            exact._installed.reset(token)
        assert told.hex() == report
        assert client.pending()[0].send_at == datetime.fromisoformat(send_at)
        assert client.cohort(Manifest.from_bytes(chains[name][0].body).header) == cohort
        assert tape.left == []


def test_reports():
    for text, told in vectors("reports"):
        message = bytes.fromhex(text)
        if told == "refused":
            assert verdict(lambda message=message: Report.from_bytes(message)) == "refused"
        else:
            assert Report.from_bytes(message) == Report(told[0], bytes.fromhex(told[1]), told[2])


def test_what_is_left_of_a_cap():
    verdicts = []
    for rows, clock, quiet, cap, left, cost, told in vectors("ledger"):
        spends = [
            Spend(
                name, 1, "one_round", Fraction(eps), name, b"", "acked", date.fromisoformat(day), datetime.fromisoformat(at), True
            )
            for name, eps, day, at in rows
        ]
        book, today = Book(tuple(spends), date.fromisoformat(quiet)), date.fromisoformat(clock)
        terms = ("f" * 64, Fraction(cost), Fraction(cost), Fraction(cap), today)
        assert max(Fraction(0), book.left(Fraction(cap), today)) == Fraction(left)
        assert verdict(lambda book=book, terms=terms: book.check(*terms)) == told
        verdicts.append(told)
    assert min(verdicts.count("taken"), verdicts.count("refused")) >= 10


@pytest.mark.parametrize("case", vectors("rotations"), ids=lambda case: "taken" if case[-1] != "refused" else "refused")
def test_changes_of_keys(case):
    pinned, body, by_old, by_new, told = case
    statement = Rotation(body.encode(), bytes.fromhex(by_old), bytes.fromhex(by_new))
    if told == "refused":
        assert verdict(lambda: statement.verified(pinned)) == "refused"
    else:
        assert statement.verified(pinned) == tuple(told)


def spend(name, epsilon, day, send_at):
    times = (date.fromisoformat(day), datetime.fromisoformat(send_at))
    return Spend(name, 1, "one_round", Fraction(epsilon), name, b"", "acked", *times, True)


def signed(text):
    return Signed.from_bytes(text.encode())
