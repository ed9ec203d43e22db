"""Sums over the stored reports of a closed round: integers, in chunks, each chunk's end on the disk before the next begins.

Integer sums do not depend on order, chunks, threads or engine, so a decoder that was killed anywhere and goes on from its last
checkpoint ends with the same bytes. Codewords pass through log and cos, whose last bit may differ between machines: decode one
round on one machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np

from kveil.arrays import Integers, Words
from kveil.collect import oracles, vector
from kveil.collect.manifest import Manifest
from kveil.collect.queries import Keys, Query, Sums
from kveil.collect.report import seeds
from kveil.collect.storage import Storage
from kveil.collect.stored import Checkpoint, StoredRound

CHUNK = 65_536  # reports


class StoredAnswers:
    """The answers of one closed round, decoded on demand and remembered; see `queries.Answers`."""

    def __init__(self, storage: Storage, stored: StoredRound, manifest: Manifest, chunk: int = CHUNK) -> None:
        self._storage, self._round, self._manifest, self._chunk = storage, stored, manifest, chunk
        self._received = storage.received(stored.id)

    def received(self, query: Query) -> int:
        """How many people answered a query."""
        return self._received.get(query.id, 0)

    def support(self, query: Query, keys: Keys) -> Integers:
        """The statistic of "olh", "grr" and "hrr" for each key."""

        def add(words: Words, reported: Integers) -> Integers:
            return oracles.support(query, words, reported, keys)

        return self._summed(query, _task("support", query, keys), add, np.zeros(len(keys), dtype=np.int64))

    def sums(self, query: Query, keys: Keys, start: int = 0) -> Sums:
        """The statistic of "vec" for each key, from column `start` on."""
        dim = query.length(self._manifest.header.n_columns)

        def add(words: Words, reported: Integers) -> Integers:
            told = vector.decoded(query, words, reported, keys, dim, start)
            return np.vstack([told.sums, told.squares])

        empty = np.zeros((len(keys) + 1, dim - start), dtype=np.int64)
        table = self._summed(query, _task(f"sums from {start}", query, keys), add, empty)
        return Sums(table[:-1], table[-1])

    def _summed(self, query: Query, task: str, add: Callable[[Words, Integers], Integers], total: Integers) -> Integers:
        """What `add` makes of each chunk, added up, from the last checkpoint on."""
        kept = self._storage.checkpoint(self._round.id, task, self._round.manifest_hash) or Checkpoint(b"", b"", False)
        if kept.statistic:
            total = np.frombuffer(kept.statistic, dtype="<i8").astype(np.int64).reshape(total.shape)
        while not kept.is_done:
            ids, values = self._storage.chunk(self._round.id, query.id, kept.watermark, self._chunk)
            if ids:
                total = total + add(seeds(self._round.manifest_hash, ids), np.array(values, dtype=np.int64))
            kept = Checkpoint(ids[-1] if ids else kept.watermark, total.astype("<i8").tobytes(), len(ids) < self._chunk)
            self._storage.save_checkpoint(self._round.id, task, self._round.manifest_hash, kept)
        return total


def _task(what: str, query: Query, keys: Keys) -> str:
    """A name for a sum: the same question asked again after a restart finds its checkpoint."""
    return hashlib.sha256(f"{what}|{query.id}|".encode() + keys.astype("<u8").tobytes()).hexdigest()
