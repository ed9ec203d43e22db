"""Requests that are slow, half sent or far too large: cut or answered within their limits, and others are served meanwhile."""

import json
import socket
import time
from contextlib import closing
from http.client import HTTPConnection

import psutil
import pytest
from serving import opened, problem, reports, serving, stored, until

pytestmark = pytest.mark.journey

QUICK = {"guarded.HEAD_SECONDS": 1.0, "guarded.ALL_SECONDS": 2.5, "upload.BODY_SECONDS": 1.0}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """With limits that a test can wait for."""
    place = tmp_path_factory.mktemp("hostile") / "collector.db"
    _, manifest = opened(place)
    with serving(place, limits=QUICK) as made:
        made.manifest, made.place = manifest, place
        yield made


def head(service, more="", length="22"):
    kind = "content-type: application/vnd.kveil.collect;message=upload-req"
    return f"POST /v1/manifests/{service.manifest}/reports HTTP/1.1\r\nhost: x\r\n{kind}\r\n{length}{more}\r\n\r\n".encode()


def ends(connection):
    """What is read until the other side closes or cuts the connection; a limit that does not hold is a timeout."""
    told = b""
    try:
        while part := connection.recv(65_536):
            told += part
    except ConnectionError:
        pass
    return told


HALVES = {
    "nothing": b"", "half a line": b"GET /hea", "half a head": b"GET /health HTTP/1.1\r\nhost: x\r\nx-a: 1\r\n",
}  # fmt: skip


@pytest.mark.parametrize("sent", HALVES.values(), ids=HALVES)
def test_half_a_head_is_cut(service, sent):
    with service.raw() as connection:
        connection.sendall(sent)
        assert ends(connection) == b""


def test_half_a_body_is_answered_in_words_and_closed(service):
    (one,) = reports(1)
    with service.raw() as connection:
        connection.sendall(head(service, length="content-length: 22") + one[:5])
        told = ends(connection)
    assert told.startswith(b"HTTP/1.1 408")
    assert b"connection: close" in told
    assert one not in stored(service.place)


def test_a_sender_that_goes_on_after_an_early_answer_is_cut(service):
    with service.raw() as connection:
        connection.sendall(b"POST /v1/manifests/x/reports HTTP/1.1\r\nhost: x\r\ncontent-length: 220000\r\n\r\n")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 404")
        assert not goes_on(connection), "a sender cannot go on for ever"


def goes_on(connection):
    """Whether bytes are still taken after four seconds."""
    try:
        for _ in range(200):
            connection.sendall(b"x")
            time.sleep(0.02)
    except OSError:
        return False
    return True


