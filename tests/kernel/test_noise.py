"""The laws of noise with real entropy: each sampler against its law, and a broken twin of it that must fail.

False alarms and thresholds are derived in vault_laws.py: at most 1e-6 a test.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from vault_laws import (
    chi_square,
    chi_square_miss,
    gap_miss,
    gaussian_pmf,
    laplace_pmf,
    largest_gap,
    pooled,
    rounded_k_norm_pmf,
    rounded_k_norm_square,
    same_law,
)

from kveil.errors import InvalidValue
from kveil.kernel.exact import SystemEntropy
from kveil.kernel.noise import discrete_gaussian, discrete_laplace, gaussian_noise, k_norm, k_norm_noise, laplace_noise

SYSTEM = SystemEntropy()
SCALES = [Fraction(1), Fraction(7, 3), Fraction(25), Fraction(1000)]
N = 500_000


def hold_against(sample, low, pmf):
    cells = pooled(low, pmf, len(sample))
    return chi_square(cells.count(sample), cells.chances)


def miss(n, low, pmf, twin_pmf):
    """The chance that the twin passes, from the same cells."""
    cells = pooled(low, pmf, n)
    owner = np.searchsorted(cells.edges, low + np.arange(len(pmf)), side="right")
    return chi_square_miss(n, cells.chances, np.bincount(owner, weights=twin_pmf, minlength=len(cells.chances)))


@pytest.mark.statistical
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_discrete_laplace_follows_its_law(scale):
    """Catches a scale 5 % off, up or down, with probability above 1 - 1e-7."""
    reach = int(60 * scale) + 60
    pmf = laplace_pmf(float(scale), reach)
    assert hold_against(discrete_laplace(SYSTEM, 1 / scale, N), -reach, pmf).passes
    for fault in (Fraction(19, 20), Fraction(21, 20)):
        assert miss(N, -reach, pmf, laplace_pmf(float(scale * fault), reach)) < 1e-7
        assert not hold_against(discrete_laplace(SYSTEM, 1 / (scale * fault), N), -reach, pmf).passes


@pytest.mark.statistical
def test_discrete_laplace_is_zero_as_often_as_it_should_be():
    """The twin gives a magnitude a random sign, so that zero counts twice. Catches it with probability above 1 - 1e-12."""
    n, scale = 100_000, 25
    q = math.exp(-1 / scale)
    low, high = stats.binom.ppf([5e-7, 1 - 5e-7], n, (1 - q) / (1 + q))
    assert low <= np.count_nonzero(discrete_laplace(SYSTEM, Fraction(1, scale), n) == 0) <= high
    twin_chance = 1 - q  # of the magnitude 0
    assert stats.binom.cdf(high, n, twin_chance) < 1e-12
    magnitude = np.floor(-np.log1p(-SYSTEM.words(n) * 2.0**-64.0) * scale)
    assert not low <= np.count_nonzero(magnitude == 0) <= high


@pytest.mark.statistical
@pytest.mark.parametrize("sigma", SCALES, ids=str)
def test_discrete_gaussian_follows_its_law(sigma):
    """Catches a standard deviation 4 % off with probability above 1 - 1e-7."""
    reach = int(14 * sigma) + 14
    pmf = gaussian_pmf(float(sigma), reach)
    assert hold_against(discrete_gaussian(SYSTEM, sigma**2, N), -reach, pmf).passes
    for fault in (Fraction(24, 25), Fraction(26, 25)):
        assert miss(N, -reach, pmf, gaussian_pmf(float(sigma * fault), reach)) < 1e-7
        assert not hold_against(discrete_gaussian(SYSTEM, (sigma * fault) ** 2, N), -reach, pmf).passes


@pytest.mark.statistical
def test_a_gaussian_narrower_than_the_grid_follows_its_law():
    """Variance 1/5: three values hold nearly everything. The twin has variance 1/4."""
    pmf = gaussian_pmf(math.sqrt(0.2), 12)
    assert hold_against(discrete_gaussian(SYSTEM, Fraction(1, 5), N), -12, pmf).passes
    assert miss(N, -12, pmf, gaussian_pmf(0.5, 12)) < 1e-7
    assert not hold_against(discrete_gaussian(SYSTEM, Fraction(1, 4), N), -12, pmf).passes


WIDE = [Fraction(2**22 - 1), Fraction(2**22), Fraction(2**22 + 1), Fraction(2**34), Fraction(3 * 2**40, 7), Fraction(2**55)]


@pytest.mark.statistical
@pytest.mark.parametrize("scale", WIDE, ids=str)
def test_wide_laplace_noise_follows_the_continuous_limit(scale):
    """From 2**22 on, the sampler splits a draw into high and low parts; 2**22 - 1 is the last scale that it does not split.

    The discrete law is within 1/scale of the continuous one. Catches a scale 6 % off with probability above 1 - 1e-7.
    """
    n = 400_000
    z = discrete_laplace(SYSTEM, 1 / scale, n) / float(scale)
    assert largest_gap(z, stats.laplace.cdf, slack=1 / float(scale)).passes
    grid = np.linspace(-10, 10, 4001)
    gap = np.abs(stats.laplace.cdf(grid / 0.94) - stats.laplace.cdf(grid)).max()
    assert gap_miss(n, gap) < 1e-7
    assert not largest_gap(z * 0.94, stats.laplace.cdf, slack=1 / float(scale)).passes


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [Fraction(2**34), Fraction(3 * 2**40, 7)], ids=str)
def test_the_low_bits_of_wide_laplace_noise_are_uniform(scale):
    """A residue mod 64 is uniform to 64/scale. The twin shifts its noise up by one bit, as a split that loses L would."""
    z = discrete_laplace(SYSTEM, 1 / scale, 200_000)
    chances = np.full(64, 1 / 64)
    assert chi_square(np.bincount(z % 64, minlength=64), chances).passes
    assert not chi_square(np.bincount((z << 1) % 64, minlength=64), chances).passes


@pytest.mark.statistical
@pytest.mark.parametrize("parts", [4, 16])
def test_wide_laplace_noise_joins_its_parts_without_a_seam(parts):
    """Where in its scale a draw falls, z mod scale: the folded law is smooth, and a seam at a power of two would show.

    For z >= 0 the chance of the residue cell [a, b) of the scale 2**24 is (e^-a - e^-b)/(1 - e^-1), up to 2**-24.
    The twin draws the low part without its rejection.
    """
    scale = 2**24
    z = discrete_laplace(SYSTEM, Fraction(1, scale), 400_000)
    z = z[z >= 0]
    edges = np.arange(parts + 1) / parts
    chances = -np.diff(np.exp(-edges)) / -math.expm1(-1)
    assert chi_square(np.bincount(z % scale * parts // scale, minlength=parts), chances).passes
    flat = SYSTEM.words(len(z)) % np.uint64(parts)
    assert chi_square_miss(len(z), chances, np.full(parts, 1 / parts)) < 1e-7
    assert not chi_square(np.bincount(flat.astype(int), minlength=parts), chances).passes


@pytest.mark.statistical
@pytest.mark.parametrize("beta", [Fraction(2, 5), Fraction(13, 10), Fraction(7)], ids=str)
def test_k_norm_noise_on_the_line_follows_the_rounded_density(beta):
    """Catches beta 5 % off with probability above 1 - 1e-7."""
    reach = int(60 * beta) + 10
    pmf = rounded_k_norm_pmf(float(beta), reach)
    assert hold_against(k_norm(SYSTEM, beta, N, 1)[:, 0], -reach, pmf).passes
    fault = Fraction(19, 20)
    assert miss(N, -reach, pmf, rounded_k_norm_pmf(float(beta * fault), reach)) < 1e-7
    assert not hold_against(k_norm(SYSTEM, beta * fault, N, 1)[:, 0], -reach, pmf).passes


def in_squares(sample, reach):
    """How often each unit square of the plane was hit; what lies beyond is counted on the rim."""
    clipped = np.clip(sample, -reach, reach) + reach
    return np.bincount(clipped[:, 0] * (2 * reach + 1) + clipped[:, 1], minlength=(2 * reach + 1) ** 2)


@pytest.mark.statistical
@pytest.mark.parametrize("beta", [Fraction(1, 2), Fraction(13, 10)], ids=str)
def test_k_norm_noise_in_the_plane_follows_the_density_integrated_over_unit_squares(beta):
    """The joint law of both coordinates. Catches beta 5 % off, and (the second twin) independent coordinates of the right law
    each, with probability above 1 - 1e-7."""
    n, reach = 200_000, int(30 * beta)
    chances = rounded_k_norm_square(float(beta), reach)
    assert abs(chances.sum() - 1) < 1e-9
    sample = k_norm(SYSTEM, beta, n, 2)
    assert chi_square(in_squares(sample, reach), chances.ravel()).passes

    twin = rounded_k_norm_square(float(beta) * 0.95, reach)
    kept = chances.ravel() * n >= 50
    assert chi_square_miss(n, chances.ravel()[kept], twin.ravel()[kept]) < 1e-7
    assert not chi_square(in_squares(k_norm(SYSTEM, beta * Fraction(19, 20), n, 2), reach), chances.ravel()).passes

    product = np.outer(chances.sum(axis=1), chances.sum(axis=0)).ravel()
    assert chi_square_miss(n, chances.ravel()[kept], product[kept]) < 1e-7
    shuffled = np.column_stack([sample[:, 0], np.roll(sample[:, 1], 1)])
    assert not chi_square(in_squares(shuffled, reach), chances.ravel()).passes


@pytest.mark.statistical
@pytest.mark.parametrize(("d", "blocks"), [(3, 60_000), (64, 6_000)])
def test_the_length_of_k_norm_noise_follows_a_gamma_law(d, blocks):
    """|v| is Gamma(d, beta). At beta = 2**20 rounding moves the law by less than 1e-4. Catches a beta 7 % off."""
    beta = 2**20
    length = np.sqrt((k_norm(SYSTEM, Fraction(beta), blocks, d).astype(float) ** 2).sum(axis=1)) / beta
    law = stats.gamma(d)
    assert largest_gap(length, law.cdf, slack=1e-4).passes
    grid = np.linspace(0, 4 * d, 8001)
    assert gap_miss(blocks, np.abs(law.cdf(grid / 1.07) - law.cdf(grid)).max() - 1e-4) < 1e-7
    assert not largest_gap(length * 1.07, law.cdf, slack=1e-4).passes


@pytest.mark.statistical
@pytest.mark.parametrize(("d", "blocks"), [(1, 100_000), (2, 100_000), (3, 50_000), (64, 4_000)])
def test_k_norm_noise_has_the_right_moments_in_every_coordinate(d, blocks):
    """v = beta g sqrt(c): E v_j**2 = (d+1), E v_j**4 = 3 (d+1)(d+3), E v_i v_j = 0 with variance (d+1)(d+3), in units of beta.

    Means are held to 8 standard errors: 1e-15 each in the normal limit, so that skewness (at most 0.1 here, a factor
    exp(0.1 * 8**3 / 6) < 1e4 in the tail) leaves 64 + 3 of them far below 1e-6. Catches beta 15 % off in any coordinate.
    """
    beta = 1000
    v = k_norm(SYSTEM, Fraction(beta), blocks, d) / beta
    error = 8 * math.sqrt((3 * (d + 1) * (d + 3) - (d + 1) ** 2) / blocks)
    squares = (v**2).mean(axis=0)
    assert np.abs(squares - (d + 1)).max() < error
    assert np.abs(v.mean(axis=0)).max() < 8 * math.sqrt((d + 1) / blocks)
    cross = 8 * math.sqrt((d + 1) * (d + 3) / blocks)
    pairs = [(i, j) for i, j in ((0, 1), (0, 2), (1, d - 1)) if i < j < d]  # one polar pair, two of them, first and last
    assert all(abs((v[:, i] * v[:, j]).mean()) < cross for i, j in pairs)

    wide = np.abs((1.3 * v[:, 0]) ** 2).mean()
    assert wide - (d + 1) > error, "a coordinate 30 % too wide"
    if d > 1:
        assert abs((v[:, 0] * v[:, 0]).mean()) > cross, "two coordinates that are one"


def bitwise_laplace(rate, n):
    """The reference of the specification: bit j of a geometric variable is set with odds q**(2**j), independently."""

    def geometric():
        out = np.zeros(n, dtype=np.int64)
        for j in range(40):
            odds = math.exp(-min(700.0, rate * 2.0**j))
            out += (SYSTEM.words(n) * 2.0**-64 < odds / (1 + odds)).astype(np.int64) << j
        return out

    return geometric() - geometric()


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [1, 25, 1000])
def test_the_inverse_sampler_agrees_with_the_bitwise_reference(scale):
    """Two-sample chi-square. The twin has a scale 7 % off."""
    reference = bitwise_laplace(1 / scale, 200_000)
    assert same_law(discrete_laplace(SYSTEM, Fraction(1, scale), 200_000), reference).passes
    assert not same_law(discrete_laplace(SYSTEM, Fraction(107, 100 * scale), 200_000), reference).passes


@pytest.fixture(scope="module")
def opendp():
    prelude = pytest.importorskip("opendp.prelude")
    prelude.enable_features("contrib")
    return prelude


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [1, 25, 1000])
def test_laplace_noise_agrees_with_opendp(opendp, scale):
    """Two-sample chi-square of 60000 draws each. The twin has a scale 12 % off."""
    n = 60_000
    space = opendp.vector_domain(opendp.atom_domain(T=int)), opendp.l1_distance(T=int)
    theirs = np.array(opendp.m.make_laplace(*space, scale=float(scale))([0] * n))
    assert same_law(discrete_laplace(SYSTEM, Fraction(1, scale), n), theirs).passes
    assert not same_law(discrete_laplace(SYSTEM, Fraction(112, 100 * scale), n), theirs).passes


@pytest.mark.statistical
@pytest.mark.parametrize("sigma", [1, 25, 1000])
def test_gaussian_noise_agrees_with_opendp(opendp, sigma):
    """Two-sample chi-square of 60000 draws each. The twin has a standard deviation 10 % off."""
    n = 60_000
    space = opendp.vector_domain(opendp.atom_domain(T=int)), opendp.l2_distance(T=float)
    theirs = np.array(opendp.m.make_gaussian(*space, scale=float(sigma))([0] * n))
    assert same_law(discrete_gaussian(SYSTEM, Fraction(sigma) ** 2, n), theirs).passes
    assert not same_law(discrete_gaussian(SYSTEM, Fraction(11 * sigma, 10) ** 2, n), theirs).passes


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(Fraction(1), 1), (Fraction(1, 2), 3), (Fraction(4), 10)])
def test_no_shift_within_the_sensitivity_changes_a_laplace_chance_by_more_than_epsilon(epsilon, sensitivity):
    """The cost of the charge, from the law: log P(z) - log P(z - s) over every shift s and every z that matters."""
    measurement = laplace_noise("x", sensitivity, epsilon)
    scale = sensitivity / epsilon
    log_p = np.log(laplace_pmf(float(scale), 200))
    worst = max(np.abs(log_p[s:] - log_p[:-s]).max() for s in range(1, sensitivity + 1))
    assert worst == pytest.approx(float(measurement.charge.epsilon), rel=1e-9)  # reached, and not passed
    beyond = np.abs(log_p[sensitivity + 1 :] - log_p[: -sensitivity - 1]).max()
    assert beyond > float(measurement.charge.epsilon) * 1.05


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(Fraction(1), 1), (Fraction(1, 2), 3), (Fraction(4), 10)])
def test_no_shift_within_the_sensitivity_changes_a_rounded_k_norm_chance_by_more_than_epsilon(epsilon, sensitivity):
    charge = k_norm_noise("x", sensitivity, epsilon).charge
    log_p = np.log(rounded_k_norm_pmf(float(sensitivity / epsilon), 100))
    for s in range(1, sensitivity + 1):
        assert np.abs(log_p[s:] - log_p[:-s]).max() <= float(charge.epsilon) * s / sensitivity * (1 + 1e-9)
    assert np.abs(log_p[sensitivity + 1 :] - log_p[: -sensitivity - 1]).max() > float(charge.epsilon)


@pytest.mark.parametrize("shift", [(0, 2), (1, 1), (2, 0), (-1, 1)])
def test_no_shift_within_the_l2_ball_changes_a_k_norm_chance_in_the_plane_by_more_than_epsilon(shift):
    """Unit squares: P(z) / P(z - s) <= exp(|s|_2 / beta), by the triangle inequality inside every square."""
    beta, reach = 1.5, 12
    log_p = np.log(rounded_k_norm_square(beta, reach))
    inner = slice(4, -4)
    moved = np.roll(log_p, shift, axis=(0, 1))
    assert np.abs(log_p[inner, inner] - moved[inner, inner]).max() <= math.hypot(*shift) / beta + 1e-9


def test_the_variance_of_gaussian_noise_is_what_its_rho_says():
    """l2**2 / (2 rho), handed to the sampler as an exact rational."""
    measurement = gaussian_noise("x", 3, Fraction(1, 50))
    assert measurement.charge.rho == Fraction(1, 50)
    assert measurement.charge.epsilon is None
    assert measurement.charge.norm == "l2"


@pytest.mark.statistical
def test_measurements_draw_noise_of_the_scale_they_charge_for():
    """The scale is sensitivity/epsilon, and sensitivity**2/(2 rho): a measurement that forgets its sensitivity is caught.

    The broken twin is a Laplace measurement of sensitivity 1 where 5 is due.
    """
    n = 300_000
    laplace = laplace_noise("x", 5, Fraction(1, 2)).draw(SYSTEM, np.full(n, 1000)) - 1000
    assert hold_against(laplace, -700, laplace_pmf(10.0, 700)).passes
    gaussian = gaussian_noise("x", 6, Fraction(1, 8)).draw(SYSTEM, np.full(n, -5)) + 5
    assert hold_against(gaussian, -200, gaussian_pmf(12.0, 200)).passes
    ball = k_norm_noise("x", 6, Fraction(2)).draw(SYSTEM, np.full((n, 1), 9))[:, 0] - 9
    assert hold_against(ball, -200, rounded_k_norm_pmf(3.0, 200)).passes
    forgetful = laplace_noise("x", 1, Fraction(1, 2)).draw(SYSTEM, np.full(n, 1000)) - 1000
    assert not hold_against(forgetful, -700, laplace_pmf(10.0, 700)).passes


@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 3, 2), (0,), (0, 5)])
def test_noise_keeps_the_shape_and_the_integers(shape):
    raw = np.zeros(shape, dtype=np.int32)
    for measurement in (laplace_noise("x", 1, Fraction(1)), gaussian_noise("x", 1, Fraction(1))):
        noisy = measurement.draw(SYSTEM, raw)
        assert noisy.shape == shape
        assert noisy.dtype == np.int64


@pytest.mark.parametrize("shape", [(3, 4), (1, 1), (4, 7), (0, 5)])
def test_k_norm_noise_keeps_the_shape_and_the_integers_also_without_a_block(shape):
    noisy = k_norm_noise("x", 1, Fraction(1)).draw(SYSTEM, np.zeros(shape, dtype=np.int32))
    assert noisy.shape == shape
    assert noisy.dtype == np.int64


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1, 2**40, 2**50, 2**55])
def test_a_sum_near_the_end_of_int64_wraps_and_does_not_raise(scale):
    """(S + Z) mod 2**64 is post-processing of S + Z; an error or a warning would tell that S is large."""
    raw = np.array([[2**63 - 1, -(2**63)], [2**63 - 2, 0]] * 50)
    measurements = [laplace_noise("x", scale, Fraction(1)), k_norm_noise("x", scale, Fraction(1))]
    if scale <= 2**50:
        measurements.append(gaussian_noise("x", scale, Fraction(1, 2)))
    for measurement in measurements:
        noise = measurement.draw(SYSTEM, raw).astype(object) - raw.astype(object)
        wrapped = [(int(z) + 2**63) % 2**64 - 2**63 for z in noise.ravel()]
        assert max(abs(z) for z in wrapped) < 120 * scale


def test_noise_wider_than_two_to_the_55_is_refused_from_public_parameters():
    for make in (
        lambda: laplace_noise("x", 2**56, Fraction(1)),
        lambda: laplace_noise("x", 2**30, Fraction(1, 2**30)),
        lambda: gaussian_noise("x", 2**56, Fraction(1, 2)),
        lambda: gaussian_noise("x", 2**20, Fraction(1, 2**80)),
        lambda: k_norm_noise("x", 2**56, Fraction(1)),
    ):
        with pytest.raises(InvalidValue, match=r"2\*\*55"):
            make()
