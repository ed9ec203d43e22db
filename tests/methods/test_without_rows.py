"""Every method at a desk that has no rows: what it asks, what it pays and what it finds follow from answers alone.

The desk here holds nothing. It has the public facts of a schema and forecasts of noise, and it makes answers up: of the shapes
that a question has for no rows at all, from a seed. A method that wants more of a desk than answers finds nothing there.
"""

from __future__ import annotations

from collections import Counter
from copy import copy
from dataclasses import replace
from fractions import Fraction
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_array

from kveil import Euclidean, Ledger, PrivacyUnit, PrivateKMeans, PrivateKMedian, tuning
from kveil.desk.base import Mechanism, columns_of
from kveil.desk.block_centers import BlockCenters
from kveil.desk.bounded_share import BoundedShare
from kveil.desk.fixed import Fixed
from kveil.desk.noisy_sample import NoisySample
from kveil.desk.pool import Pool
from kveil.desk.seeds import LaplaceSeeds
from kveil.desk.walk import Walk
from kveil.federate.layout import Layout
from kveil.federate.plan import RunPlan
from kveil.federate.protocols import PROTOCOLS, RUNS, schedule
from kveil.kernel.grid import Box
from kveil.methods.candidate_set import CandidatePoints
from kveil.methods.leaves import LeafReading
from kveil.methods.lloyd import Lloyd
from kveil.questions.base import Noisy, Question
from kveil.questions.demand import PointCounts
from kveil.questions.leaves import LeafTotals, Leaves

N_ROWS = 3000  # that answers tell of
UNIT = PrivacyUnit()


class Script:
    """Made-up answers, one after the other, and a transcript of what was asked."""

    def __init__(self, seed: int, n_rows: int = N_ROWS) -> None:
        self.rng, self.n_rows, self.asked = np.random.default_rng(seed), n_rows, []

    def note(self, what: object, shape: object, share: object) -> None:
        self.asked.append((type(what).__name__, getattr(what, "label", ""), shape, share))

    def counts(self, shape: tuple[int, ...], deviation: float) -> Any:
        """Most rows in few cells, as in life, and noise."""
        size = int(np.prod(shape))
        shares = self.rng.dirichlet(np.full(size, 0.05)) if size else np.empty(0)
        return (self.n_rows * shares).reshape(shape) + deviation * self.rng.standard_normal(shape)

    def sums(self, shape: tuple[int, ...], length: int, noise: float) -> Any:
        away = self.rng.uniform(-1, 1, shape) / sqrt(shape[1])
        return length * (self.n_rows / (4 * shape[0]) * away + noise * self.rng.standard_normal(shape) / sqrt(shape[1]))


