"""Vectors through a codebook: published constants, unbiased, the two second moments, signed sums, and the quick law."""

from fractions import Fraction
from math import log, sqrt

import numpy as np
import pytest
from scipy.stats import beta

from kveil.collect import device, vector
from kveil.collect.answers import Drawn, FromLaw, foreseen_words
from kveil.collect.centres import reported_length
from kveil.collect.encoding import directions
from kveil.collect.queries import Query
from kveil.kernel.loss import response_weights
from kveil.kernel.response import subset_select

FALSE_ALARM = 1e-6
TABLE = {3: (112, 97, 69, 31), 6: (110, 92, 61, 22), 11: (109, 90, 58, 19), 21: (108, 89, 57, 18)}
VARIANCES = {
    3: (21.7, 5.60, 1.57, 0.579),
    6: (23.4, 5.96, 1.59, 0.499),
    11: (24.3, 6.14, 1.60, 0.470),
    21: (24.8, 6.25, 1.62, 0.456),
}
EPSILONS = [Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4)]


@pytest.mark.parametrize("dim", TABLE)
def test_preferred_codewords_and_variances_are_the_published_ones(dim):
    books = [vector.codebook(dim, epsilon) for epsilon in EPSILONS]
    assert tuple(book.kappa for book in books) == TABLE[dim]
    assert [book.variance for book in books] == pytest.approx(VARIANCES[dim], rel=5e-3)


@pytest.mark.parametrize(
    ("dim", "epsilon", "m"), [(3, 1, 0.243964), (6, 2, 0.323892), (11, 1, 0.121709), (11, 4, 0.439747), (21, 1, 0.087311)]
)
def test_the_constant_m_is_the_published_one(dim, epsilon, m):
    assert vector.codebook(dim, Fraction(epsilon)).m == pytest.approx(m, abs=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "expected"),
    [(1, (1.10, 1.12, 1.14, 1.15, 1.15)), (2, (1.31, 1.42, 1.52, 1.57, 1.59)), (4, (1.73, 2.14, 2.66, 2.94, 3.08))],
)
def test_the_noise_is_longer_along_the_vector_by_the_published_factor(epsilon, expected):
    found = [dim * vector.codebook(dim, Fraction(epsilon)).t2 for dim in (2, 3, 6, 11, 21)]
    assert found == pytest.approx(expected, abs=6e-3)


def test_half_of_all_codewords_is_the_mechanism_of_the_hemisphere():
    """Its variance has a floor of about pi/2 a coordinate, whatever epsilon; the best share has none."""
    for dim in (3, 11):
        half, best = vector.codebook(dim, Fraction(8), hemisphere=True), vector.codebook(dim, Fraction(8))
        assert half.kappa == 128
        assert 1.3 < half.variance < 1.7
        assert best.variance < 0.35 * half.variance


def drawn_words(units, epsilon, seeds):
    """Codewords that real devices name, for vectors of these directions."""
    book = vector.codebook(units.shape[1], epsilon)
    subsets = vector.best_aligned(seeds, units, book.M, book.kappa)
    response = subset_select("report", book.M, book.kappa, epsilon, n_reports=len(units))
    from kveil.kernel.exact import SystemEntropy

    return vector.codewords(seeds, response.draw(SystemEntropy(), subsets), units.shape[1])


def cosine_cdf(dim, epsilon):
    """P(cosine of the named codeword <= s), exactly: its rank first, then an order statistic of uniform quantiles."""
    book = vector.codebook(dim, epsilon)
    a, b = response_weights(epsilon)
    inside = book.kappa * a / (book.kappa * a + (book.M - book.kappa) * b)
    chance = np.where(np.arange(1, book.M + 1) <= book.kappa, inside / book.kappa, (1 - inside) / (book.M - book.kappa))
    ranks = np.arange(1, book.M + 1)

    def cdf(s):
        level = beta.cdf((s + 1) / 2, (dim - 1) / 2, (dim - 1) / 2)
        return np.array([chance @ beta.cdf(t, book.M - ranks + 1, ranks) for t in level])

    return cdf


def largest_gap(sample, cdf):
    """sup |F_n - F| on 400 places, against the bound of Massart: the chance to pass it is below FALSE_ALARM."""
    places = np.linspace(-1, 1, 402)[1:-1]
    gap = np.abs(np.searchsorted(np.sort(sample), places, side="right") / len(sample) - cdf(places)).max()
    return gap, sqrt(log(2 / FALSE_ALARM) / (2 * len(sample)))


