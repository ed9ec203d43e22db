"""Check a promise by attacking it, for models of kveil and of other libraries. See docs/audit.md."""

from kveil.auditing import (  # noqa: I001
    Attack, Bound, Event, Exact, Look, Neighbours, OneRun, Replayed, Verdict, check, exact, one_run, replay, worst_cases,
)  # fmt: skip

__all__ = [
    "Attack", "Bound", "Event", "Exact", "Look", "Neighbours", "OneRun", "Replayed", "Verdict", "check", "exact", "one_run",
    "replay", "worst_cases",
]  # fmt: skip