def flood(connection, start, part):
    """Send up to 60 MB; how much went out before the connection was cut."""
    n, piece = 0, part * (65_536 // len(part))
    try:
        connection.sendall(start)
        while n < 60_000_000:
            connection.sendall(piece)
            n += len(piece)
    except OSError:
        pass
    return n


def test_floods_of_headers_trailers_and_extensions_are_cut_and_cost_no_memory(service):
    chunked = "transfer-encoding: chunked"
    kinds = {
        "headers": (b"GET /health HTTP/1.1\r\nhost: x\r\n", b"x-a: bbbbbbbb\r\n"),
        "one header": (b"GET /health HTTP/1.1\r\nhost: x\r\nx-a: ", b"b"),
        "trailers": (head(service, length=chunked) + b"0\r\n", b"x-a: bbbbbbbb\r\n"),
        "extensions": (head(service, length=chunked) + b"16;a=", b"b"),
        "body": (head(service, length=chunked), b"400\r\n" + b"z" * 1024 + b"\r\n"),
    }
    process = psutil.Process(service.process.pid)
    before = process.memory_info().rss
    for name, (start, part) in kinds.items():
        with service.raw() as connection:
            sent = flood(connection, start, part)
        assert sent < 20_000_000, name  # what the kernel's own buffers hold besides
    assert process.memory_info().rss - before < 15_000_000
    assert service.request("GET", "/health")[0] == 200


def test_many_idle_connections_are_cut_and_others_are_served(service):
    idle = [service.raw() for _ in range(300)]
    (one,) = reports(1)
    assert service.send(service.manifest, one)[::2] == (200, b"")
    assert all(ends(connection) == b"" for connection in idle)
    for connection in idle:
        connection.close()
    assert service.send(service.manifest, one)[::2] == (200, b"")


def test_more_connections_than_allowed_are_refused_until_the_silent_ones_are_cut(tmp_path):
    place = tmp_path / "collector.db"
    _, manifest = opened(place)
    (one,) = reports(1)
    with serving(place, most_connections=5, limits={"guarded.HEAD_SECONDS": 4.0}) as service:
        idle = [service.raw() for _ in range(8)]
        assert service.send(manifest, one)[0] == 503, "connections are taken in their order"
        assert stored(place) == set()
        until(lambda: service.send(manifest, one)[::2] == (200, b""))  # nobody closes anything but the service
        assert stored(place) == {one}
        for connection in idle:
            assert ends(connection) == b""
            connection.close()


def test_requests_one_after_another_on_one_connection_are_each_limited_anew(tmp_path):
    """The sum of many small requests is no reason to cut a connection. Limits of time are those of users: this is about bytes."""
    opened(tmp_path / "collector.db")
    with (
        serving(tmp_path / "collector.db") as service,
        closing(HTTPConnection("127.0.0.1", service.port, timeout=60)) as connection,
    ):
        connection.connect()
        first = connection.sock
        for _ in range(90):
            connection.request("GET", "/health", headers={"x-fill": "y" * 9_000})
            assert connection.getresponse().read() == b"ok\n"
            assert connection.sock is first, "one connection, 800 KB in all"


def test_nothing_of_a_request_is_in_any_output(tmp_path):
    """A marked agent, path, id, body, header, address; requests that fail in every way; an upgrade; a fault of the storage."""
    place, mark = tmp_path / "collector.db", "MARKED7f3a"
    _, manifest = opened(place)
    with serving(place) as service:
        marked = {"user-agent": mark, "x-forwarded-for": mark, "cookie": mark, "referer": mark, "authorization": f"Bearer {mark}"}
        report = b"\1\0\0\0" + (mark + "xxxxxx").encode() + b"\1\0"
        assert len(report) == 22
        assert service.send(manifest, report, **marked)[0] == 200
        service.send(manifest, report[:-2] + b"\2\0", **marked)
        service.send(manifest, mark.encode(), **marked)
        service.send(mark, report, **marked)
        for method in ("GET", "PUT", mark):
            service.request(method, f"/{mark}?{mark}={mark}", headers=marked)
        service.request("GET", f"/{mark}", headers={**marked, "connection": "upgrade", "upgrade": "websocket",
                        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==", "sec-websocket-version": "13"})  # fmt: skip
        with service.raw() as connection:
            connection.sendall(f"{mark} {mark} {mark}\r\n{mark}\r\n\r\n".encode())
            ends(connection)
        with service.raw() as connection:
            connection.sendall(f"GET /{mark} HTTP/1.1\r\n{mark}: x".encode())
        own = socket.gethostname()
        service.stop()
        said = service.said() + service.process.stdout.read()
    assert mark not in said
    assert report[4:20].hex() not in said
    assert manifest not in said
    assert "127.0.0.1" not in said
    assert own not in said
    assert {json.loads(line)["event"] for line in said.splitlines()} == {"start", "stop"}


def test_a_problem_never_repeats_what_was_sent(service):
    mark = "MARKED7f3a"
    told = service.request("POST", f"/{mark}?{mark}", mark.encode(), {mark: mark})
    assert problem(told) == "not-found"
    assert mark not in str(told)
