"""`exact`: the largest loss of a model of kveil over all neighbours of a tiny public universe, by the laws of its draws.

A fit is a tree: every noisy answer is a fork, and a path through it is a transcript. Paths are forced at the gate, and the
probability of each is a product of known numbers. So is the probability of the same path on a neighbour. The largest log-ratio of
a path bounds the loss of everything that follows from the answers; paths that end with the same release are added up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, combinations_with_replacement
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np

from kveil.arrays import Floats
from kveil.auditing.laws import log_probability, outcomes
from kveil.auditing.neighbours import Relation
from kveil.auditing.replay import as_act
from kveil.auditing.tape import Diverged, spelled
from kveil.auditing.watching import GATE_RUN, drawing_from, scripted_words, watched
from kveil.errors import InvalidValue
from kveil.kernel import ledger
from kveil.kernel.loss import Measurement
from kveil.testing import ScriptedEntropy

Part = Callable[[Mapping[str, Any]], Any]
ROOM = 1 + 1e-9  # for rounding in the last bits of sums of logarithms


@dataclass(frozen=True)
class Exact:
    """What `exact` found.

    epsilon, relation: the promise. pair: the two tables of the largest loss.
    loss: the largest log-ratio of a path; no more than this is lost by whatever follows from the paths that were walked.
    released: the largest log-ratio of what leaves is at least this. Where `missing` is 0 it is exactly this.
    missing: the largest probability, on any table, of the paths that were not walked. 0: all were.
    pairs, runs: how many neighbours were compared, by how many fits.
    """

    epsilon: float
    relation: Relation
    loss: float
    released: float
    missing: float
    pair: tuple[Any, Any]
    pairs: int
    runs: int
    reason: str = ""

    @property
    def outcome(self) -> Literal["violated", "consistent", "unknown"]:
        """ "unknown": a path loses more than epsilon, but what leaves may not show it."""
        if self.released > self.epsilon * ROOM:
            return "violated"
        return "consistent" if self.loss <= self.epsilon * ROOM else "unknown"

    @property
    def is_violated(self) -> bool:
        return self.outcome == "violated"

    def __str__(self) -> str:
        walked = "all paths" if self.missing < ROOM - 1 else f"all but {self.missing:.2g} of the probability"
        found = f"{self.outcome}: a path loses up to {self.loss:.4g}, and what leaves at least {self.released:.4g}"
        return f"{found}, of epsilon {self.epsilon:g} ({self.relation}); {self.pairs} pairs, {walked}.{self.reason}"


def exact(
    model: Any, universe: Any, *, most_rows: int = 2, bases: Sequence[Any] | None = None, epsilon: float | None = None,
    relation: Relation | None = None, part: Part | None = None, most_outcomes: int = 100, samples: int = 3, tail: float = 1e-4,
    most_runs: int = 20_000,
) -> Exact:  # fmt: skip
    """The largest loss over all neighbours with rows of a universe.

    model: an estimator of kveil with a pure promise, or a function as `replay` takes it, with `epsilon` and `relation`.
    universe: PUBLIC rows, of which tables are made. most_rows: of a table.
    bases: tables to which a row is added; default all with less than `most_rows` rows. Under "replace-one" two tables with
        different added rows are neighbours.
    part: of everything that leaves, by name, what counts as released; default all.
    most_outcomes: a draw with more outcomes is not enumerated: from there on `samples` paths are drawn.
    tail: the part of discrete Laplace noise, per number, that is left out where it is enumerated.
    most_runs: fits, above which it is refused.

    >>> from kveil import Precomputed, PrivateKMedian
    >>> town = Precomputed([[0, 9, 3], [9, 0, 6], [3, 6, 0]])
    >>> model = PrivateKMedian(1, universe=town, method="local-search", init=[0], n_steps=1, epsilon=1.0, random_state=0)
    >>> found = exact(model, [[0], [1], [2]], most_rows=1)
    >>> found.outcome, found.missing < 1e-9
    ('consistent', True)
    """
    promise = getattr(model, "epsilon", None) if epsilon is None else epsilon
    kept = relation or getattr(model, "relation", None)
    if promise is None or kept not in ("add-remove", "replace-one") or getattr(model, "delta", None):
        raise InvalidValue("exact losses are of pure promises: pass a model with delta=0, or epsilon and relation.")
    rows = [np.asarray(row, dtype=np.float64)[None] for row in np.asarray(universe, dtype=np.float64)]
    none = np.empty((0, *rows[0].shape[1:]))
    if bases is None:
        bases = [np.concatenate([none, *chosen]) for n in range(most_rows) for chosen in combinations_with_replacement(rows, n)]
    walks = Walks(as_act(model), part or dict, most_outcomes, samples, tail, most_runs)
    found = [(*_compared(walks, *pair), pair) for pair in _pairs(bases, rows, kept)]
    loss, released, _, reason, pair = max(found, key=lambda one: (one[1], one[0]))
    loss, missing = max(one[0] for one in found), max(one[2] for one in found)
    return Exact(float(promise), kept, loss, released, missing, pair, len(found), walks.runs, reason)


def _compared(walks: Walks, one: Any, other: Any) -> tuple[float, float, float, str]:
    try:
        return *compared(walks.of(one), walks, other), ""
    except Diverged as found:
        return math.inf, math.inf, 0.0, f" {found}."


def _pairs(bases: Sequence[Any], rows: Sequence[Any], relation: Relation) -> Iterator[tuple[Any, Any]]:
    for base in bases:
        more = [np.concatenate([np.asarray(base, dtype=np.float64).reshape(-1, *row.shape[1:]), row]) for row in rows]
        if relation == "add-remove":
            yield from ((more[0][:-1], table) for table in more)
        else:
            yield from combinations(more, 2)


def law_of(model: Any, one: Any, other: Any) -> Floats:
    """The probability of everything that can leave, (outcomes, 2): on either table. For draws with few outcomes, all of them."""
    walks, sums = Walks(as_act(model)), dict[bytes, list[float]]()
    for path in walks.of(one):
        total = sums.setdefault(path.left, [0.0, 0.0])
        total[0] += math.exp(path.log)
        total[1] += math.exp(walks.along(path.values, other).log)
    law = np.array(list(sums.values()))
    if not np.allclose(law.sum(axis=0), 1.0, atol=1e-9):
        raise AssertionError("not all paths were walked, so this is not the law")
    return law


class Path(NamedTuple):
    """A path that a fit went along: its outcomes and charges, its log-probability, and what was released."""

    values: tuple[Any, ...]
    charges: tuple[Any, ...]
    secrets: tuple[Any, ...]
    log: float
    left: bytes


@dataclass
class Walks:
    """Fits along given paths. `runs` counts them."""

    act: Callable[[Any], Mapping[str, Any]]
    part: Part = dict
    most_outcomes: int = 100
    samples: int = 1
    tail: float = 1e-4
    most_runs: int = 20_000
    runs: int = 0
    _known: dict[bytes, list[Path]] = field(default_factory=dict)

    def of(self, table: Any) -> list[Path]:
        """All paths on a table, or some, where a draw has too many outcomes; each once, so that probabilities add up."""
        key = spelled(np.asarray(table))
        if key not in self._known:
            self._known[key] = list({spelled([*map(spelled, path.values)]): path for path in self.paths(table)}.values())
        return self._known[key]

    def along(self, values: tuple[Any, ...], table: Any) -> Path:
        """The same path on another table."""
        found = self._walked(values, table)
        if isinstance(found, Fork):
            raise Diverged("more draws were made")
        return found

    def paths(self, table: Any) -> Iterator[Path]:
        """Those of `of`, one by one; a path that is drawn may come twice."""
        todo: list[tuple[tuple[Any, ...], int | None]] = [((), None)]  # outcomes, and the seed of what is drawn from here on
        while todo:
            values, seed = todo.pop()
            found = self._walked(values, table)
            if isinstance(found, Path):
                yield found
            elif seed is None and (known := outcomes(found.charge, found.secret, self.most_outcomes, self.tail)) is not None:
                todo += [((*values, value), None) for value in known]
            else:
                seeds = range(self.samples) if seed is None else [seed]
                todo += [((*values, found.drawn(1000 * seed + len(values))), seed) for seed in seeds]

    def _walked(self, values: tuple[Any, ...], table: Any) -> Path | Fork:
        self.runs += 1
        if self.runs > self.most_runs:
            raise InvalidValue(f"more than {self.most_runs} fits would be needed. Use a smaller universe or fewer outcomes.")
        walk = Walk(values)
        try:
            with watched(walk):
                left = self.part(self.act(table))
        except Fork as fork:
            return fork
        if walk.faults or len(walk.logs) < len(values):
            raise Diverged(*walk.faults or ["fewer draws were made"])
        shown = spelled({name: spelled(value) for name, value in left.items()})
        return Path(values, tuple(walk.charges), tuple(walk.secrets), sum(walk.logs), shown)


class Fork(BaseException):
    """A draw that the path says nothing of. Nothing on its way may take it for an error."""

    def __init__(self, measurement: Measurement[Any, Any], secret: Any) -> None:
        self._draw, self.charge, self.secret = measurement.draw, measurement.charge, secret

    def drawn(self, seed: int) -> Any:
        with np.errstate(all="ignore"):
            return self._draw(ScriptedEntropy(seed), self.secret)


class Walk:
    """Stands in for the gate: charges as it does, and gives the outcomes of a path."""

    def __init__(self, values: tuple[Any, ...]) -> None:
        self._values = values
        self.said: list[str] = []
        self.charges: list[Any] = []
        self.secrets: list[Any] = []
        self.logs: list[float] = []
        self.faults: list[str] = []
        self._words = 0

    def run(self, measurement: Measurement[Any, Any], secret: Any, account: Any) -> Any:
        if isinstance(account, ledger.Ledger):  # the gate reserves, and comes back with a ticket
            return GATE_RUN(measurement, secret, account)
        place, charge = len(self.logs), measurement.charge
        if place == len(self._values):
            raise Fork(measurement, secret)
        value = self._values[place]
        with drawing_from(ScriptedEntropy(place)):
            noisy, receipt = GATE_RUN(Measurement(charge, lambda source, raw: value), secret, account)
        self.charges.append(charge)
        self.secrets.append(np.array(secret))
        self.logs.append(log_probability(charge, secret, value))
        return noisy, receipt

    def secret_words(self, n: int) -> Any:
        self._words += 1
        return scripted_words(n, self._words)

    def fault(self, text: str) -> NoReturn:
        self.faults.append(text)
        raise Diverged(text)


def compared(paths: Sequence[Path], walks: Walks, other: Any) -> tuple[float, float, float]:
    """The largest loss of a path, of what is released at the least, and the larger part of the probability that is missing."""
    sums: dict[bytes, list[float]] = {}
    loss, seen = 0.0, [0.0, 0.0]
    for path in paths:
        again = walks.along(path.values, other)
        if again.charges != path.charges:
            raise Diverged("other charges were made")
        if again.left != path.left:
            raise Diverged("what leaves depends on rows, not on noisy answers alone")
        loss = max(loss, abs(path.log - again.log))
        total = sums.setdefault(path.left, [0.0, 0.0])
        for side, log in enumerate((path.log, again.log)):
            total[side] += math.exp(log)
            seen[side] += math.exp(log)
    missing = [max(0.0, 1 - mass) for mass in seen]
    ratios = [math.log(total[side] / (total[1 - side] + missing[1 - side])) for total in sums.values() for side in (0, 1)
              if total[side] > 0 and total[1 - side] + missing[1 - side] > 0]  # fmt: skip
    return loss, max([0.0, *ratios]), max(missing)
