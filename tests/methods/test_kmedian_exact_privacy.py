"""The whole fit on tiny tables: the exact log-ratio of everything it releases, for neighbours, never passes epsilon.

With one column and pure noise every release is discrete Laplace or a selection, so the probability of a whole sequence of
outcomes is known in closed form. The outcomes of a fit to one table are forced on a fit to its neighbour: both then see
the same released values, and the ratio of their probabilities is what the guarantee speaks about.
"""

import numpy as np
import pytest

from kveil import Ledger, PrivateKMedian
from kveil.desk.pool import Pool
from kveil.testing import scripted
from kveil.tuning import KMedian

EPSILON = 1.0
POINTS = [-1.0, -0.25, 0.0, 0.5, 1.0]
TABLES = [[], [0.0], [-1.0, -1.0], [0.5, 1.0], [-1.0, 0.0, 1.0], [-0.25] * 4]
PARAMETERS = {
    "one step from a public start": {"init": [[0.5]], "n_steps": 1},
    "two clusters": {"n_clusters": 2, "init": [[-0.5], [0.5]], "n_steps": 2},
    "the tree": {"n_clusters": 2, "method": "tree", "n_steps": 1},
    "drawn places": {"init": [[0.5]], "tuning": KMedian(recovery="grid")},
    "drawn places of two clusters": {"n_clusters": 2, "init": [[-0.5], [0.5]], "tuning": KMedian(recovery="grid")},
    "drawn from all places": {"n_clusters": 2, "init": [[-0.5], [0.5]], "tuning": KMedian(recovery="all")},
}


def played(rows, parameters, monkeypatch, outcomes=None):
    """Run a fit; return what it released and the logarithm of its probability up to a constant. `outcomes` are forced."""
    draw, released, logs = Pool._draw, [], []

    def watched(pool, measurement, raw):
        noisy = draw(pool, measurement, raw)  # charged as ever
        value = noisy if outcomes is None else outcomes[len(released)]
        released.append(value)
        charge = measurement.charge
        rate = float(charge.epsilon) / charge.sensitivity
        if charge.mechanism == "select":
            scores = -rate * raw.astype(np.float64)
            top = scores.max(axis=1)
            totals = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
            logs.append(float((scores[np.arange(len(raw)), value] - totals).sum()))
        else:
            assert charge.mechanism == "discrete-laplace"
            logs.append(-rate * float(np.abs(value - raw).sum()))
        return value

    with monkeypatch.context() as patch, scripted(7):
        patch.setattr(Pool, "_draw", watched)
        table = np.array(rows, dtype=np.float64).reshape(-1, 1)
        ledger = Ledger.memory("exact", EPSILON, relation="add-remove")
        PrivateKMedian(
            **{"n_clusters": 1, "bounds": (-1, 1), "epsilon": EPSILON, "ledger": ledger, "random_state": 0, **parameters}
        ).fit(table)
    return released, sum(logs)


@pytest.mark.parametrize("parameters", PARAMETERS.values(), ids=PARAMETERS)
def test_adding_a_row_never_changes_the_probability_of_a_whole_release_by_more_than_epsilon(parameters, monkeypatch):
    worst = 0.0
    for rows in TABLES:
        released, log = played(rows, parameters, monkeypatch)
        for point in POINTS:
            again, other = played([*rows, point], parameters, monkeypatch, outcomes=released)
            assert len(again) == len(released)
            worst = max(worst, abs(other - log))
    assert worst <= EPSILON * (1 + 1e-9)
    assert worst > 0.1 * EPSILON  # the check would notice a fit that ignores its rows


def test_costs_of_all_places_that_move_four_times_as_far_as_they_are_charged_for_are_noticed(monkeypatch):
    """The guard of draws: the same check, with costs four times as high."""
    real = Pool.choose_each
    monkeypatch.setattr(Pool, "choose_each", lambda pool, part, raw, share: real(pool, part, raw * 4, share))
    parameters = PARAMETERS["drawn from all places"]
    released, log = played([], parameters, monkeypatch)
    assert max(abs(played([p], parameters, monkeypatch, released)[1] - log) for p in POINTS) > EPSILON


def test_a_sensitivity_four_times_too_small_is_noticed(monkeypatch):
    """The guard: the same check, with pulls and weights that move four times as far as they are charged for."""
    real = Pool.release

    def release(pool, part, raw, share):
        times = 4 if part.kind == "vectors" else 1
        return real(pool, part, raw * times, share) / times

    monkeypatch.setattr(Pool, "release", release)
    parameters = PARAMETERS["one step from a public start"]
    worst = 0.0
    for rows in TABLES:
        released, log = played(rows, parameters, monkeypatch)
        worst = max(worst, *(abs(played([*rows, p], parameters, monkeypatch, released)[1] - log) for p in POINTS))
    assert worst > EPSILON
