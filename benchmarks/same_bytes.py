"""What kveil computes, as hashes under scripted noise: a change of structure must leave every one of them as it is.

    python -m benchmarks.same_bytes before.json                        # write them
    python -m benchmarks.same_bytes after.json --against before.json   # write them, and say which differ
    python -m benchmarks.same_bytes after.json --only "tree,fed"       # those whose names begin so

Of every fit: results, guarantee, notes, texts of progress, passes over rows, and for each draw its charge and the raw value.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.sparse import random as random_sparse

import kveil
from kveil import Euclidean, FederatedKMeans, Ledger, PrivateKMeans, PrivateKMedian, StreamKMeans, find_bounds, read, tuning
from kveil.federate import Party, Policy
from kveil.kernel import gate
from kveil.progress import listen
from kveil.testing import scripted

RESULTS = ("cluster_centers_", "cluster_weights_", "cluster_errors_", "center_indices_")
ASPECTS = ("results", "guarantee", "notes", "progress", "passes", "draws", "charges", "raw")
Fit = Callable[[], Any]


def made_rows() -> dict[int, Any]:
    rng = np.random.default_rng(5)
    rows = {}
    for d in (1, 2, 3, 6, 20, 30):
        places = rng.uniform(-0.6, 0.6, (4, d))
        rows[d] = places[rng.integers(0, 4, 4000)] + 0.05 * rng.standard_normal((4000, d))
    return rows


ROWS = made_rows()
SPARSE = random_sparse(2000, 200, density=0.03, random_state=0, format="csr")
PEOPLE = pd.DataFrame({"id": np.arange(4000) // 2, "a": ROWS[2][:, 0], "b": ROWS[2][:, 1]})
UNIVERSE = Euclidean(np.random.default_rng(1).uniform(-1, 1, (300, 2)))
DEMAND = np.random.default_rng(2).integers(0, 300, 3000)
UNEVEN = ([-1, -2, -1, -1, -5, -1], [1, 2, 3, 1, 5, 1])
STARTS = np.array([[-0.5, -0.5], [0.5, 0.5], [-0.5, 0.5], [0.5, -0.5]])


def people() -> Any:
    return read(PEOPLE, person="id", max_rows_per_person=2)


def zcdp() -> Ledger:
    return Ledger.memory("this", 8.0, 1e-6, relation="add-remove", rule="zcdp")


def fit(d: int, rows: Any = None, model: Any = PrivateKMeans, **options: Any) -> Fit:
    def go() -> Any:
        given = {name: value() if callable(value) else value for name, value in options.items()}
        domain = {} if "radius" in given else {"bounds": (-1, 1)}
        return model(4, **{"random_state": 1, **domain, **given}).fit(
            ROWS[d] if rows is None else rows() if callable(rows) else rows
        )

    return go


def lloyds() -> Iterator[tuple[str, Fit]]:
    for d in (1, 2, 6):
        yield f"lloyd {d}", fit(d, method="lloyd")
        yield f"lloyd {d} delta", fit(d, method="lloyd", delta=1e-6)
        yield f"mean {d}", fit(d, method="mean")
    yield "lloyd coordinates", fit(3, method="lloyd", tuning=tuning.Lloyd(noise="coordinates"))
    yield "lloyd plain", fit(3, method="lloyd", tuning=tuning.Lloyd(reseed=False))
    yield "lloyd replace", fit(3, method="lloyd", relation="replace-one", delta=1e-6)
    yield "lloyd ball", fit(20, method="lloyd", radius=3.0, delta=1e-6)
    yield "lloyd exact", fit(3, method="lloyd", epsilon=float("inf"))
    yield "lloyd people", fit(2, people, method="lloyd")
    yield "lloyd sparse", fit(2, SPARSE, method="lloyd", radius=1.0)
    yield "lloyd zcdp", fit(6, method="lloyd", delta=1e-6, ledger=zcdp)
    yield "lloyd scaled", fit(3, method="lloyd", bounds=([-1, -2, -1], [1, 2, 3]), scaling="bounds")
    yield "lloyd given", fit(2, method="lloyd", init=STARTS)
    yield "lloyd random", fit(2, method="lloyd", init="spread")
    for init in ("noisy-sample", "variates"):
        for relation in ("add-remove", "replace-one"):
            yield f"lloyd {init} {relation}", fit(2, method="lloyd", init=init, epsilon=4.0, relation=relation)
        yield f"lloyd {init} delta", fit(6, method="lloyd", init=init, epsilon=4.0, delta=1e-6, expected_rows=4000)
        yield f"lloyd {init} people", fit(2, people, method="lloyd", init=init, epsilon=4.0)
    yield "lloyd variates laplace", fit(2, method="lloyd", init="variates", epsilon=9.0, tuning=tuning.Lloyd(seeds="laplace"))
    yield "lloyd variates exact", fit(2, method="lloyd", init="variates", epsilon=float("inf"))
    yield "mean delta", fit(30, method="mean", delta=1e-6)
    yield "mean replace", fit(6, method="mean", relation="replace-one")
    yield "mean exact", fit(6, method="mean", epsilon=float("inf"))


def trees() -> Iterator[tuple[str, Fit]]:
    for d in (1, 2, 3, 6, 20, 30):
        for epsilon in (0.02, 0.5, 8.0):
            yield f"tree {d} {epsilon}", fit(d, method="tree", epsilon=epsilon)
            yield f"tree {d} {epsilon} delta", fit(d, method="tree", epsilon=epsilon, delta=1e-6)
    yield "tree replace", fit(6, method="tree", relation="replace-one", delta=1e-6, epsilon=2.0)
    yield "tree people", fit(2, people, method="tree")
    yield "tree exact", fit(6, method="tree", epsilon=float("inf"))
    yield "tree exact 30", fit(30, method="tree", epsilon=float("inf"))
    yield "tree axes", fit(30, method="tree", delta=1e-6, epsilon=8.0, tuning=tuning.Tree(frame="pca"))
    yield "tree uneven", fit(6, method="tree", bounds=UNEVEN, epsilon=2.0)
    yield "tree scaled", fit(6, method="tree", bounds=UNEVEN, epsilon=2.0, scaling="bounds")
    yield "tree ball", fit(6, method="tree", radius=2.0, epsilon=2.0)
    yield "tree steps", fit(6, method="tree", epsilon=8.0, tuning=tuning.Tree(steps=3))
    yield "tree sparse", fit(2, SPARSE, method="tree", radius=1.0, delta=1e-6, epsilon=8.0)
    yield "tree sparse faint", fit(2, SPARSE, method="tree", radius=1.0, epsilon=0.2)
    yield "tree sparse pure", fit(2, SPARSE, method="tree", radius=1.0, epsilon=20.0, tuning=tuning.Tree(nonzeros=5))
    yield "tree sparse exact", fit(2, SPARSE, method="tree", radius=1.0, epsilon=float("inf"))


def others() -> Iterator[tuple[str, Fit]]:
    for d in (1, 2, 3):
        yield f"grid {d}", fit(d, method="grid")
        yield f"grid {d} hybrid", fit(d, method="grid", tuning=tuning.Grid(hybrid=True), expected_rows=4000)
    yield "grid zcdp", fit(2, method="grid", delta=1e-6, ledger=zcdp, tuning=tuning.Grid(hybrid=True))
    yield "grid replace", fit(2, method="grid", relation="replace-one")
    yield "grid exact", fit(2, method="grid", epsilon=float("inf"), tuning=tuning.Grid(hybrid=True))
    yield "candidates", fit(6, method="candidates", epsilon=8.0)
    yield "candidates exact", fit(2, method="candidates", epsilon=float("inf"))
    yield "candidates trials", fit(20, method="candidates", epsilon=8.0, delta=1e-6, tuning=tuning.Candidates(trials=2))
    yield "candidates replace", fit(3, method="candidates", epsilon=8.0, relation="replace-one")
    yield "sample-aggregate", fit(3, method="sample-aggregate", epsilon=8.0)
    yield "sample-aggregate delta", fit(3, method="sample-aggregate", epsilon=8.0, delta=1e-6, expected_rows=4000)
    yield "sample-aggregate exact", fit(3, method="sample-aggregate", epsilon=float("inf"))


def medians() -> Iterator[tuple[str, Fit]]:
    for method in ("auto", "candidates"):
        yield f"k-median {method}", fit(2, model=PrivateKMedian, method=method, epsilon=8.0)
        yield f"k-median {method} 6", fit(6, model=PrivateKMedian, method=method, epsilon=8.0, delta=1e-6)
    yield "k-median 20", fit(20, model=PrivateKMedian, epsilon=8.0, delta=1e-6)
    yield "k-median 20 pure", fit(20, model=PrivateKMedian, epsilon=8.0)
    yield "k-median drawn", fit(2, model=PrivateKMedian, epsilon=8.0, tuning=tuning.KMedian(recovery="grid"))
    yield "k-median steps", fit(2, model=PrivateKMedian, epsilon=8.0, tuning=tuning.KMedian(recovery="weiszfeld"))
    yield "k-median given", fit(2, model=PrivateKMedian, epsilon=8.0, init=STARTS)
    yield "k-median random", fit(6, model=PrivateKMedian, epsilon=8.0, init="spread", relation="replace-one")
    yield "k-median people", fit(2, people, model=PrivateKMedian, epsilon=8.0)
    yield "k-median exact", fit(6, model=PrivateKMedian, epsilon=float("inf"))


def universes() -> Iterator[tuple[str, Fit]]:
    def on(**options: Any) -> Fit:
        def go() -> Any:
            given = {name: value() if callable(value) else value for name, value in options.items()}
            return PrivateKMedian(4, **{"universe": UNIVERSE, "random_state": 1, **given}).fit(DEMAND)

        return go

    yield "universe counts", on()
    yield "universe counts delta", on(delta=1e-6)
    yield "universe counts zcdp", on(delta=1e-6, ledger=zcdp)
    yield "universe counts replace", on(relation="replace-one", expected_rows=3000)
    yield "universe counts k-means", on(objective="k-means")
    yield "universe counts exact", on(epsilon=float("inf"))
    for delta in (0.0, 1e-6):
        yield f"universe tree {delta}", on(delta=delta, tuning=tuning.Counts(partition="hst"))
    for init in ("hst", "k-median++", "random", "auto"):
        yield f"universe search {init}", on(method="local-search", init=init, epsilon=4.0)
    yield "universe search delta", on(method="local-search", epsilon=4.0, delta=1e-6)
    yield "universe search zcdp", on(method="local-search", epsilon=4.0, delta=1e-6, ledger=zcdp)
    yield "universe search replace", on(method="local-search", epsilon=4.0, relation="replace-one")
    yield "universe search exact", on(method="local-search", epsilon=float("inf"))


def federations() -> Iterator[tuple[str, Fit]]:
    def over(d: int, epsilon: float | None, delta: float = 0.0, *, is_people: bool = False, **options: Any) -> Fit:
        def go() -> Any:
            policy = Policy(allow_exact=True, epsilon_per_run=100, delta_per_run=1e-5, protocols=("cells", "sample", "pdk"))
            parties: list[Any] = []
            for i in range(3):
                unit = kveil.PrivacyUnit("person", 2, "id") if is_people else kveil.PrivacyUnit()
                rows = read(PEOPLE.iloc[i::3], person="id", max_rows_per_person=2) if is_people else ROWS[d][i::3]
                ledger = Ledger.memory(f"p{i}", 100.0, delta, relation="add-remove", unit=unit)
                parties.append(Party(rows, bounds=(-1, 1), name=f"p{i}", policy=policy, ledger=ledger))
            return FederatedKMeans(4, epsilon=epsilon, delta=delta, bounds=(-1, 1), random_state=1, **options).fit(parties)

        return go

    for d in (2, 6, 30):
        yield f"federation {d}", over(d, 2.0, n_steps=2)
        yield f"federation {d} exact", over(d, None, n_steps=2)
        if d > 2:  # where pure noise is smaller, delta changes nothing
            yield f"federation {d} delta", over(d, 2.0, 1e-6, n_steps=2)
    yield "federation people", over(2, 2.0, is_people=True)
    for protocol in ("sample", "pdk"):
        yield f"federation {protocol}", over(2, 4.0, protocol=protocol)

    def sealed() -> Any:
        """Seeds that promise nothing are picked by the system's own generator, not by the vault."""
        with mock.patch("os.urandom", bytes), mock.patch("secrets.randbelow", lambda n: n // 2):
            return FederatedKMeans(4, bounds=(-1, 1), protocol="dk", random_state=1).fit([ROWS[2][i::3] for i in range(3)])

    yield "federation dk", sealed


def streams() -> Iterator[tuple[str, Fit]]:
    for d in (2, 6, 30):
        for delta in (0.0, 1e-6):
            options = {"memory": 4000, "epsilon": 2.0, "delta": delta}
            yield f"stream {d} {delta}", fit(d, model=StreamKMeans, **options)
            yield f"stream {d} {delta} faint", fit(d, model=StreamKMeans, **options | {"epsilon": 0.05})
    yield "stream zcdp", fit(6, model=StreamKMeans, memory=4000, epsilon=2.0, delta=1e-6, ledger=zcdp)
    yield "stream open", fit(2, model=StreamKMeans, memory=500)


def sources() -> Iterator[tuple[str, Fit]]:
    def parquet(**options: Any) -> Fit:
        def go() -> Any:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "rows.parquet"
                pq.write_table(pa.table({"a": ROWS[2][:, 0], "b": ROWS[2][:, 1]}), path, row_group_size=700)
                return PrivateKMeans(4, bounds=(-1, 1), random_state=1, **options).fit(path)

        return go

    def dask(**options: Any) -> Fit:
        def go() -> Any:
            import dask.array

            return PrivateKMeans(4, bounds=(-1, 1), random_state=1, **options).fit(
                dask.array.from_array(ROWS[2], chunks=(900, 2))
            )

        return go

    for method in ("tree", "lloyd"):
        yield f"parquet {method}", parquet(method=method)
        yield f"dask {method}", dask(method=method)
    yield "frame tree", fit(2, PEOPLE[["a", "b"]], method="tree")


def bounds() -> Iterator[tuple[str, Fit]]:
    def search(rows: Any, **options: Any) -> Fit:
        def go() -> Any:
            is_people = callable(rows)
            unit = kveil.PrivacyUnit("person", 2, "id") if is_people else kveil.PrivacyUnit()
            ledger = Ledger.memory("this", 4.0, relation=options.get("relation", "add-remove"), unit=unit)
            given = {name: value for name, value in options.items() if name != "relation"}
            return find_bounds(rows() if is_people else rows, 4.0, ledger=ledger, **given)[0]

        return go

    yield "bounds box", search(ROWS[3])
    yield "bounds box replace", search(ROWS[3], relation="replace-one")
    yield "bounds cube", search(ROWS[3], shape="cube")
    yield "bounds ball", search(ROWS[6], shape="ball", center=0.1)
    yield "bounds people", search(people)
    yield "bounds sparse", search(SPARSE, shape="ball")


GROUPS = (lloyds, trees, others, medians, universes, federations, streams, sources, bounds)


class Watch:
    """What the vault was asked and how often rows were read, while a fit runs."""

    def __init__(self) -> None:
        self.charges: list[str] = []
        self.raw: list[str] = []
        self.steps: list[str] = []
        self.passes = 0

    @contextmanager
    def on(self) -> Iterator[None]:
        from kveil.source.local import LocalSource

        plain_run, plain_pass = gate.run, LocalSource.map_reduce

        def run(measurement: Any, secret: Any, account: Any) -> Any:
            if not isinstance(account, Ledger):  # a ledger reserves, and calls again with its ticket
                self.charges.append(repr(measurement.charge))
                self.raw.append(short(plain(secret)))
            return plain_run(measurement, secret, account)

        def map_reduce(source: Any, *given: Any, **named: Any) -> Any:
            self.passes += 1
            return plain_pass(source, *given, **named)

        gate.run, LocalSource.map_reduce = run, map_reduce  # type: ignore[method-assign]
        try:
            with listen(lambda *step: self.steps.append(repr(step))), scripted(3):
                yield
        finally:
            gate.run, LocalSource.map_reduce = plain_run, plain_pass  # type: ignore[method-assign]


def plain(secret: Any) -> bytes:
    """A raw value as bytes: arrays, histograms by key, or the name of what cannot be written down."""
    if isinstance(secret, np.ndarray):
        return str(secret.shape).encode() + np.ascontiguousarray(secret).tobytes()
    if isinstance(secret, dict):
        return repr(sorted(secret.items())).encode()
    return type(secret).__name__.encode()


def bytes_of(result: Any) -> bytes:
    """Numbers as they are in memory; another object, of which that would be its place in memory, as text."""
    array = np.asarray(result)
    return repr(result).encode() if array.dtype == object else array.tobytes()


def short(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:12]


def hashes(go: Fit) -> dict[str, Any]:
    """One entry for each aspect. A run's random number is cut out of notes."""
    watch = Watch()
    with watch.on():
        made = go()
    release = getattr(made, "release_", None)
    arrays = (
        [getattr(made, name, None) for name in RESULTS]
        if hasattr(made, "fit")
        else list(made if isinstance(made, tuple) else [made])
    )
    promise = getattr(made, "guarantee_", None)
    notes = [] if release is None else [re.sub(r"[0-9a-f]{32}", "-", note) for note in release.notes]
    found = (
        short(b"".join(bytes_of(array) for array in arrays if array is not None)),
        "" if promise is None else short(promise.to_json().encode()),
        short(repr(notes).encode()), short(repr(watch.steps).encode()), watch.passes, len(watch.raw),
        short(repr(watch.charges).encode()), short(repr(watch.raw).encode()),
    )  # fmt: skip
    return dict(zip(ASPECTS, found, strict=True))


def compare(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """A line for every fit that differs."""
    lines = []
    for name, now in after.items():
        then = before.get(name)
        if then is None:
            lines.append(f"{name}: not there before")
        elif differs := [f"{aspect} {then.get(aspect)} -> {now[aspect]}" for aspect in now if now[aspect] != then.get(aspect)]:
            lines.append(f"{name}: {', '.join(differs)}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    names = tuple(asked.only.split(",")) if asked.only else ("",)
    found = {name: hashes(go) for group in GROUPS for name, go in group() if name.startswith(names)}
    asked.file.write_text(json.dumps(found, indent=0))
    lines = [] if asked.against is None else compare(json.loads(asked.against.read_text()), found)
    print("\n".join([*lines, f"{len(found)} fits, {len(lines)} differ" if asked.against else f"{len(found)} fits"]))
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
