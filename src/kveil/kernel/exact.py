"""Where private bits come from, and arithmetic that decides with them exactly.

Two rules carry every sampler in the vault.

Lazy rule.  A result is a fixed function of a real uniform U whose bits are revealed on demand. Deciding early from a
    prefix, and otherwise extending THE SAME prefix, returns that function's value, so the law is exact whenever every
    interval below encloses the truth. Drawing an undecided U anew would bias the result.
Float licence.  float64 may decide only through an interval that allows numpy's log and exp 64 ULP (2**-46 relative;
    NumPy states 4) and every other operation 1 ULP. "Exact" therefore means: exact if log and exp are that good on
    this machine, which a test checks.
"""

import os
from contextvars import ContextVar
from functools import lru_cache
from typing import Protocol

import numpy as np

from kveil.arrays import Words


class Entropy(Protocol):
    """A stream of uniform random bits."""

    @property
    def secure(self) -> bool:
        """Whether the bits are unpredictable; a guarantee made with others is invalid."""

    def words(self, n: int) -> Words:
        """`n` uniform 64-bit words."""

    def bits(self, k: int) -> int:
        """A uniform integer below 2**k."""


class SystemEntropy:
    """The operating system's generator. No seed, and no buffer that a forked child could repeat."""

    secure = True

    def words(self, n: int) -> Words:
        return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)

    def bits(self, k: int) -> int:
        return int.from_bytes(os.urandom((k + 7) // 8)) >> (-k % 8)


# Only kveil.testing sets this, and nothing else in the package imports kveil.testing (a contract holds it to that).
_installed: ContextVar[Entropy] = ContextVar("kveil_entropy", default=SystemEntropy())  # noqa: B039, it has no state


def entropy() -> Entropy:
    """The source that private draws use now."""
    return _installed.get()


def uniform_below(source: Entropy, n: int) -> int:
    """A uniform integer in 0 .. n-1, by rejection."""
    while (draw := source.bits((n - 1).bit_length())) >= n:
        pass
    return draw


def bernoulli_exp(source: Entropy, num: int, den: int, *, mult: int = 1, div: int = 1, head: tuple[int, int] = (0, 0)) -> bool:
    """Whether U < (mult/div) exp(-num/den), a threshold of at most 1, exactly.

    `head = (w, b)` says that the first b bits of U are already known to be w. Both comparisons are non-strict, so that a
    threshold of exactly 1 ends; the equality they leave out has probability 0.
    """
    w, b = head
    while True:
        if b:
            low, high = exp_bounds(num, den, b + 32)
            if (w + 1) * div << 32 <= low * mult:
                return True
            if w * div << 32 >= high * mult:
                return False
        w, b = (w << 64) | source.bits(64), b + 64


def exp_bounds(num: int, den: int, prec: int) -> tuple[int, int]:
    """Integers low <= 2**prec exp(-num/den) <= high, for num >= 0 and den > 0.

    The argument is halved until it is below 2**-8, the alternating series is summed with one unit of slack a term, and
    the result is squared back with outward rounding.
    """
    if num == 0:
        return 1 << prec, 1 << prec
    if num > prec * den:
        return 0, 1
    halvings = (num // den).bit_length() + 8
    work = prec + halvings + 16
    x_low = (num << work) // (den << halvings)
    x_high = x_low + 1
    low = high = 1 << work
    term_low = term_high = 1 << work
    n = 0
    while term_high > 1:
        n += 1
        term_low, term_high = (term_low * x_low >> work) // n, -(-((term_high * x_high >> work) + 1) // n)
        low, high = (low - term_high, high - term_low) if n % 2 else (low + term_low, high + term_high)
    low, high = low - 2, high + 2  # the omitted tail is below the last term, which is at most 1 unit
    for _ in range(halvings):
        low, high = low * low >> work, (high * high >> work) + 1
    shift = work - prec
    return max(0, low >> shift), (high >> shift) + 1


def neglog_bounds(n: int, b: int, prec: int) -> tuple[int, int]:
    """Integers low <= 2**prec (-ln(n / 2**b)) <= high, for 0 < n <= 2**b.

    With e = bit_length(n): -ln(n/2**b) = (b-e) ln 2 + 2 atanh((2**e-n)/(2**e+n)), whose series argument is at most 1/3.
    """
    e = n.bit_length()
    two_low, two_high = _two_atanh(1, 3, prec)
    tail_low, tail_high = _two_atanh((1 << e) - n, (1 << e) + n, prec)
    if b >= e:
        return (b - e) * two_low + tail_low, (b - e) * two_high + tail_high
    return max(0, tail_low - two_high), tail_high - two_low  # n = 2**b, the only n with more than b bits


@lru_cache(maxsize=256)  # ln 2 = 2 atanh(1/3) is wanted again and again
def _two_atanh(num: int, den: int, prec: int) -> tuple[int, int]:
    """Bounds of 2**prec * 2 atanh(num/den) for 0 < num/den <= 1/3: the sum of z**(2i+1)/(2i+1), rounded outward."""
    work = prec + 16
    z_low = (num << work) // den
    z_high = z_low + 1
    sq_low, sq_high = z_low * z_low >> work, (z_high * z_high >> work) + 1
    low = high = 0
    odd = 1
    while z_high > 1:
        low, high = low + z_low // odd, high + -(-z_high // odd)
        z_low, z_high = z_low * sq_low >> work, (z_high * sq_high >> work) + 1
        odd += 2
    high += 2  # what is left is a geometric tail of ratio 1/9 that starts at 1 unit or less
    return low >> 15, (high >> 15) + 1
