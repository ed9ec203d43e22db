"""A party answers once, charges first, survives being killed anywhere, and refuses what its plan and policy do not hold."""

import sqlite3
from contextlib import closing
from fractions import Fraction

import numpy as np
import pytest
from federate_tools import FREE, HALF, RUN, OneThread, message, opened, party, plan, told

from kveil import Ledger, PrivacyUnit
from kveil.errors import BudgetError, InvalidType, InvalidValue, LedgerMismatch
from kveil.federate import Party, Policy, journal
from kveil.federate.messages import Reply
from kveil.federate.plan import Round, roster_of
from kveil.kernel import gate

CELLS = {"level": 2, "nodes": "all"}
SUMS = {"cells": [[2, 0], [4, 4], [4, 5]]}
OTHER = "cd" * 16


@pytest.fixture
def books(tmp_path):
    """Where a party keeps its ledger and its journal."""
    Ledger.create(tmp_path / "north.db", "north", 2.0, relation="add-remove")
    return tmp_path / "north.db"


def restarted(books, **options):
    return party(ledger=str(books), **options)


def test_the_same_bytes_get_the_same_bytes_and_are_charged_once(books):
    held = opened(restarted(books))
    first = held.answer(message(1, "cells", CELLS))
    assert held.answer(message(1, "cells", CELLS)) == first
    again = restarted(books)
    assert again.answer(message(1, "cells", CELLS)) == first
    assert again.answer(message(0, "plan", plan(again))) == held.answer(message(0, "plan", plan(held)))
    assert len(again.ledger.charges()) == 1
    assert again.ledger.spent().epsilon == 0.25
    assert told(again, 2, "cells", {"level": 4, "nodes": [0, 3]}).refused is None  # and the run goes on
    assert len(again.ledger.charges()) == 2


class Killed(BaseException):
    """As if the process were gone."""


def kill_after(monkeypatch, held, step):
    """Let the process end right after a step of an answer."""
    owner, name = {
        "asked": (held._journal, "ask"), "reserved": (held.ledger, "reserve"), "noted": (held._journal, "charge"),
        "drawn": (gate, "run"), "stored": (held._journal, "store"),
    }[step]  # fmt: skip
    real = getattr(owner, name)

    def then_die(*args, **kwargs):
        real(*args, **kwargs)
        raise Killed

    monkeypatch.setattr(owner, name, then_die)


@pytest.mark.parametrize("step", ["asked", "reserved", "noted", "drawn"])
def test_an_answer_that_was_cut_short_is_lost_and_stays_spent(books, monkeypatch, step):
    held = opened(restarted(books))
    kill_after(monkeypatch, held, step)
    with pytest.raises(Killed):
        held.answer(message(1, "cells", CELLS))
    monkeypatch.undo()
    again = restarted(books)
    draws = []
    monkeypatch.setattr(gate, "run", lambda *args: draws.append(args))
    for _ in range(2):
        assert told(again, 1, "cells", CELLS).refused == "lost"
    assert not draws
    assert len(again.ledger.charges()) == (0 if step == "asked" else 1)
    assert told(again, 2, "cells", {"level": 4, "nodes": [0]}).refused == "order"  # the run is over for this party


def test_an_answer_that_was_stored_is_sent_again_after_a_kill(books, monkeypatch):
    held = opened(restarted(books))
    kill_after(monkeypatch, held, "stored")
    with pytest.raises(Killed):
        held.answer(message(1, "cells", CELLS))
    monkeypatch.undo()
    again = restarted(books)
    reply = again.answer(message(1, "cells", CELLS))
    assert Reply.from_bytes(reply).body is not None
    assert again.answer(message(1, "cells", CELLS)) == reply
    assert len(again.ledger.charges()) == 1


def test_nothing_is_drawn_before_it_is_charged_and_in_the_books(books, monkeypatch):
    held = opened(restarted(books))
    seen = []
    real = gate.run

    def look(measurement, secret, account):
        other = Ledger.open(books)
        seen.append((len(other.charges()), held._journal.answer(RUN, 1).reply))
        return real(measurement, secret, account)

    monkeypatch.setattr(gate, "run", look)
    told(held, 1, "cells", CELLS)
    assert seen == [(1, None)]


