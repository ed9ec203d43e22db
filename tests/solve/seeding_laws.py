"""The exact law of a seeding, read off the algorithm itself, and the law it should have, by its definition."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np

from kveil.solve import instances, seeding


class Forks:
    """A public generator that takes a chosen branch at every draw and notes how likely it was. Past the chosen ones it takes
    the first branch, and leaves the others to be walked later."""

    def __init__(self, chosen):
        self.chosen, self.taken, self.chance, self.others = list(chosen), [], Fraction(1), []

    def pick(self, scores):
        exact = [Fraction(float(score)) for score in scores]
        if len(self.taken) < len(self.chosen):
            branch = self.chosen[len(self.taken)]
        else:
            branch, *later = [i for i, score in enumerate(exact) if score > 0]
            self.others += [[*self.taken, other] for other in later]
        self.taken.append(branch)
        self.chance *= exact[branch] / sum(exact)
        return branch

    def integers(self, n):
        return self.pick([1] * n)


def realised_law(run, monkeypatch):
    """{centres: chance} of `run(rng) -> centres`, over every way its draws can fall, in exact rationals."""
    law, waiting = Counter(), [[]]
    with monkeypatch.context() as patch:
        for module in (seeding, instances):
            patch.setattr(module, "draw_index", lambda scores, rng: rng.pick(scores))
        patch.setattr(np.random, "default_rng", lambda rng: rng)
        while waiting:
            rng = Forks(waiting.pop())
            centers = run(rng)
            law[tuple(map(tuple, centers.tolist()))] += rng.chance
            waiting += rng.others
    assert sum(law.values()) == 1
    return law


def squares(a, c):
    return sum((x - y) ** 2 for x, y in zip(a, c, strict=True))


def fourth_powers(a, c):
    """The Bregman divergence of sum x^4, data first: not symmetric, and exact for small whole numbers."""
    return sum(x**4 - y**4 - 4 * y**3 * (x - y) for x, y in zip(a, c, strict=True))


class FourthPowers:
    """`fourth_powers` as a plug."""

    def to_center(self, points, center):
        return (points**4 - center**4 - 4 * center**3 * (points - center)).sum(axis=1)


def defined_law(points, weights, k, divergence=squares):
    """{centres: chance} of weighted k-means++ by its definition; of divergences from data to centre, if told so."""
    law = Counter()
    rows = [tuple(Fraction(x) for x in row) for row in points]
    weights = [Fraction(w) for w in weights]

    def apart(a, b):
        return divergence(rows[a], rows[b])

    for anchors in product(range(len(rows)), repeat=k):
        chance = Fraction(1)
        for t, anchor in enumerate(anchors):
            scores = [w * (min(apart(i, a) for a in anchors[:t]) if t else 1) for i, w in enumerate(weights)]
            scores = scores if sum(scores) else weights
            chance *= scores[anchor] / sum(scores)
        if chance:
            law[tuple(tuple(points[anchor]) for anchor in anchors)] += chance
    return law


def cost(points, weights, centers):
    squares = ((np.asarray(points)[:, None] - np.asarray(centers)[None]) ** 2).sum(axis=2)
    return float((np.asarray(weights) * squares.min(axis=1)).sum())


def best_partition(points, weights, k):
    """The least cost of k centres and the centre of every row in it, by trying all partitions."""
    points, weights = np.asarray(points), np.asarray(weights)
    best = (np.inf, None)
    for labels in product(range(k), repeat=len(points)):
        labels = np.array(labels)
        centers = np.zeros((k, points.shape[1]))
        for j in range(k):
            mine = labels == j
            if weights[mine].sum() > 0:
                centers[j] = np.average(points[mine], axis=0, weights=weights[mine])
        at = float((weights * ((points - centers[labels]) ** 2).sum(axis=1)).sum())
        if at < best[0]:
            best = at, centers[labels]
    return best
