"""For tests: scripted noise, so that a run can be repeated. Every guarantee made with it is invalid and says so."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from kveil.kernel import exact

__all__ = ["ScriptedEntropy", "scripted"]


class ScriptedEntropy:
    """The same bits on every platform for the same seed: SHAKE-128 over the seed and a counter."""

    secure = False

    def __init__(self, seed: int) -> None:
        self._seed, self._calls = seed, 0

    def words(self, n: int) -> NDArray[np.uint64]:
        return np.frombuffer(self._bytes(8 * n), dtype="<u8").astype(np.uint64)

    def bits(self, k: int) -> int:
        return int.from_bytes(self._bytes((k + 7) // 8)) >> (-k % 8)

    def _bytes(self, n: int) -> bytes:
        self._calls += 1
        return hashlib.shake_128(f"kveil.testing/{self._seed}/{self._calls}".encode()).digest(n)


@contextmanager
def scripted(seed: int) -> Iterator[None]:
    """Replace the noise source inside a `with` block.

    >>> import kveil.testing
    >>> with kveil.testing.scripted(7):
    ...     pass  # fits made here repeat exactly, and their guarantees are marked invalid
    """
    token = exact._installed.set(ScriptedEntropy(seed))
    try:
        yield
    finally:
        exact._installed.reset(token)
