"""Every model of kveil as an audit attacks it: options under which most of the budget goes to few numbers, and tiny neighbours.

With many draws a budget is spent in many small parts, and no event collects all of them with a probability that can be counted.
So models have few clusters, steps and columns here. The code that runs is the same.

LocalKMeans promises something of one device's report, so a device is attacked, with the first round of each protocol.
"""

from __future__ import annotations

import math
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
    describe,
    evaluate,
    find_bounds,
    private_candidates,
    read,
    tuning,
)
from kveil.arrays import Floats
from kveil.auditing.devices import ENDS, Device
from kveil.auditing.neighbours import Neighbours, Relation, of_people, worst_cases
from kveil.errors import BoundsNotFound

DELTA = 1e-6
LINE, SQUARE = ([-1.0], [1.0]), ([-1.0] * 4, [1.0] * 4)
PLACES = Euclidean(np.column_stack([np.arange(4.0), np.zeros(4)]))  # on a line


@dataclass(frozen=True, eq=False)
class Subject:
    """A model at any epsilon, and where to attack it. `made(epsilon)` is what `check` takes.

    unseen: why an attack sees less than the draws spend, if it does.
    law: of the worst pair at some epsilon, where it is known: the probability of all that can leave, (outcomes, 2).
    is_listed: `exact.law_of` can find that law, for every pair.
    """

    made: Callable[[float], Any]
    pairs: Sequence[Neighbours] = field(default_factory=lambda: worst_cases(*LINE))
    delta: float = 0.0
    relation: Relation = "add-remove"
    unseen: str = ""
    law: Callable[[float], Floats] | None = None
    is_listed: bool = False


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


def _laplace(epsilon: float) -> Floats:
    """The law of a number with Laplace noise that moves by all of its sensitivity: below both values, between, above both."""
    far = math.exp(-epsilon) / 2
    return np.array([[0.5, far], [0.5 - far, 0.5 - far], [far, 0.5]])


def _ledger(epsilon: float) -> Ledger:
    return Ledger.memory("audit", epsilon, relation="add-remove")


def _people() -> Subject:
    def made(epsilon: float) -> Any:
        return PrivateKMeans(1, epsilon=epsilon, bounds=(-1, 1), method="mean", random_state=0)

    pairs = of_people(worst_cases(*LINE), 3, lambda rows: read(rows, person=0, max_rows_per_person=3))
    return Subject(made, pairs)


def _release() -> Any:
    """Public: of no rows but zeros."""
    return PrivateKMeans(1, epsilon=float("inf"), bounds=(-1, 1), method="mean", random_state=0).fit(np.zeros((9, 1))).release_


def _evaluated() -> Subject:
    release = _release()
    return Subject(lambda epsilon: lambda rows: evaluate(release, rows, epsilon, ledger=_ledger(epsilon)))


def _described() -> Subject:
    """Rows of one column, and one that says whether a row has the only keyword. A count leaves where its word stands out, so most
    rows of one cluster have it, and none of the other."""
    ends = np.array([[-0.5]] * 9 + [[0.5]] * 9)
    release = PrivateKMeans(2, epsilon=float("inf"), bounds=(-1, 1), method="lloyd", init=ends[8:10]).fit(ends).release_  # public

    def made(epsilon: float) -> Any:
        return lambda rows: describe(release, rows, ["corn"], epsilon, ledger=_ledger(epsilon), per_row=1)

    with_word, without = [-0.5, 1.0], [0.5, 0.0]
    many = np.array([with_word] * 60 + [without] * 60)
    tables = {"one more of many": many, "empty against one row": many[:0]}
    return Subject(made, [Neighbours(name, rows, np.vstack([rows, [with_word]])) for name, rows in tables.items()])


def _device(protocol: str) -> Subject:
    pair = Neighbours("one end or the other", ENDS[:1], ENDS[1:], "replace-one", "the two points lie as far apart as they can")
    law = lambda epsilon: Device(protocol, epsilon).law()  # noqa: E731
    return Subject(lambda epsilon: Device(protocol, epsilon), [pair], relation="replace-one", law=law)


