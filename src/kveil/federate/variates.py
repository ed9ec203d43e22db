"""k-variates++ over parties: one is drawn by its total, and gives one of its rows. "pdk" with noise, "dk" with sealed rows.

"pdk" is PDk-means++ with the totals noisy and the picks bounded: as printed, exact totals and the choice of the party tell about
single records, and the paper claims privacy for the centres alone. Each party counts its own picks and refuses one too many. Kept
for parity: "cells" is far better.
"dk" is Dk-means++: exact k-means++ of all rows, since a party draws its row by squared distance. It promises nothing.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np

from kveil.arrays import Integers
from kveil.desk.seeds import projected
from kveil.federate.layout import Layout
from kveil.federate.picks import LARGEST, PickMessage, TotalMessage
from kveil.federate.plan import Round, shared_out
from kveil.federate.questions import CellsMessage
from kveil.federate.sealed import FirstMessage, SealedSeeds, SeedMessage, UpdateMessage
from kveil.federate.steps import Steps, step_rounds, step_weights
from kveil.questions.cells import TOP
from kveil.solve.placed import Placed
from kveil.solve.wkmeans import padded

OF_SEEDS = Fraction(1, 2)  # of the budget, where steps follow
OF_SIZE, OF_TOTALS = Fraction(1, 50), Fraction(9, 50)  # of the seeds' budget


def most_picks(n_clusters: int, n_parties: int) -> int:
    """How often one party may be picked: enough for all centres, with some room for drop-outs and uneven sizes."""
    return min(n_clusters, ceil(n_clusters / n_parties) + 1)


def private_schedule(
    layout: Layout, epsilon: Fraction | None, delta: Fraction, n_steps: int, n_clusters: int, n_parties: int
) -> tuple[Round, ...]:
    """The noisy number of rows, a noisy total for every later centre, so many picks, and steps."""
    seeds, picks = OF_SEEDS if n_steps else Fraction(1), most_picks(n_clusters, n_parties)
    of_picks = 1 - OF_SIZE - (OF_TOTALS if n_clusters > 1 else 0)
    weights = [(seeds * OF_SIZE, 1), (seeds * of_picks / picks, picks)]
    weights += [(seeds * OF_TOTALS / (n_clusters - 1), n_clusters - 1)] if n_clusters > 1 else []
    budgets = shared_out(epsilon, delta, [*weights, *step_weights(1 - seeds, n_steps)])
    rounds = [Round("cells", budgets[0], level=0), Round("pick", budgets[1], times=picks)]
    rounds += [Round("total", budgets[2], times=n_clusters - 1)] if n_clusters > 1 else []
    return *rounds, *step_rounds(budgets[len(rounds) :], layout.domain.n_columns)


def sealed_schedule(layout: Layout, n_steps: int, n_clusters: int) -> tuple[Round, ...]:
    """The number of rows, a seed and a total for every centre, one step from the seeds, and more from released centres."""
    free = Fraction(0)
    rounds = [Round("cells", free, level=0), Round("seed", free, times=n_clusters), Round("update", free, times=n_clusters)]
    return *rounds, Round("first", free), *step_rounds([free] * (2 * (n_steps - 1)), layout.domain.n_columns)


class PrivateVariatesRun(Steps):
    """PDk-means++ with noisy totals and capped picks."""

    def run(self) -> Placed:
        weights = self.answered("cells", CellsMessage(0))
        left = dict.fromkeys(weights, self.parts("pick")[0].times)
        codes = np.empty((0, self.layout.domain.n_columns), dtype=np.int64)
        while len(codes) < self.k:
            if len(codes):
                weights = self.answered("total", TotalMessage(codes))
            found = self._picked(codes, weights, left)
            if not len(found):
                break
            codes = np.vstack([codes, found])
        points = self.layout.encoded(self.layout.domain.decode(codes)) if len(codes) else np.zeros((1, codes.shape[1]))
        return self.stepped(self.start(padded(points, self.k, self.rng)))

    def _picked(self, codes: Integers, weights: dict[str, int], left: dict[str, int]) -> Integers:
        """A noisy row, as (1, d) codes of the domain, of a party drawn by its weight; of another if that one is lost; (0, d) if
        nobody may be picked any more."""
        domain = self.layout.domain
        while names := [name for name in self.coordinator.present if left.get(name, 0) > 0 and name in weights]:
            name = _drawn(names, weights, self.rng)
            left[name] -= 1
            question = PickMessage(codes, int(np.clip(weights[name], 1, LARGEST)))
            for (code,) in self.coordinator.ask("pick", question, self.layout, [name]).values():
                return np.asarray(domain.encode(projected(code[None], domain)), dtype=np.int64)
        return codes[:0]


class SealedVariatesRun(Steps):
    """Dk-means++: the coordinator passes sealed rows on and learns totals, and centres by one exact Lloyd step."""

    def run(self) -> Placed:
        sizes = weights = self.answered("cells", CellsMessage(0))
        seeds = SealedSeeds((), ())
        while len(seeds.messages) < self.k:
            if seeds.messages:
                weights = self.answered("update", UpdateMessage(seeds))
            seeds = self._seeded(seeds, weights if any(weights.values()) else sizes)
        (counts, sums), _ = self.asked("first", FirstMessage(seeds, self.k))
        centers = sums * (self.reach / TOP) / np.maximum(counts, 1.0)[:, None]
        return self.stepped(Placed(centers, counts, np.zeros(self.k)))

    def _seeded(self, seeds: SealedSeeds, weights: dict[str, int]) -> SealedSeeds:
        """One seed more, of a party drawn by its weight; of another if that one is lost."""
        while True:  # a party that does not answer is lost, and a run without parties ends in an error
            name = _drawn([name for name in self.coordinator.present if name in weights], weights, self.rng)
            for (message,) in self.coordinator.ask("seed", SeedMessage(seeds), self.layout, [name]).values():
                return SealedSeeds((*seeds.messages, tuple(message.tolist())), (*seeds.senders, name))


def _drawn(names: list[str], weights: dict[str, int], rng: np.random.Generator) -> str:
    """A party by its weight; any, alike, if none has a positive one. Released values and public randomness alone."""
    scores = np.array([max(0, weights[name]) for name in names], dtype=np.float64)
    scores = scores if scores.any() else np.ones(len(names))
    return names[int(rng.choice(len(names), p=scores / scores.sum()))]