class NoRows:
    """A desk that pays from a pool, with nothing behind it. `empty`: a block without rows, or the arrays that it gives."""

    def __init__(self, pool: Pool, empty: Any, script: Script, *, is_sparse: bool = False, n_columns: int = 1) -> None:
        self.kind, self.total, self.unit, self.relation = pool.kind, pool.total, pool.unit, pool.relation
        self.deviation, self.spread, self.noise, self.sharpness = pool.deviation, pool.spread, pool.noise, pool.sharpness
        self.max_rows, self.is_sparse, self.n_columns = 2**40, is_sparse, n_columns
        self.shares: list[float] = []
        self.empty, self.script = empty, script

    @property
    def left(self) -> float:
        return 1.0 - sum(self.shares)

    def on(self, domain: Any) -> NoRows:
        """The same desk, before rows that are encoded in another way."""
        moved = copy(self)
        moved.empty = domain.encode(np.empty((0, self.n_columns)))
        return moved

    def rest(self) -> NoRows:
        """What is left, as a whole of its own, paid from the same list of shares."""
        return Rest(self)

    def ask(self, question: Question, *shares: float) -> tuple[Noisy, ...]:
        assert len(shares) == len(question.parts)
        held = self.hold(question)
        return tuple(held.show(number, share) for number, share in enumerate(shares))

    def hold(self, question: Question) -> HeldNothing:
        return HeldNothing(self, question)

    def choose(self, question: Question, share: float) -> int:
        (costs,) = self.shapes(question, "costs", share)
        return int(self.script.rng.integers(costs.size))

    def choose_each(self, question: Question, share: float) -> Any:
        (costs,) = self.shapes(question, "cell costs", share)
        return self.script.rng.integers(0, costs.shape[1], len(costs))

    def choose_several(self, question: Question, rounds: int, share: float) -> Any:
        (costs,) = self.shapes(question, "peeled costs", share)
        return np.stack([self.script.rng.permutation(costs.shape[1])[:rounds] for _ in costs])

    def active(self, question: Question, n_cells: int, chance: float, share: float) -> Any:
        self.shapes(question, "active", share)
        return np.unique(self.script.rng.integers(0, n_cells, 6))

    def perform(self, mechanism: Mechanism) -> Any:
        assert isinstance(mechanism, Mechanism)
        share = self.left if isinstance(mechanism, BlockCenters) else mechanism.share * (mechanism.n_steps + 1)
        self.pay(share)
        self.script.note(mechanism, (), share)
        if isinstance(mechanism, BlockCenters):
            top, k = mechanism.domain.top * mechanism.n_blocks, mechanism.n_clusters
            return self.script.rng.uniform(-top, top, (k, mechanism.domain.n_columns))
        assert isinstance(mechanism, Walk)
        return self.script.rng.choice(mechanism.candidates, len(mechanism.start), replace=False)

    def shapes(self, question: Question, kind: str, share: float) -> tuple[Any, ...]:
        assert isinstance(question, Question)
        assert [part.kind for part in question.parts] == [kind]
        self.pay(share)
        arrays = question.raw(self.empty)
        self.script.note(question.parts[0], tuple(array.shape for array in arrays), share)
        return arrays

    def pay(self, share: float) -> None:
        assert share > 0
        self.shares.append(min(share, self.left))  # as a pool: at most what is left
        assert share <= self.shares[-1] * (1 + 1e-9), "the shares add up to more than the whole"


class Rest(NoRows):
    """A desk whose whole is what another has left."""

    def __init__(self, desk: NoRows) -> None:
        self.__dict__.update(desk.__dict__)
        self.whole, self.before = desk.left, len(desk.shares)
        self.total = Fraction(desk.total) * Fraction(self.whole)
        self.deviation, self.spread = (self._of_the_whole(forecast) for forecast in (desk.deviation, desk.spread))

    def _of_the_whole(self, forecast: Any) -> Any:
        return lambda *terms: forecast(*terms[:-1], terms[-1] * self.whole)

    @property
    def left(self) -> float:
        return 1.0 - sum(self.shares[self.before :]) / self.whole

    def pay(self, share: float) -> None:
        assert 0 < share <= self.left * (1 + 1e-9), "the shares add up to more than the whole"
        self.shares.append(min(share, self.left) * self.whole)


class HeldNothing(NoRows):
    """The answer to a question, from no rows."""

    def __init__(self, desk: NoRows, question: Question) -> None:
        assert isinstance(question, Question)
        self.__dict__.update(desk.__dict__)  # it pays from the same list of shares, and goes on in the same script
        self.question, self.empty, self.pay = question, question.raw(desk.empty), desk.pay

    def show(self, number: int, share: float) -> Noisy:
        part, array = self.question.parts[number], self.empty[number]
        self.pay(share)
        self.script.note(part, array.shape, share)
        if part.kind in ("counts", "total"):
            return Noisy(self.script.counts(array.shape, self.deviation(share)) * part.unit, self.deviation(share))
        shape = np.atleast_2d(array).shape
        noise = sqrt(self.spread(shape[1], 1.0, share))
        return Noisy(self.script.sums(shape, part.length, noise) * part.unit, noise)


