"""Messages over HTTP on this machine: known peers only, the same bytes however often sent, and nobody waits for a stranger."""

import http.client
import json
import re
import socket
import ssl
import threading
from contextlib import ExitStack, closing, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
from federate_tools import OwnNoise, message, mixture, opened, party

from kveil import FederatedKMeans
from kveil.errors import FederationError, InvalidValue
from kveil.federate import Calling, InProcess, Keys, Logged, Lost, Receiving, call_in, calling, make_keys, receiving, serve
from kveil.federate import server as server_module
from kveil.federate.admission import MOST_PER_ADDRESS, MOST_PER_CALLER
from kveil.federate.client import CallFailed, Client
from kveil.federate.coordinator import Coordinator
from kveil.federate.messages import Reply
from kveil.federate.protocols import RUNS
from kveil.federate.receiving import PATH, ReceivingLink
from kveil.federate.server import PLAIN_NAME, Server, is_loopback
from kveil.federate.wire import LARGEST, digest

NAMES = ("north", "south")


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    return make_keys(tmp_path_factory.mktemp("keys") / "keys", NAMES)


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """Keys of another federation, with the same names."""
    return make_keys(tmp_path_factory.mktemp("others") / "keys", NAMES)


@pytest.fixture
def served(keys):
    """Start parties that listen, and stop them at the end."""
    servers = []

    def start(held, name="north", folder=None, **options):
        servers.append(serve(held, "127.0.0.1", 0, Keys.at((folder or keys) / name), **options))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def test_keys_are_for_their_owners_alone(keys):
    for path in keys.rglob("*"):
        if path.suffix == ".token" or path.name in ("private.pem", "known.json"):
            assert path.stat().st_mode & 0o077 == 0, path
    assert (Keys.at(keys / "coordinator").peers, Keys.at(keys / "north").peers) == (NAMES, ("coordinator",))
    north, token = Keys.at(keys / "north"), Keys.at(keys / "coordinator").token("north")
    assert token not in (keys / "north" / "known.json").read_text()  # its digest alone
    assert (north.caller(token), north.caller(token[:-1]), north.caller(""), north.caller("é")) == (
        "coordinator",
        None,
        None,
        None,
    )
    with pytest.raises(InvalidValue, match="cannot be made"):
        make_keys(keys, NAMES)
    for names in (["coordinator"], ["a", "a"], ["a/b"], ["known"]):
        with pytest.raises(InvalidValue):
            make_keys(keys / "new", names)
    with pytest.raises(InvalidValue, match="no folder of keys"):
        Keys.at(keys)


def test_a_certificate_that_is_not_pinned_is_refused(keys, others, served):
    """An impostor with the same names, on the same machine, whose certificate is another one."""
    server = served(party(), folder=others)
    with pytest.raises(FederationError, match="cannot be reached"):
        Calling(keys / "coordinator").connect([server.url], 0.3)


def test_a_wrong_token_is_refused(keys, served, tmp_path):
    server = served(party())
    mine = tmp_path / "coordinator"
    mine.mkdir()
    for path in (keys / "coordinator").iterdir():
        (mine / path.name).write_bytes(path.read_bytes())
    (mine / "north.token").write_text("guess")
    link = Calling(mine).connect([server.url], 5.0)
    reply = link.ask({"north": message(0, "hello", {})}, 5.0)["north"]
    assert reply == Lost("does not know this caller")
    link.close()


def test_a_token_that_cannot_be_sent_is_not_quoted(keys, served, tmp_path):
    server = served(party())
    mine = tmp_path / "coordinator"
    mine.mkdir()
    for path in (keys / "coordinator").iterdir():
        (mine / path.name).write_bytes(path.read_bytes())
    (mine / "north.token").write_text("two\nlines")
    link = Calling(mine).connect([server.url], 5.0)
    with closing(link), pytest.raises(InvalidValue, match="no token for 'north'") as trouble:
        link.ask({"north": message(0, "hello", {})}, 5.0)
    assert "lines" not in str(trouble.value)


def test_a_certificate_for_another_host_is_refused(tmp_path):
    elsewhere = make_keys(tmp_path / "keys", ["north"], hosts=["example.org"])
    server = serve(party(), "127.0.0.1", 0, Keys.at(elsewhere / "north"))
    try:
        with pytest.raises(CallFailed):
            Client(server.url, Keys.at(elsewhere / "coordinator")).connect(5.0)
    finally:
        server.stop()


