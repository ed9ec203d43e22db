"""What a message may hold follows from public things and is counted before it is parsed; nobody waits for what others send."""

import http.client
import json
import socket
import threading
from contextlib import closing, suppress

import numpy as np
import pytest
from federate_tools import RUN, message, party
from hypothesis import given
from hypothesis import strategies as st

from kveil import FederatedKMeans, canonical
from kveil.errors import InvalidValue
from kveil.federate import Policy, call_in, limits
from kveil.federate.admission import MOST_BYTES, Bodies
from kveil.federate.kinds import QUESTIONS
from kveil.federate.limits import HELLO, SHORT, SMALL, of_reply, of_request
from kveil.federate.messages import Reply, Request, kind_asked, request_answered
from kveil.federate.receiving import PATH, ReceivingLink
from kveil.federate.server import MOST_HEADERS, Server
from kveil.federate.wire import WireError, decode, digest, encode

ASKED = b',"kind":"sums","run":"%s","seq":1,"v":1}' % RUN.encode()
ANSWERED = b',"party":"north","request":"%s","run":"%s","seq":1,"v":1}' % (b"0" * 64, RUN.encode())

HOSTILE = {
    "many numbers": (b"[", b"0,", b"0]"), "long numbers": (b"[", b"-9223372036854775808,", b"0]"),
    "one number": (b"", b"9", b""), "empty lists": (b"[", b"[],", b"[]]"), "an open list": (b"", b"[", b""),
    "small objects": (b"[", b'{"a":1},', b"{}]"), "nested objects": (b"", b'{"":', b"1"), "a key": (b'{"', b"a", b'":0}'),
    "a text": (b'"', b"a", b'"'), "texts": (b"[", b'"1",', b'""]'), "escapes": (b'"', b"\\u0061", b'"'),
    "wide letters": (b'"', "\U0001f600".encode(), b'"'), "blanks": (b"[", b" ", b"0]"),
    "blanks and numbers": (b"[", b"1, ", b"0]"),
}  # fmt: skip