class NoRowsPlanned:
    """A desk of a closed plan, with nothing behind it: it counts how often each charge of the plan is used."""

    def __init__(self, budget: Fixed, empty: Any, script: Script) -> None:
        self.budget, self.empty, self.script, self.used = budget, empty, script, Counter()

    def ask(self, question: Question, *budgets: Fraction) -> tuple[Noisy, ...]:
        assert isinstance(question, Question)
        arrays, law = question.raw(self.empty), self.budget.law
        charges = [noise.charge for noise in law.asked(question, max(map(columns_of, arrays)), budgets, self.budget.times)]
        self.pay(charges)
        answers = []
        for part, array, budget in zip(question.parts, arrays, budgets, strict=True):
            self.script.note(part, array.shape, budget)
            if part.kind in ("counts", "total"):
                deviation = law.deviation(part, budget)
                answers.append(Noisy(self.script.counts(array.shape, deviation), deviation))
            else:
                noise = sqrt(columns_of(array) * law.variance(part, columns_of(array), budget)) / part.length
                answers.append(Noisy(self.script.sums(array.shape, part.length, noise), noise))
        return tuple(answers)

    def perform(self, mechanism: Mechanism) -> Any:
        assert isinstance(mechanism, NoisySample | BoundedShare | LaplaceSeeds)
        for charge in mechanism.charges:
            self.pay([charge] * charge.times)
        n_rows = mechanism.n_rows if isinstance(mechanism, NoisySample) else mechanism.n_clusters
        shape, top = (n_rows, mechanism.domain.n_columns), mechanism.domain.top
        self.script.note(mechanism, shape, None)
        return self.script.rng.integers(-2 * top, 2 * top, shape)

    def pay(self, charges: Any) -> None:
        self.used.update(charges)
        planned = {charge: charge.times for charge in self.budget.charges}
        assert all(n <= planned.get(charge, 0) for charge, n in self.used.items()), "an answer that the plan does not list"


class Case(NamedTuple):
    """A fit, as a user would ask for it, of rows with so many columns."""

    model: Any
    method: str
    d: int = 2
    is_sparse: bool = False
    sample: Any = None  # public rows

    @property
    def name(self) -> str:
        own = {"n_clusters", "bounds", "universe", "method", "ledger"}
        changed = {k: v for k, v in self.model.get_params().items() if k not in own and v is not None}
        default = type(self.model)().get_params()
        more = [f"{key}={value}" for key, value in changed.items() if str(value) != str(default[key])]
        return "-".join(
            [
                type(self.model).__name__,
                self.method,
                f"{self.d} columns",
                *more,
                *["sparse"] * self.is_sparse,
                *["public"] * (self.sample is not None),
            ]
        )

    def run(self, seed: int, n_rows: int = N_ROWS) -> tuple[Any, list[Any], Any]:
        """What the method finds at a desk without rows, what it asked, and the desk."""
        task = self.model._task(self.method, self.d, UNIT, is_sparse=self.is_sparse)
        method = self.model._method(self.method, task if self.sample is None else replace(task, sample=self.sample))
        script, domain = Script(seed, n_rows), method.task.domain
        empty = domain.encode_sparse(csr_array((0, self.d))) if self.is_sparse else domain.encode(np.empty((0, self.d)))
        if isinstance(method.budget, Fixed):
            desk: Any = NoRowsPlanned(method.budget, empty, script)
        else:
            desk = NoRows(method.budget, empty, script, is_sparse=self.is_sparse, n_columns=self.d)
        return method.run(desk, np.random.default_rng(7)), script.asked, desk


def kmeans(method: str, d: int = 2, *, is_sparse: bool = False, **params: Any) -> Case:
    return Case(PrivateKMeans(3, bounds=(-1, 1), method=method, **params), method, d, is_sparse)


def directions(method: str, d: int = 40, **params: Any) -> Case:
    return Case(PrivateKMeans(3, metric="cosine", method=method, **params), method, d, is_sparse=True)


