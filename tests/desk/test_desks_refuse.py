"""What desks refuse: whatever only looks like a question or a mechanism, and questions whose parts would be untrue there.

A refusal comes before the vault is asked for anything: nothing is drawn, and nothing is spent.
"""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from kveil import Euclidean, Ledger, PrivacyUnit
from kveil.desk.base import Mechanism
from kveil.desk.fixed import Fixed
from kveil.desk.law import Law
from kveil.desk.leaf_table import LeafTable
from kveil.desk.pool import Pool
from kveil.kernel.grid import Box
from kveil.partition.cubes import Cubes
from kveil.partition.hst import Hst
from kveil.questions.base import Part, Question
from kveil.questions.cells import RowCount, Whole
from kveil.questions.cluster_sums import ClusterSums, sums_in
from kveil.questions.cubes import CubeCounts
from kveil.questions.demand import DemandTree, PointCounts
from kveil.questions.frame import Frame
from kveil.questions.leaves import LeafCounts, LeafTotals
from kveil.questions.medians import MedianCosts
from kveil.questions.swaps import SetCosts
from kveil.source import read
from kveil.testing import scripted

BOX = Box([-1.0, -1.0], [1.0, 1.0])
FRAME = Frame.of(BOX, None)
PLACE = np.zeros((1, 2), dtype=np.int64)
UNIT = PrivacyUnit()


class Watched:
    """Rows that tell whether anybody read them."""

    def __init__(self) -> None:
        self._source, self.reads = read(np.zeros((3, 2))), 0
        self.max_rows, self.is_sparse, self.n_columns = self._source.max_rows, False, 2

    def map_reduce(self, *terms, **more):
        self.reads += 1
        return self._source.map_reduce(*terms, **more)


@pytest.fixture
def watched():
    return Watched()


@pytest.fixture
def curator(watched):
    pool = Pool(Fraction(1), Fraction(0), "add-remove", UNIT, is_pure=True)
    with scripted(0), Ledger.memory("wall", 1, relation="add-remove").reserve(pool.plan()) as ticket:
        yield pool.open(watched, BOX, ticket)


@pytest.fixture
def closed(watched):
    """A desk of a closed plan, and its ticket."""
    law = Law("pure", "add-remove", UNIT)
    budget = Fixed(law, law.charges(sums_in(BOX), 2, (Fraction(1, 2), Fraction(1, 2))))
    with scripted(0), Ledger.memory("wall", 1, relation="add-remove").reserve(budget.plan()) as ticket:
        yield SimpleNamespace(desk=budget.open(watched, BOX, ticket), ticket=ticket)


class Looks:
    """Has all that a question and a mechanism have, but for where it comes from. It would keep what it is handed."""

    combine, over, lengths, parts = np.add, None, None, (Part("number of rows", "counts"),)

    def __init__(self) -> None:
        self.kept = []

    def raw(self, rows):
        self.kept.append(rows)
        return (np.array([len(rows)]),)

    def release(self, behind, account):
        self.kept.append(behind)
        return behind


def test_what_only_looks_like_a_question_gets_no_rows(curator, closed, watched):
    held = curator.hold(Whole(FRAME))
    reads, looks = watched.reads, Looks()
    asks = [
        lambda: curator.ask(looks, 0.1), lambda: curator.hold(looks), lambda: held.ask(looks, 0.1), lambda: held.hold(looks),
        lambda: closed.desk.ask(looks, Fraction(1, 2)), lambda: closed.desk.draw(looks, Fraction(1, 2)),
    ]  # fmt: skip
    for ask in asks:
        with pytest.raises(TypeError, match="desks answer questions"):
            ask()
    assert not looks.kept
    assert watched.reads == reads
    assert curator.left == 1.0
    assert not closed.ticket.receipts


@pytest.mark.parametrize(
    ("kind", "method"),
    [("costs", "choose"), ("cell costs", "choose_each"), ("peeled costs", "choose_several"), ("active", "active")],
)
def test_what_only_looks_like_a_question_gets_no_rows_by_a_choice(kind, method, curator, watched):
    looks, more = Looks(), {"active": (4, 0.01), "choose_several": (1,)}.get(method, ())
    looks.parts = (Part("looks", kind),)
    with pytest.raises(TypeError, match="desks answer questions"):
        getattr(curator, method)(looks, *more, 0.1)
    assert not looks.kept
    assert not watched.reads


def test_what_only_looks_like_a_mechanism_gets_no_rows(curator, closed, watched):
    looks, held = Looks(), curator.hold(Whole(FRAME))
    for desk in (curator, held, closed.desk):
        with pytest.raises(TypeError, match="desks perform mechanisms"):
            desk.perform(looks)
    assert not looks.kept


