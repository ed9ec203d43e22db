"""docs/protocol.md is enough: a client that was written from it alone agrees with every vector."""

import hashlib
import json
import re
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest
import second_client as second
from campaigns import KEY

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "protocol.md").read_text(encoding="utf-8")


def vectors(name):
    return json.loads((HERE / f"{name}.json").read_text(encoding="ascii"))


def verdict(act):
    try:
        act()
    except second.Refused:
        return "refused"
    return "taken"


def test_the_second_client_leans_on_nothing_of_ours():
    text = (HERE / "second_client.py").read_text(encoding="utf-8")
    assert not re.search(r"^\s*(import|from) (kveil|numpy|campaigns|chains)", text, re.MULTILINE)


def test_the_page_lists_every_vector_and_the_key():
    names = {path.stem for path in HERE.glob("*.json")}
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE.split("## 14.")[1], re.MULTILINE)) == names
    assert KEY.public in PAGE


def test_words_and_weights():
    for epsilon, a, b in vectors("weights"):
        assert second.weights(epsilon) == (int(a), int(b))
    for message, key, person, size, digest in vectors("blake2b"):
        made = hashlib.blake2b(bytes.fromhex(message), key=bytes.fromhex(key), person=person.encode(), digest_size=size)
        assert made.hexdigest() == digest
    for seed, tag, key, expected in vectors("hash"):
        assert second.hashed(int(seed, 16), tag, int(key, 16)) == int(expected, 16)


def test_texts_and_manifests():
    for text, told in vectors("canonical"):
        assert verdict(lambda text=text: second.read(text)) == told, text
    for name, chain, _, told in vectors("manifests"):
        assert verdict(lambda chain=chain: second.verified(chain, KEY.public)) == told, name


def test_draws_and_preferred_values():
    for epsilon, _, kappa, shown, draw, index in vectors("chosen"):
        subset = shown if len(shown) == kappa else list(range(kappa))
        assert second.chosen(int(draw), subset, *second.weights(epsilon)) == index
    for query, _, x, seed, values in vectors("preferred"):
        assert sorted(second.preferred(query, list(map(float, x)), int(seed, 16))) == values


def test_answers():
    chains, noon = dict(vectors("chains")), datetime(2030, 1, 5, 12, tzinfo=UTC)
    for name, rounds, point, words, cohort, report, send_at in vectors("answers"):
        tape = iter([int(word, 16) for word in words])
        secret = b"".join(next(tape).to_bytes(8, "little") for _ in range(4))
        body = second.verified(chains[name][:rounds], KEY.public)
        assert second.cohort(secret, body["campaign"]) == cohort
        made, leaves = second.answer(body, list(map(float, point)), lambda tape=tape: next(tape), noon)
        assert (made.hex(), leaves) == (report, datetime.fromisoformat(send_at)), name
        assert list(tape) == []


def test_reports_ledgers_and_changes_of_keys():
    for text, told in vectors("reports"):
        if told != "refused":
            assert second.report_bytes(told[0], bytes.fromhex(told[1]), told[2]).hex() == text
    for rows, clock, quiet, cap, rest, cost, told in vectors("ledger"):
        assert second.left(rows, clock, quiet, cap) == Fraction(rest)
        assert told == ("taken" if Fraction(cost) <= Fraction(rest) else "refused")
    for *statement, told in vectors("rotations"):
        if told == "refused":
            with pytest.raises(second.Refused):
                second.rotated(*statement)
        else:
            assert second.rotated(*statement) == told