def test_other_bytes_at_the_same_place_close_the_run():
    held = opened(party())
    assert told(held, 1, "cells", CELLS).refused is None
    assert told(held, 1, "cells", {"level": 2, "nodes": [0]}).refused == "conflict"
    assert told(held, 2, "cells", {"level": 4, "nodes": [0]}).refused == "order"
    assert told(held, 1, "cells", CELLS).refused is None  # what was sent may be sent again
    assert held.ledger.spent().epsilon == 0.25


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("cells", {"level": 2, "nodes": [0, 0]}),
        ("cells", {"level": 2, "nodes": [1, 0]}),
        ("cells", {"level": 2, "nodes": [4]}),
        ("cells", {"level": 2, "nodes": [-1]}),
        ("cells", {"level": 2, "nodes": []}),
        ("cells", {"level": 2, "nodes": "some"}),
        ("cells", {"level": 2, "nodes": "all", "scale": 1}),
        ("cells", {"level": 2, "nodes": "all", "epsilon": "9/1"}),
        ("cells", {"level": 2}),
        ("cells", {"level": 2, "nodes": [True]}),
        ("wells", {"level": 2, "nodes": "all"}),
    ],
    ids=str,
)
def test_bodies_that_break_the_rules_are_refused_without_a_charge(kind, body):
    held = opened(party())
    assert told(held, 1, kind, body).refused == "payload"
    assert not held.ledger.charges()
    assert told(held, 1, "cells", CELLS).refused is None  # the place is still free


@pytest.mark.parametrize(
    "cells",
    [[[2, 0], [2, 0]], [[2, 0], [4, 3]], [[1, 0], [2, 1]], [[4, 5], [2, 0]], [[2, 4]], [[5, 99]], [[60, 0]], [[-1, 0]],
     [], [[2]], 7],
    ids=str,
)  # fmt: skip
def test_cells_that_would_count_a_row_twice_are_refused_without_a_charge(cells):
    held = opened(party(), Round("sums", Fraction(1), counts=HALF))
    assert told(held, 1, "sums", {"cells": cells}).refused == "payload"
    assert not held.ledger.charges()


@pytest.mark.parametrize(
    "change",
    [{"centers": [[0, 0]]}, {"centers": [[0, 0], [0]]}, {"centers": [[0, 0], [2**40, 0]]}, {"radii": [1]}, {"radii": [0, 1]},
     {"radii": [1, 2**40]}, {"centers": [[0, 0], [4194303, 4194303]]}, {"more": 1}],
    ids=str,
)  # fmt: skip
def test_centres_that_could_overflow_are_refused_without_a_charge(change):
    held = opened(party(), Round("stats", Fraction(1), counts=HALF))
    body = {"centers": [[0, 0], [9, 9]], "radii": [5, 5]}
    far = {"centers": [[0, 0], [5931642, 1]]}
    assert told(held, 1, "stats", body | (far if "4194303" in str(change) else change)).refused == "payload"
    assert not held.ledger.charges()
    assert told(held, 1, "stats", body).refused is None


def test_rounds_come_in_order_may_be_left_out_and_none_comes_twice():
    held = opened(party())
    assert told(held, 2, "cells", {"level": 4, "nodes": [0]}).refused == "order"  # seq 1 was skipped
    assert told(held, 1, "cells", {"level": 4, "nodes": [0]}).refused is None  # level 2 is left out, and not charged
    assert told(held, 2, "cells", CELLS).refused == "order"  # it cannot come after
    assert told(held, 2, "cells", {"level": 4, "nodes": [1]}).refused == "order"  # nor level 4 again
    assert told(held, 2, "cells", {"level": 3, "nodes": [1]}).refused == "order"  # nor another level
    assert told(held, 2, "sums", SUMS).refused is None
    assert told(held, 3, "sums", SUMS).refused == "order"  # past the plan
    assert held.ledger.spent().epsilon == 0.75


def test_a_run_is_opened_once_and_one_at_a_time():
    held = opened(party(budget=9.0))
    assert told(held, 0, "plan", plan(held, k=3)).refused == "conflict"
    assert told(held, 0, "plan", plan(held), OTHER).refused is None  # the first is closed now
    assert told(held, 0, "plan", plan(held), "ef" * 16).refused == "busy"
    assert told(held, 0, "plan", plan(held)).body == {"accept": 1}  # the old answer, no new run
    assert told(held, 1, "cells", CELLS).refused == "order"
    assert told(held, 3, "plan", plan(held), "12" * 16).refused == "order"
    assert told(held, 1, "cells", CELLS, "34" * 16).refused == "order"  # a run nobody opened


