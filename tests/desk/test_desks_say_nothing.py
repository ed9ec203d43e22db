"""What stands on a desk beside its answers: the same for any rows. A method may read all of it.

Tables of no rows, of some, and of more than `max_rows` says are asked the same questions. Whatever a desk, its pool or a question
shows under a public name, and what an answer says of its noise, must be equal to the last bit.
"""

from __future__ import annotations

import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from kveil import Ledger, PrivacyUnit
from kveil.desk.base import Curator, Held, read_rows
from kveil.desk.fixed import Fixed, FixedDesk
from kveil.desk.law import Law
from kveil.desk.leaf_table import LeafTable
from kveil.desk.pool import Pool
from kveil.kernel.grid import Box
from kveil.questions.cells import RowCount, Whole
from kveil.questions.cluster_sums import ClusterSums, sums_in
from kveil.questions.frame import Frame
from kveil.questions.leaves import LeafCounts
from kveil.questions.swaps import SetCosts
from kveil.source import read

BOX = Box([-1.0, -1.0], [1.0, 1.0])
FRAME, UNIT, MOST_ROWS = Frame.of(BOX, None), PrivacyUnit(), 4
HALF = Fraction(1, 2)
TABLES = [np.empty((0, 2)), np.array([[0.5, -0.25]]), np.full((40, 2), 1.0), np.random.default_rng(0).uniform(-1, 1, (40, 2))]


def shown(thing: Any) -> dict[str, Any]:
    """All that an object shows under a public name, as bytes; of a method its name."""
    values = {name: getattr(thing, name) for name in dir(thing) if not name.startswith("_")}
    return {name: name if callable(value) else pickle.dumps(value) for name, value in values.items()}


def at_a_pool(table: Any) -> list[Any]:
    pool = Pool(Fraction(1), Fraction(0), "add-remove", UNIT, is_pure=True)
    with Ledger.memory("rows", 1, relation="add-remove").reserve(pool.plan()) as ticket:
        desk = pool.open(read(table, max_rows=MOST_ROWS), BOX, ticket)
        held, sets = desk.hold(Whole(FRAME)), SetCosts(FRAME, "k-means", desk.max_rows, np.zeros((2, 1, 2), dtype=np.int64))
        noise = [held.show(0, 0.1).noise, held.show(1, 0.1).noise, *(answer.noise for answer in desk.ask(RowCount(), 0.1))]
        desk.choose(sets, 0.1)
        return [shown(desk), shown(held), shown(pool), noise, [str(receipt.charge) for receipt in ticket.receipts]]


def at_a_table_of_leaves(table: Any) -> list[Any]:
    leaves, pool = LeafTable(BOX, 2), Pool(Fraction(1), Fraction(0), "add-remove", UNIT, is_pure=True)
    leaves.update(read(table, max_rows=MOST_ROWS))
    with Ledger.memory("rows", 1, relation="add-remove").reserve(pool.plan()) as ticket:
        held = leaves.open(pool, ticket)
        noise = [answer.noise for answer in held.ask(LeafCounts("cells", 1, np.arange(2)), 0.1)]
        # of a table itself, `arrays` is for a file that is as secret as the rows
        return [shown(held), shown(pool), noise, pickle.dumps((leaves.header, leaves.n_bytes))]


def at_a_plan(table: Any) -> list[Any]:
    law = Law("pure", "add-remove", UNIT)
    budget = Fixed(law, law.charges(sums_in(BOX), 2, (HALF, HALF)))
    with Ledger.memory("rows", 1, relation="add-remove").reserve(budget.plan()) as ticket:
        desk = budget.open(read(table, max_rows=MOST_ROWS), BOX, ticket)
        question = ClusterSums.of(np.zeros((2, 2)), BOX, None)
        before = pickle.dumps(question.parts)
        noise = [answer.noise for answer in desk.ask(question, HALF, HALF)]
        assert pickle.dumps(question.parts) == before
        return [shown(desk), shown(budget), noise, [str(receipt.charge) for receipt in ticket.receipts]]


def check_silence(ask: Any) -> None:
    first, *others = map(ask, TABLES)
    for other in others:
        assert other == first, "rows show beside the answers"


@pytest.mark.parametrize("ask", [at_a_pool, at_a_table_of_leaves, at_a_plan])
def test_nothing_beside_the_answers_depends_on_rows(ask):
    check_silence(ask)


def test_desks_show_what_is_listed_here_and_no_more():
    """A new public name is a thing that methods may read: is it public?"""
    pooled = {"active", "ask", "choose", "choose_each", "deviation", "hold", "kind", "left", "noise", "perform", "relation"}
    pooled |= {"choose_several", "sharpness", "spread", "total", "unit"}
    desk, held = (set(names) for names in at_a_pool(TABLES[1])[:2])
    assert desk == pooled | {"is_sparse", "max_rows", "n_columns", "on", "rest"}
    assert held == pooled | {"show"}
    assert set(at_a_plan(TABLES[1])[0]) == {"ask", "draw", "perform"}


# Twins that must fail.


def kept(self, question, *, raw=Curator._secret):
    self.last = raw(self, question)
    return self.last


def counted(self, *terms, make=Curator.__init__):
    make(self, *terms)
    self.max_rows = max(1, int(self._secret(RowCount())[0][0]))


def telling(self, number, share, *, show=Held.show):
    return show(self, number, share)._replace(noise=float(np.abs(self._arrays[number]).sum()))


def checked(self, question, *, raw=Curator._secret):
    found = raw(self, question)
    if isinstance(question, RowCount) and found[0][0] > self.max_rows:
        raise ValueError("there are more rows than max_rows says")
    return found


@pytest.mark.parametrize(
    ("owner", "name", "sly"),
    [(Curator, "_secret", kept), (Curator, "__init__", counted), (Held, "show", telling), (Curator, "_secret", checked)],
    ids=lambda thing: getattr(thing, "__name__", None),
)
def test_a_desk_that_shows_rows_is_found(owner, name, sly, monkeypatch):
    monkeypatch.setattr(owner, name, sly)
    with pytest.raises((AssertionError, ValueError), match="rows"):
        check_silence(at_a_pool)


def test_a_plan_that_tells_noise_by_rows_is_found(monkeypatch):
    def ask(self, question, *budgets, asks=FixedDesk.ask):
        (n_rows,) = read_rows(self._source, self._domain, RowCount())[0].tolist()
        return tuple(answer._replace(noise=answer.noise + n_rows) for answer in asks(self, question, *budgets))

    monkeypatch.setattr(FixedDesk, "ask", ask)
    with pytest.raises(AssertionError, match="rows show"):
        check_silence(at_a_plan)
