"""The exact law of a selection, read off the algorithm itself without drawing anything."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np

from kveil.kernel import choice


def realised_law(draw, monkeypatch):
    """{index: exponent}, so that the algorithm gives index i with probability proportional to exp(-exponent_i) exactly.

    `draw` runs one selection. Its uniform integer r below `total` and its coin are taken over: r walks through all of
    0 .. total-1 by whole runs of r with one outcome, at whose ends the outcome is checked. An outcome proposed by `width`
    values of r and accepted by a coin of threshold (mult/div) exp(-num/den) has probability proportional to
    width (mult/div) exp(-num/den); with width = div and one mult for all, that is exp(-num/den).
    """
    seen = {}

    def run(r):
        def below(source, total):
            seen["total"] = total
            return r

        def coin(source, num, den, *, mult=1, div=1, head=(0, 0)):
            assert head == (0, 0)
            seen["coin"] = (num, den, mult, div)
            return True

        with monkeypatch.context() as patch:
            patch.setattr(choice, "uniform_below", below)
            patch.setattr(choice, "bernoulli_exp", coin)
            return draw(), seen["coin"], seen["total"]

    exponents, mults, r, total = {}, set(), 0, 1
    while r < total:
        index, (num, den, mult, div), total = run(r)
        assert run(r + div - 1) == (index, (num, den, mult, div), total), "an outcome is proposed by exactly `div` values of r"
        assert index not in exponents
        with mpmath.workprec(max(600, 64 + num.bit_length())):
            assert mult * mpmath.exp(-mpmath.mpf(num) / den) <= div, "a coin cannot fall with probability above 1"
        exponents[index] = Fraction(num, den)
        mults.add(mult)
        r += div
    assert r == total
    assert len(mults) == 1
    return exponents


def log_law(exponents):
    """Natural logarithms of the probabilities, in index order."""
    values = -np.array([float(exponents[i] - min(exponents.values())) for i in sorted(exponents)])
    return values - np.log(np.exp(values).sum())
