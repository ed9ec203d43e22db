"""Federations of real processes on this machine: as the docs tell it, and with one party killed in the middle of a run."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import kveil
import warm
from kveil import Ledger
from kveil.federate import Party, Policy, make_keys
from kveil.federate.messages import Reply
from kveil.federate.wire import decode

pytestmark = pytest.mark.journey

PAGE = Path(__file__).parents[2] / "docs" / "federation.md"
ENVIRONMENT = {**os.environ, "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "120", "PYTHONUNBUFFERED": "1"}
PLACES = np.array([[20.0, 30.0], [50.0, 70.0], [80.0, 20.0]])
CANARY = np.array([41.123456789, 77.987654321])  # one row of every party, far from the places

COORDINATOR = """
import json, sys
from kveil import FederatedKMeans
from kveil.federate import Calling, Logged
addresses, keys, log = sys.argv[1].split(","), sys.argv[2], sys.argv[3]
model = FederatedKMeans(3, epsilon=1.0, timeout=25.0, random_state=0, transport=Logged(Calling(keys), log)).fit(addresses)
told = {"receipts": model.receipts_, "notes": model.release_.notes, "centers": model.cluster_centers_.tolist(),
        "guarantee": json.loads(model.guarantee_.to_json())}
print(json.dumps(told), flush=True)
sys.stdin.read()
"""


def table(seed, n_rows=2000):
    rng = np.random.default_rng(seed)
    rows = PLACES[rng.integers(0, 3, n_rows)] + rng.normal(0, 3, (n_rows, 2))
    rows[0] = CANARY
    return pd.DataFrame(rows, columns=["age", "score"])


@pytest.fixture
def started(tmp_path):
    """Start processes in a folder, and end them all at the end."""
    processes = []

    def start(*command):
        with open(tmp_path / f"{len(processes)}.err", "w") as errors:
            process = warm.Started(*command, cwd=tmp_path, env=ENVIRONMENT, stderr=errors)
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.close()


def commands(page, terminal):
    """What the page types in a terminal, with a port that is free here."""
    (section,) = re.findall(rf"### {terminal}\n(.*?)(?=\n###? )", page + "\n## ", flags=re.S)
    blocks = re.findall(r"```bash\n(.*?)```", section, flags=re.S)
    return [line for block in blocks for line in re.sub(r" *\\\n *", " ", block).splitlines()]


def quiet_port():
    """A free port below those that the system hands out: between this and its use no other test can be given it."""
    for port in range(20_000 + os.getpid() % 10_000, 32_000):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return str(port)
    raise AssertionError("no port is free")


def test_three_terminals_work_as_the_docs_say(tmp_path, started):
    table(1).to_parquet(tmp_path / "north.parquet", index=False)
    table(2).to_csv(tmp_path / "south.csv", index=False)
    port = quiet_port()
    page = PAGE.read_text(encoding="utf-8").replace("8443", port)
    for terminal in ("Terminal 1", "Terminal 2"):
        *first, party = (shlex.split(line)[1:] for line in commands(page, terminal))
        for command in first:
            assert warm.run(warm.KVEIL, *command, cwd=tmp_path, env=ENVIRONMENT).returncode == 0
        started(warm.KVEIL, *party)
    for line in commands(page, "Terminal 3"):
        done = warm.run(warm.KVEIL, *shlex.split(line)[1:], cwd=tmp_path, env=ENVIRONMENT)
        assert done.returncode == 0, done.stderr
    release = kveil.load(tmp_path / "centres")
    assert (release.guarantee.epsilon, release.guarantee.trust, release.features) == (1.0, "federation", ("age", "score"))
    assert np.linalg.norm(PLACES[:, None] - release.centers, axis=2).min(axis=1).max() < 2
    assert [Ledger.open(tmp_path / f"{name}.db").spent().epsilon for name in ("north", "south")] == [1.0, 1.0]


def test_one_of_five_parties_is_killed_and_no_row_reaches_the_coordinator(tmp_path, started, until):
    names = [f"p{i}" for i in range(5)]
    make_keys(tmp_path / "keys", names)
    parties, addresses = {}, []
    for seed, name in enumerate(names):
        table(seed).to_parquet(tmp_path / f"{name}.parquet", index=False)
        Ledger.create(tmp_path / f"{name}.db", name, 1.0, relation="add-remove")
        parties[name] = started(
            warm.KVEIL, "federate", "party", "--data", f"{name}.parquet", "--keys", f"keys/{name}", "--bounds", "0,100",
            "--port", "0", "--ledger", f"{name}.db", "--reply-every", "0.3",
        )  # fmt: skip
    for name in names:
        said = parties[name].stdout.readline()
        addresses.append(said.split()[-1])
        assert said.startswith(f"party {name} listens at https://127.0.0.1:")
    arguments = (",".join(addresses), "keys/coordinator", "log.jsonl")
    coordinator = started(COORDINATOR, *arguments)

    until(
        lambda: any(line["what"] == "request" and line["party"] == "p4" and seq(line) == 2 for line in log(tmp_path)), "round 2"
    )
    os.kill(parties["p4"].pid, signal.SIGKILL)
    told = json.loads(coordinator.stdout.readline())
    assert set(told["receipts"]) == set(names) - {"p4"}
    assert any("party p4 left the run" in note for note in told["notes"])
    assert (told["guarantee"]["epsilon"], told["guarantee"]["valid"], told["guarantee"]["trust"]) == (1.0, True, "federation")
    assert np.linalg.norm(PLACES[:, None] - np.array(told["centers"]), axis=2).min(axis=1).max() < 2
    assert [Ledger.open(tmp_path / f"{name}.db").spent().epsilon for name in names[:4]] == [1.0] * 4

    check_memory(coordinator.pid, parties["p0"].pid, (tmp_path / "log.jsonl").read_bytes())
    check_restart(tmp_path, [line for line in log(tmp_path) if line["party"] == "p4"])


def log(place):
    path = place / "log.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def seq(line):
    return decode(line["text"].encode())["seq"]


def check_memory(coordinator, party, written):
    """The canary row, as floats, as codes of the grid and as text, is nowhere in the coordinator; a party's memory has it."""
    codes = Party([[0.0, 0.0]], bounds=(0, 100)).layout.domain.encode(CANARY[None])[0]
    patterns = [
        CANARY.tobytes(), codes.astype(np.int64).tobytes(), codes.astype(np.int32).tobytes(),
        f"{codes[0]},{codes[1]}".encode(), *(repr(float(value)).encode() for value in CANARY),
    ]  # fmt: skip
    patterns = [pattern.rstrip(b"\0") for pattern in patterns]  # memory is full of zeros, and a search that ends in one is slow
    assert not any(pattern in written for pattern in patterns)
    assert not any(pattern in block for block in memory(coordinator) for pattern in patterns)
    assert any(patterns[0] in block or patterns[2] in block for block in memory(party))  # the control


