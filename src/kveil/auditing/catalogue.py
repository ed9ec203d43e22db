"""Every model of kveil as an audit attacks it: options under which most of the budget goes to few numbers, and tiny neighbours.

With many draws a budget is spent in many small parts, and no event collects all of them with a probability that can be counted.
So models have few clusters, steps and columns here. The code that runs is the same.

Not here: LocalKMeans, a simulation whose devices take a seed. It promises something of one device's report, and no release of
it shows a single one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kveil import (
    Euclidean,
    FederatedKMeans,
    Ledger,
    PrivateKMeans,
    PrivateKMedian,
    StreamKMeans,
    evaluate,
    find_bounds,
    private_candidates,
    read,
    tuning,
)
from kveil.auditing.neighbours import Neighbours, Relation, of_people, worst_cases
from kveil.errors import BoundsNotFound

DELTA = 1e-6
LINE, SQUARE = ([-1.0], [1.0]), ([-1.0] * 4, [1.0] * 4)
PLACES = Euclidean(np.arange(4.0)[:, None])


@dataclass(frozen=True, eq=False)
class Subject:
    """A model at any epsilon, and where to attack it. `made(epsilon)` is what `check` takes.

    unseen: why an attack sees less than the draws spend, if it does.
    """

    made: Callable[[float], Any]
    pairs: Sequence[Neighbours] = field(default_factory=lambda: worst_cases(*LINE))
    delta: float = 0.0
    relation: Relation = "add-remove"
    unseen: str = ""


def _means(k: int = 1, *, delta: float = 0.0, relation: Relation = "add-remove", box: Any = LINE, **options: Any) -> Subject:
    public = {"bounds": (-1, 1), "delta": delta, "relation": relation, "random_state": 0, **options}
    return Subject(
        lambda epsilon: PrivateKMeans(k, epsilon=epsilon, **public), worst_cases(box[0], box[1], relation), delta, relation
    )


def _medians(k: int = 1, **options: Any) -> Subject:
    return Subject(lambda epsilon: PrivateKMedian(k, epsilon=epsilon, bounds=(-1, 1), random_state=0, **options))


def _demand(**options: Any) -> Subject:
    """Rows are points of a universe, by index."""
    tables = {"empty against one row": [], "one more of many": [0] * 8, "another point": [0] * 8 + [3]}
    pairs = [Neighbours(name, np.array(rows, dtype=int), np.array([*rows, 3], dtype=int)) for name, rows in tables.items()]
    return Subject(lambda epsilon: PrivateKMedian(1, epsilon=epsilon, universe=PLACES, random_state=0, **options), pairs)


def _ledger(epsilon: float) -> Ledger:
    return Ledger.memory("audit", epsilon, relation="add-remove")


def _people() -> Subject:
    def made(epsilon: float) -> Any:
        return PrivateKMeans(1, epsilon=epsilon, bounds=(-1, 1), method="mean", random_state=0)

    pairs = of_people(worst_cases(*LINE), 3, lambda rows: read(rows, person=0, max_rows_per_person=3))
    return Subject(made, pairs)


def _evaluated() -> Subject:
    release = PrivateKMeans(1, epsilon=float("inf"), bounds=(-1, 1), method="mean", random_state=0).fit(np.zeros((9, 1))).release_
    return Subject(lambda epsilon: lambda rows: evaluate(release, rows, epsilon, ledger=_ledger(epsilon)))


def _bounds(rows: Any, epsilon: float) -> Any:
    try:
        return find_bounds(rows, epsilon, ledger=_ledger(epsilon))
    except BoundsNotFound:  # by noisy counts alone: a result like others
        return "not found"


def _stairs() -> list[Neighbours]:
    """So many equal rows, and one more: somewhere on the way lies the threshold that noisy counts must pass."""
    return [Neighbours(f"{n} rows or {n + 1}", np.full((n, 1), 0.7), np.full((n + 1, 1), 0.7)) for n in range(11, 16)]


def _federated(epsilon: float) -> Any:
    model = FederatedKMeans(1, epsilon=epsilon, bounds=(-1, 1), random_state=0)
    return lambda rows: model.fit([rows, np.zeros((8, 1))])


SUBJECTS: dict[str, Callable[[], Subject]] = {
    "tree": lambda: _means(method="tree"),
    "tree, replace-one": lambda: _means(method="tree", relation="replace-one"),
    "tree, delta": lambda: _means(method="tree", delta=DELTA, box=SQUARE),
    "tree, private scales": lambda: _means(method="tree", scaling="private"),
    "lloyd": lambda: _means(method="lloyd", n_steps=1),
    "lloyd, delta": lambda: _means(method="lloyd", n_steps=1, delta=DELTA, box=SQUARE),
    "lloyd, noisy sample": lambda: _means(method="lloyd", n_steps=1, init="noisy-sample", tuning=tuning.Lloyd(sample=1)),
    "lloyd, variates": lambda: _means(method="lloyd", n_steps=1, init="variates"),
    "grid": lambda: _means(method="grid", expected_rows=10),
    "candidates": lambda: _means(method="candidates"),
    "sample-aggregate": lambda: replace(
        _means(method="sample-aggregate", tuning=tuning.SampleAggregate(blocks=2)),
        unseen="a row moves the mean of a block by half of what the noise covers, and centres are clipped",
    ),
    "mean": lambda: _means(method="mean"),
    "mean, people": _people,
    "spherical": lambda: _means(method="spherical", metric="cosine", bounds=None, delta=DELTA, box=SQUARE),
    "k-median tree": lambda: _medians(method="tree", n_steps=1),
    "k-median candidates": lambda: _medians(method="candidates", n_steps=1),
    "k-median weiszfeld": lambda: _medians(method="weiszfeld", n_steps=1),
    "universe counts": lambda: _demand(method="counts", expected_rows=10),
    "universe local-search": lambda: _demand(method="local-search", n_steps=1),
    "stream": lambda: Subject(lambda epsilon: StreamKMeans(1, epsilon=epsilon, bounds=(-1, 1), memory=64, random_state=0)),
    "federation": lambda: Subject(_federated),
    "find_bounds": lambda: Subject(lambda epsilon: lambda rows: _bounds(rows, epsilon), _stairs()),
    "private_candidates": lambda: Subject(
        lambda epsilon: lambda rows: private_candidates(
            rows, epsilon, ledger=_ledger(epsilon), n_clusters=1, bounds=(-1, 1), random_state=0
        )
    ),
    "evaluate": _evaluated,
}  # fmt: skip
