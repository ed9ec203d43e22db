"""Every question at every desk: what a desk charges covers what one person does to the array that it hands to the vault.

A stand-in for the gate notes every charge and every secret, of a table and of its neighbour. Noise is then private by the laws of
the vault, if the secrets differ by no more than the charge says, in the norm of its mechanism.
"""

from __future__ import annotations

from copy import copy
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import pytest
from question_examples import MAKERS, TRIALS, Example, examples, table

from kveil import PrivacyUnit
from kveil.desk import fixed, pool
from kveil.desk.fixed import FixedDesk
from kveil.desk.law import NOISED, Law
from kveil.desk.pool import Pool
from kveil.questions import cells
from kveil.questions.base import Question
from kveil.source.base import merge

PEOPLE = PrivacyUnit("person", 2)
DELTA = Fraction(1, 10**6)
TERMS = [(is_pure, relation) for is_pure in (True, False) for relation in ("add-remove", "replace-one")]
POOLS = {terms: Pool(Fraction(1), DELTA, terms[1], PEOPLE, is_pure=terms[0]) for terms in TERMS}


class Table:
    """A source of rows that are encoded already."""

    max_rows, is_sparse, n_columns = 2**40, False, 1

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def map_reduce(self, kernel, state, *, grid, combine):
        return merge(None, kernel(self._rows, state), combine)


