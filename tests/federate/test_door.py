"""A party behind a socket, the relay that talks to it, and the app that holds the relay."""

import ast
import socket
import tomllib
from contextlib import suppress

import pytest
from federate_tools import message, party

from kveil.errors import InvalidValue
from kveil.federate import Door
from kveil.federate.flower import write_app
from kveil.federate.messages import Reply
from kveil.federate.wire import LARGEST


def said(door, data):
    """What comes back from the socket, all of it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(10)
        connection.connect(str(door.path))
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        found = b""
        with suppress(ConnectionResetError):  # closed while bytes of ours were not read
            while part := connection.recv(1 << 16):
                found += part
    return found


@pytest.fixture
def door(tmp_path):
    opened = Door(party(), tmp_path / "north.sock")
    yield opened
    opened.stop()


def framed(data):
    return len(data).to_bytes(8, "big") + data


def test_a_message_gets_its_reply(door):
    found = said(door, framed(message(0, "hello", {})))
    assert Reply.from_bytes(found[8:]).body["data"] == "rows"
    assert int.from_bytes(found[:8], "big") == len(found) - 8
    assert door.path.stat().st_mode & 0o007 == 0  # not for everybody


@pytest.mark.parametrize(
    "data", [b"", b"\x00" * 8, b"\x00\x00", framed(b"abc")[:-1], (LARGEST + 1).to_bytes(8, "big") + b"x"], ids=len
)
def test_broken_messages_get_nothing_and_stop_nobody(door, data):
    assert said(door, data) == b""
    assert said(door, framed(b"garbage"))[8:] != b""


def test_two_parties_cannot_have_one_door(door):
    with pytest.raises(InvalidValue, match="cannot listen"):
        Door(party(), door.path)


def test_the_relay_knows_nothing_of_kveil(tmp_path):
    app = write_app(tmp_path / "app")
    relay = ast.parse((app / "kveil_flower" / "relay.py").read_text())
    imported = {alias.name for node in ast.walk(relay) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in ast.walk(relay) if isinstance(node, ast.ImportFrom)}
    assert imported == {"socket", "flwr.app", "flwr.clientapp"}
    ast.parse((app / "kveil_flower" / "coordinator.py").read_text())
    settings = tomllib.loads((app / "pyproject.toml").read_text())
    assert settings["project"]["dependencies"] == []  # nothing is installed on a node
    assert settings["tool"]["flwr"]["app"]["components"]["clientapp"] == "kveil_flower.relay:app"
    with pytest.raises(InvalidValue, match="cannot be made"):
        write_app(app)
