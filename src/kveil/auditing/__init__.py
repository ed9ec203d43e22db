"""Attacks on a promise from outside: fit neighbours many times, and bound from below the epsilon that was really spent.

Four nouns: `Neighbours` (two tables that differ in one person), `Attack` (learns an event on one half of the fits), `Bound`
(counts it on the other half) and `Verdict`. `check` puts them together for any scikit-learn-like estimator.
"""

from kveil.auditing.attack import Attack, Event
from kveil.auditing.bound import Bound
from kveil.auditing.check import check
from kveil.auditing.exact import Exact, exact
from kveil.auditing.neighbours import Neighbours, worst_cases
from kveil.auditing.one_run import OneRun, one_run
from kveil.auditing.replay import Replayed, replay
from kveil.auditing.verdict import Look, Verdict

__all__ = [
    "Attack", "Bound", "Event", "Exact", "Look", "Neighbours", "OneRun", "Replayed", "Verdict", "check", "exact", "one_run",
    "replay", "worst_cases",
]  # fmt: skip
