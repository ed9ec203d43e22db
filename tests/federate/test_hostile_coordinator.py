"""A coordinator that lies, repeats, reorders and opens runs at will gets no more than the ledger; refusals tell it nothing."""

import json
import random
import threading
from fractions import Fraction

import pytest
from federate_tools import FREE, HALF, message, opened, party, plan, told

from kveil import Ledger
from kveil.federate import Policy
from kveil.federate.messages import Reply
from kveil.federate.plan import Round
from kveil.kernel import gate

N_SEQUENCES = 3_000
TOTAL = 3  # the ledger's epsilon
PER_RUN = 1

PARTS = (
    Round("cells", Fraction(1, 4), level=1), Round("cells", Fraction(1, 4), level=2), Round("sums", Fraction(1, 4), counts=HALF),
    Round("spread", Fraction(1, 8)), Round("stats", Fraction(1, 8), counts=HALF),
)  # fmt: skip
CENTERS = [[0, 0], [5, -5]]


class Liar:
    """Random messages, most of them nearly right, so that many get through."""

    def __init__(self, seed, held, plans):
        self.random, self.held, self.seq = random.Random(seed), held, {}
        self.runs, self.plans = [f"{seed:016x}{number:016x}" for number in range(2)], plans

    def message(self):
        r = self.random
        run = r.choice(self.runs)
        kind = (
            "plan"
            if not self.seq
            else r.choice(["plan", "cells", "cells", "sums", "spread", "stats", "done", "abort", "sample", "x"])
        )
        seq = 0 if kind == "plan" else self.seq.get(run, 1) + r.choice([0, 0, 0, 0, 0, 1, -1, 7])
        data = message(max(0, seq), kind, self.body(kind), run)
        if r.random() < 0.02:
            data = bytes(b ^ (r.random() < 0.01) for b in data)
        return run, data

    def body(self, kind):
        r = self.random
        if kind == "plan":
            return r.choice(self.plans)
        nodes = sorted(r.choices(range(4), k=r.randint(1, 3)))
        cells = sorted([[1, 0], [2, r.choice([1, 2, 3])], [2, r.choice([2, 3])]][: r.randint(1, 3)])
        return {
            "cells": {"level": r.choice([1, 2]), "nodes": r.choice(["all", nodes])},
            "sums": {"cells": cells},
            "spread": {"centers": CENTERS},
            "stats": {"centers": CENTERS, "radii": [r.randint(0, 9), 4]},
            "done": {"receipt": "0" * 64},
        }.get(kind, {})

    def hears(self, run, reply):
        if reply is not None and Reply.from_bytes(reply).refused is None:
            self.seq[run] = Reply.from_bytes(reply).seq + 1


def many_plans(held, r):
    """Half of them good; the others cost too much, or do not add up."""
    for epsilon, claimed in ((1, 1), (1, 1), (1, 1), (Fraction(1, 2), Fraction(1, 2)), (2, 2), (30, 30), (1, 2), (2, 1)):
        rounds = [Round(p.kind, p.budget * epsilon, p.times, p.level, p.counts) for p in PARTS]
        yield plan(held, *r.sample(rounds, len(rounds)), epsilon=Fraction(claimed))