def test_done_and_abort_close_a_run_for_ever():
    held = opened(party(budget=9.0))
    told(held, 1, "cells", CELLS)
    mine = told(held, 2, "done", {"receipt": "0" * 64})
    assert len(mine.body["receipt"]) == 64
    assert told(held, 2, "done", {"receipt": "0" * 64}) == mine
    assert told(held, 3, "sums", SUMS).refused == "order"
    opened(held, run=OTHER)
    assert told(held, 7, "abort", {}, OTHER).refused is None
    assert told(held, 1, "cells", CELLS, OTHER).refused == "order"
    assert told(held, 0, "abort", {}, "12" * 16).refused == "order"
    assert told(held, 0, "abort", {"x": 1}, OTHER).refused == "payload"
    assert told(held, 3, "done", {}, OTHER).refused == "order"


def test_a_run_expires_and_makes_room_for_another():
    now = [1000.0]
    held = party(budget=9.0, clock=lambda: now[0], policy=Policy(longest_hold=60))
    opened(held, expires=600)  # the policy holds it for 60 seconds only
    now[0] += 59
    assert told(held, 1, "cells", CELLS).refused is None
    now[0] += 2
    assert told(held, 2, "sums", SUMS).refused == "expired"
    assert told(held, 0, "plan", plan(held), OTHER).refused is None
    now[0] += 61
    assert told(held, 0, "plan", plan(held), "12" * 16).refused is None  # an expired run does not keep anybody busy


def test_a_silent_run_gives_way_and_is_closed_for_ever():
    """Its coordinator was killed, say. Nothing is refunded, and what was answered is never drawn again."""
    now = [1000.0]
    held = party(budget=9.0, clock=lambda: now[0], policy=Policy(longest_silence=60))
    opened(held, expires=86_400)
    now[0] += 50
    first = held.answer(message(1, "cells", CELLS))  # it is heard of
    now[0] += 50
    assert held.answer(message(1, "cells", CELLS)) == first  # asked again: that is nothing new
    assert told(held, 0, "plan", plan(held), OTHER).refused == "busy"
    now[0] += 11
    spent = held.ledger.spent()
    assert told(held, 0, "plan", plan(held), OTHER).refused is None
    assert held.answer(message(1, "cells", CELLS)) == first
    assert told(held, 2, "sums", SUMS).refused == "order"
    assert held.ledger.spent() == spent


def test_a_run_that_nobody_else_wants_to_follow_may_be_silent():
    """A coordinator may think for long between two rounds."""
    now = [1000.0]
    held = party(clock=lambda: now[0], policy=Policy(longest_silence=60))
    opened(held, expires=600)
    now[0] += 599
    assert told(held, 1, "cells", CELLS).refused is None


def test_how_long_a_run_may_be_silent_follows_from_what_its_coordinator_waits():
    """Three rounds of a plan and 500 seconds in all: 100 for each, with the plan and the end."""
    now = [1000.0]
    held = opened(party(clock=lambda: now[0]), expires=500)
    now[0] += 199
    assert told(held, 0, "plan", plan(held), OTHER).refused == "busy"
    now[0] += 1
    assert told(held, 0, "plan", plan(held), OTHER).refused is None


def test_a_party_that_was_started_anew_goes_on_with_its_run_or_begins_another(books):
    """It crashed, and the run went on without it or did not: whoever asks first is answered, and nothing is drawn twice."""
    first = opened(restarted(books)).answer(message(1, "cells", CELLS))
    again = restarted(books)
    assert told(again, 2, "sums", SUMS).refused is None
    assert told(again, 0, "plan", plan(again), OTHER).refused == "busy"  # it goes on
    later = restarted(books)
    assert told(later, 0, "plan", plan(later), OTHER).refused is None
    assert later.answer(message(1, "cells", CELLS)) == first
    assert told(later, 3, "cells", CELLS).refused == "order"
    assert later.ledger.spent().epsilon == 0.75


