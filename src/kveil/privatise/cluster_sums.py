"""Noisy counts and sums of clusters: the step that DP-Lloyd repeats."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, sqrt

import numpy as np
from numpy.typing import NDArray

from kveil.kernel import gate
from kveil.kernel.grid import Domain, per_person
from kveil.kernel.ledger import Ticket
from kveil.kernel.loss import Charge, Measurement, PrivacyUnit, Relation, floor_rho
from kveil.kernel.noise import gaussian_noise, k_norm_noise, laplace_noise

Integers = NDArray[np.int64]

# A centre lies about this far from the middle of the domain, as a share of its half-diagonal squared (0.225 of the
# half-width in every column, the figure that the improved DPLloyd split is built on).
OFFSET = 0.225**2


@dataclass(frozen=True)
class NoisyClusterSums:
    """Counts and coordinate sums per cluster with exact noise, `n_steps` times.

    Private:      the rows and their number.  Public: the centres of the step, the domain, k, d, the budget.
    Neighbours:   add or remove everything one person contributed, at most m rows; or replace it (twice the sensitivity).
    Sensitivity:  a row lies in one cluster, adds 1 to its count and a code of L2 norm at most R to its sum, and moves no
                  other row; so m rows move the counts by at most m (L1 and L2) and the sums by at most m R, summed over
                  clusters. Replaced rows move two counts by m each: 2 m in L1, ceil(sqrt(2) m) in L2; sums by 2 m R.
                  The same holds in L1 for R the L1 bound of a code (d top in a box), which noise by coordinates uses.
    Cost:         pure: epsilon of the counts plus epsilon of the sums, each step; zCDP: rho likewise. The shares minimise
                  the error of sum/count for a centre at `OFFSET`.
    Not covered:  running time.
    """

    counts: Measurement[Integers, Integers]
    sums: Measurement[Integers, Integers]
    count_deviation: float  # standard deviation of one noisy count; public
    sum_variance: float  # of one coordinate of a noisy sum, in squared grid steps; public

    @classmethod
    def pure(cls, domain: Domain, epsilon: Fraction, n_steps: int, relation: Relation, unit: PrivacyUnit) -> NoisyClusterSums:
        """Discrete Laplace counts and K-norm sums (for one column, discrete Laplace too) that add up to `epsilon`."""
        m, d = unit.max_rows_per_person, domain.n_columns
        share = counts_share(d, is_pure=True)
        one = relation == "add-remove" and m == 1  # then neighbours differ in one count, and for d = 1 in one sum
        moved = per_person(1, m, relation)
        of_counts = epsilon * share / n_steps
        of_sums = epsilon / n_steps - of_counts
        counts = laplace_noise("counts", moved, of_counts, times=n_steps, one_coordinate=one, reason="a row is in one cluster")
        reach, reason = per_person(domain.l2_sensitivity, m, relation), "a row adds one code, of bounded norm, to one cluster"
        if d > 1:
            sums = k_norm_noise("sums", reach, of_sums, times=n_steps, reason=reason)
        else:
            sums = laplace_noise("sums", reach, of_sums, times=n_steps, one_coordinate=one, reason=reason)
        return cls(counts, sums, sqrt(2) * moved / float(of_counts), (d + 1) * (reach / float(of_sums)) ** 2)

    @classmethod
    def coordinates(
        cls, domain: Domain, epsilon: Fraction, n_steps: int, relation: Relation, unit: PrivacyUnit
    ) -> NoisyClusterSums:
        """The improved DPLloyd of Su et al. (2016): discrete Laplace noise on every count and coordinate, adding to `epsilon`.

        A count gets c/(d+c) of a step and each coordinate 1/(d+c), c = cbrt(4 d 0.225^2). The d coordinates are one release
        of L1 sensitivity d top: the same rate as one by one in a box, and a lower one in a ball, whose codes have a smaller L1.
        """
        m, d = unit.max_rows_per_person, domain.n_columns
        of_counts = epsilon * _share((4 * d * OFFSET) ** (1 / 3) / d) / n_steps
        of_sums = epsilon / n_steps - of_counts
        one = relation == "add-remove" and m == 1
        moved, reach = per_person(1, m, relation), per_person(domain.l1_sensitivity, m, relation)
        counts = laplace_noise("counts", moved, of_counts, times=n_steps, one_coordinate=one, reason="a row is in one cluster")
        reason = "a row adds one code, of bounded L1 norm, to one cluster"
        sums = laplace_noise("sums", reach, of_sums, times=n_steps, one_coordinate=one and d == 1, reason=reason)
        return cls(counts, sums, sqrt(2) * moved / float(of_counts), 2 * (reach / float(of_sums)) ** 2)

    @classmethod
    def gaussian(cls, domain: Domain, rho: Fraction, n_steps: int, relation: Relation, unit: PrivacyUnit) -> NoisyClusterSums:
        """Discrete Gaussian counts and sums that add up to `rho`."""
        m, d = unit.max_rows_per_person, domain.n_columns
        moved = m if relation == "add-remove" else isqrt(2 * m * m - 1) + 1
        of_counts = floor_rho(rho * counts_share(d, is_pure=False) / n_steps)
        of_sums = rho / n_steps - of_counts
        counts = gaussian_noise("counts", moved, of_counts, times=n_steps, reason="a row is in one cluster")
        reach, reason = per_person(domain.l2_sensitivity, m, relation), "a row adds one code, of bounded norm, to one cluster"
        sums = gaussian_noise("sums", reach, of_sums, times=n_steps, reason=reason)
        return cls(counts, sums, moved / sqrt(2 * of_counts), reach**2 / (2 * float(of_sums)))

    @property
    def charges(self) -> tuple[Charge, ...]:
        return self.counts.charge, self.sums.charge

    def release(self, raw_counts: Integers, raw_sums: Integers, ticket: Ticket) -> tuple[Integers, Integers]:
        """Noisy counts and sums of one step, of every cluster: skipping an empty one would publish its emptiness."""
        noisy_counts, _ = gate.run(self.counts, raw_counts, ticket)
        noisy_sums, _ = gate.run(self.sums, raw_sums, ticket)
        return noisy_counts, noisy_sums


def counts_share(d: int, *, is_pure: bool) -> Fraction:
    """The share of a step that counts get, so that the error of sum/count is least for a centre at `OFFSET`."""
    return _share((2 * OFFSET / (d * (d + 1))) ** (1 / 3) if is_pure else sqrt(OFFSET / d))


def _share(ratio: float) -> Fraction:
    """The counts' share of a step, when `ratio` of what the sums get is best; a multiple of 2**-20."""
    return Fraction(round(2**20 * ratio / (1 + ratio)), 2**20)
