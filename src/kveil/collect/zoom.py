"""Two rounds: the cell of a coarse grid, then of a finer one inside cells that hold many people. For up to 3 columns.

A count is as noisy among many cells as among few. So where people crowd, cells of the second round are so small that about as
many people are in each as its noise counts; all others stay as they are. What a cell holds is known from both rounds then, and
its parts share that. A device looks for the nearest of points, the middles of all these cells: a question that all clients know.
"""

from __future__ import annotations

from math import inf, sqrt

import numpy as np

from kveil.arrays import Floats, Integers
from kveil.collect.descent import Proxy, children, estimated, threshold
from kveil.collect.one_grid import CUT, cell_query, clustered
from kveil.collect.oracles import best_oracle, variance
from kveil.collect.queries import LARGEST, Answers, Keys, Outcome, Query, Round, Terms, public_generator
from kveil.errors import InvalidValue
from kveil.partition.public_map import PublicMap, into_ball

DEPTHS = {1: 6, 2: 8, 3: 9}
SHARES = (0.4, 0.6)
LEAST = 1.0  # people that a finer cell would have if all had as many, in standard deviations of its count
MOST_HALVINGS = 3  # of each axis of a heavy cell
MOST_CELLS = 2048  # of the second round


class Zoom:
    name = "zoom"
    version = 1
    shares: tuple[float, ...] = SHARES

    def __init__(self, terms: Terms, seed: bytes) -> None:
        if terms.n_columns > 3:
            raise InvalidValue('protocol="zoom" is for at most 3 columns: beyond, its cells hold too few people. Use "refine".')
        self.terms, self.seed = terms, seed

    def first(self) -> Round:
        d = self.terms.n_columns
        one = PublicMap.drawn(d, d, public_generator(self.seed, "round", 1))
        return Round(1, (cell_query(0, one, DEPTHS[d], self.terms),))

    def next(self, done: Round, answers: Answers, seed: bytes) -> Round | Outcome:
        if done.number == 1:
            return self._finer(done.queries[0], answers)
        return clustered(self._proxy(done, answers), self.terms.k, public_generator(seed, "solve"))

    def _finer(self, query: Query, answers: Answers) -> Round:
        one, depth = query.maps[0], query.depth or 0
        keys = within_ball(one, children(np.zeros(1, dtype=np.uint64), depth), depth)
        people, sd = estimated(answers, query, keys, self.terms)
        halvings = self._halvings(people, threshold(CUT, sd, len(keys)))
        finer = [within_ball(one, children(keys[i : i + 1], bits), depth + bits) for i, bits in enumerate(halvings.tolist())]
        middles = [one.middles(some, depth + bits) for some, bits in zip(finer, halvings.tolist(), strict=True)]
        places = into_ball(np.vstack(middles)).astype(np.float32)
        oracle = best_oracle(len(places), self.terms.epsilon)
        asked = Query(id=0, kind=oracle.kind, M=oracle.M, kappa=1, key_rule="nearest", centres=(places,))
        state = {"people": people.tolist(), "sd": min(sd, LARGEST), "cells": [len(some) for some in finer]}
        return Round(2, (asked,), state)

    def _halvings(self, people: Floats, least: float) -> Integers:
        """How often each cell is halved: while the parts would have enough people, and not too many cells in all."""
        sd = sqrt(self.terms.n * expected_variance(self.terms) / self.shares[1])
        halvings = np.floor(np.log2(np.maximum(people, 1.0) / (LEAST * sd)))
        halvings = np.where(people >= least, np.clip(halvings, 0, MOST_HALVINGS * self.terms.n_columns), 0).astype(np.int64)
        while (1 << halvings).sum() > MOST_CELLS:
            halvings = np.maximum(halvings - 1, 0)
        return halvings

    def _proxy(self, done: Round, answers: Answers) -> Proxy:
        """Cells that stand out in both rounds together, and all parts of those that were divided."""
        query, cells = done.queries[0], np.asarray(done.state["cells"], dtype=np.int64)
        points = into_ball(query.centres[0].astype(np.float64))  # single precision may have put some just outside
        people, sd = estimated(answers, query, np.arange(len(points), dtype=np.uint64), self.terms)
        before, noise = np.asarray(done.state["people"], dtype=np.float64), float(done.state["sd"])
        above = np.repeat(np.arange(len(cells)), cells)
        trust = 1 / (1 + noise**2 / (cells * sd**2))  # in the round before: all of it if nobody answered this one
        totals = trust * before + (1 - trust) * np.bincount(above, people, minlength=len(cells))
        is_divided = cells > 1
        sd_whole = noise * sqrt(1 / (1 + noise**2 / sd**2))
        stands_out = ~is_divided & (totals >= threshold(CUT, sd_whole, max(2, int((~is_divided).sum()))))
        weights = np.where(stands_out, totals, 0.0)[above]
        for i in np.flatnonzero(is_divided):
            weights[above == i] = onto_total(people[above == i], totals[i])
        shared = np.where(is_divided, inf, 1.0)[above]  # that a divided cell is heavy is known: nothing is taken off its parts
        is_there = weights > 0
        if not is_there.any():
            return Proxy(np.zeros((1, points.shape[1])), np.array([float(self.terms.n)]), 0.0, np.ones(1))
        return Proxy(points[is_there], weights[is_there], sd_whole, shared[is_there])


def expected_variance(terms: Terms) -> float:
    """Of a count in the second round, a report."""
    oracle = best_oracle(1 << DEPTHS[terms.n_columns], terms.epsilon)
    return variance(oracle.kind, oracle.M, terms.epsilon)


def within_ball(one: PublicMap, keys: Keys, depth: int) -> Keys:
    """Cells that anyone can be in."""
    return keys[one.meets_ball(keys, depth)]


def onto_total(estimates: Floats, total: float) -> Floats:
    """The nearest numbers, none below 0, that add up to a total: noise below a common level is cut off."""
    if total <= 0:
        return np.zeros(len(estimates))
    down = np.sort(estimates)[::-1]
    levels = (np.cumsum(down) - total) / np.arange(1, len(down) + 1)
    return np.asarray(np.maximum(estimates - levels[np.flatnonzero(down > levels)[-1]], 0.0))
