"""The same run over Flower's own processes: its link, its nodes, our relay, and parties of their own. Runs in `make test-all`."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from federate_tools import OwnNoise, mixture

import kveil
from kveil.errors import InvalidValue
from kveil.federate import Door, make_keys
from kveil.federate.flower import ENVIRONMENT, Flower, write_app
from kveil.federate.messages import FIRST_LINK, Request, next_link

pytestmark = pytest.mark.journey

BIN = Path(sys.executable).parent
NAMES = ("east", "inland", "north", "south", "west")
PLACES = np.array([[-0.6, -0.5], [0.1, 0.7], [0.6, -0.2]])
LIMIT = 600.0  # seconds, for a run whose every step starts new processes


class Remembering(OwnNoise):
    """A party that remembers what it was asked."""

    def answer(self, request, coordinator=None):
        self.asked = [*getattr(self, "asked", ()), request]
        return super().answer(request, coordinator)


def party(number):
    rows = mixture(1500, PLACES, 0.04, seed=number)
    return Remembering(rows, bounds=(-1, 1), name=NAMES[number]).script(number)


@pytest.fixture
def stage(tmp_path):
    """Start programs of Flower, offline and silent, and end each with all that it started."""
    base = {**os.environ, **ENVIRONMENT, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    running = []

    def start(*command, home):
        environment = base | {"FLWR_HOME": str(tmp_path / home)}
        with open(tmp_path / f"{home}.out", "w") as out:
            process = subprocess.Popen(
                [str(BIN / command[0]), *command[1:]],
                cwd=tmp_path,
                env=environment,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        running.append(process)
        return process

    yield start
    for process in running:
        end(process)


def end(process):
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def until(condition, what, place):
    end_of_patience = time.monotonic() + LIMIT
    while not (found := condition()):
        if time.monotonic() > end_of_patience:
            logs = "\n".join(f"{path.name}: {path.read_text()[-1500:]}" for path in place.glob("*.out"))
            pytest.fail(f"waited in vain: {what}\n{logs}")
        time.sleep(0.2)
    return found


def test_flower_carries_a_run_and_a_lost_node_is_left_out(tmp_path, stage):
    keys = make_keys(tmp_path / "keys", NAMES) / "coordinator"
    port, certificate = free_port(), str(keys / "certificate.pem")
    parties = [party(number) for number in range(len(NAMES))]
    doors = [Door(held, tmp_path / f"{held.name}.sock") for held in parties]
    stage(
        "flower-superlink", "--host", "127.0.0.1", "--port", str(port), "--ssl-certfile", certificate,
        "--ssl-keyfile", str(keys / "private.pem"), "--ssl-ca-certfile", certificate, "--disable-runtime-dependency-installation",
        home="link",
    )  # fmt: skip
    until(lambda: "Uvicorn running" in (tmp_path / "link.out").read_text(), "the link", tmp_path)
    nodes = {
        door.path.stem: stage(
            "flower-supernode", "--superlink", f"127.0.0.1:{port}", "--root-certificates", certificate, "--host", "127.0.0.1",
            "--port", str(free_port()), "--node-config", f'socket="{door.path}"', home=f"node-{door.path.stem}",
        )
        for door in doors
    }  # fmt: skip
    (tmp_path / "caller").mkdir()
    address = f'address = "127.0.0.1:{port}"\nroot-certificates = "{certificate}"\n'
    (tmp_path / "caller" / "config.toml").write_text(f'[superlink]\ndefault = "here"\n[superlink.here]\n{address}')
    config = f'parties="{",".join(NAMES)}" k=3 epsilon=1.0 n-steps=1 timeout=90.0 out="{tmp_path / "centres"}"'
    stage("flwr", "run", str(write_app(tmp_path / "app")), "here", "-c", config, home="caller")

    until(
        lambda: any(Request.from_bytes(data).seq == 2 for data in getattr(parties[0], "asked", ())), "the second round", tmp_path
    )
    end(nodes["east"])  # its party lives on, but nobody passes messages to it
    until(lambda: (tmp_path / "centres").exists(), "the release", tmp_path)
    release = kveil.load(tmp_path / "centres")

    assert np.linalg.norm(PLACES[:, None] - release.centers, axis=2).min(axis=1).max() < 0.05
    assert (release.guarantee.epsilon, release.guarantee.trust, release.parameters["parties"]) == (1.0, "federation", len(NAMES))
    assert not release.guarantee.valid  # these parties' noise was scripted, and they say so
    assert any("party east left the run" in note for note in release.notes)
    told = dict(re.match(r"party (\w+): receipt (\w+)", note).groups() for note in release.notes if "receipt" in note)
    assert told == {name: in_process(parties[number]) for number, name in enumerate(NAMES) if name != "east"}
    for door in doors:
        door.stop()


def in_process(held):
    """The receipt of the same requests, asked of a fresh party with the same noise in this process."""
    twin, chain = party(NAMES.index(held.name)), FIRST_LINK
    run = [data for data in held.asked if Request.from_bytes(data).kind not in ("hello", "done", "abort")]
    for request in dict.fromkeys(run):  # redelivered ones once
        chain = next_link(chain, request, twin.answer(request))
    return chain


def test_flower_must_be_silent_before_it_is_used(monkeypatch):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    Flower(None)
    monkeypatch.setenv("FLWR_TELEMETRY_ENABLED", "1")
    with pytest.raises(InvalidValue, match="FLWR_TELEMETRY_ENABLED=0"):
        Flower(None)
