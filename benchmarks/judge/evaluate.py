"""Do the intervals of `kveil.evaluate` hold? Many draws of the vault's own noise, on one release and the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.bar import Bar
from benchmarks.sets import SHARED
from kveil import Ledger, PrivacyUnit, PrivateKMeans, Release, evaluate, read

PERSON = PrivacyUnit("person", 3, "0")
TERMS: dict[str, dict[str, Any]] = {
    "rows added or removed": {},
    "rows replaced": {"relation": "replace-one"},
    "people with 3 rows": {"unit": PERSON},
    "Gaussian noise": {"rule": "zcdp", "delta": 1e-6},
}


class Remembering:
    """A source whose exact answers are computed once: only the noise is fresh."""

    def __init__(self, source: Any) -> None:
        self._source, self._known = source, {}  # type: ignore[var-annotated]
        for name in ("names", "n_columns", "unit", "max_rows", "is_sparse", "partitions", "check"):
            setattr(self, name, getattr(source, name))  # from Python 3.12 on, isinstance of a protocol asks no __getattr__

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def raw_blocks(self) -> Any:
        return self._source.raw_blocks()

    def map_reduce(self, kernel: Any, state: Any, *, grid: Any, combine: Any) -> Any:
        key = (type(state), getattr(state, "clip", None))
        if key not in self._known:
            self._known[key] = self._source.map_reduce(kernel, state, grid=grid, combine=combine)
        return tuple(part.copy() for part in self._known[key])


def covered(
    release: Release, rows: Any, runs: int, epsilon: float = 1.0, delta: float = 0.0, unit: Any = None, **terms: Any
) -> dict[str, int]:
    """How often each interval held, over runs with fresh noise. With `unit` every three rows are one person."""
    table = np.column_stack([np.arange(len(rows)) // 3, rows])
    source = Remembering(read(table, person=0, max_rows_per_person=3) if unit else read(rows))
    far, sizes = np.sort(release.transform(rows), axis=1), np.bincount(release.predict(rows), minlength=len(release.centers))
    whole, silhouette = (far[:, 0] ** 2).sum(), (1 - far[:, 0] / far[:, 1]).mean()
    clipped: dict[float, tuple[float, int]] = {}
    held = dict.fromkeys(("cost", "one size", "all sizes", "silhouette", "rows", "beyond", "most"), 0)
    for _ in range(runs):
        account = Ledger.memory("people", 2 * epsilon, delta, **{"relation": "add-remove", "unit": source.unit} | terms)
        found = evaluate(release, source, epsilon, ledger=account, delta=delta)
        if found.clip not in clipped:
            beyond = int((far[:, 0] > found.clip * (1 + 1e-9)).sum())
            clipped[found.clip] = float((np.minimum(far[:, 0], found.clip) ** 2).sum()), beyond
        cost, n_beyond = clipped[found.clip]
        held["cost"] += found.cost.low * (1 - 1e-5) <= cost <= found.cost.high * (1 + 1e-5)
        held["one size"] += found.sizes[0].low <= sizes[0] <= found.sizes[0].high
        held["all sizes"] += all(one.low <= n <= one.high for n, one in zip(sizes, found.sizes_together, strict=True))
        assert found.silhouette is not None
        held["silhouette"] += found.silhouette.low - 1e-5 <= silhouette <= found.silhouette.high + 1e-5
        held["rows"] += found.rows.low <= len(rows) <= found.rows.high
        held["beyond"] += n_beyond <= found.beyond
        held["most"] += whole <= found.most * (1 + 1e-5)
    return held


def run(runs: int = 10_000) -> Iterator[Bar]:
    rows = np.load(SHARED / "sipu_s2.npz")["x"].astype(float)
    rows = (rows - rows.min(axis=0)) / np.ptp(rows, axis=0)
    release = PrivateKMeans(15, epsilon=1.0, bounds=(0, 1), random_state=0).fit(rows).release_
    for name, terms in TERMS.items():
        held = covered(release, rows, runs, **terms)
        for what, count in held.items():
            least = 0.935 if what in ("cost", "one size") else 0.94
            yield Bar(f"s2, epsilon 1, {name}: {what} covered", count / runs, least, at_least=True, note=f"({runs} draws)")
            if what in ("cost", "one size"):
                yield Bar(f"s2, epsilon 1, {name}: {what} not wider than need be", count / runs, 0.97, note=f"({runs} draws)")