def with_public(d: int, **params: Any) -> Case:
    """Three clear clusters that everyone may see."""
    rng = np.random.default_rng(0)
    places = rng.uniform(-0.8, 0.8, (3, d))
    return kmeans("tree", d, **params)._replace(sample=places[np.arange(60) % 3] + 0.02 * rng.standard_normal((60, d)))


def kmedian(method: str, d: int = 2, **params: Any) -> Case:
    return Case(PrivateKMedian(3, bounds=(-1, 1), method=method, **params), method, d)


UNIVERSE = Euclidean(np.random.default_rng(0).uniform(-1, 1, (60, 2)))


def universe(method: str, **params: Any) -> Case:
    return Case(PrivateKMedian(3, universe=UNIVERSE, method=method, **params), method, 1)


def adding_zcdp() -> Ledger:
    return Ledger.memory("wall", 10, 1e-3, relation="add-remove", rule="zcdp")


BY_COLUMNS = tuning.Candidates(nonzeros=4, recovery="columns", trials=2)

CASES = [
    kmeans("tree", 1), kmeans("tree"), kmeans("tree", delta=1e-6, ledger=adding_zcdp()), kmeans("tree", 8),
    kmeans("tree", 8, delta=1e-6), kmeans("tree", 30), kmeans("tree", 30, epsilon=20.0), kmeans("tree", 30, delta=1e-6),
    kmeans("tree", 2, relation="replace-one"), kmeans("tree", 30, delta=1e-6, tuning=tuning.Tree(frame="pca")),
    kmeans("tree", 2, scaling="bounds"), kmeans("tree", 2, scaling="private"), kmeans("tree", 8, scaling="private", delta=1e-6),
    kmedian("tree", 4, scaling="private"), kmeans("tree", 40, is_sparse=True, delta=1e-6),
    kmeans("tree", 40, is_sparse=True, tuning=tuning.Tree(nonzeros=4)), kmeans("tree", 8, is_sparse=True), kmeans("lloyd"),
    kmeans("lloyd", delta=1e-6), kmeans("lloyd", init="noisy-sample"), kmeans("lloyd", init="variates"),
    kmeans("lloyd", init="variates", expected_rows=1000.0),
    kmeans("lloyd", init="variates", tuning=tuning.Lloyd(seeds="laplace")),
    kmeans("lloyd", tuning=tuning.Lloyd(noise="coordinates")), kmeans("lloyd", 20, is_sparse=True),
    kmeans("lloyd", init="spread", relation="replace-one"), kmeans("mean"), kmeans("mean", 8, delta=1e-6), kmeans("grid"),
    kmeans("grid", 1, tuning=tuning.Grid(hybrid=True)), kmeans("grid", delta=1e-6, ledger=adding_zcdp()),
    kmeans("candidates"), kmeans("candidates", 8, delta=1e-6), kmeans("candidates", tuning=tuning.Candidates(trials=2)),
    kmeans("candidates", 40, is_sparse=True, delta=1e-6), kmeans("candidates", 40, is_sparse=True, tuning=BY_COLUMNS),
    kmeans("sample-aggregate"), kmeans("sample-aggregate", 5, delta=1e-6, tuning=tuning.SampleAggregate(blocks=20)),
    with_public(2), with_public(8), with_public(8, delta=1e-6), with_public(30), with_public(30, epsilon=20.0),
    with_public(30, delta=1e-6, tuning=tuning.Tree(trust_public=True)), with_public(8, scaling="private"),
    kmedian("tree"), kmedian("tree", 8, delta=1e-6), kmedian("tree", 30), kmedian("tree", 30, delta=1e-6),
    kmedian("candidates"), kmedian("candidates", 8, delta=1e-6), kmedian("weiszfeld"),
    kmedian("weiszfeld", tuning=tuning.KMedian(recovery="grid")), kmedian("candidates", tuning=tuning.KMedian(recovery="all")),
    directions("spherical", delta=1e-6), directions("spherical", delta=1e-6, epsilon=40.0), directions("spherical"),
    directions("spherical", tuning=tuning.Spherical(nonzeros=2, signed=True), epsilon=40.0), directions("tree", delta=1e-6),
    universe("counts"),
    universe("counts", expected_rows=1000.0), universe("counts", tuning=tuning.Counts("hst")),
    universe("counts", tuning=tuning.Counts("hst"), delta=1e-6, ledger=adding_zcdp()),
    universe("counts", relation="replace-one"), universe("local-search"), universe("local-search", init="random"),
    universe("local-search", init="k-median++"), universe("local-search", init=[1, 2, 3], objective="k-means"),
    universe("local-search", delta=1e-6, ledger=adding_zcdp()),
]  # fmt: skip


