"""The float path, the integer path and a reference in high precision give one answer for the same bits."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from vault_sources import Thirds, TwoStreams

from kveil.kernel import noise
from kveil.kernel.exact import SystemEntropy
from kveil.kernel.noise import discrete_gaussian, discrete_laplace, k_norm

THIRD = Fraction(1, 3)
BITS = 400  # of the reference


@pytest.fixture
def forced(monkeypatch):
    """Infinite margins: float64 never decides. Gives a counter of the integer decisions taken."""
    taken = []

    def force():
        for name in ("MARGIN", "COIN_MARGIN", "K_NORM_MARGIN"):
            monkeypatch.setattr(noise, name, math.inf)
        for name in ("neglog_bounds", "exp_bounds", "bernoulli_exp"):
            real = getattr(noise, name, None)
            if real is not None:
                monkeypatch.setattr(noise, name, counted(real))
        return taken

    def counted(function):
        def call(*args, **more):
            taken.append(function.__name__)
            return function(*args, **more)

        return call

    return force


RATES = [
    Fraction(1), Fraction(5), Fraction(3, 7), Fraction(1, 25), Fraction(1, 1000), Fraction(123456789, 987654321000),
    Fraction(1, 2**22 - 1), Fraction(1, 2**22), Fraction(1, 2**34), Fraction(7, 3 * 2**50), Fraction(1, 2**55),
]  # fmt: skip


@pytest.mark.parametrize("rate", RATES, ids=str)
def test_laplace_noise_is_the_same_value_by_value_when_integers_decide_everything(rate, forced):
    n = 250
    by_float = discrete_laplace(TwoStreams(1), rate, n)
    taken = forced()
    by_integers = discrete_laplace(TwoStreams(1), rate, n)
    assert by_integers.tolist() == by_float.tolist()
    assert len(taken) >= 2 * n


VARIANCES = [
    Fraction(1, 7), Fraction(1), Fraction(49, 9), Fraction(625), Fraction(10**6), Fraction(2**41 + 1, 3), Fraction(2**70),
    Fraction(2**109),
]  # fmt: skip


@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_gaussian_noise_is_the_same_value_by_value_when_integers_decide_everything(variance, forced):
    n = 150
    by_float = discrete_gaussian(TwoStreams(2), variance, n)
    taken = forced()
    by_integers = discrete_gaussian(TwoStreams(2), variance, n)
    assert by_integers.tolist() == by_float.tolist()
    assert len(taken) >= 3 * n


BALLS = [
    (1, Fraction(1, 3), 120), (1, Fraction(2**30), 120), (2, Fraction(1, 3), 80), (2, Fraction(7, 5), 80), (3, Fraction(25), 60),
    (4, Fraction(2**30), 40), (16, Fraction(10**6, 7), 10), (63, Fraction(2**20), 3), (64, Fraction(1, 3), 3),
    (783, Fraction(2**20), 1), (784, Fraction(1, 3), 1), (784, Fraction(2**20), 2), (784, Fraction(2**30), 2),
]  # fmt: skip


@pytest.mark.parametrize(("d", "beta", "blocks"), BALLS, ids=str)
def test_k_norm_noise_is_the_same_value_by_value_when_integers_decide_everything(d, beta, blocks, forced):
    by_float = k_norm(TwoStreams(3), beta, blocks, d)
    taken = forced()
    by_integers = k_norm(TwoStreams(3), beta, blocks, d)
    assert by_integers.tolist() == by_float.tolist()
    assert len(taken) >= blocks * d


def test_a_margin_of_nothing_is_noticed_by_the_comparison(monkeypatch):
    """The guard of this file: a float path that decides too early gives other values on words that lie on a boundary."""
    rate = Fraction(1, 1000)
    words = [word for k in range(1, 400) for word in boundary_words(rate, k)]
    right = [discrete_laplace(Thirds([word, 2**63]), rate, 1)[0] for word in words]
    monkeypatch.setattr(noise, "MARGIN", 0.0)
    hasty = [discrete_laplace(Thirds([word, 2**63]), rate, 1)[0] for word in words]
    assert hasty != right


class Replay:
    """The samplers of the specification in high precision, on the words that a `Thirds` source has served."""

    def __init__(self, source):
        self.calls = list(source.served)

    def uniform(self):
        (word,) = self.calls.pop(0)
        return mpmath.mpf(3 * word + 1) / (3 * mpmath.mpf(2) ** 64)

    def laplace(self, rate):
        return self.geometric(rate) - self.geometric(rate)

    def geometric(self, rate):
        if 1 / rate < 2**22:
            return int(mpmath.floor(-mpmath.log(self.uniform()) / as_real(rate)))
        h = int(1 / rate).bit_length() - 1
        low = None
        while low is None:
            (word,) = self.calls.pop(0)
            proposal = word >> (64 - h)
            if self.uniform() < mpmath.exp(-proposal * as_real(rate)):
                low = proposal
        return (self.geometric(rate * 2**h) << h) + low

    def gaussian(self, variance):
        t = math.isqrt(int(variance)) + 1
        while True:
            y = self.laplace(Fraction(1, t))
            if self.uniform() < mpmath.exp(-((abs(y) - as_real(variance / t)) ** 2) / (2 * as_real(variance))):
                return y

    def k_norm(self, beta, d):
        exponentials = [-mpmath.log(mpmath.mpf(3 * w + 1) / (3 * mpmath.mpf(2) ** 64)) for w in self.calls.pop(0)]
        pairs = [None] * ((d + 1) // 2 + (d % 2 == 0))
        while missing := [i for i, pair in enumerate(pairs) if pair is None]:
            sides = self.calls.pop(0)
            for place, a, b in zip(missing, sides[: len(missing)], sides[len(missing) :], strict=True):
                point = [(signed(word) + mpmath.mpf(1) / 3) / mpmath.mpf(2) ** 63 for word in (a, b)]
                pairs[place] = point if point[0] ** 2 + point[1] ** 2 < 1 else None
        normals = []
        for a, b in pairs:
            s = a * a + b * b
            normals += [a * mpmath.sqrt(-2 * mpmath.log(s) / s), b * mpmath.sqrt(-2 * mpmath.log(s) / s)]
        chi = 2 * mpmath.fsum(exponentials) + (normals[-2] ** 2 if d % 2 == 0 else 0)
        return [int(mpmath.floor(as_real(beta) * g * mpmath.sqrt(chi) + mpmath.mpf(1) / 2)) for g in normals[:d]]


def as_real(fraction):
    return mpmath.mpf(fraction.numerator) / fraction.denominator


def signed(word):
    return word - 2**64 if word >= 2**63 else word


def wrapped(z):
    return (z + 2**63) % 2**64 - 2**63


def boundary_words(rate, k):
    """The words on either side of U = exp(-k rate), where floor(-ln(U)/rate) steps."""
    with mpmath.workprec(BITS):
        edge = int(mpmath.floor(mpmath.exp(-k * as_real(rate)) * mpmath.mpf(2) ** 64))
    return [max(0, edge - 1), edge, min(2**64 - 1, edge + 1)]


EXTREME = [0, 1, 2, 3, 2**11, 2**53 - 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 2**11, 2**64 - 2, 2**64 - 1]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rate", [Fraction(1), Fraction(7, 2), Fraction(3, 7), Fraction(1, 1000), Fraction(1, 2**21)], ids=str)
def test_extreme_words_give_laplace_noise_that_a_reference_confirms(rate):
    """U next to 0, next to 1 and next to every step of the geometric law; nothing raises or warns."""
    steps = [word for k in (1, 2, 3, 10, 30) for word in boundary_words(rate, k)]
    for first in EXTREME + steps:
        for second in (first, 2**64 - 1, 12345 * 2**40):
            source = Thirds([first, second])
            (z,) = discrete_laplace(source, rate, 1).tolist()
            with mpmath.workprec(BITS):
                assert z == wrapped(Replay(source).laplace(rate))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rate", [Fraction(1, 2**22), Fraction(3, 2**35), Fraction(1, 2**55)], ids=str)
def test_extreme_words_give_wide_laplace_noise_that_a_reference_confirms(rate):
    """Low part, its coin, and high part take the extreme words in turn; the coin also meets words on its threshold."""
    h = int(1 / rate).bit_length() - 1
    for low in EXTREME:
        with mpmath.workprec(BITS):
            edge = int(mpmath.floor(mpmath.exp(-(low >> (64 - h)) * as_real(rate)) * mpmath.mpf(2) ** 64))
        for coin in (0, 2**64 - 1, max(0, edge - 1), min(edge, 2**64 - 1), min(edge + 1, 2**64 - 1)):
            for high in (0, 2**64 - 1, *boundary_words(rate * 2**h, 3)):
                source = Thirds([low, coin, high], seed=low % 7)
                (z,) = discrete_laplace(source, rate, 1).tolist()
                with mpmath.workprec(BITS):
                    assert z == wrapped(Replay(source).laplace(rate))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("variance", [Fraction(1, 7), Fraction(1), Fraction(49, 9), Fraction(10**6), Fraction(2**90)], ids=str)
def test_extreme_words_give_gaussian_noise_that_a_reference_confirms(variance):
    for first in EXTREME:
        for second in EXTREME[::3]:
            for coin in (0, 2**63, 2**64 - 1):
                source = Thirds([first, second, coin, first, coin], seed=coin % 5)
                (z,) = discrete_gaussian(source, variance, 1).tolist()
                with mpmath.workprec(BITS):
                    assert z == wrapped(Replay(source).gaussian(variance))


@pytest.mark.filterwarnings("error")
def test_a_coin_of_the_gaussian_on_its_threshold_is_decided_as_the_reference_does():
    """The acceptance word is put on both sides of exp(-(|y| - s/t)**2/(2 s)) and on it, for each of the first values y."""
    variance, t = Fraction(49, 9), 3
    for y in range(9):
        up = boundary_words(Fraction(1, t), y)[0] if y else 2**63 + 2**62  # a word whose geometric value is y
        with mpmath.workprec(BITS):
            p = mpmath.exp(-((y - as_real(variance / t)) ** 2) / (2 * as_real(variance)))
            edge = int(mpmath.floor(p * mpmath.mpf(2) ** 64))
        for coin in (edge - 2**35, edge - 2**33, edge - 1, edge, edge + 1, edge + 2**33, edge + 2**35):
            source = Thirds([up, 2**63 + 2**62, min(coin, 2**64 - 1)], seed=y)
            (z,) = discrete_gaussian(source, variance, 1).tolist()
            with mpmath.workprec(BITS):
                assert z == Replay(source).gaussian(variance)


def on_the_circle():
    """Pairs of words whose point lies on the unit circle to 64 bits, just inside, just outside, and the ends of the range."""
    pairs = []
    for angle in (0.0, 0.3, math.atan2(4, 3), math.pi / 4, 1.2, math.pi / 2, 2.0, math.pi, 4.0, 5.5):
        with mpmath.workprec(BITS):
            a = int(mpmath.floor(mpmath.cos(angle) * mpmath.mpf(2) ** 63))
            b = int(mpmath.floor(mpmath.sin(angle) * mpmath.mpf(2) ** 63))
        for da, db in ((0, 0), (1, 1), (-1, -1), (0, 2**14), (-(2**14), 0)):
            pairs.append((min(max(a + da, -(2**63)), 2**63 - 1), min(max(b + db, -(2**63)), 2**63 - 1)))
    for k in range(40):  # both words rounded down: the point is next to the circle, and only more bits tell on which side
        with mpmath.workprec(BITS):
            pairs.append(tuple(int(mpmath.floor(f(0.01 + 0.157 * k) * mpmath.mpf(2) ** 63)) for f in (mpmath.cos, mpmath.sin)))
    tiny = [(0, 0), (-1, -1), (0, -1), (1, 0), (2**20, -(2**20))]
    ends = [(2**63 - 1, 0), (-(2**63), 0), (0, -(2**63)), (-(2**63), -(2**63)), (2**63 - 1, -1)]
    return [(a % 2**64, b % 2**64) for a, b in pairs + tiny + ends]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("beta", [Fraction(1, 3), Fraction(25), Fraction(2**30), Fraction(2**52)], ids=str)
def test_extreme_words_and_points_on_the_circle_give_k_norm_noise_that_a_reference_confirms(beta):
    for place, (a, b) in enumerate(on_the_circle()):
        for u in (0, 1, 2**64 - 1, 2**62 + place):
            source = Thirds([u, a, b], seed=place)  # d = 1: one word, one pair
            (z,) = k_norm(source, beta, 1, 1)[0].tolist()
            with mpmath.workprec(BITS):
                assert [z] == [wrapped(v) for v in Replay(source).k_norm(beta, 1)]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("d", [2, 3])
def test_extreme_pairs_give_k_norm_noise_that_a_reference_confirms_in_more_dimensions(d):
    """For d = 2 the last pair also feeds the chi-square; for d = 3 it holds a coordinate that is thrown away."""
    beta = Fraction(2**20)
    points = on_the_circle()
    for place, (a, b) in enumerate(points):
        c, e = points[(7 * place + 3) % len(points)]
        words = [2**63] * ((d + 1) // 2)
        source = Thirds([*words, a, c, b, e], seed=place)
        z = k_norm(source, beta, 1, d)[0].tolist()
        with mpmath.workprec(BITS):
            assert z == [wrapped(v) for v in Replay(source).k_norm(beta, d)]


@pytest.mark.parametrize("beta", [Fraction(1, 3), Fraction(2**30), Fraction(2**50)], ids=str)
def test_ordinary_words_give_k_norm_noise_that_a_reference_confirms(beta):
    for seed in range(12):
        source = Thirds([], seed=seed)
        z = k_norm(source, beta, 1, 5 + seed % 2)[0].tolist()
        with mpmath.workprec(BITS):
            assert z == Replay(source).k_norm(beta, 5 + seed % 2)


@pytest.mark.parametrize(("d", "beta"), [(1, Fraction(2**52)), (6, Fraction(2**51)), (9, Fraction(2**55))], ids=str)
def test_k_norm_noise_beyond_the_reach_of_float64_falls_to_integers_and_ends(d, beta):
    """|v| >= 2**51 is never decided in float64, so integers must decide whole blocks."""
    noisy = k_norm(SystemEntropy(), beta, 20, d)
    assert noisy.shape == (20, d)
    assert np.abs(noisy.astype(float)).max() > 2**45
