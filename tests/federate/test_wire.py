"""One value, one spelling: what is no message is refused, and what is comes back as it was."""

from fractions import Fraction

import pytest
from federate_tools import RUN, party, plan
from hypothesis import given
from hypothesis import strategies as st

from kveil.federate.messages import Reply, Request, VersionError
from kveil.federate.plan import Round, RunPlan, shared_out
from kveil.federate.wire import WireError, decode, encode, fields, many, ratio, spelled, whole
from kveil.kernel.loss import zcdp_epsilon

values = st.recursive(
    st.integers(-(2**63), 2**63) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_messages_come_back_as_they_were(value):
    assert decode(encode(value)) == value


@pytest.mark.parametrize(
    "data",
    [b"1.0", b"1e3", b'{"a":0.5}', b"NaN", b"-Infinity", b'{"a":1,"a":2}', b'{"b":1,"a":2}', b"[1, 2]", b" 1", b"01", b"-0",
     b'"\\u0061"', b"[" * 100_000, b"", b"\xff", b"123456789012345678901", b'{"a":1}x', b"[1,]"],
    ids=lambda data: repr(data[:20]),
)  # fmt: skip
def test_what_is_not_canonical_whole_numbers_and_text_is_refused(data):
    with pytest.raises(WireError):
        decode(data)


@pytest.mark.parametrize("body", [{}, {"a": 1, "b": 1}, {"b": 1}, [1], 1, {"a": True}, {"a": None}, {"a": 10}, {"a": "1"}])
def test_unknown_missing_and_odd_fields_are_refused(body):
    with pytest.raises(WireError):
        fields(body, {"a": whole(0, 9)})


def test_booleans_hide_in_no_list():
    with pytest.raises(WireError):
        many(whole(0, 9), 0, 9)([1, True])


@pytest.mark.parametrize("text", ["1", "2/4", "1/0", "-1/2", "1/-2", "01/2", "1/2 ", "0.5", 1, "1e9/2", "9" * 41 + "/1"])
def test_fractions_have_one_spelling(text):
    with pytest.raises(WireError):
        ratio(text)
    assert ratio(spelled(Fraction(3, 6))) == Fraction(1, 2)


def test_envelopes_come_back_and_unknown_versions_and_keys_are_refused():
    request = Request(RUN, 3, "cells", {"level": 1})
    assert Request.from_bytes(request.to_bytes()) == request
    for reply in (Reply(RUN, 3, "north", "0" * 64, {"count": [1]}), Reply(RUN, 3, "north", "0" * 64, refused="budget")):
        assert Reply.from_bytes(reply.to_bytes()) == reply
    plain = decode(request.to_bytes())
    with pytest.raises(VersionError):
        Request.from_bytes(encode(plain | {"v": 2}))
    for change in ({"extra": 1}, {"run": RUN.upper()}, {"seq": -1}, {"kind": "Cells"}, {"body": []}, {"v": "1"}):
        with pytest.raises(WireError):
            Request.from_bytes(encode(plain | change))
    with pytest.raises(WireError):
        Reply.from_bytes(encode(decode(reply.to_bytes()) | {"refused": "too few rows"}))


def test_a_plan_comes_back_and_must_add_up():
    held = party()
    good = plan(held)
    assert RunPlan.read(good).described() == good
    rounds = good["rounds"]
    for change in (
        {"epsilon": "2/1"}, {"epsilon": "1/2"}, {"epsilon": "none"}, {"delta": "1/1"}, {"rounds": rounds[:2]}, {"rounds": []},
        {"rounds": [*rounds, rounds[0]]}, {"rounds": [rounds[0] | {"times": 2}, *rounds[1:]]}, {"relation": "replace-one"},
        {"rounds": [rounds[0] | {"budget": "0/1"}, *rounds[1:]]}, {"domain": "x"}, {"expires": 10**9}, {"protocol": "all"},
        {"rounds": [rounds[0] | {"counts": "2/1"}, *rounds[1:]]}, {"n_clusters": 0}, {"rows_per_person": 0},
    ):  # fmt: skip
        with pytest.raises(WireError):
            RunPlan.read(good | change)


@given(st.integers(2**30, 2**42), st.lists(st.tuples(st.fractions(Fraction(1, 9), 1), st.integers(1, 5)), min_size=1, max_size=6))
def test_shares_of_a_budget_add_up_to_it_exactly(units, weights):
    epsilon = Fraction(units, 2**40)
    budgets = shared_out(epsilon, Fraction(0), [*weights, (Fraction(1), 1)])
    assert sum(b * t for b, (_, t) in zip(budgets, [*weights, (1, 1)], strict=True)) == epsilon
    assert all(b > 0 and (b * 2**40).denominator == 1 for b in budgets)


def test_a_gaussian_plan_stays_within_epsilon_at_delta():
    epsilon, delta = Fraction(1), Fraction(1, 2**20)
    budgets = shared_out(epsilon, delta, [(Fraction(1), 1), (Fraction(2), 3)])
    assert zcdp_epsilon(budgets[0] + 3 * budgets[1], delta) <= 1
    held = party()
    rounds = (Round("cells", budgets[0], level=1), Round("cells", budgets[1], times=3, level=2))
    assert RunPlan.read(plan(held, *rounds, delta=delta)).loss == "zcdp"
    more = (rounds[0], Round("cells", budgets[1] * 2, times=3, level=2))
    with pytest.raises(WireError):
        RunPlan.read(plan(held, *more, delta=delta))


def test_a_message_that_is_too_long_is_not_read():
    with pytest.raises(WireError, match="at most"):
        decode(b" " * (64 * 2**20 + 1))