def test_plans_that_are_never_followed_up_leave_little_in_the_journal(books, monkeypatch):
    """And runs that were followed up leave all: who forgets an answer may be asked for it again."""
    monkeypatch.setattr(journal, "MOST_EMPTY", 4)
    held = opened(restarted(books))
    kept = held.answer(message(1, "cells", CELLS))
    told(held, 2, "abort", {})
    for number in range(12):
        run = f"{number:032x}"
        opened(held, run=run)
        assert told(held, 1, *(("abort", {}) if number % 2 else ("done", {"receipt": "0" * 64})), run).refused is None
    with closing(sqlite3.connect(f"{books}.runs")) as file:
        assert file.execute("SELECT COUNT(*) FROM run").fetchone()[0] == 1 + 4 + 1  # with answers, empty, and the last
        assert file.execute("SELECT COUNT(*) FROM answer WHERE run=?", (RUN,)).fetchone()[0] == 2
        for statement in ("DELETE FROM answer WHERE run=?", "DELETE FROM run WHERE id=?"):
            with pytest.raises(sqlite3.IntegrityError, match="never deleted"):
                file.execute(statement, (RUN,))
    assert held.answer(message(1, "cells", CELLS)) == kept
    assert told(held, 0, "plan", plan(held)).body == {"accept": 1}  # as it was said; no new run
    assert told(held, 2, "sums", SUMS).refused == "order"


def test_a_journal_of_an_older_version_is_read(books, monkeypatch):
    """There no run was ever deleted."""
    monkeypatch.setattr(journal, "MOST_EMPTY", 1)
    restarted(books).close()
    with closing(sqlite3.connect(f"{books}.runs")) as file:
        for name, table in (("keep", "answer"), ("keep_run", "run")):
            file.execute(f"DROP TRIGGER {name}")
            file.execute(f"CREATE TRIGGER {name} BEFORE DELETE ON {table} BEGIN SELECT RAISE(ABORT,'never'); END")
    held = restarted(books)
    for number in range(4):
        opened(held, run=f"{number:032x}")
        told(held, 1, "abort", {}, f"{number:032x}")


def test_an_answer_that_is_under_way_when_its_run_is_closed_is_lost(books):
    """By its owner, from another process. It was paid for, it is not sent, and it is not drawn again."""
    held = opened(restarted(books))
    inner = held.source.map_reduce

    def meanwhile(*args, **kwargs):
        with closing(journal.Journal(f"{books}.runs", None)) as other:
            other.shut(RUN)
        return inner(*args, **kwargs)

    held.source.map_reduce = meanwhile
    asked = message(1, "cells", CELLS)
    assert held.answer(asked) is None
    held.source.map_reduce = inner
    assert Reply.from_bytes(held.answer(asked)).refused == "lost"
    assert held.ledger.spent().epsilon == 0.25


def test_the_ledger_bounds_all_runs_together():
    held = opened(party(budget=1.5))
    for seq, kind, body in (
        (1, "cells", CELLS),
        (2, "cells", {"level": 4, "nodes": [0]}),
        (3, "sums", SUMS),
        (4, "done", {"receipt": "0" * 64}),
    ):
        assert told(held, seq, kind, body).refused is None
    assert told(held, 0, "plan", plan(held), OTHER).refused == "budget"
    half = [Round("cells", HALF, level=2)]
    assert told(held, 0, "plan", plan(held, *half, epsilon=HALF), OTHER).refused is None
    assert told(held, 1, "cells", CELLS, OTHER).refused is None
    assert held.ledger.remaining().epsilon == 0


def test_a_round_is_refused_when_somebody_else_has_spent_the_rest():
    held = opened(party(budget=1.0))
    other = Party(OneThread([[0.0, 0.0]]), bounds=(-1, 1), name="south", ledger=held.ledger)
    opened(other, run=OTHER)
    assert told(held, 1, "cells", CELLS).refused is None
    assert told(other, 1, "cells", CELLS, OTHER).refused is None
    assert told(held, 2, "sums", SUMS).refused is None
    assert told(other, 2, "sums", SUMS, OTHER).refused == "budget"
    assert told(other, 2, "sums", SUMS, OTHER).refused == "budget"
    assert held.ledger.remaining().epsilon == 0