@pytest.mark.statistical
@pytest.mark.parametrize("dim", [2, 3, 6, 11])
def test_named_codewords_of_devices_and_of_the_shortcut_follow_the_same_exact_law(dim):
    """The cosine with the vector, which is all that is not uniform. The twin takes a third of epsilon."""
    n, epsilon, rng = 8_000, Fraction(4), np.random.default_rng()
    units = np.zeros((n, dim))
    units[:, -1] = 1.0
    book = vector.codebook(dim, epsilon)
    real = drawn_words(units, epsilon, rng.integers(0, 2**64, n, dtype=np.uint64))
    quick = foreseen_words(units, book.M, book.kappa, epsilon, rng)
    twin = foreseen_words(units, book.M, book.kappa, epsilon / 3, rng)
    for words in (real, quick):
        assert np.linalg.norm(words / 2.0**24, axis=1) == pytest.approx(1.0, abs=1e-6)
        gap, bound = largest_gap(words[:, -1] / 2.0**24, cosine_cdf(dim, epsilon))
        assert gap <= bound + 1e-6  # rounding to integers moves a cosine by less
    gap, bound = largest_gap(twin[:, -1] / 2.0**24, cosine_cdf(dim, epsilon))
    assert gap > 2 * bound


@pytest.mark.statistical
@pytest.mark.parametrize("dim", [2, 3, 11])
@pytest.mark.parametrize("is_real", [True, False])
def test_releases_are_unbiased_and_have_the_two_second_moments(dim, is_real):
    """Vectors of length 0, 0.45 and 1. Means by Bernstein with a chance of 1e-6 over all coordinates; moments within 4 %, which
    is six deviations here."""
    n, epsilon, rng = 9_000 if is_real else 60_000, Fraction(2), np.random.default_rng()
    book = vector.codebook(dim, epsilon)
    along = rng.standard_normal(dim)
    along /= np.linalg.norm(along)
    seeds = rng.integers(0, 2**64, n, dtype=np.uint64)
    second = []
    for length in (0.0, 0.45, 1.0):
        units = directions(np.tile(length * along, (n, 1)), seeds)
        words = drawn_words(units, epsilon, seeds) if is_real else foreseen_words(units, book.M, book.kappa, epsilon, rng)
        z = words / 2.0**24 / book.m
        bound = sqrt(2 * book.along * n * log(6 * dim / FALSE_ALARM)) + log(6 * dim / FALSE_ALARM) / book.m
        assert np.abs(z.sum(axis=0) - n * length * along).max() <= bound
        second.append(((z * units).sum(axis=1) ** 2).mean())
        assert (z**2).sum(axis=1) == pytest.approx(1 / book.m**2, rel=1e-5)
    assert np.mean(second) == pytest.approx(book.along, rel=0.04)
    across = (1 / book.m**2 - np.mean(second)) / (dim - 1)
    assert across == pytest.approx((1 - book.t2) / ((dim - 1) * book.m**2), rel=0.04)


def signed_query(epsilon, n_columns, centres, rho=1.0):
    book = vector.codebook(n_columns + 1, epsilon)
    return Query(id=0, kind="vec", M=book.M, kappa=book.kappa, key_rule="nearest", centres=(np.float32(centres),), rho=rho)


