"""Sealed rows open for their run, round and sender, and for nobody without the secret; picks follow squared distances."""

from fractions import Fraction

import numpy as np
import pytest
from federate_tools import FREE, RUN, message, opened, party, told
from scipy import stats

from kveil.federate.messages import Reply
from kveil.federate.plan import Round
from kveil.federate.questions import Terms
from kveil.federate.sealed import opened as unsealed
from kveil.federate.sealed import sealed
from kveil.federate.wire import WireError

SECRET = bytes(range(32))
ROWS = [[0.0, 0.0], [0.5, 0.0], [0.0, -1.0]]
FALSE_ALARM = 1e-6


def terms(held, **changes):
    return Terms(**{"layout": held.layout, "round": Round("seed", Fraction(0)), "n_clusters": 2, "policy": FREE, "law": None,
                    "run": RUN, "secret": SECRET} | changes)  # fmt: skip


def test_what_is_sealed_opens_only_where_it_belongs():
    held, code = party(), np.array([123456, -7])
    box = sealed(code, terms(held), "north", 4).tolist()
    assert unsealed(box, terms(held), "north", 4).tolist() == code.tolist()
    assert sealed(code, terms(held), "north", 4).tolist() != box  # a fresh nonce
    for changes, sender, t in (
        ({"run": "cd" * 16}, "north", 4), ({}, "south", 4), ({}, "north", 3), ({"secret": bytes(32)}, "north", 4),
    ):  # fmt: skip
        with pytest.raises(WireError, match="does not open"):
            unsealed(box, terms(held, **changes), sender, t)
    for place in (0, 13, len(box) - 1):
        damaged = [*box[:place], box[place] ^ 1, *box[place + 1 :]]
        with pytest.raises(WireError, match="does not open"):
            unsealed(damaged, terms(held), "north", 4)
    with pytest.raises(WireError, match="no secret"):
        sealed(code, terms(held, secret=None), "north", 4)


def seeding(held, k=400):
    zero = Fraction(0)
    parts = (Round("seed", zero, times=k), Round("update", zero, times=9), Round("first", zero))
    return opened(held, *parts, epsilon=None, protocol="dk", k=k)


def test_a_party_reads_what_another_sealed_and_refuses_what_it_cannot_open():
    north = seeding(party(ROWS, policy=FREE, secret=SECRET))
    south = seeding(party(ROWS, name="south", policy=FREE, secret=SECRET))
    stranger = seeding(party(ROWS, name="stranger", policy=FREE, secret=bytes(32)))
    seed = told(north, 1, "seed", {"sealed": [], "senders": []}).body["sealed"]
    body = {"sealed": [seed], "senders": ["north"]}
    (total,) = told(south, 1, "update", body).body["total"]
    assert total > 0
    assert told(stranger, 1, "update", body).refused == "payload"
    assert told(south, 2, "update", {"sealed": [seed], "senders": ["south"]}).refused == "payload"
    assert told(south, 2, "update", {"sealed": [seed, seed], "senders": ["north", "north"]}).refused == "payload"  # not round 1
    assert told(south, 2, "update", {"sealed": [seed], "senders": []}).refused == "payload"
    assert told(south, 2, "update", {"sealed": [seed[:-1]], "senders": ["north"]}).refused == "payload"


@pytest.mark.parametrize("worst", [2**62, -(2**63), 2**23])
def test_a_sealed_row_outside_the_domain_is_refused(worst):
    """From a party that lies: its distance to rows would overflow."""
    held = seeding(party(ROWS, policy=FREE, secret=SECRET))
    box = sealed(np.array([0, worst]), terms(held), "south", 0).tolist()
    assert told(held, 1, "update", {"sealed": [box], "senders": ["south"]}).refused == "payload"


@pytest.mark.statistical
def test_seeds_are_drawn_by_squared_distance():
    """Rows at distance 0, 0.5 and 1 of the one seed: picked in 0, 1/5 and 4/5 of 300 draws. A uniform pick would be caught."""
    held = seeding(party(ROWS, policy=FREE, secret=SECRET))
    domain, about = held.layout.domain, terms(held)
    code = domain.encode(np.array([ROWS[0]]))[0].astype(np.int64)
    body = {"sealed": [sealed(code, about, "north", 0).tolist()], "senders": ["north"]}
    picks = []
    for seq in range(1, 301):
        reply = Reply.from_bytes(held.answer(message(seq, "seed", body)))
        picks.append(unsealed(reply.body["sealed"], about, "north", 1).tolist())
    far = picks.count(domain.encode(np.array([ROWS[2]]))[0].tolist())
    low, high = stats.binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], 300, 0.8)
    assert code.tolist() not in picks
    assert low <= far <= high
    assert not low <= 150 <= high