@pytest.mark.parametrize("mutual", [False, True])
def test_listening_parties_are_called(keys, served, mutual):
    held = [party(mixture(500, [[0.5, 0.5]], seed=i), name=name, quick=False) for i, name in enumerate(NAMES)]
    servers = [served(each, each.name, mutual=mutual) for each in held]
    model = FederatedKMeans(2, epsilon=1.0, transport=Calling(keys / "coordinator", mutual=mutual), timeout=20.0)
    model.fit([server.url for server in servers])
    assert set(model.receipts_) == set(NAMES)
    if mutual:  # a token does not help where a certificate is asked for
        with pytest.raises(FederationError, match="not all parties can be asked"):
            model.set_params(transport=Calling(keys / "coordinator"), timeout=0.5).fit([server.url for server in servers])


@pytest.mark.parametrize("mutual", [False, True])
def test_parties_call_in_and_mix_with_those_in_this_process(keys, mutual, tmp_path, caplog):
    caplog.set_level("INFO", logger="kveil.federate")
    stop = threading.Event()
    threads = []

    def start(url):
        held = party(mixture(500, [[0.5, 0.5]]), name="north", quick=False)
        options = {"mutual": mutual, "stop": stop}
        threads.append(threading.Thread(target=call_in, args=(held, url, Keys.at(keys / "north")), kwargs=options, daemon=True))
        threads[-1].start()

    transport = Logged(Receiving(keys / "coordinator", announce=start, mutual=mutual), tmp_path / "log")
    here = party(mixture(500, [[-0.5, -0.5]]), name="here", quick=False)
    model = FederatedKMeans(2, epsilon=1.0, transport=transport, timeout=20.0).fit(["north", here])
    assert set(model.receipts_) == {"north", "here"}
    stop.set()
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert {line["what"] for line in lines} == {"request", "reply"}
    assert {line["party"] for line in lines} == {"north"}
    assert re.search(r"party north: run \w+ is done; epsilon [\d.]+, delta 0 spent, .* left on its ledger. Waiting", caplog.text)


def test_parties_that_do_not_call_in_are_named(keys):
    with pytest.raises(FederationError, match="north, south"):
        Receiving(keys / "coordinator").connect(NAMES, 0.1)
    with pytest.raises(InvalidValue, match="east"):
        Receiving(keys / "coordinator").connect(["east"], 0.1)


class ThirdPause(threading.Event):
    """Stops whoever pauses for the third time."""

    pauses = 0

    def wait(self, timeout=None):
        self.pauses += 1
        if self.pauses == 3:
            self.set()
        return self.is_set()


def test_a_party_that_is_not_asked_waits_and_tells_its_owner_why(keys, caplog):
    """A run over some of the parties must not end the others: they are asked in another one."""
    caplog.set_level("INFO", logger="kveil.federate")
    link = ReceivingLink(["north"])
    link.server = Server("127.0.0.1", 0, link.respond, Keys.at(keys / "coordinator"))
    link.server.start()
    stop = ThirdPause()
    try:
        call_in(party(name="south"), link.server.url, Keys.at(keys / "south"), stop=stop)
    finally:
        link.close()
    assert stop.pauses == 3
    assert caplog.text.count("does not ask this party now") == 1


@pytest.mark.parametrize(("away", "is_said"), [(60.0, False), (0.0, True)])
def test_after_a_run_a_coordinator_may_leave_and_is_missed_when_it_stays_away(caplog, monkeypatch, away, is_said):
    caplog.set_level("INFO", logger="kveil.federate")
    monkeypatch.setattr("kveil.federate.receiving.AWAY", away)
    replies = iter([(204, b"")])
    server = Server("127.0.0.1", 0, lambda who, path, body: next(replies, (503, b"")), None)
    server.start()
    call_in(party(name="north"), server.url, None, stop=ThirdPause())
    server.stop()
    assert ("trying again" in caplog.text) == is_said