@pytest.mark.parametrize(
    ("policy", "change"),
    [
        (Policy(epsilon_per_run=0.5), {}),
        (Policy(max_rounds=2), {}),
        (Policy(max_clusters=1), {}),
        (Policy(protocols=("pdk",)), {}),
        (Policy(coordinators=("head-office",)), {}),
        (Policy(), {"data": "visits"}),
        (Policy(), {"protocol": "dk"}),
        (Policy(), {"epsilon": "none", "rounds": [Round("cells", Fraction(0), level=2).described()]}),
    ],
    ids=str,
)
def test_a_policy_is_kept(policy, change):
    held = party(budget=9.0, policy=policy)
    assert told(held, 0, "plan", plan(held) | change).refused == "policy"


def test_the_parties_of_a_run_are_those_that_the_policy_lists():
    held = party(policy=Policy(parties=("south", "north")))
    assert told(held, 0, "plan", plan(held)).refused == "policy"
    assert told(held, 0, "plan", plan(held, roster=roster_of(["north", "south", "east"]))).refused == "policy"
    assert told(held, 0, "plan", plan(held, roster=roster_of(["north", "south"]))).refused is None
    with pytest.raises(InvalidValue, match="not among them"):
        party(policy=Policy(parties=("south", "east")))


def test_a_plan_for_people_at_several_parties_is_none():
    """Its epsilon would be what they pay at one of them, and no run promises anything else."""
    held = party()
    assert told(held, 0, "plan", plan(held, parties_per_person=2)).refused == "payload"


def test_who_asks_is_checked_where_the_policy_names_somebody():
    held = party(policy=Policy(coordinators=("head-office",)))
    asked = message(0, "plan", plan(held))
    assert Reply.from_bytes(held.answer(asked, "somebody")).refused == "policy"
    assert Reply.from_bytes(held.answer(asked, "head-office")).refused is None


def test_policies_bound_sizes_of_messages():
    held = opened(party(policy=Policy(max_cells=3)))
    assert told(held, 1, "cells", CELLS).refused == "payload"
    assert told(held, 1, "cells", {"level": 2, "nodes": [0, 1, 2, 3]}).refused == "payload"
    assert told(held, 1, "cells", {"level": 2, "nodes": [0, 1, 2]}).refused is None
    held = opened(party(policy=Policy(max_level=3)))
    assert told(held, 1, "cells", {"level": 4, "nodes": [0]}).refused == "payload"


def test_exact_and_noisy_kinds_keep_to_their_own_plans():
    """Without noise nothing that needs it is answered, and under a promise nothing that has none."""
    held = party(policy=FREE, secret=bytes(32), budget=900.0)
    zero = Fraction(0)
    for kind in ("sample", "pick", "total"):
        assert told(held, 0, "plan", plan(held, Round(kind, zero), epsilon=None)).refused == "policy"
    for kind in ("seed", "update", "first"):
        assert told(held, 0, "plan", plan(held, Round(kind, Fraction(1)))).refused == "policy"


@pytest.mark.parametrize(
    ("protocol", "kind"),
    [("cells", "pick"), ("cells", "sample"), ("cells", "total"), ("sample", "pick"), ("sample", "sums"), ("pdk", "sample")],
)
def test_a_plan_asks_nothing_that_its_protocol_does_not_ask(protocol, kind):
    """Otherwise an owner who allows one protocol would have allowed all."""
    held = party(budget=9.0, policy=Policy(protocols=(protocol,)))
    assert told(held, 0, "plan", plan(held, Round(kind, Fraction(1)), protocol=protocol)).refused == "policy"


def test_a_run_without_noise_asks_nothing_that_its_protocol_does_not_ask():
    zero = Fraction(0)
    held = party(policy=Policy(protocols=("cells",), allow_exact=True), secret=bytes(32))
    assert told(held, 0, "plan", plan(held, Round("seed", zero), epsilon=None)).refused == "policy"
    sealed = party(policy=Policy(protocols=("dk",), allow_exact=True), secret=bytes(32))
    for part in (
        Round("cells", zero, level=44), Round("cells", zero, times=2), Round("seed", zero, times=3), Round("stats", zero),
        Round("update", zero, times=3), Round("first", zero, times=2), Round("spread", zero), Round("sums", zero),
    ):  # fmt: skip
        assert told(sealed, 0, "plan", plan(sealed, part, epsilon=None, protocol="dk")).refused == "policy", part
    twice = (Round("seed", zero, times=2), Round("seed", zero))
    assert told(sealed, 0, "plan", plan(sealed, *twice, epsilon=None, protocol="dk")).refused == "policy"
    good = (Round("cells", zero), Round("seed", zero, times=2), Round("update", zero, times=2), Round("first", zero))
    assert told(sealed, 0, "plan", plan(sealed, *good, epsilon=None, protocol="dk")).refused is None


