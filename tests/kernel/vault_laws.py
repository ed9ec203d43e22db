"""How a sample is held against a law, with a stated chance of a false alarm, and how a broken twin must fail the same test.

Two statistics, each with a derived threshold; every test that uses them has a false alarm of at most FALSE_ALARM = 1e-6.

Pooled chi-square.  Cells are pooled until each expects at least 50. The chi-square law is then good to a factor well below
    1000 far out in its tail (cells of 50 add at most 1 % to the variance of the statistic and leave its skewness almost
    unchanged), so the threshold is taken at 1e-9 and 1e-6 is claimed.
Largest gap.  P(sup |F_n - F| > t) <= 2 exp(-2 n t**2) for every n and every law, discrete ones included (Massart), so the
    threshold sqrt(ln(2/1e-6)/(2n)) needs no asymptotics.

A twin is a sampler with a known fault. `miss` bounds the chance that the twin passes; tests demand that it is below 1e-7,
rarer than the false alarm, and then assert that the twin was caught.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import stats

from kveil.auditing import laws

FALSE_ALARM = 1e-6
AT_LEAST = 50  # expected count of a cell
AT_MOST = 80  # cells


class Verdict(NamedTuple):
    """`passes` is the assertion of a test, `not passes` that of its broken twin."""

    statistic: float
    threshold: float

    @property
    def passes(self) -> bool:
        return self.statistic <= self.threshold


class Cells(NamedTuple):
    """Runs of integers: cell i holds z with edges[i-1] <= z < edges[i]; the first and last reach to infinity."""

    edges: np.ndarray
    chances: np.ndarray

    def count(self, sample):
        return np.bincount(np.searchsorted(self.edges, sample, side="right"), minlength=len(self.chances))


def pooled(low, pmf, n) -> Cells:
    """Cells for `n` draws from the law pmf[i] = P(low + i); what pmf leaves out is added to the outer cells."""
    want = max(AT_LEAST, n / AT_MOST) / n
    edges, chances, held = [], [], 0.0
    left = pmf[::-1].cumsum()[::-1]  # chance of this integer and all above it
    for i, p in enumerate(pmf):
        if held >= want and left[i] >= want:
            edges.append(low + i)
            chances.append(held)
            held = 0.0
        held += p
    chances.append(held)
    spare = max(0.0, 1.0 - math.fsum(chances))
    chances[0] += spare / 2
    chances[-1] += spare / 2
    return Cells(np.array(edges), np.array(chances))


def chi_square(counts, chances) -> Verdict:
    """Counts of cells against their chances; cells that expect fewer than 50 are pooled into one."""
    counts, expected = np.asarray(counts, dtype=float), np.asarray(chances) * np.sum(counts)
    small = expected < AT_LEAST
    if small.any():
        counts = np.append(counts[~small], counts[small].sum())
        expected = np.append(expected[~small], expected[small].sum())
    full = expected >= AT_LEAST  # a pool that is still small is left out; its complement is tested
    statistic = float(((counts[full] - expected[full]) ** 2 / expected[full]).sum())
    return Verdict(statistic, float(stats.chi2.isf(1e-9, int(full.sum()) - 1 + int((~full).sum()))))


def chi_square_miss(n, chances, twin_chances) -> float:
    """The chance that `n` draws from a twin with other chances pass: a noncentral chi-square below the threshold."""
    chances, twin_chances = np.asarray(chances), np.asarray(twin_chances)
    noncentrality = n * float(((twin_chances - chances) ** 2 / chances).sum())
    threshold = stats.chi2.isf(1e-9, len(chances) - 1)
    return float(stats.ncx2.cdf(threshold, len(chances) - 1, noncentrality))


def same_law(first, second) -> Verdict:
    """Two samples of integers of one size, by a chi-square of homogeneity on cells pooled from both together."""
    both = np.sort(np.concatenate([first, second]))
    n_cells = min(AT_MOST, len(both) // (4 * AT_LEAST))
    edges = np.unique(both[np.linspace(0, len(both) - 1, n_cells + 1)[1:-1].astype(int)])
    a, b = (np.bincount(np.searchsorted(edges, part, side="right"), minlength=len(edges) + 1) for part in (first, second))
    keep = a + b >= 2 * AT_LEAST
    a, b = a[keep].astype(float), b[keep].astype(float)
    return Verdict(float(((a - b) ** 2 / (a + b)).sum()), float(stats.chi2.isf(1e-9, int(keep.sum()) - 1)))


def largest_gap(sample, cdf, slack=0.0) -> Verdict:
    """sup |F_n - cdf| against the bound of Massart; `slack` is how far cdf may be from the true law."""
    ordered = np.sort(sample)
    n, levels = len(ordered), cdf(ordered)
    gap = max(np.max(np.arange(1, n + 1) / n - levels), np.max(levels - np.arange(n) / n))
    return Verdict(float(gap), gap_threshold(n) + slack)


def gap_threshold(n) -> float:
    return math.sqrt(math.log(2 / FALSE_ALARM) / (2 * n))


def gap_miss(n, gap) -> float:
    """The chance that a twin whose law is `gap` away passes: it must then stray from its own law by the difference."""
    return 2 * math.exp(-2 * n * max(0.0, gap - gap_threshold(n)) ** 2)


def laplace_pmf(scale, reach):
    """P(z) of discrete Laplace noise on -reach .. reach."""
    return np.exp(laws.laplace_log(np.arange(-reach, reach + 1), 1 / scale))


def gaussian_pmf(sigma, reach):
    """P(z) of discrete Gaussian noise on -reach .. reach."""
    return np.exp(laws.gaussian_log(np.arange(-reach, reach + 1), sigma))


def rounded_k_norm_pmf(beta, reach):
    """P(round(v) = z) for v of density exp(-|v|/beta)/(2 beta) on the line."""
    return np.exp(laws.rounded_k_norm_log(np.arange(-reach, reach + 1)[:, None], beta))


def rounded_k_norm_square(beta, reach):
    """P(round(v) = (i, j)) for v of density exp(-|v|/beta)/(2 pi beta**2) in the plane."""
    side = np.arange(-reach, reach + 1)
    places = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    return np.exp(np.concatenate([laws.rounded_k_norm_log(part, beta) for part in np.array_split(places, 16)])).reshape(
        len(side), -1
    )
