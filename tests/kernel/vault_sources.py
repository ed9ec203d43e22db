"""Sources of bits for tests: they serve chosen bits, or keep words and extra bits apart. None of them is for private draws."""

from __future__ import annotations

import numpy as np

from kveil.testing import ScriptedEntropy


class TwoStreams:
    """Words from one stream and extra bits from another, so that a sampler which asks for more bits gets the same words."""

    secure = True

    def __init__(self, seed):
        self._words, self._bits = ScriptedEntropy(2 * seed), ScriptedEntropy(2 * seed + 1)
        self.extra = 0

    def words(self, n):
        return self._words.words(n)

    def bits(self, k):
        self.extra += k
        return self._bits.bits(k)


class Thirds:
    """Chosen words first, then scripted ones; every word goes on as 0101..., so that U is exactly (w + 1/3) / 2**64.

    However many bits a sampler reveals, and in whatever order, the real number behind a word is known, and a result can be
    held against a reference in high precision.
    """

    secure = True

    def __init__(self, first, seed=0):
        self._first, self._then = [int(word) for word in first], ScriptedEntropy(seed)
        self.served = []

    def words(self, n):
        head, self._first = self._first[:n], self._first[n:]
        out = np.concatenate([np.array(head, dtype=np.uint64), self._then.words(n - len(head))])
        self.served.append([int(word) for word in out])
        return out

    def bits(self, k):
        assert k % 2 == 0, "an odd number of bits would shift the pattern"
        return ((1 << k) - 1) // 3


class Served:
    """Exactly these integers as `bits`, in this order; asking for more is an error."""

    secure = True

    def __init__(self, *answers):
        self._answers = list(answers)
        self.asked = []

    def words(self, n):
        return np.array([self.bits(64) for _ in range(n)], dtype=np.uint64)

    def bits(self, k):
        self.asked.append(k)
        if not self._answers:
            raise LookupError("more bits were asked for than the test serves")
        answer = self._answers.pop(0)
        assert 0 <= answer < 1 << k
        return answer

    @property
    def left(self):
        return len(self._answers)