def test_an_open_run_keeps_to_the_policy_and_domain_of_a_party_that_was_started_anew(books):
    """What the owner no longer allows is not answered, though a plan was agreed to under what was allowed before."""
    exact = plan(party(), Round("cells", Fraction(0), times=9, level=2), epsilon=None)
    held = restarted(books, policy=Policy(allow_exact=True))
    assert told(held, 0, "plan", exact).refused is None
    assert told(held, 1, "cells", CELLS).body["noise"] == "none"
    for policy, bounds, why in ((Policy(), (-1, 1), "policy"), (Policy(allow_exact=True), (-1, 2), "domain")):
        again = restarted(books, policy=policy, bounds=bounds)
        assert told(again, 2, "cells", CELLS).refused == why
    assert told(restarted(books, policy=Policy(allow_exact=True)), 2, "cells", CELLS).refused is None


def test_an_answer_that_would_not_fit_into_a_message_is_refused_without_a_charge():
    """65536 noisy rows of 200 columns would take gigabytes, and then be lost on the way."""
    held = party(np.zeros((1, 200)), policy=FREE, budget=9.0)
    opened(held, Round("sample", Fraction(1)), protocol="sample")
    assert told(held, 1, "sample", {"rows": 2**16, "size": 2**16}).refused == "payload"
    assert not held.ledger.charges()


@pytest.mark.parametrize(
    ("kind", "budget", "counts", "body"),
    [
        ("sums", Fraction(1), Fraction(1, 2**60), {"cells": [[0, 0]]}),
        ("sums", Fraction(1), Fraction(1), {"cells": [[0, 0]]}),
        ("stats", Fraction(1), Fraction(1, 2**60), {"centers": [[0, 0], [1, 1]], "radii": [1, 1]}),
        ("cells", Fraction(1, 10**39), Fraction(1), {"level": 0, "nodes": "all"}),
        ("pick", Fraction(1, 10**39), Fraction(1), {"centers": [], "total": 1}),
        ("sample", Fraction(1, 2**61), Fraction(1), {"rows": 1, "size": 1}),
    ],
    ids=str,
)
def test_budgets_too_small_for_any_noise_are_refused_without_a_charge(kind, budget, counts, body):
    protocol = {"pick": "pdk", "sample": "sample"}.get(kind, "cells")
    held = opened(party(), Round(kind, budget, counts=counts), epsilon=budget, protocol=protocol)
    assert told(held, 1, kind, body).refused == "payload"
    assert not held.ledger.charges()


def test_another_domain_or_unit_is_refused():
    held = party()
    assert told(held, 0, "plan", plan(held, domain="0" * 64)).refused == "domain"
    assert told(held, 0, "plan", plan(held, rows_per_person=2)).refused == "domain"
    other = party(bounds=(-1, 2))
    assert told(held, 0, "plan", plan(other)).refused == "domain"


def test_versions_and_garbage():
    held = party()
    for data in (b"", b"hello", b"{}", b"\x00" * 100, b'{"v":1}'):
        assert Reply.from_bytes(held.answer(data)).refused == "payload"
    assert Reply.from_bytes(held.answer(message(0, "hello", {}).replace(b'"v":1', b'"v":9'))).refused == "version"


def test_a_failure_that_may_lie_in_the_rows_is_silence_and_then_lost():
    class Broken(OneThread):
        def map_reduce(self, *args, **kwargs):
            raise MemoryError("row 17 is 3.14159")

    held = opened(Party(Broken([[0.0, 0.0]]), bounds=(-1, 1), name="north"))
    assert held.answer(message(1, "cells", CELLS)) is None
    assert told(held, 1, "cells", CELLS).refused == "lost"
    assert held.ledger.spent().epsilon == 0.25