def test_true_ones_are_answered(curator, closed):
    """What the refusals above are about is the class alone."""

    class Counts(Looks, Question):
        pass

    class Shows(Looks, Mechanism):
        pass

    counts, shows = Counts(), Shows()
    assert curator.ask(counts, 0.1)[0].values.shape == (1,)
    curator.perform(shows)
    closed.desk.perform(shows)
    assert len(counts.kept) == 1
    assert len(shows.kept) == 2


def test_a_question_about_rows_is_refused_before_arrays(curator):
    table = LeafTable(BOX, 2)
    for held in (curator.hold(Whole(FRAME)), curator.hold(LeafTotals(table.leaves))):
        for question in (RowCount(), Whole(FRAME)):
            with pytest.raises(AssertionError, match="another question"):
                held.ask(question, *[0.1] * len(question.parts))
    assert curator.left == 1.0


def test_a_question_about_one_answer_is_refused_before_another(curator):
    tree = Hst.of(Euclidean(np.eye(3)), random_state=0)
    table = LeafTable(BOX, 2)
    leaf_count = LeafCounts("cells", 0, np.zeros(1, dtype=np.int64))
    for held, question in [
        (curator.hold(LeafTotals(table.leaves)), DemandTree(tree, is_squared=False)), (curator.hold(Whole(FRAME)), leaf_count),
    ]:  # fmt: skip
        with pytest.raises(AssertionError, match="another question"):
            held.ask(question, 0.1)
    assert DemandTree.over is PointCounts
    assert curator.left == 1.0


def test_a_question_about_arrays_is_refused_before_rows(curator, closed, watched):
    question = LeafCounts("cells", 0, np.zeros(1, dtype=np.int64))
    for ask in (lambda: curator.ask(question, 0.1), lambda: closed.desk.ask(question, Fraction(1, 2))):
        with pytest.raises(AssertionError, match="hold that"):
            ask()
    assert not watched.reads


def test_a_question_of_another_domain_is_refused(curator, closed, watched):
    """Its codes would be longer than its parts say, or mean something else."""
    other = ClusterSums.of(np.zeros((1, 2)), Box([-1.0, -1.0], [1.0, 1.0], 8), None)
    for ask in (lambda: curator.ask(other, 0.1, 0.1), lambda: closed.desk.ask(other, Fraction(1, 2), Fraction(1, 2))):
        with pytest.raises(AssertionError, match="another domain"):
            ask()
    assert not watched.reads
    assert len(closed.desk.ask(ClusterSums.of(np.zeros((1, 2)), BOX, None), Fraction(1, 2), Fraction(1, 2))) == 2


def test_a_choice_is_made_of_the_right_kind_alone(curator, watched):
    sets = SetCosts(FRAME, "k-means", 2**40, PLACE[None])
    medians = MedianCosts(FRAME, PLACE, PLACE[None], 1.0, 2**20)
    cubes = CubeCounts(FRAME, Cubes.shifted(4, 2, np.random.default_rng(0)))
    for question in (medians, cubes, RowCount(), Whole(FRAME)):
        with pytest.raises(AssertionError, match="about costs"):
            curator.choose(question, 0.1)
    for question in (sets, cubes, RowCount(), Whole(FRAME)):
        with pytest.raises(AssertionError, match="about cell costs"):
            curator.choose_each(question, 0.1)
    for question in (sets, medians, RowCount(), Whole(FRAME)):
        with pytest.raises(AssertionError, match="about active"):
            curator.active(question, 4, 0.01, 0.1)
    assert not watched.reads
    assert curator.left == 1.0


def test_noise_is_added_to_counts_and_sums_alone(curator, closed):
    """A row may move every cost: noise as wide as one is moved would hide nothing."""
    sets = SetCosts(FRAME, "k-means", 2**40, PLACE[None])
    cubes = CubeCounts(FRAME, Cubes.shifted(4, 2, np.random.default_rng(0)))
    for question in (sets, MedianCosts(FRAME, PLACE, PLACE[None], 1.0, 2**20), cubes):
        for ask in (lambda q=question: curator.ask(q, 0.1), lambda q=question: closed.desk.ask(q, Fraction(1, 2))):
            with pytest.raises(AssertionError, match="noise is for counts and sums"):
                ask()
    assert curator.left == 1.0
    assert not closed.ticket.receipts


@pytest.mark.parametrize("n", [0, 1, 3])
def test_every_part_has_a_share_of_its_own(n, curator, closed):
    with pytest.raises(AssertionError, match="share of its own"):
        curator.ask(Whole(FRAME), *[0.1] * n)
    with pytest.raises(ValueError, match="zip"):
        closed.desk.ask(ClusterSums.of(np.zeros((1, 2)), BOX, None), *[Fraction(1, 2)] * n)
    assert curator.left == 1.0
    assert not closed.ticket.receipts