def test_thousands_of_hostile_sequences_never_draw_more_than_the_policy(monkeypatch):
    """What is drawn is added up at the gate, apart from the books; and a party with other rows refuses the very same messages."""
    drawn, now, real = [Fraction(0)], [0.0], gate.run

    def counted(measurement, secret, account):
        drawn[0] += measurement.charge.epsilon
        return real(measurement, secret, account)

    monkeypatch.setattr(gate, "run", counted)
    answered = refused = drained = 0
    for start in range(0, N_SEQUENCES, 100):
        policy = Policy(epsilon_per_run=PER_RUN)
        here, there = (
            party(rows, budget=TOTAL, policy=policy, clock=lambda: now[0]) for rows in ([[0.3, 0.3]], [[-9.0, 0.1]] * 3)
        )
        drawn[0], plans = Fraction(0), [*many_plans(here, random.Random(start))]
        for number in range(start, start + 100):
            liar, now[0] = Liar(number, here, plans), now[0] + 1000
            for _ in range(3):
                run, data = liar.message()
                reply, of_here = here.answer(data), drawn[0]
                liar.hears(run, reply)
                mine = Reply.from_bytes(reply)
                answered, refused = answered + (mine.refused is None), refused + (mine.refused is not None)
                if start < 300:  # the first tenth is asked of a party with other rows, too
                    theirs, drawn[0] = Reply.from_bytes(there.answer(data)), of_here
                    assert (mine.refused, mine.seq, mine.run) == (theirs.refused, theirs.seq, theirs.run)
                if mine.refused == "budget":
                    break  # what follows would be refused for want of a run
        assert drawn[0] <= TOTAL
        assert drawn[0] == Fraction(here.ledger.spent().epsilon)
        drained += drawn[0] > TOTAL - 1
    assert min(answered, refused) > 600  # the fuzz is no wall of refusals
    assert drained > 15  # and many parties were drained as far as whole runs fit


OTHER_PARTS = {
    "pdk": (Round("cells", Fraction(1, 8)), Round("pick", Fraction(1, 4), times=2), Round("total", Fraction(3, 8))),
    "sample": (Round("cells", Fraction(1, 4)), Round("sample", Fraction(1, 4)), Round("spread", HALF)),
}  # fmt: skip


@pytest.mark.parametrize("protocol", OTHER_PARTS)
def test_hostile_sequences_of_picks_and_samples_draw_what_the_books_say(monkeypatch, protocol):
    """As above, for the other protocols: any kind, at any place, with any public total, of two parties with other rows."""
    drawn, real, answered = [Fraction(0)], gate.run, 0

    def counted(measurement, secret, account):
        drawn[0] += measurement.charge.epsilon
        return real(measurement, secret, account)

    monkeypatch.setattr(gate, "run", counted)
    bodies = {
        "cells": [{"level": 0, "nodes": "all"}, {"level": 1, "nodes": "all"}], "spread": [{"centers": CENTERS}],
        "pick": [{"centers": [], "total": 1}, {"centers": CENTERS, "total": 2**62}, {"centers": CENTERS, "total": 0}],
        "total": [{"centers": CENTERS}, {"centers": CENTERS[:1]}, {"centers": []}],
        "sample": [{"rows": 3, "size": 1}, {"rows": 2, "size": 2**62}, {"rows": 0, "size": 1}],
    }  # fmt: skip
    for number in range(100):
        r = random.Random(number)
        here, there = (party(rows, budget=TOTAL, policy=FREE) for rows in ([[0.3, 0.3]], [[-9.0, 0.1]] * 3))
        for held in (here, there):
            opened(held, *OTHER_PARTS[protocol], protocol=protocol)
        drawn[0], seq = Fraction(0), 1
        for _ in range(12):
            kind = r.choice(sorted(bodies))
            data = message(max(1, seq - (r.random() < 0.1)), kind, r.choice(bodies[kind]))
            mine, of_here = Reply.from_bytes(here.answer(data)), drawn[0]
            theirs, drawn[0] = Reply.from_bytes(there.answer(data)), of_here
            assert (mine.refused, mine.seq) == (theirs.refused, theirs.seq)
            seq, answered = mine.seq + 1 if mine.refused is None else seq, answered + (mine.refused is None)
        assert drawn[0] == Fraction(here.ledger.spent().epsilon) == Fraction(there.ledger.spent().epsilon) <= PER_RUN
    assert answered > 100


def test_repeating_a_round_brings_the_same_noise():
    held = opened(party(), Round("cells", Fraction(1), times=1, level=1))
    answers = {held.answer(message(1, "cells", {"level": 1, "nodes": "all"})) for _ in range(20)}
    assert len(answers) == 1
    assert held.ledger.spent().epsilon == 1


