"""Exact noise for integer vectors: discrete Laplace, discrete Gaussian and rounded K-norm.

Each sampler computes in float64 with an interval that encloses the truth and, where the interval does not decide,
goes on with the same random bits in integers (the lazy rule of exact.py). Parameters are exact rationals.
Noise is added in int64, which may wrap: (S + Z) mod 2**64 is post-processing of S + Z.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np

from kveil.arrays import Floats, Integers
from kveil.errors import InvalidValue
from kveil.kernel.exact import Entropy, bernoulli_exp, neglog_bounds
from kveil.kernel.loss import Charge, Measurement

MARGIN = 2.0**-40  # relative width of the float interval of a logarithm; the true error is below a sixtieth of it
COIN_MARGIN = 2.0**-30  # absolute width for an acceptance probability; the true error is below 2**-40
K_NORM_MARGIN = 0.0  # on top of the proved bound; tests set all three to infinity to force the integer paths
WIDEST_SCALE = 2**55


def laplace_noise(label: str, l1_sensitivity: int, epsilon: Fraction, **more: Any) -> Measurement[Integers, Integers]:
    """An integer vector plus independent discrete Laplace noise, P(z) ~ exp(-|z| epsilon / l1_sensitivity).

    Private:      the vector.  Public: its length and the parameters.
    Sensitivity:  l1_sensitivity bounds the L1 distance between the vectors of neighbours; the caller proves it.
    Cost:         epsilon, since |z| - |z - s| <= |s| in every coordinate.
    """
    _check_scale(l1_sensitivity / epsilon)
    charge = Charge("discrete-laplace", label, l1_sensitivity, "l1", epsilon, **more)
    return Measurement(charge, lambda source, raw: _plus(raw, discrete_laplace(source, epsilon / l1_sensitivity, raw.size)))


def gaussian_noise(label: str, l2_sensitivity: int, rho: Fraction, **more: Any) -> Measurement[Integers, Integers]:
    """An integer vector plus independent discrete Gaussian noise of variance l2_sensitivity**2 / (2 rho).

    Private:      the vector.  Public: its length and the parameters.
    Sensitivity:  l2_sensitivity bounds the L2 distance between the vectors of neighbours; the caller proves it.
    Cost:         rho-zCDP (Canonne, Kamath, Steinke 2020, for integer vectors and independent coordinates).
    """
    variance = l2_sensitivity**2 / (2 * rho)
    _check_scale(Fraction(isqrt(int(variance)) << 5))  # 2**50: a proposal must not wrap before it is accepted
    charge = Charge("discrete-gaussian", label, l2_sensitivity, "l2", rho=rho, **more)
    return Measurement(charge, lambda source, raw: _plus(raw, discrete_gaussian(source, variance, raw.size)))


def k_norm_noise(label: str, l2_sensitivity: int, epsilon: Fraction, **more: Any) -> Measurement[Integers, Integers]:
    """Integer blocks plus round(v), v of density ~ exp(-|v|_2 epsilon / l2_sensitivity), independent for each block.

    Private:      the blocks, an array (blocks, d).  Public: its shape and the parameters.
    Sensitivity:  l2_sensitivity bounds the sum over blocks of the L2 distance between neighbours; the caller proves it.
    Cost:         epsilon, by the triangle inequality; S + round(v) = round(S + v) is post-processing, as S is integer.
    """
    beta = l2_sensitivity / epsilon
    _check_scale(beta)
    charge = Charge("k-norm", label, l2_sensitivity, "l2", epsilon, **more)
    return Measurement(charge, lambda source, raw: _plus(raw, k_norm(source, beta, *raw.shape)))


def discrete_laplace(source: Entropy, rate: Fraction, n: int) -> Integers:
    """`n` integers with P(z) ~ exp(-|z| rate): the difference of two geometric variables.

    With q = exp(-rate) the difference has P(0) = (1-q)/(1+q) and ratio q on both sides, as it must.
    """
    return _geometric(source, rate.numerator, rate.denominator, n) - _geometric(source, rate.numerator, rate.denominator, n)


def discrete_gaussian(source: Entropy, variance: Fraction, n: int) -> Integers:
    """`n` integers with P(z) ~ exp(-z**2 / (2 variance)), by rejection from discrete Laplace noise of scale t."""
    num, den = variance.numerator, variance.denominator
    t = isqrt(num // den) + 1
    spread = float(variance)

    def propose(size: int) -> tuple[Integers, Floats]:
        y = discrete_laplace(source, Fraction(1, t), size)
        with np.errstate(under="ignore"):  # a far proposal is refused, whatever this process has set
            return y, np.exp(-((np.abs(y.astype(np.float64)) - spread / t) ** 2) / (2 * spread))

    return _accepted(source, n, propose, lambda y: ((abs(y) * t * den - num) ** 2, 2 * num * den * t * t))


def k_norm(source: Entropy, beta: Fraction, blocks: int, d: int) -> Integers:
    """round(v) for `blocks` independent v in R^d of density ~ exp(-|v|_2 / beta), as an array (blocks, d).

    v = beta g sqrt(c), g standard normal in R^d, c chi-square with d+1 degrees: mixing N(0, s I) over s ~ chi2(d+1) gives
    a density ~ integral of s**(-1/2) exp(-(|v|**2/s + s)/2) ds = sqrt(2 pi) exp(-|v|). Normals come by the polar method
    from (a, b) uniform in the unit disc: a sqrt(2 q), b sqrt(2 q) with q = -ln(s)/s, s = a*a + b*b. chi2/2 is a sum of
    exponentials, plus half the square of one more normal when d is even. Only logarithms and rationals remain.
    """
    even = d % 2 == 0
    n_words, n_pairs = (d + 1) // 2, (d + 1) // 2 + even
    u = source.words(blocks * n_words).reshape(blocks, n_words)
    left, right, longer = _disc_pairs(source, blocks * n_pairs)
    a, b = (side.reshape(blocks, n_pairs) * 2.0**-63 for side in (left, right))
    with np.errstate(all="ignore"):  # a bad value makes the interval undecided, and then integers decide
        w = u.astype(np.float64)
        x = -np.log(w * 2.0**-64)
        s = a * a + b * b
        y = -np.log(s)
        s_error = 2.0**-50 + 2.0**-60 / s
        q, q_error = y / s, (1.01 * s_error + 2.0**-46 * y) / y + s_error
        chi = x.sum(axis=1)
        chi_error = (2.0**-52 + 1.02 / w + 2.0**-46 * x).sum(axis=1) + n_words * 2.0**-52 * chi
        if even:
            last = a[:, -1] ** 2 * q[:, -1]
            chi_error += last * q_error[:, -1] + q[:, -1] * (np.abs(a[:, -1]) * 2.0**-61 + 2.0**-120)
            chi += last
        relative = (chi_error / chi)[:, None, None]
        size = 2 * float(beta) * np.sqrt(chi[:, None] * q)[:, :, None]
        sides, pair_error = np.stack((a, b), axis=2), q_error[:, :, None]
        v = size * sides
        m = 2 * size * (np.abs(sides) * (0.51 * (pair_error + relative) + 2.0**-48) + 2.0**-62) + K_NORM_MARGIN
        low, high = np.floor(v - m + 0.5), np.floor(v + m + 0.5)
        sure = (low == high) & (np.abs(v) < 2.0**51) & (pair_error < 2.0**-20) & (relative < 2.0**-20)
    sure, low = (part.reshape(blocks, 2 * n_pairs)[:, :d] for part in (sure, low))
    out = np.where(sure, low, 0.0).astype(np.int64)
    for block in np.flatnonzero(~sure.all(axis=1)).tolist():
        places = range(block * n_pairs, (block + 1) * n_pairs)
        heads = [longer.get(i, (int(left[i]), int(right[i]), 64)) for i in places]
        exact = _exact_block(source, beta, u[block].tolist(), heads, d, np.flatnonzero(~sure[block]).tolist())
        out[block, list(exact)] = [_wrapped(z) for z in exact.values()]
    return out


def _check_scale(scale: Fraction) -> None:
    if scale > WIDEST_SCALE:
        raise InvalidValue(
            "this budget asks for noise wider than 2**55 grid steps: raise epsilon, lower n_steps, use fewer bits."
        )


def _plus(raw: Integers, noise: Integers) -> Integers:
    return raw + noise.reshape(raw.shape)


def _wrapped(z: int) -> int:
    return (z + 2**63) % 2**64 - 2**63


def _geometric(source: Entropy, num: int, den: int, n: int) -> Integers:
    """`n` integers with P(G >= k) = exp(-k num/den)."""
    if den < num << 22:
        return _short_geometric(source, num, den, n)
    # Wide: G = 2**h V + L. Both factors of q**(2**h v + l) are sampled on their own, L by rejection from h random bits.
    h = (den // num).bit_length() - 1
    rate = num / den

    def propose(size: int) -> tuple[Integers, Floats]:
        bits = (source.words(size) >> np.uint64(64 - h)).astype(np.int64)
        return bits, np.exp(-bits * rate)

    low = _accepted(source, n, propose, lambda bits: (bits * num, den))
    return (_short_geometric(source, num << h, den, n) << h) + low


def _short_geometric(source: Entropy, num: int, den: int, n: int) -> Integers:
    """G = floor(-ln(U) den/num), by float64 where both ends of its interval have the same floor."""
    words = source.words(n)
    scale = den / num
    with np.errstate(all="ignore"):  # U = 0 gives an infinity, which counts as undecided
        w = words.astype(np.float64)
        value = -np.log(w * 2.0**-64) * scale
        half_width = MARGIN * (value + scale) + 1.01 * scale / w
        low, high = np.floor(value - half_width), np.floor(value + half_width)
    sure = low == high
    out = np.where(sure, low, 0.0).astype(np.int64)
    for i in np.flatnonzero(~sure).tolist():
        out[i] = _wrapped(_exact_geometric(source, int(words[i]), num, den))
    return out


def _exact_geometric(source: Entropy, w: int, num: int, den: int) -> int:
    """floor(-ln(U) den/num) for U in [w, w+1) / 2**64: more bits of the same U until both ends have the same floor."""
    b = 64
    while True:
        low, high = neglog_bounds(w + 1, b, b + 32)[0], neglog_bounds(w, b, b + 32)[1] if w else math.inf
        if high < math.inf and (floor := low * den // (num << b + 32)) == int(high) * den // (num << b + 32):
            return floor
        w, b = (w << 64) | source.bits(64), b + 64


def _accepted(
    source: Entropy, n: int, propose: Callable[[int], tuple[Integers, Floats]], exponent: Callable[[int], tuple[int, int]]
) -> Integers:
    """`n` proposals, each accepted with probability exp(-num/den), (num, den) = exponent(value), whose float `propose` gives."""
    out, todo = np.empty(n, dtype=np.int64), np.arange(n)
    while todo.size:
        values, p = propose(todo.size)
        words = source.words(todo.size)
        gap = words.astype(np.float64) * 2.0**-64 - p
        heads = gap < 0
        for i in np.flatnonzero(~(np.abs(gap) > COIN_MARGIN)).tolist():
            heads[i] = bernoulli_exp(source, *exponent(int(values[i])), head=(int(words[i]), 64))
        out[todo[heads]] = values[heads]
        todo = todo[~heads]
    return out


Head = tuple[int, int, int]  # a in [A, A+1) / 2**(bits-1), b in [B, B+1) / 2**(bits-1), and bits


def _disc_pairs(source: Entropy, n: int) -> tuple[Integers, Integers, dict[int, Head]]:
    """Points uniform in the unit disc: the first 64 bits of either side, and the heads of those that needed more."""
    sides, longer, todo = np.empty((2, n), dtype=np.int64), {}, np.arange(n)
    while todo.size:
        draw = source.words(2 * todo.size).view(np.int64).reshape(2, -1)
        s = ((draw * 2.0**-63) ** 2).sum(axis=0)
        inside = s < 1 - 2.0**-48
        for i in np.flatnonzero(np.abs(s - 1) <= 2.0**-48).tolist():
            inside[i], longer[int(todo[i])] = _settle(source, (int(draw[0, i]), int(draw[1, i]), 64))
        sides[:, todo[inside]] = draw[:, inside]
        todo = todo[~inside]
        longer = {i: head for i, head in longer.items() if i not in todo}  # a rejected point is drawn anew
    return sides[0], sides[1], longer


def _settle(source: Entropy, head: Head) -> tuple[bool, Head]:
    """Reveal bits of a point near the circle until it is certain on which side it lies."""
    while True:
        a, b, bits = head
        one = 1 << 2 * (bits - 1)
        (a_low, a_high), (b_low, b_high) = _squares(a), _squares(b)
        if a_high + b_high <= one:
            return True, head
        if a_low + b_low >= one:
            return False, head
        head = _extend(source, head, bits + 64)


def _extend(source: Entropy, head: Head, bits: int) -> Head:
    a, b, known = head
    more = bits - known
    return ((a << more) | source.bits(more), (b << more) | source.bits(more), bits) if more > 0 else head


def _squares(a: int) -> tuple[int, int]:
    """Bounds of the square of a number in [a, a+1]."""
    return (a * a, (a + 1) ** 2) if a >= 0 else ((a + 1) ** 2, a * a)


def _exact_block(source: Entropy, beta: Fraction, words: list[int], heads: list[Head], d: int, todo: list[int]) -> dict[int, int]:
    """Coordinates `todo` of one block of K-norm noise in integers, going on with the bits that the float path has used.

    Bounds are integers times 2**-prec; an interval that still reaches 0 has no upper end, and waits for more bits.
    """
    found: dict[int, int] = {}
    bits = 64
    while True:
        prec, heads = bits + 16, [_extend(source, head, bits) for head in heads]
        chi_low = sum(neglog_bounds(w + 1, bits, prec)[0] for w in words)
        chi_high = sum(neglog_bounds(w, bits, prec)[1] for w in words) if all(words) else math.inf
        if d % 2 == 0:
            last_low, last_high = _half_square(*heads[-1], prec)
            chi_low, chi_high = chi_low + last_low, chi_high + last_high
        for i in todo:
            a, b, known = heads[i // 2]
            low, high = _half_square(*((b, a) if i % 2 else (a, b)), known, prec)
            if chi_high < math.inf and high < math.inf:
                ends = {_rounded(beta, chi_low * low, prec), _rounded(beta, int(chi_high) * int(high), prec)}
                if len(ends) == 1:
                    found[i] = ends.pop() * (-1 if (b if i % 2 else a) < 0 else 1)
        todo = [i for i in todo if i not in found]
        if not todo:
            return found
        words, bits = [(w << 64) | source.bits(64) for w in words], bits + 64


def _half_square(a: int, b: int, bits: int, prec: int) -> tuple[int, int | float]:
    """Bounds of g**2/2 = -ln(s) a**2/s; a**2/(a**2 + b**2) rises with a**2 and falls with b**2."""
    double = 2 * (bits - 1)
    (a_low, a_high), (b_low, b_high) = _squares(a), _squares(b)
    low = neglog_bounds(min(a_high + b_high, 1 << double), double, prec)[0] * a_low // (a_low + b_high)
    if a_low + b_low == 0:
        return low, math.inf
    return low, -(-neglog_bounds(a_low + b_low, double, prec)[1] * a_high // (a_high + b_low))


def _rounded(beta: Fraction, product: int, prec: int) -> int:
    """floor(|v| + 1/2) from |v|**2 = 4 beta**2 (chi2/2)(g**2/2): isqrt of (2|v|)**2, plus one, halved."""
    return (isqrt(16 * beta.numerator**2 * product // (beta.denominator**2 << 2 * prec)) + 1) // 2
