"""Check a promise by attacking it, for models of kveil and of other libraries. See docs/audit.md."""

from kveil.auditing import Attack, Bound, Event, Look, Neighbours, OneRun, Verdict, check, one_run, worst_cases

__all__ = ["Attack", "Bound", "Event", "Look", "Neighbours", "OneRun", "Verdict", "check", "one_run", "worst_cases"]
