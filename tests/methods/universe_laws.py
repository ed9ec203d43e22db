"""Exact laws of private fits on tiny universes: outcomes are forced, and their probabilities added up in closed form."""

from itertools import product

import numpy as np

from kveil.auditing.exact import Walks
from kveil.auditing.replay import as_act
from kveil.desk.walk import PlaceCosts, walk


class Branch(Exception):
    """The walk has come to a choice that no outcome was given for."""


def walk_law(space, loss, counts, start, n_steps, eta, window, seen_by=None):
    """All outcomes of a private walk with their log-probabilities: {(places chosen, centres released): log P}.

    A choice weighs exp(-cost eta / (window * differ)). `seen_by` stands in for the universe where differences are looked up.
    """
    costs = PlaceCosts(space, counts, np.arange(space.n_points), loss)
    found, open_ends = {}, [((), 0.0)]
    while open_ends:
        outcomes, log = open_ends.pop()
        scores = None

        def choose(label, raw, differ, outcomes=outcomes, place=iter(range(99))):
            nonlocal scores
            number = next(place)
            if number < len(outcomes):
                return outcomes[number]
            scores = -raw * (eta / (window * differ))
            raise Branch

        try:
            released = walk(seen_by or space, costs, start, n_steps, choose, np.random.default_rng(0))
            found[outcomes, tuple(sorted(released.tolist()))] = log
        except Branch:
            logs = scores - (scores.max() + np.log(np.exp(scores - scores.max()).sum()))
            open_ends += [((*outcomes, i), log + float(logs[i])) for i in range(len(logs))]
    return found


def outputs(law, part=lambda outcomes, centers: centers):
    """The law of what is released alone, or of another part of an outcome: {part: log P}."""
    found = {}
    for outcome, log in law.items():
        found[part(*outcome)] = np.logaddexp(found.get(part(*outcome), -np.inf), log)
    return found


def worst_losses(law, other):
    """The largest log-ratio of a whole walk, and of what is released."""
    trace = max(abs(law[outcome] - other[outcome]) for outcome in law)
    here, there = outputs(law), outputs(other)
    return trace, max(abs(here[centers] - there[centers]) for centers in here)


def small_demands(n_points, values):
    """All demands with so many rows at each point."""
    return [np.array(counts, dtype=np.int64) for counts in product(values, repeat=n_points)]


def watched_fit(model, demand, forced=None):
    """One path of a fit: that of scripted noise, or the one with forced outcomes. `model`: an estimator or a function."""
    walks = Walks(as_act(model), most_outcomes=0, samples=1)
    return next(walks.paths(demand)) if forced is None else walks.along(forced, demand)