def test_a_party_with_other_keys_tells_its_owner_why(keys, others, caplog, tmp_path, monkeypatch):
    caplog.set_level("INFO", logger="kveil.federate")
    link = ReceivingLink(["north"])
    link.server = Server("127.0.0.1", 0, link.respond, Keys.at(keys / "coordinator"))
    link.server.start()
    mine = tmp_path / "north"
    mine.mkdir()
    for path in (keys / "north").iterdir():
        (mine / path.name).write_bytes(path.read_bytes())
    (mine / "coordinator.token").write_text("guess")
    monkeypatch.setattr(receiving, "time", SimpleNamespace(monotonic=count().__next__))  # a second from one look to the next
    try:
        with pytest.raises(FederationError, match="its certificate is not in the folder of keys"):
            call_in(party(), link.server.url, Keys.at(others / "north"), patience=1.5)
        with pytest.raises(FederationError, match=r"does not know this caller\. Use folders that one call"):
            call_in(party(), link.server.url, Keys.at(mine))
    finally:
        link.close()
    assert "its certificate is not in the folder of keys" in caplog.text


def test_plain_http_is_for_this_machine_alone(keys):
    held = party()
    with pytest.raises(InvalidValue, match="plain text"):
        serve(held, "0.0.0.0", 0, None)
    for url in ("http://example.org:80", "http://10.0.0.1:80", "http://localhost:80"):
        with pytest.raises(InvalidValue, match=r"plain http|127"):
            Client(url, None)
    for url in ("http://127.0.0.1:80", "https://127.0.0.1", "https://127.0.0.1:x", "127.0.0.1:80", "https://u@127.0.0.1:80",
                "https://127.0.0.1:80/path", "https://127.0.0.1:80?q"):  # fmt: skip
        with pytest.raises(InvalidValue, match="address must be"):
            Client(url, Keys.at(keys / "coordinator"))
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "::1")))
    assert not any(map(is_loopback, ("128.0.0.1", "localhost", "::2", "")))


def test_a_listener_with_keys_speaks_no_plain_http(keys, served):
    server = served(party())
    plain = http.client.HTTPConnection(*server.server_address, timeout=10)

    def spoken():  # the listener may hang up before all of it is sent
        plain.request("POST", "/v1/answer", message(0, "hello", {}))
        return plain.getresponse()

    with closing(plain), pytest.raises((http.client.HTTPException, OSError)):
        spoken()


def test_redirects_are_not_followed():
    class Elsewhere(BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_response(307)
            self.send_header("Location", "http://127.0.0.1:1/v1/answer")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        with pytest.raises(FederationError, match="307"):
            Client(f"http://127.0.0.1:{server.server_port}", None).post("/v1/answer", b"{}", 5.0)
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def plain(request):
    """A server without keys that says who called, and a raw connection to it."""
    server = Server("127.0.0.1", 0, lambda who, path, body: (200, f"{who} {path} {len(body)}".encode()), None)
    server.start()
    connection = http.client.HTTPConnection(*server.server_address, timeout=10)
    yield server, connection
    connection.close()
    server.stop()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Length": str(LARGEST + 1)}, 413),
        ({"Content-Length": "9" * 20}, 411),
        ({"Content-Length": "-1"}, 411),
        ({"Content-Length": "x"}, 411),
        ({}, 411),
        ({"Transfer-Encoding": "chunked"}, 411),
    ],
    ids=str,
)
def test_lengths_are_checked_before_a_byte_is_read(plain, headers, status):
    _, connection = plain
    connection.putrequest("POST", "/v1/answer")
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    assert connection.getresponse().status == status


def test_other_methods_are_not_known(plain):
    _, connection = plain
    for method in ("GET", "PUT", "DELETE", "OPTIONS"):
        connection.request(method, "/v1/answer")
        response = connection.getresponse()
        response.read()
        assert response.status == 501
        connection.close()


def test_a_half_open_handshake_does_not_keep_others_waiting(keys, served):
    """A client that connects and says nothing; one that begins a handshake and stops. Both stay while a third is served."""
    server = served(party())
    silent = socket.create_connection(server.server_address)
    begun = socket.create_connection(server.server_address)
    begun.sendall(b"\x16\x03\x01\x02\x00\x01")
    with silent, begun:
        link = Calling(keys / "coordinator").connect([server.url], 10.0)
        reply = link.ask({"north": message(0, "hello", {})}, 10.0)["north"]
        assert Reply.from_bytes(reply).body["data"] == "rows"
        link.close()


