"""LAE, the four rounds of "Locally Private k-Means Clustering with Constant Multiplicative Approximation and Near-Optimal
Additive Error": heavy cells; buckets of near points in medium cells; the weight of every candidate; means.

Every person answers one query of one round with all of epsilon. In the paper's pseudo-code everyone answers all of them, with
budgets (epsilon_CH and others) that it names and leaves to a supplement, which we do not have. Whoever is in no medium cell
answers, too, with the key 0 and the vector 0, as in that pseudo-code. The last round sums vectors per centre; the pseudo-code
prints one sum of all of them. What stands for the paper's synthetic space is `kveil.partition.lsh.Buckets`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil, log, log2, sqrt
from typing import NamedTuple

import numpy as np

from kveil.arrays import Floats
from kveil.collect.bitstogram import folded, heavy_keys
from kveil.collect.centres import moved, weighted_centres
from kveil.collect.constants import BETA, LITE, PAPER, Preset, collision_chance, tuned
from kveil.collect.descent import Level, children, estimated
from kveil.collect.marker import guesses, least_people, mark, n_levels
from kveil.collect.one_grid import cell_query
from kveil.collect.oracles import best_oracle
from kveil.collect.queries import (
    MOST_CENTRES,
    MOST_KEYS,
    MOST_QUERIES,
    Answers,
    Keys,
    Outcome,
    Query,
    Round,
    Terms,
    public_generator,
)
from kveil.collect.vector import codebook, released
from kveil.partition.lsh import BallLattice, Buckets, RotatedGrid
from kveil.partition.public_map import PublicMap, into_ball, side
from kveil.tuning import Lae as Tuning

__all__ = ["LITE", "PAPER", "Family", "Lae", "Preset", "collision_chance"]

NOISE_FACTOR = 3.0
MOST_ENUMERATED = 2**20
DEEPEST = 48
MOST_HASHING = 2**23  # bytes of one manifest that hashing may take: half of what a device reads


class Family(NamedTuple):
    """One family of buckets of round 2."""

    guess: int
    level: int
    scale: int
    repeat: int


class Lae:
    version = 1
    shares: tuple[float, ...] = (0.25, 0.25, 0.25, 0.25)

    def __init__(self, terms: Terms, seed: bytes, preset: Preset = LITE, tuning: Tuning | None = None) -> None:
        preset = tuned(preset, tuning, terms)
        self.terms, self.seed, self.preset = terms, seed, preset
        self.name = "lae-paper" if preset.hemisphere else "lae"
        self.n_axes = min(preset.most_axes, terms.n_columns)
        self.opts = guesses(terms.n, terms.k)[: preset.guesses]
        self.levels = [self._n_levels(f) for f in range(len(self.opts))]

    def first(self) -> Round:
        one = PublicMap.drawn(self.terms.n_columns, self.n_axes, public_generator(self.seed, "round", 1))
        one = replace(one, axes=one.axes / np.float32(self.preset.stretch))
        queries = [cell_query(level - 1, one, level * self.n_axes, self.terms) for level in range(1, max(self.levels) + 1)]
        return Round(1, tuple(queries))

    def next(self, done: Round, answers: Answers, seed: bytes) -> Round | Outcome:
        after = (self._after_cells, self._after_buckets, self._after_candidates, self._after_means)
        return after[done.number - 1](done, answers, public_generator(seed, "solve"))

    def parts(self) -> Iterator[Family]:
        """All families of buckets that the preset asks for."""
        for guess, n_levels_ in enumerate(self.levels):
            for level in range(1, n_levels_ + 1):
                for scale in range(1, self.n_scales() + 1):
                    for repeat in range(self.n_repeats()):
                        yield Family(guess, level, scale, repeat)

    def n_scales(self) -> int:
        return self.preset.scales or 1 + ceil(log2(self.n_axes**1.5 * sqrt(max(self.levels))))

    def n_repeats(self) -> int:
        return self.preset.repeats or ceil(log(self.terms.k * max(self.levels) ** 2 / BETA) / self.preset.near(self.n_axes))

    def width(self, level: int, scale: int) -> float:
        """Of the buckets that near points share: the side of a cube, or the radius of a ball."""
        near = side(level) if self.preset.scales else 2.0**scale * side(level) / (self.n_axes * sqrt(max(self.levels)))
        return self.preset.width * near

    def _n_levels(self, guess: int) -> int:
        deepest = DEEPEST // self.n_axes
        return min(deepest, self.preset.levels or n_levels(self.terms.n, guess))

    def _after_cells(self, done: Round, answers: Answers, rng: np.random.Generator) -> Round:
        """Heavy cells under each guess; then buckets of medium ones."""
        one, found = done.queries[0].maps[0], self._descended(done, answers)
        lsh_rng = public_generator(self.seed, "round", 2)
        families: list[tuple[Family, Buckets]] = []
        heavy_cells: dict[int, list[Keys]] = {}
        for part in self.parts():
            if part.guess not in heavy_cells:
                heavy_cells[part.guess] = self._heavy(found, part.guess)
            heavy = heavy_cells[part.guess]
            above = heavy[part.level - 2] if part.level > 1 else np.zeros(1, dtype=np.uint64)
            lsh = self._hashing(self.width(part.level, part.scale), lsh_rng)
            if len(above):
                up = max(1, ceil(1.5 * log2(self.n_axes)))
                families.append((part, Buckets(one, part.level, up, above, heavy[part.level - 1], lsh)))
        return self._buckets(families)

    def _hashing(self, width: float, rng: np.random.Generator) -> RotatedGrid | BallLattice:
        if self.preset.lsh == "grid":
            return RotatedGrid.drawn(self.n_axes, width, rng)
        return BallLattice.drawn(self.n_axes, width, rng, self.preset.ball_axes)

    def _descended(self, done: Round, answers: Answers) -> list[Level]:
        """Cells of every level that reach the cut, children of such cells."""
        most = max(1, min(64 * self.terms.k, MOST_CENTRES // (2 * max(self.levels))))
        kept, found = np.zeros(1, dtype=np.uint64), []
        for query in done.queries:
            candidates = children(kept, self.n_axes)
            people, sd = estimated(answers, query, candidates, self.terms)
            standing = np.flatnonzero(people >= self.preset.cut * sd)
            chosen = np.sort(standing[np.argsort(-people[standing], kind="stable")[:most]])
            kept = candidates[chosen]
            found.append(Level(query.depth or 0, kept, people[chosen], sd))
        return found

    def _heavy(self, found: list[Level], guess: int) -> list[Keys]:
        """Heavy cells of the guess's levels, and none below them."""
        opt, last = self.opts[guess], self.levels[guess]
        floors = [self.preset.cut * level.sd for level in found]
        least = [least_people(i + 1, opt, self.terms.k, floors[i]) if i < last else np.inf for i in range(len(found))]
        return mark(found, least, self.n_axes)

    def _buckets(self, families: list[tuple[Family, Buckets]]) -> Round:
        """Two queries a family: how many people are in each bucket, and the sum of their offsets."""
        families = _fitting(families)
        book = codebook(self.n_axes, self.terms.epsilon, hemisphere=self.preset.hemisphere)
        expected = self.shares[1] * self.terms.n / max(1, 2 * len(families))
        queries: list[Query] = []
        state = []
        for part, buckets in families:
            base = Query(id=len(queries), kind="olh", M=2, kappa=1, key_rule="bucket", buckets=buckets)
            if buckets.n_keys <= MOST_ENUMERATED:
                asked = best_oracle(buckets.n_keys, self.terms.epsilon)
                counts = [replace(base, kind=asked.kind, M=asked.M)]
            else:
                counts = folded(base, expected, self.terms, part.level)
            total = sum(query.weight for query in counts)
            sums = replace(base, id=base.id + len(counts), kind="vec", M=book.M, kappa=book.kappa, weight=total)
            state.append([*part, len(queries), len(counts)])
            queries += [*counts, sums]
        return Round(2, tuple(queries), {"families": state})

    def _after_buckets(self, done: Round, answers: Answers, rng: np.random.Generator) -> Round:
        """Candidates: middles of heavy cells, and means of heavy buckets."""
        one = self._map(done)
        found = [np.zeros((0, self.n_axes))]
        for *part, first, n_counts in done.state["families"]:
            queries = done.queries[first : first + n_counts + 1]
            buckets = queries[0].buckets
            assert buckets is not None
            found.append(one.middles(buckets.here, buckets.level * self.n_axes))
            found.append(self._bucket_means(answers, Family(*part), queries))
        candidates = np.unique(into_ball(np.vstack(found)).astype(np.float32), axis=0)
        if not len(candidates):
            candidates = one.middles(np.zeros(1, dtype=np.uint64), 0).astype(np.float32)
        candidates = candidates[np.sort(rng.permutation(len(candidates))[:MOST_CENTRES])]
        asked = best_oracle(len(candidates), self.terms.epsilon)
        query = Query(id=0, kind=asked.kind, M=asked.M, kappa=1, key_rule="nearest", maps=(one,), centres=(candidates,))
        return Round(3, (query,))

    def _bucket_means(self, answers: Answers, part: Family, queries: tuple[Query, ...]) -> Floats:
        *counts, sums = queries
        buckets, terms = sums.buckets, self.terms
        assert buckets is not None
        if counts[0].fold is not None:
            keys, people, sd = heavy_keys(answers, counts, terms, self.preset.cut)
        else:
            keys = np.arange(1, buckets.n_keys, dtype=np.uint64)
            people, sd = estimated(answers, counts[0], keys, terms)
        received = answers.received(sums)
        if not received or not len(keys):
            return np.zeros((0, self.n_axes))
        scale, near = terms.n / received, self.preset.near(self.n_axes)
        book = codebook(self.n_axes, terms.epsilon, hemisphere=self.preset.hemisphere)
        by_cost = BETA * self.opts[part.guess] / (side(part.level) ** 2 * terms.k * max(self.levels) ** 2 * self.n_axes)
        by_noise = NOISE_FACTOR * scale * sqrt(received * book.variance)
        least = near / 2 * max(by_cost, 4 * self.preset.cut * sd / near, by_noise)
        heavy = np.flatnonzero((people >= least) & (keys > 0))
        heavy = heavy[np.argsort(-people[heavy], kind="stable")[: self.preset.buckets_per_centre * terms.k]]
        if not len(heavy):
            return np.zeros((0, self.n_axes))
        offsets = buckets.radius * scale * released(answers.sums(sums, keys[heavy]), book).sums / people[heavy, None]
        rank = ((keys[heavy] - np.uint64(1)) // np.uint64(buckets.lsh.n_buckets(buckets.reach))).astype(np.int64)
        middles = buckets.map.middles(buckets.large[rank], buckets.top * self.n_axes)
        return np.asarray(middles + np.clip(offsets, -side(buckets.top) / 2, side(buckets.top) / 2))

    def _after_candidates(self, done: Round, answers: Answers, rng: np.random.Generator) -> Round:
        """k centres of the image: weighted k-means of candidates that have people."""
        query = done.queries[0]
        people, sd = estimated(answers, query, np.arange(query.n_keys, dtype=np.uint64), self.terms)
        weights = np.where(people >= sd, people, 0.0)
        weights = weights if (weights > 0).any() else np.ones(len(people))
        centres, padded = weighted_centres(query.centres[0].astype(np.float64), weights, self.terms.k, rng)
        book = codebook(self.terms.n_columns + 1, self.terms.epsilon, hemisphere=self.preset.hemisphere)
        means = Query(
            id=0, kind="vec", M=book.M, kappa=book.kappa, key_rule="nearest", maps=query.maps,
            centres=(centres.astype(np.float32),), rho=1.0,
        )  # fmt: skip
        return Round(4, (means,), {"padded": padded})

    def _after_means(self, done: Round, answers: Answers, rng: np.random.Generator) -> Outcome:
        query = done.queries[0]
        found = moved(
            answers, query, np.arange(query.n_keys, dtype=np.uint64), self.terms, pull=False, hemisphere=self.preset.hemisphere
        )
        scale = self.terms.n / max(1, found.received)
        return Outcome(
            found.places, counts=scale * found.counts, count_sd=scale * found.sd_count, padded=int(done.state["padded"])
        )

    def _map(self, done: Round) -> PublicMap:
        buckets = done.queries[0].buckets
        assert buckets is not None  # the root is heavy, so the first level always has a family
        return buckets.map


def _fitting(families: list[tuple[Family, Buckets]]) -> list[tuple[Family, Buckets]]:
    """As many repeats, and then as many scales that can be enumerated, as one round has room for."""

    def size(some: list[tuple[Family, Buckets]]) -> int:
        return sum(2 if b.n_keys <= MOST_ENUMERATED else 2 + b.n_keys.bit_length() for _, b in some)

    families = [(part, buckets) for part, buckets in families if buckets.n_keys <= MOST_KEYS]
    room = min(MOST_QUERIES, MOST_HASHING // max((_hashing_bytes(buckets) for _, buckets in families), default=1))
    most = max((part.repeat for part, _ in families), default=0)
    while size(families) > room and most > 0:
        most -= 1
        families = [(part, buckets) for part, buckets in families if part.repeat <= most]
    if size(families) > room:
        families = [(part, buckets) for part, buckets in families if buckets.n_keys <= MOST_ENUMERATED]
    return families[: room // 2]


def _hashing_bytes(buckets: Buckets) -> int:
    """Of the hashing of one query in a manifest: single precision in base64."""
    numbers = buckets.lsh.rotation.size if isinstance(buckets.lsh, RotatedGrid) else buckets.lsh.shifts.size
    return max(1, 4 * numbers * 4 // 3)
