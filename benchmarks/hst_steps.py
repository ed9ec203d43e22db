"""The HST paper's private methods as printed, with more runs than ten: `python -m benchmarks.hst_steps [runs] [universe ...]`

Prints the table of docs/hst.md: means over k and runs with standard errors over runs, and by how much DP-HST is below the
others, run by run: costs in per cent, steps in steps.
"""

import sys
from collections.abc import Iterator

import numpy as np

from benchmarks.sets import SHARED
from kveil.research.hst_figures import Size
from kveil.research.median_cases import KINDS, cases, read_digits
from kveil.research.median_methods import METHODS, Round, Run

NAMES = {"DP-HST": METHODS[5], "DP-k-median++": METHODS[4], "DP-rand": METHODS[3]}
COSTS, STEPS = ("seeds", "iterates", "final", "best"), ("steps", "steps_with_seeds")


def main() -> None:
    runs, wanted, size = int((sys.argv[1:] or ["40"])[0]), sys.argv[2:], Size()
    images = read_digits(SHARED / "mnist.npz") if not wanted or any(name.startswith("mnist") for name in wanted) else None
    print(f"| universe, demand | measure | {' | '.join(NAMES)} | under k-median++ | under random |")
    print("| --- | --- |" + " ---: |" * 5)
    for case in cases(size.points, size.vertices, images):
        for kind in KINDS if not wanted or case.name in wanted else ():
            rounds = [Round(case, case.demand(kind, size.rows, number), 1.0, number) for number in range(runs)]
            walks = {name: [[one.run(method, k) for k in size.clusters] for one in rounds] for name, method in NAMES.items()}
            for line in _lines(walks):
                print(f"| {case.name}, {kind} | {line} |", flush=True)


def _lines(walks: dict[str, list[list[Run]]]) -> Iterator[str]:
    """Rows of the table: costs, steps, and beside the steps those of swaps that look at nothing, from the same HST seeds."""
    for what in (*COSTS, *STEPS):
        ours, *others = (_means(some, what) for some in walks.values())
        below = [
            _shown(100 * (other - ours) / other.mean(), 2, " %") if what in COSTS else _shown(other - ours, 2) for other in others
        ]
        unit = 1000 if what in COSTS and ours.mean() >= 10_000 else 1
        yield " | ".join([what, *(_shown(some / unit) for some in (ours, *others)), *below])
    aimless = _means(walks["DP-HST"], "aimless_steps")
    yield f"steps of swaps at random | {_shown(aimless)} |  |  |  | "


def _means(some: list[list[Run]], what: str) -> np.ndarray:
    """Over all k, (runs,)."""
    return np.array([[getattr(run, what) for run in line] for line in some], dtype=float).mean(axis=1)


def _shown(runs: np.ndarray, digits: int = 4, unit: str = "") -> str:
    return f"{float(f'{runs.mean():.{digits}g}'):g} ± {float(f'{runs.std(ddof=1) / np.sqrt(len(runs)):.2g}'):g}{unit}"


if __name__ == "__main__":
    main()
