"""What goes over the wire in a private run: whole numbers and words, of known keys; no anchor, no index, no exact total."""

import numpy as np
import pytest
from federate_tools import FREE, Recorded, mixture, party

from kveil import FederatedKMeans
from kveil.federate import InProcess
from kveil.federate.wire import decode

PLACES = np.array([[-0.6, -0.5], [0.1, 0.7], [0.6, -0.2]])
REPLY_KEYS = {
    "hello": {"data", "columns", "layout"}, "plan": {"accept"}, "cells": {"count", "noise"}, "sums": {"count", "dev", "noise"},
    "spread": {"count", "noise"}, "stats": {"count", "sum", "noise"}, "sample": {"row", "noise"}, "total": {"total", "noise"},
    "pick": {"center", "noise"}, "done": {"receipt"},
}  # fmt: skip


def numbers(value):
    """All numbers in a message, wherever they are; anything else than text is refused."""
    if isinstance(value, dict):
        return [number for item in value.values() for number in numbers(item)]
    if isinstance(value, list):
        return [number for item in value for number in numbers(item)]
    assert type(value) in (int, str), type(value)
    return [value] if type(value) is int else []


def recorded(tables, **options):
    """Everything that was sent in a fit, as (request, reply) pairs, and the parties."""
    held = [party(rows, name=f"p{i}", policy=FREE, budget=999.0, secret=bytes(32)) for i, rows in enumerate(tables)]
    model, link = FederatedKMeans(3, random_state=0, **options), Recorded(InProcess(held))
    model._link = lambda _: link
    model.fit(held)
    replies = {name: [data for n, data in link.replies if n == name] for name in link.parties}
    asked = {name: [data for n, data in link.requests if n == name] for name in link.parties}
    return [pair for name in link.parties for pair in zip(asked[name], replies[name], strict=True)], held


@pytest.mark.parametrize("protocol", ["cells", "sample", "pdk"])
def test_a_private_transcript_has_no_float_no_anchor_and_no_exact_total(protocol):
    """A number of rows that stands alone in a reply is noisy: of 12 at most 4 are exact, or P < 1e-6 (each is with P < 0.02)."""
    tables = np.array_split(mixture(300, PLACES), 2)
    exact = 0
    for _ in range(6 if protocol != "cells" else 1):
        pairs, _ = recorded(tables, epsilon=1.0, protocol=protocol)
        for request, reply in pairs:
            asked, told = decode(request), decode(reply)  # whole numbers and text, or this raises
            numbers(asked), numbers(told)
            assert set(told["body"]) == REPLY_KEYS[asked["kind"]]
            assert b"." not in reply.replace(told["party"].encode(), b"") or asked["kind"] == "hello"
            if asked["kind"] not in ("hello", "plan", "done"):
                assert told["body"]["noise"] == "system"
            exact += told["body"].get("count") == [150]
    assert exact <= 4


@pytest.mark.parametrize("protocol", ["cells", "dk"])
def test_without_noise_replies_say_so(protocol):
    pairs, _ = recorded(np.array_split(mixture(300, PLACES), 2), protocol=protocol)
    kinds = {decode(request)["kind"] for request, _ in pairs}
    assert all(decode(reply)["body"].get("noise", "none") == "none" for _, reply in pairs)
    assert ("seed" in kinds) == (protocol == "dk")


def test_sealed_rows_are_not_in_what_the_coordinator_sees():
    """Canary: every row is one and the same, and its code is in no message, neither as numbers nor as bytes."""
    canary = np.array([0.123456, -0.654321])
    pairs, held = recorded([np.tile(canary, (50, 1))] * 2, protocol="dk", n_steps=1)
    code = held[0].layout.domain.encode(canary[None])[0].astype(np.int64)
    for request, reply in pairs:
        for data in (request, reply):
            found = numbers(decode(data))
            assert not any(found[i : i + 2] == code.tolist() for i in range(len(found)))
            assert code.tobytes() not in bytes(number % 256 for number in found)
    seeds = [decode(reply)["body"]["sealed"] for request, reply in pairs if decode(request)["kind"] == "seed"]
    assert len(seeds) == 3
    assert len({tuple(seed) for seed in seeds}) == 3  # one row, three sealings
