"""Hostile messages and idle sockets: what they cost whoever reads them, and how long honest peers wait meanwhile.

`python -m benchmarks hostile_messages`. A reader is a process of its own: a party that listens, a party that calls in, and
coordinators of both kinds, in the middle of a question whose answers are as large as they come. It is sent messages of every
shape, as long as it takes them; its peak memory is held against what it had before, and the time of an honest peer against the
clock. Linux only.
"""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.bar import Bar
from kveil.federate import Calling, make_keys
from kveil.federate.limits import of_reply
from kveil.federate.messages import Request
from kveil.federate.server import PLAIN_NAME, Server
from kveil.federate.wire import LARGEST, digest, encode

COLUMNS, CELLS = 4, 65536  # sums of so many cells: the longest replies that are asked for
MEMORY, WAIT = 300.0, 5.0  # MB above idle; seconds that an honest peer waits
SOCKETS = 256
NAMES = ("bad", "good")
HELLO = Request("0" * 32, 0, "hello", {}).to_bytes()
REQUEST_END = b',"kind":"sums","run":"%s","seq":1,"v":1}' % (b"0" * 32)

PARTY = f"""
import sys, threading
import numpy as np
from kveil.federate import Keys, Party, Policy, call_in, serve
party = Party(np.zeros((100, {COLUMNS})), bounds=(-1, 1), name="good", policy=Policy(max_cells=2**20))
if sys.argv[1] == "listens":
    print(serve(party, "127.0.0.1", 0, Keys.at(sys.argv[2]) if len(sys.argv) > 2 else None).url, flush=True)
    threading.Event().wait()
call_in(party, sys.argv[2], None)
"""

COORDINATOR = f"""
import sys, time
import numpy as np
from kveil.federate import Calling, Party, Receiving
from kveil.federate.coordinator import Coordinator
from kveil.federate.questions import SumsMessage
layout = Party(np.zeros((1, {COLUMNS})), bounds=(-1, 1)).layout
question = SumsMessage(((16, np.arange({CELLS})),))
if sys.argv[1] == "receives":
    link = Receiving(announce=lambda url: print(url, flush=True)).connect(["bad", "good"], 60.0)
else:
    link = Calling().connect([f"bad={{sys.argv[2]}}", f"good={{sys.argv[3]}}"], 60.0)
for _ in sys.stdin:
    start = time.perf_counter()
    found = Coordinator(link, 120.0).ask("sums", question, layout)
    print(",".join(found), time.perf_counter() - start, flush=True)
"""


def run() -> Iterator[Bar]:
    for reader, measured in (
        ("a party that listens", listening_party), ("a party that calls in", calling_party),
        ("a coordinator that is called", partial(coordinator, "receives")),
        ("a coordinator that calls", partial(coordinator, "calls")),
    ):  # fmt: skip
        memory, seconds = {}, {}
        for shape, used, waited in measured():
            memory[shape], seconds[shape] = used, waited
        worst, slowest = max(memory, key=memory.__getitem__), max(seconds, key=seconds.__getitem__)
        yield Bar(f"memory of {reader}, above idle, {worst}", memory[worst], MEMORY, " MB")
        yield Bar(f"an honest peer of {reader} waits, {slowest}", seconds[slowest], WAIT, " s")
    yield idle_sockets()


