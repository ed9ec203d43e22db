"""`kveil.audit.replay`: models pass, leaks are violated, a fit that raises is unknown. The tape has tests of its own."""

import threading

import numpy as np
import pytest

from kveil import Ledger, PrivateKMeans
from kveil.audit import replay
from kveil.errors import InvalidType, TicketError

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

    assert replay(act, TABLE, TABLE[1:]).outcome == "unknown"
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
