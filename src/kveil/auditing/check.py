"""`check`: is the epsilon that a model declares the epsilon that it spends?

Fits are made in rounds, and every pair of neighbours takes part in the first one. From what was seen so far each round keeps
the pairs that tell most, learns an event for each, and counts it on fresh fits. The last rounds are for one pair, and the last
one has half of all fits. A round's share of the error is fixed beforehand, and divided by its pairs. Given the rounds before,
its fits are independent of its events, so it is wrong with at most that share; and one of all rounds with at most their sum. So
the audit may stop after any round, whatever it saw.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import joblib

from kveil.auditing.attack import Attack, Event
from kveil.auditing.bound import best_possible
from kveil.auditing.fitting import Fits, Told
from kveil.auditing.leaving import Outcomes
from kveil.auditing.neighbours import Neighbours, Relation, worst_cases
from kveil.auditing.verdict import Look, Outcome, Verdict
from kveil.errors import InvalidType, InvalidValue

KEPT = (1, 1, 3)  # pairs of the last round, the one before it, and so on; earlier ones keep all
LEAST = 10  # fits of a table in the first round


@dataclass(frozen=True)
class Round:
    """How many pairs take part, with how many fits of each table, and which share of the error. The first counts nothing."""

    pairs: int
    runs: int
    error: float


def rounds(n_pairs: int, fits: int, error: float) -> list[Round]:
    """From first to last: the last has half of the fits and half of the error, the one before a quarter, and so on.

    >>> [(r.pairs, r.runs) for r in rounds(7, 10_000, 1e-3)]
    [(7, 89), (3, 208), (1, 1250), (1, 2500)]
    """
    kept = [pairs for pairs in KEPT if pairs <= n_pairs]
    parts = [2.0 ** -(place + 1) for place in range(len(kept))]
    last = [Round(pairs, int(part * fits / 2 / pairs), error * part) for pairs, part in zip(kept, parts, strict=True)]
    return [Round(n_pairs, int(parts[-1] * fits / 2 / n_pairs), 0.0), *reversed(last)]


def check(
    model: Any, *, epsilon: float, delta: float = 0.0, relation: Relation = "add-remove",
    pairs: Sequence[Neighbours] | None = None, runs: int = 10_000, seconds: float = math.inf, workers: int = 1,
    confidence: float = 0.999, enough: float = math.inf, name: str = "", attack: Attack | None = None,
    told: Told = lambda made, asked: None,
) -> Verdict:  # fmt: skip
    """Attack a promise by fitting neighbours many times.

    model: an estimator with `fit`, of which fresh copies are fitted; or a function that takes a table and returns what leaves.
    epsilon, delta, relation: what it promises. pairs: neighbours; default `worst_cases(-1, 1)`, two columns.
    runs: fits, over all tables and rounds. seconds: no fit is begun after so long. workers: processes.
    confidence: of the verdict "violated", and of the lower bound.
    enough: no further round is begun once the lower bound is so large. Fewer fits also see fewer bugs: `power` says which.
    told: called with how many fits were made, of how many.

    >>> import secrets
    >>> found = check(lambda rows: len(rows) + secrets.randbelow(3), epsilon=1.0, runs=2000)  # impossible on the other table
    >>> found.outcome
    'violated'
    """
    pairs = worst_cases([-1, -1], [1, 1], relation) if pairs is None else list(pairs)
    if not (hasattr(model, "fit") or callable(model)):
        raise InvalidType("an audit takes an estimator with `fit`, or a function that takes a table and returns what leaves.")
    _refuse(epsilon, delta, relation, pairs, confidence)
    plan = rounds(len(pairs), runs, 1 - confidence)
    if plan[0].runs < LEAST:
        least = next(fits for fits in count(runs) if rounds(len(pairs), fits, 1)[0].runs >= LEAST)
        raise InvalidValue(f"{runs} runs are too few for {len(pairs)} pairs of neighbours. Pass at least {least}.")
    start = time.monotonic()
    fits = Fits(model, workers, start + seconds, told, asked=sum(2 * step.pairs * step.runs for step in plan))
    audit = _Audit(fits, pairs, epsilon, replace(attack or Attack(), delta=delta), min(enough, epsilon))
    looks = audit.run(plan)
    return _judged(looks, audit, relation, confidence, name, time.monotonic() - start)


class _Audit:
    """One audit as it goes on: what was seen of every pair, and the event that was learned from it."""

    def __init__(self, fits: Fits, pairs: Sequence[Neighbours], epsilon: float, attack: Attack, enough: float) -> None:
        self.fits, self.epsilon, self.attack, self.enough = fits, epsilon, attack, enough
        self.events: dict[Neighbours, Event] = {}
        self.seen: dict[Neighbours, tuple[Outcomes, Outcomes]] = {
            pair: (Outcomes.joined([]), Outcomes.joined([])) for pair in pairs
        }

    @property
    def n_raised(self) -> int:
        return sum(table.n_raised for tables in self.seen.values() for table in tables)

    def run(self, plan: Sequence[Round]) -> list[Look]:
        looks: list[Look] = []
        for pair in self.seen:
            self._see(pair, self.fits.of(pair, plan[0].runs))
        for number, step in enumerate(plan[1:], 1):
            if self.fits.is_late or any(look.bound.epsilon > self.enough for look in looks):
                break
            looks += self._round(step, number)
        return looks

    def _round(self, step: Round, number: int) -> list[Look]:
        self._learn()
        events = dict(self.events)
        best = sorted(self.seen, key=lambda pair: -events[pair].promise)[: step.pairs]
        looks = []
        for pair in best:
            fresh = self.fits.of(pair, step.runs)
            if len(fresh[0]) and len(fresh[1]):
                bound = events[pair].count(*fresh, self.attack.delta, step.error / step.pairs)
                looks.append(Look(pair.name, events[pair].name, events[pair].likelier, bound, number))
            self._see(pair, fresh)
        return looks

    def _learn(self) -> None:
        """An event for every pair of which more was seen since its last one was learned."""
        missing = [pair for pair in self.seen if pair not in self.events]
        pool = joblib.Parallel(n_jobs=max(1, min(self.fits.workers, len(missing))))
        learned = pool(joblib.delayed(self.attack.learn)(*self.seen[pair]) for pair in missing)
        self.events.update(zip(missing, learned, strict=True))

    def _see(self, pair: Neighbours, fresh: tuple[Outcomes, Outcomes]) -> None:
        before = self.seen[pair]
        self.events.pop(pair, None)
        self.seen[pair] = Outcomes.joined([before[0], fresh[0]]), Outcomes.joined([before[1], fresh[1]])


def _judged(looks: list[Look], audit: _Audit, relation: str, confidence: float, name: str, seconds: float) -> Verdict:
    epsilon, delta = audit.epsilon, audit.attack.delta
    best = max(looks, key=lambda look: look.bound.epsilon, default=None)
    lower, pair, event = (0.0, "", "") if best is None else (best.bound.epsilon, best.pair, best.event)
    power = min((power for look in looks if (power := look.bound.power(epsilon)) is not None), default=None)
    able = any(best_possible(min(look.bound.runs, look.bound.other_runs), delta, look.bound.error) > epsilon for look in looks)
    outcome: Outcome = "consistent"
    if lower > epsilon:
        outcome, reason = "violated", f'"{event}" on "{pair}" needs epsilon {lower:.3g} at confidence {confidence:g}.'
    elif audit.n_raised:
        outcome, reason = "unknown", "fits raised errors, so the model was not seen whole."
    elif not able:
        outcome, reason = "unknown", "too few fits: no event whatever could have shown a larger epsilon."
    else:
        seen = "no bug of this kind" if power is None else f"noise too narrow by a factor of {power:.3g}"
        reason = f"At least epsilon {lower:.3g} at confidence {confidence:g}; would have seen {seen}."
    promise = (epsilon, delta, relation, confidence)
    return Verdict(outcome, *promise, lower, power, pair, event, audit.fits.made, seconds, reason, name, tuple(looks))


def _refuse(epsilon: float, delta: float, relation: str, pairs: Sequence[Neighbours], confidence: float) -> None:
    if not (0 <= epsilon < math.inf and 0 <= delta < 1):
        raise InvalidValue("epsilon must be finite and not negative, delta from 0 up to 1.")
    if not 0.5 <= confidence < 1:
        raise InvalidValue("confidence must be at least 0.5 and below 1.")
    if not pairs or any(pair.relation != relation for pair in pairs):
        raise InvalidValue("pairs must be neighbours under the relation of the promise. Pass at least one such pair.")
