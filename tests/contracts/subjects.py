"""One list of everything in kveil that sees private rows and lets something out.

A subject is run on a table and returns what it promised before the data, what it promises afterwards, who was charged, and all
that a caller can hold from then on. What a party or a stream keeps for itself is as secret as the rows, and is not handed on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from looking import NUMBER, TEXT
from neighbours import mixed
from test_replay_curator import CASES, Case

from kveil import (
    FederatedKMeans,
    Graph,
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
from kveil.auditing.released import fitted
from kveil.collect import Campaign, Collector, LocalClient
from kveil.collect.campaign import promise
from kveil.federate import Party, Policy
from kveil.kernel.loss import Guarantee
from kveil.signing import SigningKey

KEY = SigningKey(bytes(range(32)))


@dataclass
class Outcome:
    """What is known after a run.

    promised: what `guarantee()` said before the data; the epsilon that was asked for, of functions that have none.
    charged: ledgers, each of which must hold the whole of what was promised.
    """

    promised: Guarantee | float
    given: Guarantee | None
    charged: list[Ledger]
    held: dict[str, Any]  # by name, all that a caller can reach
    left: dict[str, Any] = field(default_factory=dict)  # the same as plain values, to compare
    may_save: bool = False  # whether a ledger may be charged less: a party pays for the rounds that it is asked for


@dataclass(frozen=True)
class Subject:
    """What is run, and on which table: canaries are in its last row. Its neighbour has none there, or no such row."""

    run: Callable[[Any], Outcome]
    table: Any
    covers: frozenset[str]  # public names, and "model method" for a method of a model
    writes: frozenset[str] = frozenset()  # names of files
    replaces: bool = False  # its neighbours have as many rows

    @property
    def neighbour(self) -> Any:
        return np.vstack([self.table[:-1], 0 * self.table[-1:]]) if self.replaces else self.table[:-1]


def noon() -> datetime:
    return datetime(2030, 1, 5, 12, tzinfo=UTC)


def of_model(model: Any, rows: Any, unit: Any = None, **fit: Any) -> Outcome:
    """A fit that is charged to a ledger."""
    width = getattr(rows, "n_columns", None) or np.shape(rows)[1]
    options = {} if unit is None else {"unit": unit}
    if getattr(rows, "is_sparse", False) or hasattr(rows, "indptr"):
        options["is_sparse"] = True
    if getattr(rows, "blocks", ()):
        options["blocks"] = rows.blocks
    promised = model.guarantee(width, **options)
    model.fit(rows, **fit)
    return Outcome(promised, model.guarantee_, [model.ledger], {"model": model, "release": model.release_}, fitted(model))


def curator(case: Case) -> Callable[[Any], Outcome]:
    def run(table: Any) -> Outcome:
        rows = case.rows(table)
        unit = getattr(rows, "unit", None)
        options = {"n_clusters": 3, "random_state": 1} | case.options
        terms = {"relation": options.get("relation", "add-remove"), **({} if unit is None else {"unit": unit})}
        options["ledger"] = Ledger.memory("one", options["epsilon"], options.get("delta", 0.0), **terms)
        model = case.model(**options)
        return of_model(model, rows, unit, **({} if case.public is None else {"public": case.public}))

    return run


def marked(table: Any) -> Any:
    """The table with a row of canaries at its end."""
    return np.vstack([table, np.full((1, table.shape[1]), NUMBER)])


def from_replay() -> dict[str, Subject]:
    """The first case of every method, start and kind of choice that the replay knows."""
    found: dict[str, Subject] = {}
    seen: set[frozenset[str]] = set()
    for name, case in CASES.items():
        model, options = case.model.__name__, case.options
        covers = {model, f"{model} {options['method']}"}
        covers |= {f"init {options['init']}"} if options.get("init") else set()
        covers |= {"auto k"} if options.get("n_clusters") == "auto" else set()
        covers |= {"public sample"} if case.public is not None else set()
        if case.most > 1 or case.ledger is not None or covers <= set().union(*seen):
            continue
        seen.add(frozenset(covers))
        table = next(case.pairs()).table
        found[name] = Subject(curator(case), marked(table), frozenset(covers), replaces="relation" in options)
    return found


def stream(table: Any) -> Outcome:
    """Its leaves are as secret as rows until it is finished; then nothing of them is left."""
    ledger = Ledger.memory("one", 40.0, relation="add-remove")
    model = StreamKMeans(3, epsilon=40.0, memory=64, bounds=(-1, 1), random_state=1, ledger=ledger)
    promised = model.guarantee(table.shape[1])
    taken = model.partial_fit(table[:20]).partial_fit(table[20:]).taken_
    model.finish()
    held = {"model": model, "release": model.release_, "taken": taken}
    return Outcome(promised, model.guarantee_, [ledger], held, fitted(model))


def federation(protocol: str) -> Callable[[Any], Outcome]:
    def run(table: Any) -> Outcome:
        policy = Policy(epsilon_per_run=40.0, protocols=(protocol,))
        said: list[bytes] = []

        class Telling(Party):
            def answer(self, request: bytes, coordinator: str | None = None) -> bytes | None:
                reply = super().answer(request, coordinator)
                said.extend([request, reply or b""])
                return reply

        held = {"north": table, "south": mixed(table.shape[1])}
        parties = [Telling(rows, name=name, policy=policy, bounds=(-1, 1)) for name, rows in held.items()]
        model = FederatedKMeans(3, epsilon=40.0, random_state=1, bounds=(-1, 1), protocol=protocol)
        promised = model.guarantee(table.shape[1])
        model.fit(parties)
        out = {"model": model, "release": model.release_, "said": said, "ledgers": [party.ledger for party in parties]}
        return Outcome(
            promised,
            model.guarantee_,
            [party.ledger for party in parties],
            out,
            fitted(model) | {"said": list(said)},
            may_save=True,
        )

    return run


def local(protocol: str) -> Callable[[Any], Outcome]:
    def run(table: Any) -> Outcome:
        model = LocalKMeans(2, epsilon=4.0, radius=1.0, protocol=protocol, devices="exact", random_state=1)
        promised = model.guarantee(table.shape[1])
        model.fit(table)
        return Outcome(promised, model.guarantee_, [], {"model": model, "release": model.release_}, fitted(model))

    return run


def bounds(table: Any) -> Outcome:
    ledger = Ledger.memory("one", 40.0, relation="add-remove")
    found, receipt = find_bounds(table, 40.0, ledger=ledger, refine=True)
    return Outcome(40.0, None, [ledger], {"found": found, "receipt": receipt}, {"found": found, "receipt": receipt})


def candidates(table: Any) -> Outcome:
    ledger = Ledger.memory("one", 40.0, relation="add-remove")
    found = private_candidates(table, 40.0, ledger=ledger, bounds=(-1, 1), n_clusters=3, random_state=1)
    return Outcome(40.0, found.guarantee, [ledger], {"found": found, "repr": repr(found)}, {**vars(found), "repr": repr(found)})


LOCAL = ("grid", "zoom", "refine", "lae", "lma")
RELEASE_FILES = frozenset({"centers.csv", "card.md", "release.json", "synopsis.npz"})
CENTERS = np.array([[-0.5, -0.5, 0.0], [0.4, 0.5, 0.1]])


RELEASE = (
    PrivateKMeans(2, epsilon=40.0, bounds=(-1, 1), method="lloyd", random_state=1).fit(np.repeat(CENTERS, 9, axis=0)).release_
)


def judged(table: Any) -> Outcome:
    ledger = Ledger.memory("one", 40.0, relation="add-remove")
    found = evaluate(RELEASE, table, 40.0, ledger=ledger)
    told = {**vars(found), "said": str(found), "json": found.to_json()}
    return Outcome(40.0, found.guarantee, [ledger], {"found": found, **told}, told)


def described(table: Any) -> Outcome:
    ledger = Ledger.memory("one", 40.0, relation="add-remove")
    found = describe(RELEASE, table, ["corn", "oil"], 40.0, ledger=ledger)
    told = {**vars(found), "said": str(found), "json": found.to_json()}
    return Outcome(40.0, found.guarantee, [ledger], {"found": found, **told}, told)


def csv_of_people(table: Any) -> Outcome:
    """A file whose people, levels and unused columns are marked text; and what it was saved as is looked at, too."""
    last = np.arange(len(table)) == len(table) - 1
    frame = pd.DataFrame(table, columns=["age", "height"]).assign(
        who=np.where(last, TEXT, [f"p{i % 9}" for i in range(len(table))]), sex=np.where(last, TEXT, "f"), note=TEXT
    )
    Path("in").mkdir(exist_ok=True)
    frame.to_csv("in/rows.csv", index=False)
    options = {"person": "who", "max_rows_per_person": 2, "columns": ["age", "height", "sex"]}
    source = read("in/rows.csv", categories={"sex": ("f", "m")}, **options)
    ledger = Ledger.memory("one", 40.0, relation="add-remove", unit=source.unit)
    model = PrivateKMeans(2, epsilon=40.0, bounds={"age": (-1, 1), "height": (-1, 1)}, ledger=ledger, random_state=1)
    outcome = of_model(model, source, source.unit)
    model.release_.save("out", format="csv", overwrite=True)
    files = {path.name: path.read_bytes() for path in sorted(Path("out").iterdir())}
    return replace(outcome, left={**outcome.left, **files})


def demand(table: Any) -> Outcome:
    """Places by name, of which one is on no map."""
    names = [TEXT if place == NUMBER else f"v{int(place)}" for place in table[:, 0]]
    graph = Graph.from_networkx(_ring())
    ledger = Ledger.memory("one", 10.0, relation="add-remove")
    model = PrivateKMedian(2, epsilon=10.0, universe=graph, method="counts", ledger=ledger, random_state=1)
    return of_model(model, graph.find(names)[:, None])


def positions(table: Any) -> Outcome:
    """Places on a map, of which one is no place."""
    spots = np.column_stack([np.cos(np.arange(8.0)), np.sin(np.arange(8.0))])
    graph = Graph.from_edges([[i, (i + 1) % 8] for i in range(8)], xy=spots)
    ledger = Ledger.memory("one", 10.0, relation="add-remove")
    return of_model(PrivateKMedian(2, epsilon=10.0, universe=graph, method="counts", ledger=ledger, random_state=1), table)


def _ring() -> Any:
    import networkx as nx

    return nx.relabel_nodes(nx.cycle_graph(8), {i: f"v{i}" for i in range(8)})


def campaign(table: Any) -> Outcome:
    """Devices with ledgers of their own, and a collector: what devices keep, what they send and what becomes of it."""
    devices = [
        LocalClient(None, n_features=2, key=KEY.public, is_first=True, device_name=f"{i}", clock=noon) for i in range(len(table))
    ]
    with Collector("sqlite://", key=KEY, clock=noon) as collector:
        terms = Campaign(name="survey", n=100, n_clusters=2, epsilon=1, center=[0, 0], radius=1.5, protocol="grid")
        asked = collector.open(terms, date(2030, 1, 1), date(2030, 1, 31))
        promised = promise(terms.header(KEY.public))
        reports = [device.answer([asked], row) for device, row in zip(devices, table, strict=True)]
        took = [collector.submit(asked.hash, report) for report in reports]
        spent = [device.history() for device in devices]
        name = collector.campaigns()[0]
        collector.close(name)
        assert collector.next_manifest(name) is None
        given = collector.result(name).guarantee
        said = {"reports": reports, "spent": spent, "took": took, "result": collector.result(name).to_json()}
    assert {sum(spend.epsilon for spend in book) for book in spent} == {Fraction(1)}
    return Outcome(
        promised, given, [], {**said, "devices": devices}, {"reports": reports, "took": took, "result": said["result"]}
    )


SUBJECTS: dict[str, Subject] = {
    **from_replay(),
    "stream": Subject(stream, marked(mixed(2)), frozenset({"StreamKMeans"})),
    **{
        f"federation, {name}": Subject(
            federation(name), marked(mixed(2)), frozenset({"FederatedKMeans", "Party", f"federation {name}"})
        )
        for name in ("cells", "sample", "pdk")
    },
    **{
        f"local, {name}": Subject(local(name), marked(mixed(2)), frozenset({"LocalKMeans", f"local {name}"}), replaces=True)
        for name in LOCAL
    },
    "campaign": Subject(campaign, marked(mixed(2)[5:8]), frozenset({"LocalClient", "Collector"}), replaces=True),
    "find_bounds": Subject(bounds, marked(mixed(3)), frozenset({"find_bounds"})),
    "private_candidates": Subject(candidates, marked(mixed(2)), frozenset({"private_candidates"})),
    "evaluate": Subject(judged, marked(mixed(3)), frozenset({"evaluate"})),
    "describe": Subject(described, marked(mixed(5)), frozenset({"describe"})),
    "csv of people": Subject(csv_of_people, marked(mixed(2)), frozenset({"read"}), RELEASE_FILES | {"rows.csv"}),
    "demand by name": Subject(demand, marked(np.arange(8.0)[:, None]), frozenset()),
    "demand by position": Subject(positions, marked(np.arange(16.0).reshape(8, 2) / 8 - 1), frozenset()),
}
