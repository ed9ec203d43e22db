"""Noise that repeats: while a name is set, private draws of this process follow from it, and public random choices too.

The operating system's entropy is replaced at its root, so guarantees look as they do for users: for noise, and for keys and
tokens, since cohorts and hash functions of a campaign follow from its key. Nothing but tests imports this.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from kveil.kernel.exact import SystemEntropy

_WORDS, _BITS, _RNG, _URANDOM = SystemEntropy.words, SystemEntropy.bits, np.random.default_rng, os.urandom


class Stream:
    """Bits that follow from a name: SHAKE-128 over it and a counter, which threads share."""

    def __init__(self, name: str) -> None:
        self.name, self._calls, self._tokens, self._children = name, itertools.count(), itertools.count(), itertools.count()

    def bytes(self, n: int) -> bytes:
        return hashlib.shake_128(f"{self.name}/{next(self._calls)}".encode()).digest(n)

    def token(self, n: int) -> bytes:
        """Of a count of their own: libraries that draw tokens do not move the noise."""
        return hashlib.shake_128(f"{self.name}/token {next(self._tokens)}".encode()).digest(n)

    def child(self) -> str:
        """The name of what a process that begins now draws."""
        return f"{self.name} process {next(self._children)}"


_now: Stream | None = None  # without one, bits are those of the operating system


def current() -> Stream | None:
    return _now


def begin(name: str | None) -> Stream | None:
    """From here on bits follow from the name; with none they are real. What came before is returned."""
    global _now
    before, _now = _now, None if name is None else Stream(name)
    if _now is not None:
        seed = int.from_bytes(_now.bytes(4))
        np.random.seed(seed)  # noqa: NPY002, what scikit-learn takes where `random_state` is None
        random.seed(seed)
    return before


@contextmanager
def repeated(name: str | None) -> Iterator[None]:
    """Inside, bits follow from the name; afterwards, what was before goes on."""
    global _now
    before = begin(name)
    try:
        yield
    finally:
        _now = before


def install() -> None:
    """Once in a process, before it draws. A forked child of it draws real bits: it would repeat those of its parent."""
    SystemEntropy.words = _words  # type: ignore[method-assign]
    SystemEntropy.bits = _bits  # type: ignore[method-assign]
    np.random.default_rng = _default_rng
    os.urandom = random._urandom = _urandom  # type: ignore[attr-defined]  # the latter is what `secrets` draws from
    os.register_at_fork(after_in_child=lambda: begin(None))


def _words(self: SystemEntropy, n: int) -> Any:
    return _WORDS(self, n) if _now is None else np.frombuffer(_now.bytes(8 * n), dtype="<u8").astype(np.uint64)


def _bits(self: SystemEntropy, k: int) -> int:
    return _BITS(self, k) if _now is None else int.from_bytes(_now.bytes((k + 7) // 8)) >> (-k % 8)


def _default_rng(seed: Any = None) -> np.random.Generator:
    return _RNG(int.from_bytes(_now.bytes(16)) if seed is None and _now is not None else seed)


def _urandom(n: int) -> bytes:
    return _URANDOM(n) if _now is None else _now.token(n)