def memory(pid):
    """What a process holds, region by region, with a seam between them covered by reading each as a whole."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as content:
        for line in maps:
            place, rights = line.split()[:2]
            low, high = (int(end, 16) for end in place.split("-"))
            if "r" in rights and "w" in rights:
                try:
                    content.seek(low)
                    yield content.read(high - low)
                except OSError:
                    continue  # a region that cannot be read, such as device memory


def check_restart(place, lines):
    """The killed party, started again from its books, never gives a second answer to what it was asked."""
    spent = Ledger.open(place / "p4.db").spent().epsilon
    again = Party(
        place / "p4.parquet",
        bounds=(0, 100),
        name="p4",
        ledger=str(place / "p4.db"),
        policy=Policy(coordinators=("coordinator",)),
    )
    replies = {seq(line): line["text"].encode() for line in lines if line["what"] == "reply" and "layout" not in line["text"]}
    for line in lines:
        request = line["text"].encode()
        if line["what"] != "request" or decode(request)["kind"] in ("hello", "abort"):
            continue
        answer = again.answer(request, "coordinator")
        if seq(line) in replies:
            assert answer == replies[seq(line)]
        else:  # asked while it was killed: kept and sent now, or lost, or never begun
            assert Reply.from_bytes(answer).refused in (None, "lost", "order", "expired")
    assert Ledger.open(place / "p4.db").spent().epsilon <= spent + 0.1334