def shapes(size: int) -> Iterator[tuple[str, bytes]]:
    """The beginnings of messages of about `size` bytes, up to where an honest one would say what it is; and sheer garbage."""
    room = size - 400  # for what comes after

    def filled(first: bytes, unit: bytes, last: bytes) -> bytes:
        return b'{"body":' + first + unit * ((room - len(first) - len(last)) // len(unit)) + last

    yield "numbers", filled(b"[", b"0,", b"0]")
    yield "long numbers", filled(b"[", b"-9223372036854775808,", b"0]")
    yield "different numbers", b'{"body":[' + ",".join(map(str, range(10**6, 10**6 + room // 8))).encode() + b"]"
    yield "pairs", filled(b"[", b"[1000,1001],", b"[0,0]]")
    yield "pairs of long numbers", filled(b"[", b"[-9223372036854775808,-9223372036854775808],", b"[0,0]]")
    yield "empty lists", filled(b"[", b"[],", b"[]]")
    yield "nested lists", b'{"body":' + b"[" * (room // 2) + b"]" * (room // 2)
    yield "nested objects", b'{"body":' + b'{"":' * (room // 5) + b"1" + b"}" * (room // 5)
    yield "small objects", filled(b"[", b'{"a":1},', b"{}]")
    yield "empty objects", filled(b"[", b"{},", b"{}]")
    yield "many keys", b'{"body":{' + ",".join(f'"{i:08d}":0' for i in range(room // 13)).encode() + b"}"
    yield "a long key", filled(b'{"', b"a", b'":0}')
    yield "a long text", filled(b'"', b"a", b'"')
    yield "many texts", b'{"body":[' + ",".join(f'"{i:08d}"' for i in range(room // 11)).encode() + b"]"
    yield "escapes", filled(b'"', b"\\u0061", b'"')
    yield "escaped surrogates", filled(b'"', b"\\ud83d\\ude00", b'"')
    yield "wide letters", filled('"\U0001f600'.encode(), b"a", b'"')
    yield "blanks", filled(b"[", b" ", b"0]")
    yield "blanks between numbers", filled(b"[", b"0, ", b"0]")
    yield "a huge number", filled(b"", b"9", b"")
    yield "an open list", b"[" * room
    yield "zero bytes", bytes(room)
    yield "commas", b"," * room


@contextmanager
def started(program: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process that runs a program; ended at the end."""
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


class Memory:
    """Of a process, in MB: what it has now, and the most since it was reset."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._place = Path(f"/proc/{process.pid}")
        time.sleep(1.0)
        self.idle = self._of("VmRSS")

    def reset(self) -> None:
        (self._place / "clear_refs").write_text("5")

    def above_idle(self) -> float:
        return max(self._of("VmHWM"), self._of("VmRSS")) - self.idle

    def _of(self, name: str) -> float:
        (line,) = (line for line in (self._place / "status").read_text().splitlines() if line.startswith(name))
        return int(line.split()[1]) / 1024


def listening_party() -> Iterator[tuple[str, float, float]]:
    """Four connections send the same message twice, while hello is asked on a fifth."""
    with started(PARTY, "listens") as process:
        assert process.stdout is not None
        said = partial(post, process.stdout.readline().strip(), "/v1/answer", "coordinator")
        said(HELLO)
        memory = Memory(process)
        for shape, data in shapes(LARGEST):
            memory.reset()
            yield shape, *while_flooded(partial(said, data + REQUEST_END), partial(said, HELLO), memory)


def calling_party() -> Iterator[tuple[str, float, float]]:
    """A coordinator of ours hands a hostile message to the party, then hello; the time until that is answered."""
    desk = Desk()
    with listening(desk.respond) as url, started(PARTY, "calls", url) as process:
        desk.ask(HELLO)
        memory = Memory(process)
        for shape, data in shapes(LARGEST):
            memory.reset()
            start = time.perf_counter()
            desk.ask(data + REQUEST_END)
            desk.ask(HELLO)
            yield shape, memory.above_idle(), time.perf_counter() - start


def coordinator(kind: str) -> Iterator[tuple[str, float, float]]:
    """Rounds of one question to two parties, one of which answers with hostile messages: how much longer than without it."""
    peers = Peers()
    with ExitStack() as stack:
        urls = [stack.enter_context(listening(partial(peers.respond, name))) for name in NAMES] if kind == "calls" else []
        process = stack.enter_context(started(COORDINATOR, kind, *urls))
        assert process.stdin is not None
        assert process.stdout is not None
        if kind == "receives":
            peers.call_in(process.stdout.readline().strip())

        def asked() -> float:
            print(file=process.stdin, flush=True)
            names, seconds = process.stdout.readline().split()  # type: ignore[union-attr]
            assert "good" in names
            return float(seconds)

        memory = Memory(process)
        usual = min(asked() for _ in range(3))
        for shape, data in shapes(of_reply(((CELLS,), (CELLS, COLUMNS))).size):
            memory.reset()
            peers.hostile = data
            waited = max(0.0, asked() - usual)
            yield shape, memory.above_idle(), waited


class Desk:
    """Hands requests to a party that calls in."""

    def __init__(self) -> None:
        self._changed, self._request, self._is_out = threading.Condition(), b"", False

    def ask(self, request: bytes) -> None:
        """Hand it over, and wait until the party calls again."""
        with self._changed:
            self._request, self._is_out = request, False
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._request, 300.0)

    def respond(self, who: str, path: str, body: bytes) -> tuple[int, bytes]:
        with self._changed:
            if self._is_out:
                self._request, self._is_out = b"", False
                self._changed.notify_all()
            self._changed.wait_for(lambda: bool(self._request), 20.0)
            self._is_out = bool(self._request)
            return (200, self._request) if self._request else (204, b"")


class Peers:
    """Two parties: "good" answers zeros; "bad" does so, too, as long as `hostile` is empty."""

    hostile = b""

    def __init__(self) -> None:
        self._zeros = encode({"count": [0] * CELLS, "dev": [[0] * COLUMNS] * CELLS, "noise": "system"})

    def reply(self, name: str, request: bytes) -> bytes:
        body = self.hostile if name == "bad" and self.hostile else b'{"body":' + self._zeros
        place = request[-60:].partition(b'"run":')[2]
        return body + b',"party":"%s","request":"%s","run":%s' % (name.encode(), digest(request).encode(), place)

    def respond(self, name: str, who: str, path: str, body: bytes) -> tuple[int, bytes]:
        return 200, self.reply(name, body)

    def call_in(self, url: str) -> None:
        for name in NAMES:
            threading.Thread(target=self._calls, args=(name, url), daemon=True).start()

    def _calls(self, name: str, url: str) -> None:
        """Fetch and answer; the bad one leaves its hostile reply on four connections at once, twice on each."""
        reply = b""
        with suppress(OSError, http.client.HTTPException):  # until the coordinator is gone
            while True:
                request = post(url, "/v1/next", name, reply)
                reply = self.reply(name, request) if request else b""
                if name == "bad" and self.hostile:
                    attack = partial(post, url, "/v1/next", name, reply)
                    for _ in range(4 if request else 0):
                        threading.Thread(target=repeated, args=(attack,), daemon=True).start()
                    reply = b""


def while_flooded(attack: Callable[[], Any], honest: Callable[[], Any], memory: Memory) -> tuple[float, float]:
    """Peak memory above idle, and the time of an honest call while four others go on twice each."""
    threads = [threading.Thread(target=repeated, args=(attack,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    start = time.perf_counter()
    honest()
    waited = time.perf_counter() - start
    for thread in threads:
        thread.join()
    return memory.above_idle(), waited


def repeated(attack: Callable[[], Any]) -> None:
    for _ in range(2):
        with suppress(OSError, http.client.HTTPException):
            attack()


def post(url: str, path: str, name: str, body: bytes) -> bytes:
    """What a call over plain HTTP gets."""
    connection = http.client.HTTPConnection(url.rpartition("/")[2], timeout=600)
    try:
        connection.request("POST", path, body, {PLAIN_NAME: name})
        return connection.getresponse().read()
    finally:
        connection.close()


@contextmanager
def listening(respond: Callable[[str, str, bytes], tuple[int, bytes]]) -> Iterator[str]:
    server = Server("127.0.0.1", 0, respond, None)
    server.start()
    yield server.url
    server.stop()


def idle_sockets() -> Bar:
    """A party over TLS, its coordinator, and strangers who connect and say nothing."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        keys = make_keys(Path(folder) / "keys", ["good"])
        process = stack.enter_context(started(PARTY, "listens", str(keys / "good")))
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        host, port = url.rpartition("/")[2].split(":")
        for _ in range(SOCKETS):
            stack.enter_context(socket.create_connection((host, int(port))))
        start = time.perf_counter()
        link = Calling(keys / "coordinator").connect([url], 60.0)
        reply = link.ask({"good": HELLO}, 60.0)["good"]
        seconds = time.perf_counter() - start
        link.close()
    assert isinstance(reply, bytes)
    return Bar(f"a coordinator waits beside {SOCKETS} idle sockets", seconds, 1.0, " s")