def test_strangers_give_way_to_newer_ones_and_never_keep_peers_out(keys, served, monkeypatch):
    """A crowd of idle sockets from the address of a peer: the oldest are closed, and whoever proved itself stays."""
    monkeypatch.setattr(server_module, "HANDSHAKE", 600.0)  # not because their time is up
    server = served(party())
    link = Calling(keys / "coordinator").connect([server.url], 20.0)
    first = link.ask({"north": message(0, "hello", {})}, 20.0)
    connection = link._clients["north"]._connection
    with ExitStack() as stack:
        crowd = [stack.enter_context(socket.create_connection(server.server_address)) for _ in range(MOST_PER_ADDRESS + 9)]
        for idle in crowd[:9]:
            idle.settimeout(20)
            with suppress(ConnectionResetError):
                assert idle.recv(1) == b""
        assert link.ask({"north": message(0, "hello", {})}, 20.0) == first
        assert link._clients["north"]._connection is connection
        other = Calling(keys / "coordinator").connect([server.url], 20.0)
        assert other.ask({"north": message(0, "hello", {})}, 20.0) == first
        other.close()
    link.close()


def test_who_does_not_shake_hands_is_given_up(served, monkeypatch):
    monkeypatch.setattr(server_module, "HANDSHAKE", 0.05)
    server = served(party())
    with socket.create_connection(server.server_address, timeout=20) as idle, suppress(ConnectionResetError):
        assert idle.recv(1) == b""


def test_a_caller_has_few_connections(plain):
    """The oldest of too many is closed: a peer that comes back after its network broke is let in."""
    server, _ = plain
    with ExitStack() as stack:
        mine = [http.client.HTTPConnection(*server.server_address, timeout=20) for _ in range(MOST_PER_CALLER + 1)]
        for connection in mine:
            stack.callback(connection.close)
            connection.request("POST", "/", b"", {PLAIN_NAME: "north"})
            assert connection.getresponse().read() == b"north / 0"
        with suppress(ConnectionResetError):
            assert mine[0].sock.recv(1) == b""


def test_a_peer_that_answers_byte_by_byte_is_cut_off():
    """Every byte comes in time, and all of them do not."""
    over = threading.Event()

    def trickle(listener):
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n")
            for _ in range(300):
                connection.sendall(b"x")
                over.wait(0.01)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=trickle, args=(listener,), daemon=True).start()
        with pytest.raises(CallFailed):
            Client(f"http://127.0.0.1:{listener.getsockname()[1]}", None).post("/", b"", 0.2)


def test_only_known_paths_and_the_coordinator_are_answered(keys, served):
    server = served(party())
    client = Client(server.url, Keys.at(keys / "coordinator"))
    with closing(client), pytest.raises(FederationError, match="404"):
        client.post("/v1/next", b"", 5.0)
    context = Keys.at(keys / "coordinator").for_calling()
    stranger = http.client.HTTPSConnection(*server.server_address, context=context, timeout=10)
    with closing(stranger):
        for headers in ({}, {"Authorization": "Basic x"}, {"Authorization": "Bearer"}, {"Authorization": "Bearer guess"}):
            stranger.request("POST", "/v1/answer", message(0, "hello", {}), headers)
            response = stranger.getresponse()
            assert (response.status, response.read()) == (401, b"")
            stranger.close()


def test_old_versions_of_tls_are_refused(keys, served):
    server = served(party())
    context = Keys.at(keys / "coordinator").for_calling()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError), socket.create_connection(server.server_address) as raw:
        context.wrap_socket(raw, server_hostname="127.0.0.1")


def test_a_reply_that_was_lost_on_the_way_comes_again_and_is_charged_once():
    """The connection breaks three times after the party has answered."""
    held, calls = opened(party()), []

    def respond(who, path, body):
        reply = held.answer(body)
        calls.append(body)
        if len(calls) <= 3:
            raise ConnectionError
        return 200, reply

    server = Server("127.0.0.1", 0, respond, None)
    server.start()
    link = Calling().connect([f"north={server.url}"], 5.0)
    request = message(1, "cells", {"level": 2, "nodes": "all"})
    reply = link.ask({"north": request}, 20.0)["north"]
    assert calls == [request] * 4
    assert len(held.ledger.charges()) == 1
    assert held.answer(request) == reply
    link.close()
    server.stop()


