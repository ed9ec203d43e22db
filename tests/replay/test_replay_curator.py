"""Every method of a curator, replayed on neighbours: what leaves follows from noisy answers, and each of these hides a row.

A leak of a raw value beside the vault, such as a weight, an error or a list of cells that was not made from noisy counts, shows
here as bytes that differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from neighbours import DEMAND, OTHERS, Pairs, demands, faint, growing, halves, mixed, odd, people, rows_moved, stairs

from kveil import Euclidean, Graph, Ledger, PrivateKMeans, PrivateKMedian, read, tuning
from kveil.auditing.released import filed, fitted
from kveil.auditing.tape import play as replay
from kveil.methods.ground import Ground
from kveil.methods.task import PRIVATE_INITS
from kveil.models.private_kmedian import METHODS, UNIVERSE_METHODS
from kveil.source.local import TINY
from kveil.space.euclidean import MANY
from kveil.testing import scripted

NAMES = ["age", "height", "weight"]


@dataclass(frozen=True)
class Case:
    """A model, the tables it is shown, and how they are given to it."""

    model: type
    options: dict[str, Any]
    d: int = 2
    rows: Callable[[Any], Any] = lambda table: table
    tables: Callable[..., Iterator[Pairs]] | None = None
    most: int = 1  # rows of a person
    ledger: dict[str, Any] | None = None
    public: Any = None

    def act(self, table: Any) -> dict[str, Any]:
        ledger = {} if self.ledger is None else {"ledger": Ledger.memory("one", **self.ledger)}
        model = self.model(**{"n_clusters": 3, "random_state": 1} | self.options | ledger)
        shown = {} if self.public is None else {"public": self.public}
        left = fitted(model.fit(self.rows(table), **shown))
        return {**left, **({"charged": filed(ledger["ledger"])} if ledger else {})}

    def pairs(self) -> Iterator[Pairs]:
        relation = self.options.get("relation", "add-remove")
        if self.most > 1:
            rows = (DEMAND, OTHERS) if self.tables is demands else (mixed(self.d), odd(self.d))
            return people(*rows, self.most, relation)
        if self.tables is not None:
            return self.tables(self.d, relation)
        return rows_moved(self.d, relation)


def means(method: str, d: int = 2, epsilon: float = 40.0, **options: Any) -> dict[str, Any]:
    """Options of a fit whose noise is narrow, so that single rows show, in a box of [-1, 1]^d."""
    known = {name: options.pop(name) for name in ("rows", "tables", "most", "ledger", "public") if name in options}
    domain = {} if {"bounds", "radius"} & options.keys() else {"bounds": (-1, 1)}
    return {"d": d, "options": {"method": method, "epsilon": epsilon, **domain, **options}, **known}


UNEVEN = ([-1.0, -2.0], [1.0, 30.0])
BY_NAME = {"age": (-1.0, 1.0), "height": (-1.0, 1.0)}
GAUSS = {"delta": 1e-6}
FEW_STEPS = tuning.Candidates(repetitions=1, levels=2, swaps=2, nonzeros=4)
COLUMNS = replace(FEW_STEPS, recovery="columns")
REPLACE = {"relation": "replace-one"}
COSINE = {"metric": "cosine", "bounds": None}
SIGNS = tuning.Spherical(nonzeros=3, signed=True)


def flight(*ends: int) -> dict[str, Any]:
    """So many stairs in a row: a threshold between them is crossed by some pair, whatever the noise."""
    return {"tables": partial(stairs, steps=range(*ends))}


def grown(*ends: int) -> dict[str, Any]:
    """The same of tables with rows everywhere, one row more each time."""
    return {"tables": partial(growing, sizes=range(*ends))}


def of_people(most: int) -> dict[str, Any]:
    return {"most": most, "rows": lambda table: read(table, person=0, max_rows_per_person=most)}


def of_sparse_people(most: int) -> dict[str, Any]:
    return {"most": most, "rows": lambda table: read(sp.csr_array(table), person=0, max_rows_per_person=most)}


def zcdp(epsilon: float) -> dict[str, Any]:
    return {"delta": 1e-6, "ledger": {"epsilon": epsilon, "delta": 1e-6, "relation": "add-remove"}}


def far_out(table: Any) -> Any:
    """The steps of stairs, a good deal farther from all other rows, along an axis."""
    far = np.zeros(table.shape[1])
    far[0] = 15.0
    return np.where((table == 0.93).all(axis=1, keepdims=True), far, table)


def pandas_frame(table: Any) -> Any:
    return pd.DataFrame(table, columns=NAMES[: table.shape[1]])


def polars_frame(table: Any) -> Any:
    return pl.DataFrame(table, schema=NAMES[: table.shape[1]])


def finite_csr(table: Any) -> Any:
    return sp.csr_array(np.where(np.abs(table) < 0.1, 0.0, table))


def with_levels(table: Any) -> Any:
    """The last column as text, of which one level is unknown, and empty where it is no number."""
    frame = pandas_frame(table[:, :-1])
    last = table[:, -1]
    words = np.select([last > 0.4, last > 0, last > -0.9, np.isfinite(last)], ["far up", "up", "down", "no level"], "")
    return frame.assign(way=pd.Series(np.where(words == "", None, words), dtype=object))


def read_levels(**options: Any) -> dict[str, Any]:
    return {"rows": lambda table: read(with_levels(table), categories={"way": ("up", "down", "far up")}, **options)}


def weighed(table: Any) -> Any:
    """Column 0 tells whose row it is, and the last column, from -1 to 1, how often it counts."""
    return read(np.column_stack([table[:, :-1], 3 * table[:, -1]]), person=0, weight=table.shape[1] - 1, max_rows_per_person=3)


def open_rows(d: int) -> Any:
    """Rows that everyone may see, near those of the tables."""
    near = np.vstack([mixed(d)] * 40)
    near = near[np.isfinite(near).all(axis=1) & (np.abs(near) <= 1).all(axis=1)]
    return np.clip(near + 0.05 * np.random.default_rng(0).standard_normal(near.shape), -1, 1)


TRUSTING = tuning.Tree(trust_public=True)

KMEANS = {
    "tree, 1 column": means("tree", 1),
    "tree, 2 columns": means("tree"),
    "tree, loud noise": means("tree", epsilon=1.0),
    "tree, stairs": means("tree", epsilon=4.0, tables=stairs),
    "tree, zooming, stairs": means("tree", tables=partial(stairs, steps=(1, 5, 8))),  # a look with a row more keeps a cell more
    "tree, few rows in loose bounds": means("tree", epsilon=10.0, tables=stairs, bounds=(-20.0, 20.0)),  # looks block by block
    # The last look finds a block only if it holds 70 % of all rows; and parts of a region, or what is outside, show rows or none.
    "tree, loose bounds, high stairs": means("tree", epsilon=4.0, **flight(66, 96), bounds=(-20, 20)),
    "tree, loose bounds, low stairs": means("tree", **flight(40), bounds=(-20, 20)),
    "tree, loose bounds, low stairs, noise": means("tree", epsilon=10.0, **flight(40), bounds=(-20, 20)),
    "tree, replace-one": means("tree", **REPLACE),
    "tree, people": means("tree", **of_people(3)),
    "tree, ball": means("tree", 3, radius=1.0),
    "tree, frame": means("tree", bounds=BY_NAME, rows=pandas_frame),
    "tree, scaling": means("tree", bounds=UNEVEN, scaling="bounds"),
    "tree, private scales, loud noise": means("tree", epsilon=2.0, tables=stairs, scaling="private"),
    "tree, private scales, a median that tips over": means("tree", 1, epsilon=1000.0, tables=halves, scaling="private"),
    "tree, private scales, people": means("tree", 5, epsilon=80.0, scaling="private", **GAUSS, **REPLACE, **of_people(2)),
    "tree, cells filled with means": means("tree", scaling="private", rows=lambda table: read(table, missing="mean")),
    "tree, rows left out": means("tree", rows=lambda table: read(table, missing="drop"), **REPLACE),
    "tree, people with rows left out": means(
        "tree", most=2, rows=lambda table: read(table, person=0, max_rows_per_person=2, missing="drop"), **REPLACE
    ),
    "lloyd, levels filled": means(
        "lloyd", bounds=[(-1.0, 1.0)], n_steps=1, **read_levels(missing={"age": 0.2, "way": "up"}), **REPLACE
    ),
    "tree, levels, rows left out": means("tree", 3, scaling="private", epsilon=80.0, **read_levels(missing="drop"), **REPLACE),
    "sample-aggregate, rows left out": means("sample-aggregate", rows=lambda table: read(table, missing="drop"), **REPLACE),
    "tree, weights": means("tree", 3, most=3, bounds=[(-1.0, 1.0), (-1.0, 1.0)], rows=weighed),
    "tree, 3 columns": means("tree", 3, rows=polars_frame),
    "tree, 6 columns": means("tree", 6),
    "tree, 6 columns, a radius for each": means("tree", 6, epsilon=1000.0),
    "tree, 6 columns, a radius for each, Gaussian": means("tree", 6, epsilon=1000.0, n_clusters=2, **GAUSS),
    "tree, 6 columns, a radius for each, people": means("tree", 6, epsilon=1000.0, n_clusters=2, **REPLACE, **of_people(2)),
    "tree, 6 columns, stairs": means("tree", 6, epsilon=10.0, tables=stairs),
    "tree, 6 columns, Gaussian": means("tree", 6, **GAUSS),
    "tree, 6 columns, Gaussian, people": means("tree", 6, epsilon=80.0, **GAUSS, **REPLACE, **of_people(2)),
    "tree, projection": means("tree", 14, epsilon=300.0),
    "tree, projection, no signal": means("tree", 14, epsilon=1.0),
    "tree, projection, Gaussian": means("tree", 20, epsilon=100.0, **GAUSS),
    "tree, projection, columns left out": means("tree", 20, epsilon=10.0, **flight(30), bounds=(-1, 0.5)),
    # Which columns tell, whether rows lie everywhere, how many steps pay, whose radius is its own: by released numbers alone.
    "tree, projection, faint columns": means("tree", 20, epsilon=25.0, tables=faint),
    "tree, projection, faint columns, noise": means("tree", 20, epsilon=15.0, tables=faint),
    "tree, projection, rows everywhere": means("tree", 14, epsilon=30.0, n_clusters=2, **grown(24, 36)),
    "tree, projection, steps that pay": means("tree", 14, epsilon=17.0, n_clusters=2, **grown(24, 40)),
    "tree, 6 columns, stairs of steps": means("tree", 6, epsilon=300.0, **flight(3, 9)),
    "tree, 6 columns, stairs of sides": means("tree", 6, epsilon=1000.0, **flight(13, 18), bounds=(-20.0, 20.0)),
    "tree, labels guessed in single floats": means("tree", 3, n_clusters=MANY + 8),
    # One row by itself, in a cell that a look keeps, or at an outpost far beyond where cells end; and none there.
    "tree, a row alone in a look": means("tree", epsilon=1000.0, **flight(2)),
    "tree, 6 columns, a row alone far out": means("tree", 6, epsilon=1000.0, **flight(2), bounds=(-20.0, 20.0), rows=far_out),
    "tree, projection, two stages or three": means("tree", 18, epsilon=1000.0, **flight(102, 108), **GAUSS),
    "tree, principal axes": means("tree", 20, epsilon=100.0, **GAUSS, tuning=tuning.Tree(frame="pca")),
    "tree, public sample": means("tree", 6, epsilon=300.0, public=open_rows(6)),
    "tree, public sample, people": means("tree", 6, epsilon=300.0, public=open_rows(6), **GAUSS, **REPLACE, **of_people(2)),
    "tree, public sample of no use": means("tree", 6, epsilon=300.0, public=np.eye(6), **GAUSS),
    "tree, public sample, projection": means("tree", 14, epsilon=300.0, public=open_rows(14), **GAUSS),
    "tree, public sample, nobody can tell": means("tree", 6, epsilon=1.0, public=open_rows(6), tables=stairs),
    "tree, public sample, trusted": means("tree", 6, epsilon=1.0, public=open_rows(6), tables=stairs, tuning=TRUSTING),
    "tree, public sample, few columns": means("tree", 2, public=open_rows(2)),
    "tree, public sample, private scales": means("tree", 5, epsilon=300.0, public=open_rows(5), scaling="private", **REPLACE),
    "tree, zCDP": means("tree", **zcdp(40.0)),
    "tree, auto, stairs": means("tree", epsilon=4.0, tables=stairs, n_clusters="auto", k_range=(2, 6)),
    "tree, auto, 6 columns": means("tree", 6, epsilon=80.0, **GAUSS, n_clusters="auto", k_range=(2, 5)),
    "tree, auto, projection": means("tree", 20, epsilon=200.0, **GAUSS, n_clusters="auto", k_range=(2, 5)),
    "tree, auto, no signal": means("tree", 14, epsilon=1.0, n_clusters="auto"),
    "grid, auto": means("grid", n_clusters="auto", k_range=(2, 6)),
    "tree, sparse": means("tree", 5, rows=finite_csr),
    "tree, sparse, 30 columns": means("tree", 30, epsilon=100.0, rows=finite_csr, **GAUSS),
    "tree, wide sparse": means("tree", 30, epsilon=300.0, rows=finite_csr, tuning=tuning.Tree(nonzeros=3)),
    "tree, wide sparse, Gaussian": means("tree", 1001, epsilon=100.0, rows=finite_csr, **GAUSS),
    "tree, wide sparse, no signal": means("tree", 30, epsilon=1.0, rows=finite_csr, tuning=tuning.Tree(nonzeros=3)),
    "tree, cosine": means("tree", 6, **GAUSS, **COSINE),
    "spherical": means("spherical", 12, epsilon=500.0, rows=finite_csr, **GAUSS, **COSINE),
    "spherical, dense, replace-one": means("spherical", 12, epsilon=500.0, **GAUSS, **COSINE, **REPLACE),
    "spherical, no signal": means("spherical", 12, epsilon=1.0, rows=finite_csr, tables=stairs, **GAUSS, **COSINE),
    "spherical, signs, pure": means("spherical", 12, epsilon=900.0, rows=finite_csr, tuning=SIGNS, **COSINE),
    "spherical, people": means("spherical", 12, epsilon=500.0, **GAUSS, **COSINE, **REPLACE, **of_sparse_people(2)),
    "lloyd": means("lloyd", expected_rows=40),
    "lloyd, stairs": means("lloyd", epsilon=10.0, tables=stairs),
    "lloyd, Gaussian": means("lloyd", 6, **GAUSS, **REPLACE),
    "lloyd, coordinates": means("lloyd", tuning=tuning.Lloyd(noise="coordinates", reseed=False), n_steps=2),
    "lloyd, people": means("lloyd", 3, radius=1.0, **REPLACE, **of_people(2)),
    "lloyd, sparse": means("lloyd", 4, rows=finite_csr, init="spread", n_steps=2),
    "lloyd, scaling": means("lloyd", bounds=UNEVEN, scaling="bounds", n_steps=2, rows=pandas_frame),
    "lloyd, noisy sample": means("lloyd", init="noisy-sample", n_steps=1, tuning=tuning.Lloyd(sample=2)),
    "lloyd, noisy sample, people": means("lloyd", init="noisy-sample", n_steps=1, expected_rows=50, **REPLACE, **of_people(2)),
    "lloyd, variates": means("lloyd", init="variates", n_steps=1),
    "lloyd, variates, ball": means("lloyd", 3, init="variates", radius=1.0, n_steps=1, expected_rows=50, **GAUSS),
    "lloyd, variates, people": means("lloyd", 1, init="variates", n_steps=1, **REPLACE, **of_people(2)),
    "lloyd, variates, laplace": means("lloyd", init="variates", n_steps=1, tuning=tuning.Lloyd(seeds="laplace")),
    "grid": means("grid"),
    "grid, 1 column": means("grid", 1, radius=1.0, expected_rows=40),
    "grid, stairs": means("grid", epsilon=4.0, tables=stairs),
    "grid, hybrid": means("grid", 3, tuning=tuning.Grid(hybrid=True), **REPLACE),
    "grid, hybrid, stairs": means("grid", epsilon=60.0, tables=stairs, tuning=tuning.Grid(hybrid=True)),
    "grid, people": means("grid", **of_people(2)),
    "grid, zCDP": means("grid", **zcdp(40.0), tuning=tuning.Grid(hybrid=True), rows=polars_frame),
    "candidates": means("candidates"),
    "candidates, stairs": means("candidates", tables=partial(stairs, steps=(0, 19))),  # 54 rows and 55: another level
    "candidates, trials": means("candidates", 6, epsilon=100.0, tuning=tuning.Candidates(trials=2, repetitions=1), **REPLACE),
    "candidates, Gaussian": means("candidates", 7, epsilon=100.0, **GAUSS, tuning=tuning.Candidates(repetitions=1, levels=3)),
    "candidates, people": means("candidates", 3, radius=1.0, **of_people(2), tuning=tuning.Candidates(repetitions=1)),
    "candidates, sparse": means("candidates", 30, epsilon=300.0, rows=finite_csr, tuning=FEW_STEPS),
    "candidates, sparse, trials": means("candidates", 5, rows=finite_csr, tuning=replace(FEW_STEPS, trials=2), **REPLACE),
    "candidates, sparse, Gaussian": means("candidates", 20, epsilon=100.0, rows=finite_csr, tuning=FEW_STEPS, **GAUSS),
    "candidates, columns": means("candidates", 30, epsilon=300.0, rows=finite_csr, tuning=COLUMNS),
    "candidates, columns, replace-one": means("candidates", 18, radius=1.0, rows=finite_csr, tuning=COLUMNS, **REPLACE),
    "sample-aggregate": means("sample-aggregate"),
    "sample-aggregate, stairs": means("sample-aggregate", tables=partial(stairs, steps=(6, 7))),  # 42 rows and 43: another block
    "sample-aggregate, Gaussian": means("sample-aggregate", 6, **GAUSS, tuning=tuning.SampleAggregate(blocks=4, n_steps=3)),
    "sample-aggregate, people": means("sample-aggregate", 3, radius=1.0, **REPLACE, **of_people(2)),
    "mean": means("mean"),
    "mean, Gaussian": means("mean", 6, **GAUSS, **REPLACE),
    "mean, sparse": means("mean", 5, rows=finite_csr),
    "mean, people": means("mean", 1, epsilon=1.0, **of_people(4)),
}  # fmt: skip

KMEDIAN = {
    "tree": means("tree"),
    "tree, stairs": means("tree", epsilon=10.0, tables=stairs),
    "weiszfeld, private scales": means("weiszfeld", 1, scaling="private", n_steps=1),
    "tree, Gaussian": means("tree", 6, epsilon=60.0, **GAUSS, **REPLACE),
    "tree, projection": means("tree", 14, epsilon=300.0, n_steps=2),
    "tree, ball, people": means("tree", 3, radius=1.0, n_steps=2, **of_people(2)),
    "tree, drawn": means("tree", 2, tuning=tuning.KMedian(recovery="grid"), rows=polars_frame),
    "candidates": means("candidates", n_steps=2),
    "candidates, Gaussian": means("candidates", 7, epsilon=100.0, n_steps=1, **GAUSS),
    "candidates, drawn from all": means("candidates", 2, tuning=tuning.KMedian(recovery="all")),
    "weiszfeld": means("weiszfeld", n_steps=2, bounds=BY_NAME, rows=pandas_frame),
    "weiszfeld, people": means("weiszfeld", 6, init="spread", expected_rows=50, **REPLACE, **of_people(2)),
}  # fmt: skip

TOWN = Graph.from_edges([[i, i + 1] for i in range(29)] + [[i, i + 6] for i in range(24)])
ROADS = Graph.from_edges(
    [[i, j] for i in range(25) for j in (i + 1, i + 5) if j < 25 and (j % 5 or j == i + 5)],
    xy=np.array([[x, y] for x in range(5) for y in range(5)], dtype=float) / 2 - 1, degrees=True,
)  # fmt: skip
PLANE = Euclidean(np.array([[x, y] for x in range(5) for y in range(5)], dtype=float) / 2 - 1)


def on(universe: Any, method: str, d: int = 1, epsilon: float = 10.0, **options: Any) -> dict[str, Any]:
    """Options of a fit whose rows are points of a universe, by index or by place."""
    case = means(method, d, epsilon, bounds=None, universe=universe, **options)
    return case | ({"tables": demands} if d == 1 else {})


UNIVERSE = {
    "counts": on(TOWN, "counts"),
    "counts, loud noise": on(TOWN, "counts", epsilon=0.5, objective="k-means"),
    "counts, cells": on(TOWN, "counts", tuning=tuning.Counts(cells=12)),
    "counts, tree": on(TOWN, "counts", epsilon=40.0, tuning=tuning.Counts(partition="hst"), **REPLACE),
    "counts, places": on(PLANE, "counts", 2, expected_rows=40),
    "counts, positions": on(ROADS, "counts", 2),
    "counts, positions of people": on(ROADS, "counts", 2, **REPLACE, **of_people(2)),
    "counts, zCDP": on(TOWN, "counts", **zcdp(10.0)),
    "counts, people": on(TOWN, "counts", **REPLACE, **of_people(2)),
    "local-search": on(TOWN, "local-search", n_steps=2),
    "local-search, random": on(TOWN, "local-search", n_steps=2, init="random", objective="k-means", **REPLACE),
    "local-search, Gaussian": on(TOWN, "local-search", n_steps=3, epsilon=3.0, init="k-median++", **GAUSS),
    "local-search, places": on(PLANE, "local-search", 2, n_steps=1, tuning=tuning.LocalSearch(candidates=12)),
    "local-search, positions": on(ROADS, "local-search", 2, n_steps=2),
    "local-search, people": on(TOWN, "local-search", n_steps=1, **of_people(3)),
}  # fmt: skip

CASES = {f"means: {name}": Case(PrivateKMeans, **case) for name, case in KMEANS.items()}
CASES |= {f"medians: {name}": Case(PrivateKMedian, **case) for name, case in KMEDIAN.items()}
CASES |= {f"universe: {name}": Case(PrivateKMedian, **case) for name, case in UNIVERSE.items()}


@pytest.mark.parametrize("name", CASES)
def test_what_a_curator_releases_follows_from_noisy_answers_alone(name):
    case = CASES[name]
    for pairs in case.pairs():
        tape = replay(case.act, pairs.table, pairs.neighbours)
        assert tape.left["receipt"]["charges"] == len(tape.draws), "a draw without a receipt"


def test_how_many_blocks_and_threads_rows_took_shows_nowhere(monkeypatch):
    """One row more, and there is a block more, another thread to take it, or too many codes for the caller's thread alone."""
    monkeypatch.setenv("KVEIL_THREADS", "3")
    rows = np.random.default_rng(0).uniform(-1, 1, (TINY // 2 + 1, 2))
    case = Case(PrivateKMeans, {"bounds": (-1, 1), "epsilon": 4.0}, rows=lambda table: read(table, memory="1MiB"))
    n_blocks = [len(case.rows(rows[:n]).partitions()) for n in range(1, 1000)]
    steps = [n for n, (one, other) in enumerate(pairwise(n_blocks), 1) if one != other]
    assert len(steps) > 1
    for n in (*steps, TINY // 2):
        replay(case.act, rows[:n], [rows[: n + 1]])
        replay(case.act, rows[: n + 1], [rows[:n]])


def test_cases_with_a_public_sample_see_it_used_and_not_used():
    found = {}
    for name, case in CASES.items():
        if case.public is not None:
            with scripted(1):
                left = case.act(next(case.pairs()).table)
            found[name.removeprefix("means: tree, public sample")] = left["parameters"]["public_sample"]["used"]
    unused = (" of no use", ", nobody can tell", ", few columns")
    assert found == {name: name not in unused for name in found}
    assert len(found) > 2 * len(unused)


def test_cases_with_a_radius_for_each_centre_ask_for_distances_by_centre():
    names = [name for name in CASES if "a radius for each" in name]
    for name in names:
        with scripted(1):
            left = CASES[name].act(next(CASES[name].pairs()).table)
        assert "distances by centre" in {draw.label for draw in left["guarantee"].draws}, name
    assert len(names) == 3


def test_cases_of_a_projection_take_both_ways(monkeypatch):
    """Some fits leave columns out of sums, and others none; some trees have two stages, and others three."""
    narrowed, found = [], {}
    whole = Ground.narrowed
    monkeypatch.setattr(Ground, "narrowed", lambda ground, columns: narrowed.append(len(columns)) or whole(ground, columns))
    for name in ("columns left out", "two stages or three"):
        ways, case = set(), CASES[f"means: tree, projection, {name}"]
        for pairs in case.pairs():
            narrowed.clear()
            with scripted(1):
                draws = case.act(pairs.table)["guarantee"].draws
            stages = sum(draw.times for draw in draws if draw.label == "cells of the tree")
            ways.add(bool(narrowed) if name == "columns left out" else stages)
        found[name] = ways
    assert found == {"columns left out": {False, True}, "two stages or three": {2, 3}}


def test_every_method_and_private_start_is_replayed():
    by_model = {(case.model, case.options["method"]) for case in CASES.values()}
    medians = METHODS | UNIVERSE_METHODS
    assert by_model == {(PrivateKMeans, name) for name in PrivateKMeans.methods} | {(PrivateKMedian, name) for name in medians}
    assert set(PRIVATE_INITS) <= {case.options.get("init") for case in CASES.values()}