@pytest.mark.statistical
def test_signed_sums_find_each_key_and_their_squares_tell_the_deviation():
    """Points at their centres: the vector is the count's axis, the worst case, where V alone would understate the deviation by
    a third. 300 keys that nobody has: their spread is the deviation to 25 %, six deviations of it."""
    epsilon, n, rng = Fraction(4), 4_000, np.random.default_rng()
    centres = np.array([[0.5, 0.0, 0.0], [-0.5, 0.0, 0.0]])
    query = signed_query(epsilon, 3, centres)
    points = centres[np.repeat([0, 1], [3 * n // 4, n // 4])]
    seeds = rng.integers(0, 2**64, n, dtype=np.uint64)
    values, _ = device.reports(query, points, seeds, epsilon)
    keys = np.concatenate([[0, 1], np.arange(100, 400)]).astype(np.uint64)
    book = vector.codebook(4, epsilon)
    told = vector.released(Drawn({0: (seeds, values)}, 3).sums(query, keys), book)
    counts, sd = told.sums[:, 3] / sqrt(0.2), told.sd[3] / sqrt(0.2)
    assert abs(counts[0] - 3 * n / 4) < 6 * sd
    assert abs(counts[1] - n / 4) < 6 * sd
    assert counts[2:].std() == pytest.approx(sd, rel=0.25)
    assert sd > 1.25 * sqrt(n * book.variance / 0.2)


def test_a_sum_from_a_later_column_on_is_that_part_of_the_whole():
    epsilon, rng = Fraction(1), np.random.default_rng(3)
    query = signed_query(epsilon, 2, [[0.1, 0.2], [0.3, -0.4]])
    seeds, values = rng.integers(0, 2**64, 500, dtype=np.uint64), rng.integers(0, 256, 500)
    keys = np.arange(5, dtype=np.uint64)
    answers = Drawn({0: (seeds, values)}, 2)
    whole, part = answers.sums(query, keys), answers.sums(query, keys, 2)
    assert (whole.sums[:, 2:] == part.sums).all()
    assert (whole.squares[2:] == part.squares).all()
    order = rng.permutation(500)
    again = Drawn({0: (seeds[order], values[order])}, 2).sums(query, keys)
    assert (again.sums == whole.sums).all()
    quick = FromLaw({0: np.zeros((50, 2))}, epsilon, rng)
    assert (quick.sums(query, keys).sums[:, 2:] == quick.sums(query, keys, 2).sums).all()


def test_a_vector_of_one_number_is_randomised_response():
    book = vector.codebook(1, Fraction(1))
    a, b = response_weights(Fraction(1))
    assert (book.M, book.kappa, book.m) == (2, 1, (a - b) / (a + b))
    assert vector.best_aligned(np.zeros(2, dtype=np.uint64), np.array([[1.0], [-1.0]]), 2, 1).tolist() == [[0], [1]]
    assert vector.codewords(np.zeros(2, dtype=np.uint64), np.array([0, 1]), 1).tolist() == [[2**24], [-(2**24)]]


def test_ties_between_codewords_go_to_the_lower_one_and_nonsense_prefers_something_all_the_same():
    units = np.array([[np.nan, np.nan], [0.0, 0.0]])
    found = vector.best_aligned(np.zeros(2, dtype=np.uint64), units, 8, 3)
    assert found.tolist() == [[0, 1, 2], [0, 1, 2]]


def test_a_zero_vector_has_the_first_axis_and_a_fair_sign():
    seeds = np.arange(4000, dtype=np.uint64)
    units = directions(np.zeros((4000, 3)), seeds)
    assert (np.abs(units) == [1.0, 0.0, 0.0]).all()
    assert abs(units[:, 0].sum()) < 6 * sqrt(4000)
    full = directions(np.tile([0.0, 1.0, 0.0], (4000, 1)), seeds)
    assert (full == [0.0, 1.0, 0.0]).all()


@pytest.mark.statistical
@pytest.mark.parametrize("length", [0.0, 0.3, 0.7, 1.0])
def test_noise_tells_how_long_the_reported_points_are(length):
    """A deviation of the share is below 0.004, and 8 of them move each of these lengths by less than is allowed."""
    n, d, epsilon, rng = 40_000, 5, Fraction(4), np.random.default_rng()
    points = np.zeros((n, d))
    points[:, 1] = 0.5 * length
    query = signed_query(epsilon, d, np.zeros((1, d)), rho=0.5)
    told = vector.released(
        FromLaw({0: points}, epsilon, rng).sums(query, np.zeros(1, dtype=np.uint64)), vector.codebook(d + 1, epsilon)
    )
    found = reported_length(float(told.sd[d]) ** 2 / n, n, vector.codebook(d + 1, epsilon))
    assert length - 0.12 <= found <= length + 0.15
    assert reported_length(0.0, n, vector.codebook(d + 1, epsilon)) == 1.0


@pytest.mark.parametrize(("epsilon", "in_sum", "in_count"), [(1, 9.2, 18), (4, 2.5, 5)])
def test_how_much_one_lie_can_move_is_what_the_page_says(epsilon, in_sum, in_count):
    """A report is worth 1/m of a codeword, in a sum of 10 columns and a one for counting, which share it as 0.8 and 0.2."""
    worth = 1 / vector.codebook(11, Fraction(epsilon)).m
    assert worth / np.sqrt(0.8) == pytest.approx(in_sum, abs=0.06)
    assert worth / np.sqrt(0.2) == pytest.approx(in_count, abs=0.5)
