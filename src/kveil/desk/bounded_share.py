"""Private D^2 seeding whose noise shrinks as rows grow: no record is ever picked with more than a bounded share."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from kveil.arrays import Integers
from kveil.desk.base import Mechanism
from kveil.desk.noisy_sample import noisy_size, size_noise
from kveil.desk.row_places import RowPlaces, Score
from kveil.desk.seeds import Reach, scored, secret_words
from kveil.kernel import gate
from kveil.kernel.choice import Places, noisy_picks
from kveil.kernel.grid import Ball, Box
from kveil.kernel.ledger import Ledger, Ticket
from kveil.kernel.loss import Charge, Measurement, PrivacyUnit
from kveil.kernel.noise import laplace_noise
from kveil.progress import step as progress
from kveil.source import Source
from kveil.space.euclidean import Scaling


@dataclass(frozen=True)
class BoundedShare(Mechanism):
    """k-variates++: rows picked by squared distance to the centres so far, cut at G, and released with noise.

    Private:      the rows, their number, their distances, which were anchors, and whether any row was.  Public: k, the domain,
                  G = cap, the budget, `expected_rows`, and per round a noisy total S^ of the scores, at least r G.
    Neighbours:   add, remove or replace one record, or one person with at most r rows.
    Sensitivity:  a score is between 0 and G and depends on its row and released centres alone, so S moves by at most r G, also
                  when rows are replaced. A row with score s is the anchor with probability s/T, T = max(S, S^); with the rest,
                  1 - S/T, it is the domain's centre. So a person's rows have a share of at most r G/S^ of the law of a
                  centre: `kernel.choice.noisy_picks` has the proof. No fallback where all score 0: it would break it.
    Cost:         of_size for the number of rows (`expected_rows` spares it), of_total for each of k - 1 totals, of_center for
                  each of k centres, with noise of e0 = ln(1 + (e**of_center - 1) S^/(r G)).
    Not covered:  running time; probes that show a row by what others hold.
    Reference:    k-variates++ (Nock et al., 2016) for the loop; the mechanism replaces its conditional calibration.
    """

    domain: Box | Ball
    n_clusters: int
    scaling: Scaling
    cap: int  # G, in squared steps of equal length
    max_rows: int
    of_size: Fraction
    of_total: Fraction
    of_center: Fraction
    expected_rows: float | None
    unit: PrivacyUnit
    is_vector: bool = True

    @property
    def charges(self) -> tuple[Charge, ...]:
        noises = (self._size, self._total if self.n_clusters > 1 else None, self._center(1, self._rows))
        return tuple(noise.charge for noise in noises if noise is not None)

    def release(self, source: Source, ticket: Ticket | None) -> Integers:
        """Noisy codes (k, d), not yet moved into the domain."""
        assert ticket is not None
        noisy = np.empty((self.n_clusters, self.domain.n_columns), dtype=np.int64)
        for t in range(self.n_clusters):
            progress("seed", t + 1, self.n_clusters)
            places = self.places(source, noisy[:t], ticket)  # secret
            size = noisy_size(self._size, self.expected_rows, places, ticket) if t == 0 else self.total(places, ticket)
            noisy[t] = self.center(places, size, ticket)  # public, charged
        return noisy

    def places(self, source: Source, noisy: Integers, ticket: Ticket | None) -> RowPlaces:
        """Rows by their scores, given the noisy codes of the centres so far."""
        score = scored(noisy, self.domain, self.scaling, self.cap, self.max_rows)
        return RowPlaces(source, self.domain, score, secret_words(2, ticket))

    def total(self, places: RowPlaces, account: Ticket | Ledger) -> int:
        """A noisy sum of the scores."""
        return int(gate.run(self._total, np.array([places.total], dtype=np.int64), account)[0][0])

    def center(self, places: RowPlaces, noisy_total: int, account: Ticket | Ledger) -> Integers:
        """The noisy code (d,) of one centre; `noisy_total` is any public number, best near the total of the scores."""
        most = places.score.most
        (noisy,) = gate.run(self._center(most, max(noisy_total, self._rows * most)), places, account)[0]
        return np.asarray(noisy)

    @property
    def _rows(self) -> int:
        return self.unit.max_rows_per_person

    @property
    def _size(self) -> Measurement[Integers, Integers] | None:
        return None if self.expected_rows is not None else size_noise(self.unit, self.of_size)

    @property
    def _total(self) -> Measurement[Integers, Integers]:
        most = Score(None, self.cap, Score.shift_for(self.cap, self.max_rows)).most
        times, reason = max(1, self.n_clusters - 1), "a row scores at most the cap"
        return laplace_noise("total of scores", self._rows * most, self.of_total, times=times, reason=reason)

    def _center(self, score: int, public_total: int) -> Measurement[Places, Integers]:
        reach, reason = Reach.of(self.domain, is_vector=self.is_vector), "a row is picked with a bounded share"
        return noisy_picks(
            "centres", reach.diameter, self.of_center, norm=reach.norm, score=score, rows=self._rows,
            public_total=public_total, times=self.n_clusters, reason=reason,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class ShareTotal(Mechanism):
    """The noisy total of the scores, given released centres: one round's first release of `BoundedShare`, by itself."""

    share: BoundedShare
    centers: Integers  # noisy codes (t, d)

    def release(self, behind: Source, account: Ticket | None) -> Integers:
        """A number (1,)."""
        assert account is not None
        return np.array([self.share.total(self.share.places(behind, self.centers, account), account)], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class SharePick(Mechanism):
    """The noisy code of one centre, given released ones and any public total: one round's second release of `BoundedShare`."""

    share: BoundedShare
    centers: Integers  # noisy codes (t, d)
    total: int

    def release(self, behind: Source, account: Ticket | None) -> Integers:
        """A code (d,)."""
        assert account is not None
        return self.share.center(self.share.places(behind, self.centers, account), self.total, account)