class Notes:
    """Stands in for the gate, a ticket and a ledger: notes what would be drawn, and draws nothing."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, Any]] = []
        self.receipts: list[Any] = []

    def run(self, measurement, secret, account):
        self.seen.append((measurement.charge, secret))
        if isinstance(secret, dict):
            return [], None
        return (0 if measurement.charge.mechanism in ("select", "peel") else np.zeros_like(secret)), None

    def take(self, charge):
        pass

    def check(self):
        pass

    def memory(self, *terms, **more):
        return self


def asked_at_a_pool(made: Example, rows: Any, is_pure: bool, relation: str) -> list[tuple[Any, Any]]:
    notes, budget = Notes(), copy(POOLS[is_pure, relation])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "gate", notes)
        patch.setattr(pool, "Ledger", notes)
        desk: Any = budget.open(Table(rows), made.ground.domain, notes)
        desk = desk if made.through is None else desk.hold(made.through)
        kinds, share = {part.kind for part in made.question.parts}, 1 / 4
        if kinds <= set(NOISED):
            desk.ask(made.question, *[share] * len(made.question.parts))
        elif kinds == {"active"}:
            desk.active(made.question, 2**60, 2.0**-10, share)
        else:
            ask = {"costs": desk.choose, "cell costs": desk.choose_each, "peeled costs": several(desk)}
            ask[kinds.pop()](made.question, share)
    return notes.seen


ROUNDS = 2


def several(desk: Any) -> Any:
    return lambda question, share: desk.choose_several(question, ROUNDS, share)


def asked_by_a_plan(made: Example, rows: Any, is_pure: bool, relation: str) -> list[tuple[Any, Any]]:
    notes, law = Notes(), Law("pure" if is_pure else "zcdp", relation, PEOPLE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fixed, "gate", notes)
        desk = FixedDesk(Table(rows), made.ground.domain, law, notes)
        desk.draw(made.question, *[Fraction(1, 4)] * len(made.question.parts))
    return notes.seen


def moved(charge: Any, one: Any, other: Any) -> float:
    """How far two secrets lie apart, in the norm that the noise of a charge is made for."""
    if isinstance(one, dict):
        return sum(abs(one.get(code, 0) - other.get(code, 0)) for code in {*one, *other})
    away = (other - one).astype(np.float64)
    if charge.mechanism == "discrete-laplace":
        return np.abs(away).sum()
    if charge.mechanism == "discrete-gaussian":
        return np.sqrt((away**2).sum())
    if charge.mechanism == "k-norm":
        return np.sqrt((away**2).sum(axis=1)).sum()
    if charge.mechanism == "peel":
        return (ROUNDS - 1) * np.abs(away).max(axis=1).sum() + np.abs(away).sum()
    assert charge.mechanism == "select"
    return np.ptp(np.atleast_2d(away), axis=1).sum()  # costs of cells: a choice for each


def check_charges(kind: type[Question], asked: Any, is_pure: bool, relation: str) -> None:
    """AssertionError if a person moves a secret further than it is charged for, in an example of every ground."""
    for made, rng in islice(examples(kind), None, None, TRIALS):
        parts, lengths = made.question.parts, made.question.lengths
        if is_pure and getattr(made.question, "is_squared", False):
            continue  # squared weights are for Gaussian noise
        if not is_pure and asked is asked_at_a_pool and any(part.kind in ("coordinates", "peeled costs") for part in parts):
            continue  # refused: of a pool's noise that on coordinates is pure, and so are several choices
        rows = table(rng, made.ground, 7)  # three of others, and two of one person before and after
        neighbour = [0, 1, 2] if relation == "add-remove" else [0, 1, 2, 5, 6]
        runs = [asked(made, rows[which], is_pure, relation) for which in (np.arange(5), np.array(neighbour))]
        for number, ((charge, one), (again, two)) in enumerate(zip(*runs, strict=True)):
            assert charge == again
            most = charge.sensitivity
            if asked is asked_by_a_plan and parts[number].kind == "vectors" and lengths is not None:
                # every cell has noise as wide as its own bound, where the charge names the longest
                one, two, most = one / lengths[:, None], two / lengths[:, None], most / parts[number].length
            got = moved(charge, one, two)
            assert got <= most * (1 + 1e-12), f"{kind.__name__}: {charge.label} moves by {got}, and is charged for {most}"


CHOSEN = [kind for kind in MAKERS if kind.__name__ in ("CubeCounts", "MedianCosts", "SwapCosts", "SetCosts")]
OVER_ARRAYS = [kind for kind in MAKERS if kind.over is not None]


@pytest.mark.parametrize("kind", MAKERS, ids=lambda kind: kind.__name__)
def test_a_pool_charges_for_what_a_person_moves(kind):
    for terms in TERMS:
        check_charges(kind, asked_at_a_pool, *terms)


@pytest.mark.parametrize("kind", [kind for kind in MAKERS if kind not in (*CHOSEN, *OVER_ARRAYS)], ids=lambda kind: kind.__name__)
def test_a_closed_plan_charges_for_what_a_person_moves(kind):
    for terms in TERMS:
        check_charges(kind, asked_by_a_plan, *terms)


@pytest.mark.parametrize("is_pure", [True, False])
@pytest.mark.parametrize("kind", CHOSEN, ids=lambda kind: kind.__name__)
def test_a_closed_plan_adds_no_noise_to_costs(kind, is_pure):
    """A row moves all of them, so noise as wide as one is moved hides nothing: one of them is chosen, at a pool."""
    made, rng = next(iter(examples(kind)))
    with pytest.raises(AssertionError, match="noise is for counts and sums"):
        asked_by_a_plan(made, table(rng, made.ground, 2), is_pure, "add-remove")


def test_a_desk_that_takes_one_vector_for_many_numbers_is_found(monkeypatch):
    """The sum of rows of several columns, with noise that is right for one."""
    monkeypatch.setattr(fixed, "by_cell", lambda part, secret: secret)
    with pytest.raises(AssertionError, match="is charged for"):
        check_charges(cells.Whole, asked_by_a_plan, True, "add-remove")


@pytest.mark.parametrize("terms", TERMS)
def test_a_law_that_forgets_the_rows_of_a_person_is_found(terms, monkeypatch):
    monkeypatch.setattr(Law, "moved", lambda law, part: part.length)
    with pytest.raises(AssertionError, match="is charged for"):
        check_charges(cells.Lengths, asked_at_a_pool, *terms)


def test_a_law_that_forgets_what_is_removed_is_found(monkeypatch):
    monkeypatch.setattr(Law, "moved", lambda law, part: 2 * part.length)
    with pytest.raises(AssertionError, match="is charged for"):
        check_charges(cells.Stage, asked_at_a_pool, True, "replace-one")
