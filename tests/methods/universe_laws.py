"""Exact laws of private fits on tiny universes: outcomes are forced, and their probabilities added up in closed form."""

from itertools import product

import numpy as np

from kveil.desk.walk import PlaceCosts, walk
from kveil.kernel import gate
from kveil.testing import scripted


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


class Watched:
    """Every release of a fit: what was charged, what went in, what came out. `forced` outcomes replace the drawn ones."""

    def __init__(self, monkeypatch, forced=None):
        self.charges, self.secrets, self.outcomes = [], [], []
        real = gate.run

        def run(measurement, secret, account):
            depth = len(self.charges)
            noisy, receipt = real(measurement, secret, account)  # charged and drawn as ever
            if len(self.charges) == depth:  # a ledger makes a reservation and comes back through here
                value = noisy if forced is None else forced[depth]
                self.charges.append(measurement.charge)
                self.secrets.append(np.array(secret))
                self.outcomes.append(value)
            return self.outcomes[-1], receipt

        monkeypatch.setattr(gate, "run", run)

    def log_probability(self):
        """Of all outcomes together, up to a constant that is the same for all secrets."""
        return sum(_log(charge, raw, value) for charge, raw, value in zip(self.charges, self.secrets, self.outcomes, strict=True))


def _log(charge, raw, value):
    if charge.mechanism == "select":
        scores = -raw * float(charge.epsilon / charge.sensitivity)
        return float(scores[value] - scores.max() - np.log(np.exp(scores - scores.max()).sum()))
    if charge.mechanism == "discrete-laplace":
        return -float(charge.epsilon / charge.sensitivity) * float(np.abs(value - raw).sum())
    assert charge.mechanism == "discrete-gaussian"
    return -float(charge.rho) / charge.sensitivity**2 * float(((value - raw).astype(np.float64) ** 2).sum())


def watched_fit(model, demand, monkeypatch, forced=None):
    with monkeypatch.context() as patch, scripted(7):
        seen = Watched(patch, forced)
        model.fit(demand)
    return seen


def moved(charge, one, other):
    """How far apart two secrets are, in the norm that the charge names."""
    apart = (one - other).astype(np.float64)
    if charge.norm == "range":
        return apart.max() - apart.min()
    return np.abs(apart).sum() if charge.norm == "l1" else np.sqrt((apart**2).sum())
