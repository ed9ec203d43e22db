"""The whole fit on tiny tables: the exact log-ratio of everything it releases, for neighbours, never passes epsilon.

With one column and pure noise every release is discrete Laplace or a selection, so the probability of a whole sequence of
outcomes is known in closed form. The outcomes of a fit to one table are forced on a fit to its neighbour: both then see
the same released values, and the ratio of their probabilities is what the guarantee speaks about.
"""

import numpy as np
import pytest

from kveil import PrivateKMedian
from kveil.audit import exact
from kveil.desk.pool import Pool
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


def largest_loss(parameters, bases=TABLES, samples=1):
    """By drawn paths of every table: their outcomes are forced on the table with one more row."""
    model = PrivateKMedian(**{"n_clusters": 1, "bounds": (-1, 1), "epsilon": EPSILON, "random_state": 0, **parameters})
    return exact(model, np.array(POINTS)[:, None], bases=bases, most_outcomes=0, samples=samples).loss


@pytest.mark.parametrize("parameters", PARAMETERS.values(), ids=PARAMETERS)
def test_adding_a_row_never_changes_the_probability_of_a_whole_release_by_more_than_epsilon(parameters):
    worst = largest_loss(parameters)
    assert worst <= EPSILON * (1 + 1e-9)
    assert worst > 0.1 * EPSILON  # the check would notice a fit that ignores its rows


def test_costs_of_all_places_that_move_four_times_as_far_as_they_are_charged_for_are_noticed(monkeypatch):
    """The guard of draws: the same check, with costs four times as high."""
    real = Pool.choose_each
    monkeypatch.setattr(Pool, "choose_each", lambda pool, part, raw, share: real(pool, part, raw * 4, share))
    assert largest_loss(PARAMETERS["drawn from all places"], [[]], samples=9) > EPSILON


def test_a_sensitivity_four_times_too_small_is_noticed(monkeypatch):
    """The guard: the same check, with pulls and weights that move four times as far as they are charged for."""
    real = Pool.release

    def release(pool, part, raw, share):
        times = 4 if part.kind == "vectors" else 1
        return real(pool, part, raw * times, share) / times

    monkeypatch.setattr(Pool, "release", release)
    assert largest_loss(PARAMETERS["one step from a public start"]) > EPSILON