def test_a_ledger_that_has_forgotten_is_not_believed(books, tmp_path):
    held = opened(restarted(books))
    told(held, 1, "cells", CELLS)
    Ledger.create(tmp_path / "fresh.db", "north", 2.0, relation="add-remove")
    with pytest.raises(BudgetError, match="forgotten"):
        party(ledger=str(tmp_path / "fresh.db"), journal=f"{books}.runs")


def test_a_journal_belongs_to_one_party(books, tmp_path):
    restarted(books)
    with pytest.raises(InvalidValue, match="journal"):
        restarted(books, name="south")
    (tmp_path / "other").write_text("no database")
    with pytest.raises(InvalidValue, match="journal"):
        party(journal=tmp_path / "other")


def test_what_a_party_is_made_of_is_checked():
    for options in ({"name": "a b"}, {"name": ""}, {"name": "x" * 65}, {"dataset": "../rows"}, {"secret": b"short"}):
        with pytest.raises(InvalidValue):
            party(**options)
    with pytest.raises(InvalidValue, match="bounds"):
        party(bounds=(1, 0))
    with pytest.raises(InvalidType):
        party(ledger=3)
    people = Ledger.memory("x", 1, relation="add-remove", unit=PrivacyUnit("person", 2))
    for other in (Ledger.memory("x", 1, relation="replace-one"), people):
        with pytest.raises(LedgerMismatch, match="protects"):
            party(ledger=other)


def test_people_are_charged_for_all_their_rows():
    """A person with up to 3 rows: noise three times as wide, by the party's own count."""
    unit = PrivacyUnit("person", 3, "id")
    held = Party(OneThread([[0.0, 0.0]], unit), bounds=(-1, 1), name="north")
    opened(held, rows_per_person=3)
    told(held, 1, "cells", CELLS)
    (entry,) = held.ledger.charges()
    assert '"sensitivity": 3' in entry.plan


@pytest.mark.parametrize(
    "rows", [np.empty((0, 2)), [[np.nan, 1]], [[np.inf, -np.inf]], [[1e300, 5]], np.zeros((500, 2))], ids=str
)
def test_the_shape_of_an_answer_does_not_depend_on_rows(rows):
    """Empty, missing, infinite, out of range, many: the same keys, lengths and charges."""
    held = opened(party(rows))
    counts = told(held, 1, "cells", CELLS).body
    sums = told(held, 2, "sums", SUMS).body
    assert (set(counts), len(counts["count"])) == ({"count", "noise"}, 4)
    assert (set(sums), np.shape(sums["count"]), np.shape(sums["dev"])) == ({"count", "dev", "noise"}, (3,), (3, 2))
    assert held.ledger.spent().epsilon == 0.75


def test_policies_are_read_from_files(tmp_path):
    (tmp_path / "policy.json").write_text('{"epsilon_per_run": 0.5, "protocols": ["cells"], "max_clusters": 16}')
    assert Policy.read(tmp_path / "policy.json") == Policy(0.5, protocols=("cells",), max_clusters=16)
    for text in ('{"epsilon_per_rn": 1}', "[]", "no", '{"max_rounds": "many"}', '{"max_rounds": 0}', '{"protocols": ["x"]}',
                 '{"allow_exact": 1}', '{"max_level": 63}', '{"epsilon_per_run": -1}', '{"coordinators": [1]}'):  # fmt: skip
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(InvalidValue):
            Policy.read(tmp_path / "bad.json")
    with pytest.raises(InvalidValue):
        Policy.read(tmp_path / "missing.json")


def test_the_owner_is_told_which_limit_a_plan_is_beyond_and_how_long_a_run_is_open(caplog):
    caplog.set_level("INFO", logger="kveil.federate")
    held = party(policy=Policy(epsilon_per_run=0.5, max_clusters=1))
    assert told(held, 0, "plan", plan(held)).refused == "policy"
    assert "the plan is beyond max_clusters, epsilon_per_run" in caplog.text
    now = [1000.0]
    held = party(clock=lambda: now[0])
    opened(held, expires=600)
    now[0] += 100
    assert told(held, 0, "plan", plan(held), OTHER).refused == "busy"
    assert "is open and keeps others out for 140 more seconds" in caplog.text
