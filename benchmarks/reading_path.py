"""Which files a reader meets who follows a fit: `python -m benchmarks.reading_path`.

By a profile of calls, threads included: distinct files, rooms, and how often the room changes from one call to the next.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import kveil
from kveil import FederatedKMeans, Graph, PrivateKMeans, PrivateKMedian, StreamKMeans

ROOT = Path(kveil.__file__).parent


def fits() -> dict[str, Callable[[], Any]]:
    rng = np.random.default_rng(0)
    rows = {d: rng.normal(size=(4, d))[rng.integers(0, 4, 4000)] * 0.4 + 0.05 * rng.normal(size=(4000, d)) for d in (2, 8)}
    ring = Graph.from_edges([(i, (i + 1) % 200) for i in range(200)])
    shared: dict[str, Any] = {"bounds": (-1, 1), "random_state": 0}
    return {
        "curator, 2 columns": lambda: PrivateKMeans(4, **shared).fit(rows[2]),
        "curator, 8 columns": lambda: PrivateKMeans(4, delta=1e-6, **shared).fit(rows[8]),
        "graph": lambda: PrivateKMedian(4, universe=ring, random_state=0).fit(rng.integers(0, 200, 3000)),
        "federation": lambda: FederatedKMeans(4, epsilon=2.0, **shared).fit([rows[2][i::3] for i in range(3)]),
        "stream": lambda: StreamKMeans(4, epsilon=2.0, **shared).fit(rows[2]),
    }


def walked(fit: Callable[[], Any]) -> list[str]:
    """The file of every call of ours, in order."""
    seen: list[str] = []

    def profile(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(ROOT)):
            seen.append(str(Path(frame.f_code.co_filename).relative_to(ROOT)))

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        fit()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return seen


def main() -> None:
    warnings.simplefilter("ignore")
    for name, fit in fits().items():
        fit()  # imports and compilers are not part of the walk
        path = walked(fit)
        rooms = [Path(file).parts[0] if len(Path(file).parts) > 1 else "kveil" for file in path]
        changes = sum(one != other for one, other in pairwise(rooms))
        print(f"{name}: {len(set(path))} files, {len(set(rooms))} rooms, {changes} changes of room")
        for room in ("methods", "desk", "questions", "models", "privatise", "summary", "federate", "stream"):
            files = sorted({file.removeprefix(f"{room}/") for file in path if file.startswith(f"{room}/")})
            if files:
                print(f"  {room} ({len(files)}): {', '.join(files)}")


if __name__ == "__main__":
    main()
