"""`kveil.audit.replay`: models pass, leaks are violated, a fit that raises is unknown. The tape has tests of its own."""

import secrets
import threading
from datetime import UTC, datetime
from fractions import Fraction

import numpy as np
import pytest

from kveil import Ledger, PrivateKMeans
from kveil.audit import replay
from kveil.errors import InvalidType, TicketError
from kveil.kernel import gate
from kveil.kernel.exact import entropy
from kveil.kernel.loss import Plan
from kveil.kernel.noise import laplace_noise
from kveil.release import release

TABLE = np.repeat([[0.2, 0.1], [0.9, 0.8]], 10, axis=0)


class Leaky(PrivateKMeans):
    """Keeps the number of its rows."""

    def fit(self, X, y=None, **more):
        super().fit(X, y, **more)
        self.n_seen_ = len(X)
        return self


def test_a_model_passes_and_its_ledger_is_not_charged():
    ledger = Ledger.memory("clinic", 1.0, relation="add-remove")
    found = replay(PrivateKMeans(2, bounds=(0, 1), ledger=ledger, random_state=0), TABLE, TABLE[1:])
    assert found.outcome == "consistent"
    assert found.draws > 2
    assert ledger.spent().epsilon == 0


def test_a_number_of_rows_that_is_kept_is_violated_and_named_without_its_value():
    found = replay(Leaky(2, bounds=(0, 1), random_state=0), TABLE, TABLE[1:])
    assert found.is_violated
    assert "pickle" in str(found)
    assert "20" not in str(found)


def test_a_fit_that_raises_is_unknown_unless_that_counts_as_something_that_leaves():
    def act(table):
        if len(table) < 20:
            raise KeyError("19 rows")
        return {"n": PrivateKMeans(1, bounds=(0, 1), method="mean").fit(table).release_.centers}

    found = replay(act, TABLE, TABLE[1:])
    assert found.outcome == "unknown"
    assert "19" not in str(found), "what an error says may quote rows"
    assert replay(act, TABLE, TABLE[1:], may_raise=(KeyError,)).is_violated
    with pytest.raises(InvalidType):
        replay(3, TABLE, TABLE)


def test_a_fit_in_another_thread_meanwhile_is_refused_and_not_given_scripted_noise():
    caught = []

    def other():
        try:
            PrivateKMeans(1, bounds=(0, 1), method="mean").fit(TABLE)
        except (TicketError, AssertionError) as error:
            caught.append(error)

    def act(table):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return {"n": PrivateKMeans(1, bounds=(0, 1), method="mean").fit(table).release_.centers}

    replay(act, TABLE, TABLE[1:])
    assert caught


def test_another_thread_meanwhile_has_real_tokens_and_days_and_no_scripted_words():
    """Keys, tokens of parties and secret words that are scripted could be foreseen by whoever knows this package."""
    seen, plan = [], Plan((laplace_noise("count", 1, Fraction(1, 2)).charge,), "add-remove")

    def other():
        with pytest.raises(TicketError):
            gate.secret_words(2)
        paid = Ledger.memory("clinic", 1.0, relation="add-remove").reserve(plan)
        seen.append((secrets.token_urlsafe(16), secrets.token_hex(16), secrets.token_bytes(nbytes=16), paid.token))
        assert release.datetime.now(UTC).year == datetime.now(UTC).year

    def act(table):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return {"n": PrivateKMeans(1, bounds=(0, 1), method="mean").fit(table).release_.centers}

    assert replay(act, TABLE, TABLE[1:]).outcome == "consistent"
    assert len(seen) == 2
    assert not set(seen[0]) & set(seen[1])


def test_nothing_of_a_replay_stays_after_it():
    before = gate.run, gate.secret_words, secrets.token_bytes, release.datetime
    replay(PrivateKMeans(2, bounds=(0, 1), random_state=0), TABLE, TABLE[1:])
    assert (gate.run, gate.secret_words, secrets.token_bytes, release.datetime) == before
    assert entropy().secure
    assert PrivateKMeans(1, bounds=(0, 1), method="mean").fit(TABLE).release_.guarantee.valid


def test_what_is_fitted_inside_a_replay_is_invalid_and_taints_a_ledger_that_it_charges():
    ledger, promises = Ledger.memory("clinic", 10.0, relation="add-remove"), []

    def act(table):
        model = PrivateKMeans(1, bounds=(0, 1), method="mean", ledger=ledger).fit(table)
        promises.append(model.release_.guarantee)
        return {"centers": model.release_.centers}

    assert replay(act, TABLE, TABLE[1:]).outcome == "consistent"
    assert [promise.valid for promise in promises] == [False, False]
    later = PrivateKMeans(1, bounds=(0, 1), method="mean", ledger=ledger).fit(TABLE)
    assert not later.release_.guarantee.valid