def test_requests_that_race_get_one_draw_between_them():
    """Twenty threads ask at once, half of them something else at the same place: one answer is drawn, and paid for once."""
    held, replies = opened(party(), Round("cells", HALF, times=2, level=1), epsilon=Fraction(1)), []
    asked = [message(1, "cells", {"level": 1, "nodes": nodes}) for nodes in ("all", [0])] * 10
    threads = [threading.Thread(target=lambda data=data: replies.append(held.answer(data))) for data in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told_ = [Reply.from_bytes(reply) for reply in replies]
    assert len({json.dumps(reply.body) for reply in told_ if reply.refused is None}) == 1
    assert {reply.refused for reply in told_} == {None, "conflict"}
    assert held.ledger.spent().epsilon == 0.5


def test_two_processes_with_the_same_books_draw_once_between_them(tmp_path):
    """A second party on the same ledger and journal, by mistake: what the first has begun it does not draw again."""
    Ledger.create(tmp_path / "north.db", "north", 2.0, relation="add-remove")
    first, second = (party(ledger=str(tmp_path / "north.db")) for _ in range(2))
    opened(first, Round("cells", HALF, times=2, level=1), epsilon=Fraction(1))
    asked = message(1, "cells", {"level": 1, "nodes": "all"})
    inner, replies = first.source.map_reduce, []

    def meanwhile(*args, **kwargs):
        replies.append(second.answer(asked))
        return inner(*args, **kwargs)

    first.source.map_reduce = meanwhile
    reply = first.answer(asked)
    assert Reply.from_bytes(replies[0]).refused == "lost"
    assert second.answer(asked) == reply
    assert len(second.ledger.charges()) == 1


def test_many_plans_cost_nothing():
    """Opening and leaving runs drains no budget: it is spent on answers alone."""
    held = party(budget=1.0)
    for number in range(50):
        run = f"{number:032x}"
        assert told(held, 0, "plan", plan(held), run).refused is None
        assert told(held, 1, "abort", {}, run).refused is None
    assert held.ledger.spent().epsilon == 0


def test_picks_are_counted_by_the_party_itself():
    rounds = (Round("cells", Fraction(1, 5), level=0), Round("pick", Fraction(1, 5), times=2), Round("total", Fraction(2, 5)))
    held = opened(party(policy=FREE, budget=9.0), *rounds, protocol="pdk", k=3)
    body = {"centers": [], "total": 5}
    assert told(held, 1, "pick", body).refused is None
    assert told(held, 2, "pick", {"centers": [[1, 1]], "total": 5}).refused is None
    assert told(held, 3, "pick", {"centers": [[1, 1], [2, 2]], "total": 5}).refused == "order"
    assert told(held, 3, "total", {"centers": [[1, 1]]}).refused is None
    assert told(held, 4, "total", {"centers": [[1, 1], [2, 2]]}).refused == "order"
    assert held.ledger.spent().epsilon == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("pick", {"centers": [], "total": 0}), ("pick", {"centers": [[1]], "total": 1}),
        ("pick", {"centers": [[2**23, 0]], "total": 1}), ("pick", {"centers": [[0, 0]] * 4, "total": 1}),
        ("total", {"centers": []}), ("total", {"centers": [[0, 0]], "cap": 1}),
        ("sample", {"rows": 0, "size": 1}), ("sample", {"rows": 2**17, "size": 2**20}), ("sample", {"rows": 1, "size": 2**63}),
    ],
    ids=str,
)  # fmt: skip
def test_odd_picks_are_refused_without_a_charge(kind, body):
    protocol = "sample" if kind == "sample" else "pdk"
    held = opened(party(policy=FREE, budget=9.0), Round(kind, Fraction(1)), protocol=protocol, k=3)
    assert told(held, 1, kind, body).refused == "payload"
    assert not held.ledger.charges()