def _bounds(rows: Any, epsilon: float) -> Any:
    try:
        return find_bounds(rows, epsilon, ledger=_ledger(epsilon))
    except BoundsNotFound:  # by noisy counts alone: a result like others
        return "not found"


def _stairs() -> list[Neighbours]:
    """So many equal rows, and one more: somewhere on the way lies the threshold that noisy counts must pass."""
    return [Neighbours(f"{n} rows or {n + 1}", np.full((n, 1), 0.7), np.full((n + 1, 1), 0.7)) for n in range(11, 16)]


def _federated(protocol: Any) -> Subject:
    def made(epsilon: float) -> Any:
        model = FederatedKMeans(1, epsilon=epsilon, bounds=(-1, 1), protocol=protocol, random_state=0)
        return lambda rows: model.fit([rows, np.zeros((8, 1))])

    return Subject(made)


SUBJECTS: dict[str, Callable[[], Subject]] = {
    "tree": lambda: _means(method="tree"),
    "tree, replace-one": lambda: _means(method="tree", relation="replace-one"),
    "tree, delta": lambda: _means(method="tree", delta=DELTA, box=SQUARE),
    "tree, private scales": lambda: _means(method="tree", scaling="private"),
    "lloyd": lambda: _means(method="lloyd", n_steps=1),
    "lloyd, delta": lambda: replace(
        _means(method="lloyd", n_steps=1, delta=DELTA, box=SQUARE), unseen="noise of a vector of 4 columns hides most of a shift"
    ),
    "lloyd, noisy sample": lambda: _means(method="lloyd", n_steps=1, init="noisy-sample", tuning=tuning.Lloyd(sample=1)),
    "lloyd, variates": lambda: _means(method="lloyd", n_steps=1, init="variates"),
    "grid": lambda: _means(method="grid", expected_rows=10),
    "candidates": lambda: _means(method="candidates", expected_rows=100, tuning=tuning.Candidates(repetitions=1)),
    "sample-aggregate": lambda: replace(  # from a start at the edge a row moves a block by all that the noise covers
        _means(method="sample-aggregate", init=[[-1.0]], tuning=tuning.SampleAggregate(blocks=2)), law=_laplace
    ),
    "mean": lambda: _means(method="mean"),
    "mean, people": _people,
    "spherical": lambda: _means(method="spherical", metric="cosine", bounds=None, delta=DELTA, box=SQUARE),
    "k-median tree": lambda: _medians(method="tree", n_steps=1),
    "k-median candidates": lambda: _medians(method="candidates", n_steps=1),
    "k-median weiszfeld": lambda: _medians(method="weiszfeld", n_steps=1),
    "universe counts": lambda: _demand(method="counts", expected_rows=10),
    "universe local-search": lambda: replace(_demand(method="local-search", n_steps=1, init=[1]), is_listed=True),
    "universe local-search, hst": lambda: replace(
        _demand(method="local-search", n_steps=1), unseen="of the noisy counts of a tree a place to start from is left"
    ),
    "stream": lambda: Subject(
        lambda epsilon: StreamKMeans(1, epsilon=epsilon, bounds=(-1, 1), memory=64, random_state=0),
        unseen="noisy counts of leaves stay inside: the release of a stream has no synopsis",
    ),
    "federation": lambda: _federated("cells"),
    "federation, sample": lambda: _federated("sample"),
    "federation, pdk": lambda: _federated("pdk"),
    "device, grid": lambda: _device("grid"),
    "device, zoom": lambda: _device("zoom"),
    "device, refine": lambda: _device("refine"),
    "device, lae": lambda: _device("lae"),
    "device, lma": lambda: _device("lma"),
    "find_bounds": lambda: Subject(lambda epsilon: lambda rows: _bounds(rows, epsilon), _stairs()),
    "private_candidates": lambda: Subject(
        lambda epsilon: lambda rows: private_candidates(
            rows, epsilon, ledger=_ledger(epsilon), n_clusters=1, bounds=(-1, 1), random_state=0
        )
    ),
    "evaluate": _evaluated,
    "describe": _described,
}  # fmt: skip