def same(one: Any, other: Any) -> bool:
    """Whether two results, of arrays, texts and numbers, are the same to the last bit."""
    if isinstance(one, np.ndarray):
        return (one.shape, one.dtype, one.tobytes()) == (other.shape, other.dtype, other.tobytes())
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    if hasattr(one, "__dataclass_fields__"):
        return type(one) is type(other) and same(list(vars(one).values()), list(vars(other).values()))
    return one == other


def found_twice(case: Case, seed: int) -> Any:
    """What a method finds and asks, twice the same. AssertionError if not, or if it pays more than it has."""
    runs = [case.run(seed) for _ in range(2)]
    (found, asked, desk), (again, asked_again, _) = runs
    assert asked == asked_again
    assert same(list(vars(found).values()), list(vars(again).values())), "the same answers, and another result"
    spent = sum(desk.shares) if isinstance(desk, NoRows) else 1.0
    assert 0 < spent <= 1 + 1e-9
    assert asked
    return found


def test_every_method_is_tried():
    tried = {(type(case.model), getattr(case.model, "universe", None) is None, case.method) for case in CASES}
    in_space = [(model, True, name) for model in (PrivateKMeans, PrivateKMedian) for name in model().methods]
    assert tried == {*in_space, *((PrivateKMedian, False, name) for name in PrivateKMedian(universe=UNIVERSE).methods)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_method_sees_answers_and_nothing_else(case):
    for found in (found_twice(case, 1), case.run(2, n_rows=30)[0]):  # where rows show, and where noise hides them
        assert len(found.centers) == 3
        assert np.isfinite(found.centers).all()
        assert found.weights is None or abs(found.weights.sum() - 1) < 1e-9


@pytest.mark.parametrize(("d", "is_sparse"), [(2, False), (8, False), (30, True)])
def test_candidates_alone_are_found_from_answers_alone(d, is_sparse):
    runs = []
    for _ in range(2):
        made = kmeans("candidates", d, is_sparse=is_sparse).model
        method = CandidatePoints(made._task("candidates", d, UNIT, is_sparse=is_sparse))
        script, domain = Script(5), method.task.domain
        empty = domain.encode_sparse(csr_array((0, d))) if is_sparse else domain.encode(np.empty((0, d)))
        desk = NoRows(method.budget, empty, script, is_sparse=is_sparse, n_columns=d)
        runs.append((method.run(desk, np.random.default_rng(7)).points, script.asked))
        assert 0 < sum(desk.shares) <= 1 + 1e-9
    assert same(*runs)
    assert len(runs[0][0]) > 1


@pytest.mark.parametrize("delta", [0, Fraction(1, 10**6)], ids=["pure", "Gaussian"])
@pytest.mark.parametrize("d", [2, 8, 24])
def test_a_stream_is_released_from_answers_alone(d, delta):
    leaves = Leaves.of(Box([-1.0] * d, [1.0] * d), 8)
    pool = Pool(Fraction(1), Fraction(delta), "add-remove", UNIT, is_pure=not delta)
    runs = []
    for _ in range(2):
        script = Script(3)
        desk = NoRows(pool, np.empty((0, d), dtype=np.int16), script)
        placed = LeafReading(leaves, desk.hold(LeafTotals(leaves)), 3, np.random.default_rng(7)).run()
        runs.append((script.asked, tuple(placed)))
        assert sum(desk.shares) <= 1 + 1e-9
    assert same(*runs)
    assert runs[0][1][0].shape == (3, d)


class NoParties:
    """A coordinator of parties that do not exist: replies are made up, of the shapes that messages have."""

    def __init__(self, script: Script) -> None:
        self.present, self.script = ["east", "north", "west"], script

    def ask(self, kind: str, message: Any, layout: Layout, names: list[str] | None = None) -> dict[str, list[Any]]:
        self.script.note(message, message.shapes(layout), kind)
        return {
            name: [self.script.rng.integers(-500, 2000, shape) for shape in message.shapes(layout)]
            for name in (names or self.present)
        }


@pytest.mark.parametrize("d", [2, 5])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_federation_runs_on_replies_alone(protocol, d):
    layout, epsilon = Layout(Box([-1.0] * d, [1.0] * d), UNIT), None if protocol == "dk" else Fraction(1)
    rounds = schedule(protocol, layout, epsilon, Fraction(0), 2, 3, 3)
    plan = RunPlan(protocol, "rows", layout.digest, 1, 3, epsilon, Fraction(0), rounds, 600, "")
    allowed = Counter({kind: sum(part.times for part in rounds if part.kind == kind) for kind in {part.kind for part in rounds}})
    runs = []
    for _ in range(2):
        script = Script(4)
        placed = RUNS[protocol](NoParties(script), layout, plan, np.random.default_rng(7)).run()
        runs.append((script.asked, tuple(placed)))
    assert same(*runs)
    assert runs[0][1][0].shape == (3, d)
    assert plan.adds_up()
    one_party = Counter(kind for _, _, _, kind in runs[0][0] if kind not in ("sample", "pick", "seed"))  # these go to one of them
    assert all(n <= allowed[kind] for kind, n in one_party.items())


# Twins that must fail.


def test_a_method_that_wants_rows_finds_none(monkeypatch):
    def look(self, desk, rng):
        return desk._source.map_reduce(None, None, grid=self.task.domain)

    for case, words in ((kmeans("lloyd"), "_source"), (kmeans("grid"), "_source")):
        monkeypatch.setattr(case.model.methods[case.method], "run", look)
        with pytest.raises(AttributeError, match=words):
            case.run(1)


def test_the_desks_here_have_nothing_behind_them():
    pooled, planned = (case.run(1)[2] for case in (universe("local-search"), kmeans("lloyd")))
    held = pooled.hold(PointCounts(UNIVERSE.n_points))
    for desk in (pooled, held, planned):
        assert not any(hasattr(desk, name) for name in ("source", "_source", "_arrays", "_behind", "_secret", "_pool", "_domain"))


def test_a_method_with_a_will_of_its_own_is_found(monkeypatch):
    """It is not the answers that decide: here a clock, elsewhere a row."""
    ticks, run = iter(range(100)), Lloyd.run

    def moody(self, desk, rng):
        found = run(self, desk, rng)
        found.centers[0] += 1e-9 * next(ticks)
        return found

    monkeypatch.setattr(Lloyd, "run", moody)
    with pytest.raises(AssertionError, match="another result"):
        found_twice(kmeans("lloyd"), 1)


@pytest.mark.parametrize(
    ("case", "says"), [(kmeans("lloyd"), "does not list"), (kmeans("grid"), "more than the whole")], ids=["plan", "pool"]
)
def test_a_method_that_asks_twice_is_found(case, says, monkeypatch):
    def twice(desk):
        ask = desk.ask
        return lambda self, *terms: (ask(self, *terms), ask(self, *terms))[1]

    for desk in (NoRows, NoRowsPlanned):
        monkeypatch.setattr(desk, "ask", twice(desk))
    with pytest.raises(AssertionError, match=says):
        case.run(1)