def hostile(shape, size, end):
    first, unit, last = HOSTILE[shape]
    return b'{"body":' + first + unit * (size // len(unit)) + last + end


@pytest.fixture
def few_cells():
    return party(policy=Policy(max_cells=9))


@pytest.fixture
def unparsed(monkeypatch):
    """Fails where anything is parsed."""

    def parsed(*args, **kwargs):
        raise AssertionError("parsed")

    monkeypatch.setattr(canonical.json, "loads", parsed)


@pytest.mark.parametrize("shape", HOSTILE)
def test_a_message_that_holds_more_than_it_may_is_refused_before_it_is_parsed(few_cells, unparsed, shape):
    """By a party, which has a policy of 9 cells, and by a coordinator that has asked for four counts."""
    asked, answered = (hostile(shape, 2 * SMALL, end) for end in (ASKED, ANSWERED))
    assert b'"refused":"payload"' in few_cells.answer(asked)
    with pytest.raises(WireError, match="larger"):
        Reply.from_bytes(answered, of_reply(((4,),)))


@pytest.mark.parametrize("shape", sorted(set(HOSTILE) - {"many numbers", "long numbers", "one number"}))
def test_room_for_numbers_is_no_room_for_anything_else(unparsed, shape):
    """Where a million numbers may come, nothing else of that size may."""
    with pytest.raises(WireError, match="larger"):
        Reply.from_bytes(hostile(shape, 2 * SMALL, ANSWERED), of_reply(((10**6,),)))


def test_short_numbers_buy_no_more_of_them(unparsed):
    """A hundred thousand numbers were asked for, of any length; twice as many short ones take fewer bytes and more memory."""
    with pytest.raises(WireError, match="larger"):
        Reply.from_bytes(hostile("many numbers", 400_000, ANSWERED), of_reply(((10**5,),)))


@pytest.mark.parametrize("kind", QUESTIONS)
def test_the_largest_honest_messages_are_read(kind):
    """Requests of every kind at the limits of a policy, and replies of the largest numbers there are."""
    held, k, cells, low = party(policy=Policy(max_cells=4096, max_clusters=4096)), 4096, 4096, -(2**63)
    sealed = {"sealed": [[255] * limits.sealed_size(2)] * k, "senders": ["x" * 64] * k}
    body = {
        "cells": {"level": 62, "nodes": [2**62 - 1] * cells}, "sums": {"cells": [[62, 2**62 - 1]] * cells},
        "sample": {"rows": 1, "size": 2**62}, **dict.fromkeys(("seed", "update", "first"), sealed),
    }.get(kind, {"centers": [[low, low]] * k, "radii": [low] * k})  # fmt: skip
    asked = message(65535, kind, body)
    assert Request.from_bytes(asked, of_request(kind_asked(asked), held.layout, held.policy)).body == body
    assert len(asked) <= held.largest_request
    for shapes in (((cells,),), ((k,), (k, 2))):
        arrays = {name: np.full(shape, low).tolist() for name, shape in zip(("count", "dev"), shapes, strict=False)}
        reply = Reply(RUN, 65535, "x" * 64, "f" * 64, {**arrays, "noise": "scripted"}).to_bytes()
        assert Reply.from_bytes(reply, of_reply(shapes)).body["count"] == arrays["count"]
        assert len(reply) <= of_reply(shapes).size


def test_a_party_with_many_columns_can_say_hello():
    names = [f'measured at [point, {i}] "ü"' for i in range(5000)]
    body = {"data": "rows", "columns": names, "layout": {"ends": [[float(i).hex() for i in range(5000)]] * 2}}
    reply = Reply(RUN, 0, "north", "0" * 64, body).to_bytes()
    assert Reply.from_bytes(reply, HELLO).body == body
    with pytest.raises(WireError, match="larger"):
        Reply.from_bytes(reply, SHORT)


def is_canonical(data):
    """Whether bytes are canonical JSON of whole numbers and text, by spelling what they mean once more."""

    def refuse(_):
        raise ValueError

    try:
        value = json.loads(data, parse_float=refuse, parse_constant=refuse)
        return encode(value) == data and b"true" not in data and b"false" not in data and b"null" not in data
    except (ValueError, RecursionError):
        return False


@given(st.data())
def test_what_is_read_is_what_would_be_spelled_the_same_way(data):
    """Texts that are nearly messages: an honest one with pieces put in, taken out or doubled."""
    text = st.text('a\\"/é \n\u001f\u2028', max_size=3)
    values = st.recursive(
        st.integers(-99, 99) | text,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
        max_leaves=6,
    )
    honest = encode(data.draw(values))
    place = data.draw(st.integers(0, len(honest)))
    piece = data.draw(
        st.sampled_from([b"", b" ", b"\t", b"\n", b"-", b"0", b"\\u0061", b"\\/", b"\\u001F", b",", b'"a":1,', b"\xff"])
    )
    nearly = honest[:place] + piece + honest[place + data.draw(st.integers(0, 2)) :]
    if is_canonical(nearly):
        assert encode(decode(nearly)) == nearly
    else:
        with pytest.raises(WireError):
            decode(nearly)


@pytest.mark.parametrize("text", [b'{"b":1,"a":2}', b'{"a":1,"a":1}', b"-0", b"[-0]"])
def test_plain_messages_are_held_to_their_spelling_too(text):
    with pytest.raises(WireError):
        decode(text)


def test_a_party_reads_messages_while_it_answers_another():
    """Its lock is for its books: garbage is refused while another message is being answered."""
    held, found = party(), []
    with held._lock:
        thread = threading.Thread(target=lambda: found.append(held.answer(b"garbage")), daemon=True)
        thread.start()
        thread.join(20.0)
    assert Reply.from_bytes(found[0]).refused == "payload"


def test_a_coordinator_parses_no_reply_where_parties_wait_in_line(unparsed):
    link, request = ReceivingLink(["north"]), message(1, "cells", {"level": 1, "nodes": "all"})
    reply = b"[" * 1000 + b',"request":"%s","run":"%s","seq":1,"v":1}' % (digest(request).encode(), RUN.encode())
    replies = {}
    asking = threading.Thread(target=lambda: replies.update(link.ask({"north": request}, 20.0, 2000)))
    asking.start()
    assert link.respond("north", PATH, b"")() == (200, request)
    assert link.largest("north") == 2000
    link.respond("north", PATH, reply)
    asking.join()
    assert replies == {"north": reply}


def test_replies_to_what_was_not_asked_leave_no_trace():
    """A party could fill the coordinator's memory with them."""
    link = ReceivingLink(["north"])
    for number in range(50):
        link.respond("north", PATH, Reply(RUN, 1, "north", f"{number:064x}", {}).to_bytes())
    assert not link._inboxes["north"].replies
    assert link._inboxes["north"].reply is None


def test_what_a_message_is_can_be_told_from_its_end():
    assert kind_asked(message(3, "sums", {"kind": "cells"})) == "sums"
    assert kind_asked(message(3, "sums", {}) + b" ") is None
    assert request_answered(Reply(RUN, 1, "north", "ab" * 32, {"request": "0" * 64}).to_bytes()) == "ab" * 32
    assert request_answered(Reply(RUN, 1, "north", "ab" * 32, refused="lost").to_bytes()) == "ab" * 32
    assert request_answered(b"garbage") is None


@pytest.fixture
def small():
    """A server that takes 100 bytes of a body, and what it was told."""
    told = []
    server = Server("127.0.0.1", 0, lambda who, path, body: (told.append(body), (200, b"read"))[1], None, largest=lambda who: 100)
    server.start()
    yield server, told
    server.stop()


def test_a_body_that_is_too_large_is_thrown_away_and_the_connection_goes_on(small):
    server, told = small
    with closing(http.client.HTTPConnection(*server.server_address, timeout=20)) as connection:
        for body, status in ((b"x" * 10**6, 413), (b"x" * 100, 200)):
            connection.request("POST", "/", body)
            response = connection.getresponse()
            response.read()
            assert response.status == status
    assert told == [b"x" * 100]


def test_headers_are_bounded(small):
    server, told = small
    with socket.create_connection(server.server_address, timeout=20) as connection, suppress(OSError):
        connection.sendall(b"POST / HTTP/1.1\r\nContent-Length: 0\r\n" + b"x: " + b"y" * MOST_HEADERS + b"\r\n\r\n")
        assert connection.recv(1) == b""
    assert not told


def test_a_caller_has_one_body_in_memory_and_all_together_a_bound():
    bodies = Bodies()
    with (
        bodies.room("north", 5, 0.0) as first, bodies.room("north", 1, 0.0) as again,
        bodies.room("south", MOST_BYTES - 5, 0.0) as other, bodies.room("east", 1, 0.0) as more,
    ):  # fmt: skip
        assert (first, again, other, more) == (True, False, True, False)
    with bodies.room("north", MOST_BYTES, 0.0) as later:
        assert later


def test_a_party_drops_a_reply_that_nobody_waits_for_and_goes_on():
    """The reply is of a run that is over, and longer than the coordinator takes now."""
    held, stop, calls = party(), threading.Event(), []

    def respond(who, path, body):
        calls.append(body)
        if len(calls) == 1:
            return 200, message(0, "hello", {})
        stop.set()
        return 204, b""

    server = Server("127.0.0.1", 0, respond, None, largest=lambda who: 10)
    server.start()
    call_in(held, server.url, None, stop=stop)
    server.stop()
    assert calls == [b"", b""]


def test_a_run_that_would_not_fit_into_messages_is_refused_beforehand():
    with pytest.raises(InvalidValue, match="do not fit into a message"):
        FederatedKMeans(60_000, epsilon=1.0, bounds=(0, 1)).guarantee(30)
