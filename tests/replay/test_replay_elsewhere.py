"""What leaves streams, parties of a federation, devices and the search for bounds, replayed on neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from neighbours import mixed, odd, people, rows_moved, stairs

from kveil import (
    FederatedKMeans,
    Ledger,
    LocalKMeans,
    PrivateKMeans,
    PrivateKMedian,
    StreamKMeans,
    describe,
    evaluate,
    find_bounds,
    private_candidates,
    read,
)
from kveil.auditing.released import filed, fitted
from kveil.auditing.tape import play as replay
from kveil.errors import BoundsNotFound
from kveil.federate import Party, Policy
from kveil.federate.kinds import QUESTIONS
from kveil.federate.messages import Request
from kveil.federate.plan import KINDS
from kveil.federate.protocols import PROTOCOLS

STREAMS = {
    "1 column": (1, {}, rows_moved),
    "2 columns": (2, {"bounds": ([-1.0, -2.0], [1.0, 30.0])}, rows_moved),
    "2 columns, stairs": (2, {"epsilon": 10.0}, stairs),
    "loud noise": (3, {"epsilon": 0.5}, rows_moved),
    "6 columns": (6, {}, rows_moved),
    "6 columns, stairs": (6, {}, stairs),
    "Gaussian": (6, {"delta": 1e-6, "memory": 256}, rows_moved),
    "projection": (25, {"epsilon": 300.0}, rows_moved),
}
FEDERATIONS = {
    "cells": (2, {}),
    "cells, ball, Gaussian": (6, {"delta": 1e-6, "radius": 1.0}),
    "sample": (2, {"protocol": "sample"}),
    "sample, ball": (3, {"protocol": "sample", "radius": 1.0}),
    "pdk": (2, {"protocol": "pdk"}),
}


@pytest.mark.parametrize("name", STREAMS)
def test_what_a_stream_releases_follows_from_noisy_answers_alone(name):
    d, options, tables = STREAMS[name]

    def act(table: Any) -> dict[str, Any]:
        begun = StreamKMeans(**{"n_clusters": 3, "epsilon": 40.0, "memory": 64, "bounds": (-1, 1), "random_state": 1} | options)
        begun.partial_fit(table[:20]).partial_fit(pl.DataFrame(table[20:]).to_numpy())
        taken, early = begun.taken_, begun.finish(go_on=True).release_
        return {**fitted(begun.finish()), "taken": taken, "early": vars(early)}

    for pairs in tables(d, "add-remove"):
        tape = replay(act, pairs.table, pairs.neighbours)
        assert len(tape.draws) == tape.left["receipt"]["charges"] + tape.left["early"]["receipt"]["charges"]


class Telling(Party):
    """A party that keeps what it was asked and what it sent."""

    def answer(self, request: bytes, coordinator: str | None = None) -> bytes | None:
        reply = super().answer(request, coordinator)
        assert reply is not None, "an answer failed"
        self.told = [*getattr(self, "told", []), (request, reply)]
        return reply


def federated(d: int, options: dict[str, Any], rows: Any = lambda table: table) -> Any:
    """A run of two parties, of which one holds the table and the other always the same rows."""
    policy = Policy(epsilon_per_run=40.0, delta_per_run=options.get("delta", 0.0), protocols=("cells", "sample", "pdk"))
    domain = {"center": np.zeros(d), "radius": options["radius"]} if "radius" in options else {"bounds": (-1, 1)}

    def act(table: Any) -> dict[str, Any]:
        held = {"north": rows(table), "south": rows(mixed(d) if table.shape[1] == d else _of_people(d))}
        parties = [Telling(source, name=name, policy=policy, **domain) for name, source in held.items()]
        made = FederatedKMeans(**{"n_clusters": 3, "epsilon": 40.0, "random_state": 1, **domain} | options).fit(parties)
        charged = [filed(party.ledger) for party in parties]
        return {**fitted(made), "told": [party.told for party in parties], "charged": charged}

    return act


def _of_people(d: int) -> Any:
    return np.column_stack([np.arange(len(mixed(d))), mixed(d)])


@pytest.mark.parametrize("name", FEDERATIONS)
def test_what_a_party_sends_follows_from_noisy_answers_alone(name):
    d, options = FEDERATIONS[name]
    asked = set()
    for pairs in rows_moved(d, "add-remove"):
        tape = replay(federated(d, options), pairs.table, pairs.neighbours)
        asked |= {Request.from_bytes(request).kind for request, _ in tape.left["told"][0]}
    assert asked & QUESTIONS.keys() == KINDS[options.get("protocol", "cells")], "not all kinds were asked"


@pytest.mark.parametrize("protocol", ["cells", "sample", "pdk"])
def test_what_a_party_sends_hides_a_person_with_several_rows(protocol):
    act = federated(2, {"protocol": protocol}, lambda table: read(table, person=0, max_rows_per_person=2))
    for pairs in people(mixed(2), odd(2), 2, "add-remove"):
        replay(act, pairs.table, pairs.neighbours)


def test_every_private_protocol_is_replayed():
    replayed = {options.get("protocol", "cells") for _, options in FEDERATIONS.values()}
    assert replayed == set(PROTOCOLS) - {"dk"}, "dk promises nothing"


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("shape", ["box", "refined box", "cube", "ball"])
def test_bounds_that_are_found_follow_from_noisy_answers_alone(shape, relation):
    def act(table: Any) -> dict[str, Any]:
        ledger = Ledger.memory("one", 40.0, relation=relation)
        refine = shape.startswith("refined")
        bounds, receipt = find_bounds(table, 40.0, ledger=ledger, shape=shape.split()[-1], refine=refine)
        return {"bounds": bounds, "receipt": receipt}

    tables = (rows_moved, stairs) if relation == "add-remove" else (rows_moved,)
    for pairs in (pairs for made in tables for pairs in made(3, relation)):
        replay(act, pairs.table, pairs.neighbours, may_raise=(BoundsNotFound,))


def test_bounds_hide_a_person_with_several_rows():
    def act(table: Any) -> dict[str, Any]:
        source = read(table, person=0, max_rows_per_person=3)
        ledger = Ledger.memory("one", 60.0, relation="add-remove", unit=source.unit)
        return {"found": find_bounds(source, 60.0, ledger=ledger, refine=True)}

    for pairs in people(mixed(2), odd(2), 3, "add-remove"):
        replay(act, pairs.table, pairs.neighbours, may_raise=(BoundsNotFound,))


CENTERS = np.array([[-0.5, -0.5, 0.0], [0.4, 0.5, 0.1], [0.5, -0.5, 0.0]])


@pytest.mark.parametrize(
    ("relation", "rule", "model", "k"),
    [
        ("add-remove", "pure", PrivateKMeans, 3),
        ("replace-one", "pure", PrivateKMedian, 3),
        ("add-remove", "zcdp", PrivateKMeans, 1),
    ],
)
def test_an_evaluation_follows_from_noisy_answers_alone(relation, rule, model, k):
    release = model(k, epsilon=40.0, bounds=(-1, 1), random_state=1).fit(np.repeat(CENTERS[:k], 200, axis=0)).release_

    def act(table: Any) -> dict[str, Any]:
        ledger = Ledger.memory("one", 40.0, 1e-6 if rule == "zcdp" else 0.0, relation=relation, rule=rule)
        found = evaluate(release, table, 40.0 if rule == "pure" else 10.0, ledger=ledger, delta=1e-6)
        return {**vars(found), "said": str(found), "json": found.to_json()}

    tables = (rows_moved, stairs) if relation == "add-remove" else (rows_moved,)
    for pairs in (pairs for made in tables for pairs in made(3, relation)):
        replay(act, pairs.table, pairs.neighbours)


def test_an_evaluation_hides_a_person_with_several_rows():
    release = PrivateKMeans(2, epsilon=40.0, bounds=(-1, 1), random_state=1).fit(np.repeat(CENTERS[:2, :2], 200, axis=0)).release_

    def act(table: Any) -> dict[str, Any]:
        source = read(table, person=0, max_rows_per_person=3)
        ledger = Ledger.memory("one", 60.0, relation="add-remove", unit=source.unit)
        return vars(evaluate(release, source, 60.0, ledger=ledger))

    for pairs in people(mixed(2), odd(2), 3, "add-remove"):
        replay(act, pairs.table, pairs.neighbours)


@pytest.mark.parametrize(("d", "relation", "delta"), [(2, "add-remove", 0.0), (7, "replace-one", 1e-6)])
def test_candidates_follow_from_noisy_answers_alone(d, relation, delta):
    def act(table: Any) -> dict[str, Any]:
        ledger = Ledger.memory("one", 40.0, delta, relation=relation)
        found = private_candidates(table, 40.0, delta=delta, ledger=ledger, bounds=(-1, 1), n_clusters=3, random_state=1)
        return {**vars(found), "repr": repr(found), "charged": filed(ledger)}

    more = stairs(d, relation, (19,)) if relation == "add-remove" else ()  # 54 rows and 55: another level
    for pairs in (*rows_moved(d, relation), *more):
        tape = replay(act, pairs.table, pairs.neighbours)
        assert tape.left["receipt"]["charges"] == len(tape.draws)


@pytest.mark.parametrize("protocol", ["grid", "lae", "lma"])
def test_what_devices_and_their_collector_let_out_follows_from_reports_alone(protocol):
    def act(table: Any) -> dict[str, Any]:
        made = LocalKMeans(2, epsilon=4.0, radius=1.0, protocol=protocol, devices="exact", random_state=1)
        return fitted(made.fit(table))

    table = mixed(2)
    neighbours = [np.vstack([table[:i], row, table[i + 1 :]]) for i, row in enumerate(odd(2))]  # each device answers for itself
    replay(act, table, neighbours)


@pytest.mark.parametrize(
    ("relation", "rule", "most"), [("add-remove", "pure", 1), ("replace-one", "pure", 2), ("add-remove", "zcdp", 2)]
)
def test_a_description_follows_from_noisy_answers_alone(relation, rule, most):
    """The last three columns are words: above 0 they are said, so a row alone says what no other does."""
    release = PrivateKMeans(3, epsilon=40.0, bounds=(-1, 1), random_state=1).fit(np.repeat(CENTERS, 200, axis=0)).release_

    def act(table: Any) -> dict[str, Any]:
        ledger = Ledger.memory("one", 40.0, 1e-6 if rule == "zcdp" else 0.0, relation=relation, rule=rule)
        words = ["corn", "oil", "tin"]
        found = describe(release, table, words, 40.0 if rule == "pure" else 10.0, ledger=ledger, delta=1e-6, per_row=most)
        return {**vars(found), "said": str(found), "json": found.to_json()}

    tables = (rows_moved, stairs) if relation == "add-remove" else (rows_moved,)
    for pairs in (pairs for made in tables for pairs in made(6, relation)):
        replay(act, pairs.table, pairs.neighbours)


def test_a_description_hides_a_person_with_several_rows():
    release = PrivateKMeans(2, epsilon=40.0, bounds=(-1, 1), random_state=1).fit(np.repeat(CENTERS[:2, :2], 200, axis=0)).release_

    def act(table: Any) -> dict[str, Any]:
        source = read(table, person=0, max_rows_per_person=3)
        ledger = Ledger.memory("one", 60.0, relation="add-remove", unit=source.unit)
        return vars(describe(release, source, ["corn", "oil"], 60.0, ledger=ledger, per_row=2))

    for pairs in people(mixed(4), odd(4), 3, "add-remove"):
        replay(act, pairs.table, pairs.neighbours)