def called(link, who, path=PATH, body=b""):
    """What a call of a party at a link gets."""
    answer = link.respond(who, path, body)
    return answer() if callable(answer) else answer


def test_a_coordinator_keeps_the_first_reply_and_gives_up_a_party_that_sends_others():
    link = ReceivingLink(["north"])
    request = message(1, "cells", {"level": 1, "nodes": "all"})
    one, other = (Reply("ab" * 16, 1, "north", digest(request), {"count": [c]}).to_bytes() for c in (1, 2))
    asked = threading.Thread(target=lambda: replies.update(link.ask({"north": request}, 20.0)))
    replies = {}
    asked.start()
    assert called(link, "north") == (200, request)
    assert called(link, "stranger") == (404, b"")
    assert called(link, "north", "/v1/answer") == (404, b"")
    polling = threading.Thread(target=called, args=(link, "north", PATH, one), daemon=True)
    polling.start()
    asked.join()
    assert replies == {"north": one}
    link._is_over = True
    called(link, "north", PATH, one)  # once more: nothing changes
    assert not link._inboxes["north"].is_broken
    called(link, "north", PATH, other)
    assert link._inboxes["north"].is_broken
    link._is_over = False
    assert link.ask({"north": request}, 5.0) == {"north": Lost("answered one request in two ways")}


def test_a_late_party_does_not_spend_on_a_request_that_was_given_up(monkeypatch):
    """A real party that calls in after the time was up is handed nothing, and its ledger stays as it was."""
    monkeypatch.setattr(receiving, "LONG_POLL", 0.0)
    held, link = opened(party()), ReceivingLink(["north"])
    request = message(1, "cells", {"level": 2, "nodes": "all"})
    assert link.ask({"north": request}, 0.0) == {"north": Lost("did not answer in time")}
    status, waiting = called(link, "north")
    if waiting:
        held.answer(waiting)
    assert (status, waiting, held.ledger.charges()) == (204, b"", ())


def receipts(link):
    """The receipts of one run with a fixed name over whatever link."""
    coordinator, model = Coordinator(link, 20.0, "ab" * 16), FederatedKMeans(3, epsilon=1.0)
    _, _, layout = model._agreed(coordinator.hello())
    agreed = model._plan(layout, "rows", link.parties)
    coordinator.open(agreed)
    centers = RUNS["cells"](coordinator, layout, agreed, np.random.default_rng(0)).run().centers
    return coordinator.done(), centers.tolist(), coordinator.noise


def scripted_parties():
    tables = {"north": mixture(300, [[0.5, 0.5], [-0.5, 0]], seed=1), "south": mixture(200, [[0.0, -0.5]], seed=2)}
    return [OwnNoise(rows, bounds=(-1, 1), name=name).script(i) for i, (name, rows) in enumerate(tables.items())]


def test_all_ways_give_the_same_receipts_under_scripted_noise():
    expected = receipts(InProcess(scripted_parties()))
    assert expected[2] == {"scripted"}
    servers = [serve(held, "127.0.0.1", 0, None) for held in scripted_parties()]
    link = Calling().connect([f"{name}={server.url}" for name, server in zip(NAMES, servers, strict=True)], 5.0)
    assert receipts(link) == expected
    link.close()
    for server in servers:
        server.stop()
    stop = threading.Event()

    def start(url):
        for held in scripted_parties():
            threading.Thread(target=call_in, args=(held, url, None), kwargs={"stop": stop}, daemon=True).start()

    link = Receiving(announce=start).connect(NAMES, 20.0)
    assert receipts(link) == expected
    stop.set()
    link.close()


def test_ticks_round_the_time_of_an_answer_up(monkeypatch):
    now, slept = [100.0], []
    monkeypatch.setattr(calling.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(calling.time, "sleep", slept.append)

    def answer(request, who):
        now[0] += 1.25 if request == b"slow" else 0.25
        return b"reply"

    later = calling.ticked(answer, 1.0)
    assert (later(b"quick", None), later(b"slow", None), slept) == (b"reply", b"reply", [0.75, 0.75])
    assert calling.ticked(answer, None) is answer
    for every in (0, -1.0, float("nan"), float("inf"), True, "1"):  # before anything is answered, and so paid for
        with pytest.raises(InvalidValue, match="reply_every"):
            calling.ticked(answer, every)
