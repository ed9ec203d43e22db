"""Private k-variates++ with noise that covers the whole domain (sigma_2), and what all private seeding shares."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import Floats, Integers
from kveil.desk.base import Mechanism
from kveil.desk.row_places import RowPlaces, Score
from kveil.kernel import gate
from kveil.kernel.grid import Ball, Box
from kveil.kernel.ledger import Ticket
from kveil.kernel.loss import Charge, Measurement
from kveil.kernel.noise import k_norm_noise, laplace_noise
from kveil.progress import step as progress
from kveil.questions.frame import Frame
from kveil.source import Source
from kveil.space.euclidean import Centers, Scaling, clip


class Reach(NamedTuple):
    """How far two codes of a domain can lie apart, and in which norm noise must hide that."""

    norm: Literal["l1", "l2"]
    diameter: int

    @classmethod
    def of(cls, domain: Box | Ball, *, is_vector: bool) -> Reach:
        """is_vector: one noise vector by L2 norm, sqrt(2 d/(d + 1)) times narrower than Laplace noise on every coordinate.

        Codes are no longer than the domain's sensitivities say, so two of them differ by at most twice that.
        """
        if is_vector and domain.n_columns > 1:
            return cls("l2", 2 * domain.l2_sensitivity)
        return cls("l1", 2 * domain.l1_sensitivity)


@dataclass(frozen=True)
class LaplaceSeeds(Mechanism):
    """k-variates++ whose every centre has noise as wide as if each release were of one record alone: sigma_2 of the paper.

    Private:      the rows, their number, and which of them were anchors.  Public: k, the domain, the budget.
    Neighbours:   any two tables: one record, one person with any number of rows, all rows.
    Sensitivity:  the diameter of the domain. Given the centres before it, a centre is a mixture, over anchors, of noise around
                  points of the domain, and at any output the densities of two such points are within e**(diameter times
                  rate); so are two mixtures, whatever their weights: how anchors are chosen does not matter.
    Cost:         epsilon/k a centre, k times. Centres are moved into the domain afterwards, and distances are to these.
    Not covered:  running time. The noise does not shrink with the number of rows: it is as wide as in the local model.
    Reference:    Nock, Canyasse, Boreli, Nielsen (2016), Theorem 12; the proof above is ours and needs no assumption.
    """

    domain: Box | Ball
    n_clusters: int
    scaling: Scaling
    noise: Measurement[Integers, Integers] | None  # None: no noise, no promise

    @classmethod
    def of(
        cls, domain: Box | Ball, n_clusters: int, scaling: Scaling, epsilon: Fraction | None, *, is_vector: bool
    ) -> LaplaceSeeds:
        if epsilon is None:
            return cls(domain, n_clusters, scaling, None)
        reach, reason = Reach.of(domain, is_vector=is_vector), "any two points of the domain may be anchors"
        make = laplace_noise if reach.norm == "l1" else k_norm_noise
        noise = make("centres", reach.diameter, epsilon / n_clusters, times=n_clusters, reason=reason)
        return cls(domain, n_clusters, scaling, noise)

    @property
    def charges(self) -> tuple[Charge, ...]:
        return () if self.noise is None else (self.noise.charge,)

    def release(self, source: Source, ticket: Ticket | None) -> Integers:
        """Noisy codes (k, d), not yet moved into the domain."""
        if (self.noise is None) != (ticket is None):
            raise AssertionError("a noise-free run has no ticket, and a private one has")
        noisy = np.empty((self.n_clusters, self.domain.n_columns), dtype=np.int64)
        cap = widest(self.domain, self.scaling)
        for t in range(self.n_clusters):
            progress("seed", t + 1, self.n_clusters)
            score = scored(noisy[:t], self.domain, self.scaling, cap, source.max_rows)
            anchor = self._anchor(source, score, ticket)  # (1, d)  secret
            noisy[t] = anchor if self.noise is None or ticket is None else gate.run(self.noise, anchor, ticket)[0]
        return noisy

    def _anchor(self, source: Source, score: Score, ticket: Ticket | None) -> Integers:
        """A row by its score; where all score 0 any row, alike; where there is none the centre of the domain.

        The place is a number of 128 secret bits modulo the total: the promise holds for any choice, exact or not.
        """
        key = secret_words(2, ticket)
        rules = (score,) if score.centers is None else (score, Score())
        all_places = [RowPlaces(source, self.domain, rule, key) for rule in rules]
        totals = [places.total for places in all_places]  # of both, whichever is used: an operator sees how often rows are read
        places = all_places[0] if totals[0] else all_places[-1]
        place = int.from_bytes(secret_words(2, ticket).tobytes(), "little")
        return places.at([place % max(1, places.total)])


def secret_words(n: int, ticket: Ticket | None) -> NDArray[np.uint64]:
    """Words for choices that nobody should foresee, from the source that the noise of this reservation comes from."""
    if ticket is not None:
        ticket.check()
    return gate.secret_words(n)


def widest(domain: Box | Ball, scaling: Scaling) -> int:
    """The squared diameter of a domain, in squared steps of equal length."""
    return 4 * Frame.of(domain, scaling).radius ** 2


def scored(noisy: Integers, domain: Box | Ball, scaling: Scaling, cap: int, max_rows: int) -> Score:
    """What a row scores, given the noisy codes of the centres so far: 1, or its squared distance to them, cut at `cap`."""
    if not len(noisy):
        return Score()
    centers = Centers.of(projected(noisy, domain), domain, scaling)
    return Score(centers, cap, Score.shift_for(cap, max_rows))


def projected(noisy: Integers, domain: Box | Ball) -> Floats:
    """Noisy codes as points of the domain, in the units of the data. Everything here was released."""
    return clip(domain, domain.decode(noisy))
