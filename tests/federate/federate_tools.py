"""Tools of the federation's tests: small parties, plans, conversations, and a link that remembers what went over it."""

from __future__ import annotations

from contextlib import contextmanager
from fractions import Fraction

import numpy as np

from kveil import Ledger, PrivacyUnit
from kveil.federate import InProcess, Party, Policy
from kveil.federate.coordinator import Coordinator
from kveil.federate.messages import Reply, Request
from kveil.federate.plan import Round, RunPlan, roster_of
from kveil.kernel import exact
from kveil.testing import ScriptedEntropy

RUN = "ab" * 16
HALF = Fraction(1, 2)
FREE = Policy(epsilon_per_run=1000, delta_per_run=0.5, protocols=("cells", "sample", "pdk", "dk"), allow_exact=True)


class OneThread:
    """A source without threads or files: thousands of answers in a second."""

    names, is_sparse, is_private, max_rows = None, False, False, 2**40

    def __init__(self, rows, unit=PrivacyUnit()):
        self.rows, self.unit = np.asarray(rows, dtype=float), unit
        self.n_columns = self.rows.shape[1]

    def partitions(self):
        return (0,)

    def check(self, grid):
        assert grid.n_columns == self.n_columns

    def map_reduce(self, kernel, state, *, grid, combine=np.add):
        return tuple(np.asarray(part, dtype=np.int64) for part in kernel(grid.encode(self.rows), state))

    def raw_blocks(self):
        yield self.rows


def party(rows=((0.1, 0.2), (-0.5, 0.4)), *, name="north", budget=1.0, quick=True, **options):
    """A party in [-1, 1]^2 with a budget in memory, unless told otherwise."""
    options.setdefault("bounds", (-1, 1))
    options.setdefault("ledger", Ledger.memory(name, budget, relation="add-remove"))
    return Party(OneThread(rows) if quick else rows, name=name, **options)


def plan(held, *rounds, epsilon=Fraction(1), delta=Fraction(0), protocol="cells", k=2, expires=600, **changes):
    """A plan for one party; by default two levels of cells and their sums."""
    rounds = rounds or (Round("cells", HALF / 2, level=2), Round("cells", HALF / 2, level=4), Round("sums", HALF, counts=HALF))
    made = RunPlan(protocol, "rows", held.layout.digest, held.source.unit.max_rows_per_person, k, epsilon, delta, tuple(rounds),
                   expires, roster_of([held.name]))  # fmt: skip
    return made.described() | changes


def message(seq, kind, body, run=RUN):
    return Request(run, seq, kind, body).to_bytes()


def told(held, seq, kind, body, run=RUN):
    """The reply to a message, read."""
    return Reply.from_bytes(held.answer(message(seq, kind, body, run)))


def opened(held, *rounds, run=RUN, **changes):
    """The party after it has agreed to a plan."""
    reply = told(held, 0, "plan", plan(held, *rounds, **changes), run)
    assert reply.body == {"accept": 1}, reply.refused
    return held


class Recorded:
    """A link that remembers every request and reply."""

    def __init__(self, link):
        self.link, self.requests, self.replies = link, [], []
        self.parties = link.parties

    def ask(self, requests, timeout, largest=None):
        self.requests += [(name, requests[name]) for name in sorted(requests)]
        replies = self.link.ask(requests, timeout)
        self.replies += [(name, replies[name]) for name in sorted(replies)]
        return replies

    def close(self):
        self.link.close()


class OwnNoise(Party):
    """A party whose noise is scripted by a seed of its own, wherever and in whatever order parties are asked."""

    def script(self, seed):
        self._entropy = ScriptedEntropy(seed)
        return self

    def answer(self, request, coordinator=None):
        token = exact._installed.set(self._entropy)
        try:
            return super().answer(request, coordinator)
        finally:
            exact._installed.reset(token)


class NoNoise:
    """Entropy that makes every sampler return what it was given: all ones, the largest uniform there is."""

    secure = False

    def words(self, n):
        return np.full(n, 2**64 - 1, dtype=np.uint64)

    def bits(self, k):
        return 2**k - 1


@contextmanager
def noise_from(source):
    token = exact._installed.set(source)
    try:
        yield
    finally:
        exact._installed.reset(token)


def mixture(n_rows, places, spread=0.05, seed=0):
    rng = np.random.default_rng(seed)
    places = np.asarray(places, dtype=float)
    return places[rng.integers(0, len(places), n_rows)] + spread * rng.standard_normal((n_rows, places.shape[1]))


def coordinator(*parties, run=RUN, timeout=5.0):
    return Coordinator(InProcess(parties), timeout, run)
