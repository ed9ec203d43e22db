"""What kveil itself has written: releases, ledgers, journals, states of streams, guarantees; and policies."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.fuzz.reading import KEY, Reader, clear, if_allowed, means, medians, noon
from benchmarks.fuzz.wire import asked, make_party, run_through
from kveil import Ledger, StreamKMeans, load, verify
from kveil.canonical import digest
from kveil.cli.config import set_defaults
from kveil.cli.door import loaded
from kveil.collect.client import LocalClient
from kveil.federate import Policy
from kveil.filing.tables import to_csv, to_html
from kveil.kernel.loss import Charge, Guarantee, Plan, PrivacyUnit

POLICY = b'{"coordinators":["c"],"epsilon_per_run":1,"max_cells":64,"parties":["a"]}'
CONFIG = b'[all]\nledger = "b.db"\n[fit]\nk = 3\nbounds = [0, 1.5]\ncolumns = ["a"]\njson = true\n[ledger.init]\nepsilon = 2\n'
PLAN = Plan((Charge("given", "fit", 1, "l1", Fraction(1, 8)),), "add-remove", PrivacyUnit())


def readers(folder: Path) -> Iterator[tuple[str, Reader]]:
    """By name; files are written to `folder`."""
    for form, release in (("csv", medians()), ("parquet", means())):
        held = Folder(folder / f"release-{form}", release, form)
        for name, data in held.files.items():
            share = 0.1 if name == "signature.json" else 0.5  # the others are good, and all of them are verified
            yield f"release {form}, {name}", Reader((data,), held.reader(name), share=share)
    yield (
        "ledger",
        Reader((made_ledger(folder, "pure"), made_ledger(folder, "zcdp")), lambda data: read_ledger(folder, data), share=0.4),
    )
    yield "device ledger", Reader((made_device(folder),), lambda data: read_device(folder, data), share=0.7)
    journal = Books(folder)
    yield "journal", Reader((journal.data,), journal.read, share=0.4)
    yield "stream", Reader(tuple(states(folder)), lambda data: read_state(folder / "stream.state", data))
    yield "policy", Reader((POLICY,), lambda data: read_policy(folder / "policy.json", data), share=2)
    yield "config", Reader((CONFIG,), lambda data: read_config(folder / "kveil.toml", data), share=2)
    promises = tuple(release.guarantee.to_json().encode() for release in (means(), medians()))
    yield "guarantee", Reader(promises, read_guarantee, share=2)


class Folder:
    """A release, of which one file is spoilt. What vouches for that file is made to fit, else only digests would be tested."""

    def __init__(self, place: Path, release: Any, form: str) -> None:
        self._place = release.save(place, format=form, sign=KEY)
        self.files = {path.name: path.read_bytes() for path in sorted(place.iterdir())}

    def reader(self, name: str) -> Callable[[bytes], None]:
        def read_one(data: bytes) -> None:
            changed = {name: data}
            if name not in ("release.json", "signature.json"):
                changed["release.json"] = self._vouched(name, data)
            for other, held in (self.files | changed).items():
                (self._place / other).write_bytes(held)
            if_allowed(lambda: str(verify(self._place, key=KEY.public)))
            release = load(self._place)
            release.card()

        return read_one

    def _vouched(self, name: str, data: bytes) -> bytes:
        document = json.loads(self.files["release.json"])
        for part in ("centers", "card", "synopsis"):
            if document[part] is not None and document[part]["file"] == name:
                document[part]["sha256"] = digest(data)
        return json.dumps(document).encode()


def made_ledger(folder: Path, rule: str) -> bytes:
    path = clear(folder / "ledger.db")
    ledger = Ledger.create(path, "clinic", 2.0, 0 if rule == "pure" else 1e-6, relation="add-remove", rule=rule)
    for purpose in ("beds", "wards"):
        ledger.stating(purpose=purpose, by="A. Hill").reserve(PLAN, run="r1", round="2")
    return path.read_bytes()


def read_ledger(folder: Path, data: bytes) -> None:
    path = clear(folder / "ledger.db")
    path.write_bytes(data)
    ledger = Ledger.open(path)
    for act in (
        ledger.spent, ledger.remaining, ledger.charges, lambda: ledger.reserve(PLAN, purpose="x"), lambda: to_csv([ledger]),
        lambda: to_html([ledger]), lambda: repr(ledger),
    ):  # fmt: skip
        if_allowed(act)


def made_device(folder: Path) -> bytes:
    path = clear(folder / "device.db")
    with LocalClient(path, n_features=2, key=KEY.public, is_first=True, clock=noon) as client:
        client.answer([asked("grid")], [0.1, 0.2])
        assert client.history()
    return path.read_bytes()


def read_device(folder: Path, data: bytes) -> None:
    path = clear(folder / "device.db")
    path.write_bytes(data)
    with LocalClient(path, n_features=2, key=KEY.public, clock=noon) as client:
        for act in (client.remaining, client.pending, lambda: client.answer([asked("grid")], [0.1, 0.2])):
            if_allowed(act)


class Books:
    """A party's journal beside its ledger, after a run."""

    def __init__(self, folder: Path) -> None:
        self._ledger, self._path = clear(folder / "books.db"), clear(folder / "books.db.runs")
        Ledger.create(self._ledger, "a", 40.0, relation="add-remove")
        party = make_party(ledger=self._ledger)
        self._asked = [request for request, _ in run_through(party)]
        party.close()
        self.data = self._path.read_bytes()

    def read(self, data: bytes) -> None:
        clear(self._path).write_bytes(data)
        party = make_party(ledger=self._ledger)
        try:
            for request in self._asked:
                party.answer(request, "coordinator")
        finally:
            party.close()


def states(folder: Path) -> Iterator[bytes]:
    for options in ({"epsilon": 1.0, "bounds": (-1, 1)}, {}):
        stream = StreamKMeans(2, memory=64, random_state=1, **options)
        stream.partial_fit(np.array([[0.1, 0.2], [0.3, 0.4], [-0.5, 0.0]])).save(folder / "stream.state")
        yield (folder / "stream.state").read_bytes()[:-32]


def read_state(path: Path, data: bytes) -> None:
    path.write_bytes(data + hashlib.sha256(data).digest())
    StreamKMeans.resume(path).partial_fit(np.array([[0.1, 0.2], [-0.5, 0.0]]))


def read_guarantee(data: bytes) -> None:
    str(Guarantee.from_json(data.decode("utf-8", "surrogateescape")))


def read_config(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    root = SimpleNamespace(parent=None)
    set_defaults(SimpleNamespace(parent=root, info_name="fit", command=loaded("fit"), default_map=None), path)


def read_policy(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    Policy.read(path)
