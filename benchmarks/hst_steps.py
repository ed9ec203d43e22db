"""Figures 5 and 6 of the HST paper as printed, with more runs than ten: `python -m benchmarks.hst_steps [runs] [universe ...]`

Prints the tables of docs/hst.md: steps until the moving average is least, and the best cost on the way, mean ± standard error
over runs, and, over all k, how far DP-HST is below each of the others. Imbalanced demands, as in the paper.
"""

import sys
from collections.abc import Iterator

import numpy as np

from benchmarks.sets import SHARED
from kveil.research.hst_figures import Size
from kveil.research.median_cases import cases, read_digits
from kveil.research.median_methods import METHODS, Round, Run

NAMES = {"DP-HST": METHODS[5], "DP-k-median++": METHODS[4], "DP-rand": METHODS[3]}
WHAT = ("steps", "steps_with_seeds", "best")


def main() -> None:
    runs, wanted, size = int((sys.argv[1:] or ["40"])[0]), sys.argv[2:], Size()
    images = read_digits(SHARED / "mnist.npz") if not wanted or any(name.startswith("mnist") for name in wanted) else None
    print(f"| universe, measure | method | {' | '.join(f'k = {k}' for k in size.clusters)} | all k | DP-HST lower by |")
    print("| --- | --- |" + " ---: |" * (len(size.clusters) + 2))
    for case in cases(size.points, size.vertices, images):
        if wanted and case.name not in wanted:
            continue
        rounds = [Round(case, case.demand("imbalanced", size.rows, number), 1.0, number) for number in range(runs)]
        walks = {name: [[one.run(method, k) for k in size.clusters] for one in rounds] for name, method in NAMES.items()}
        for line in _lines(walks):
            print(f"| {case.name}, {line}", flush=True)


def _lines(walks: dict[str, list[list[Run]]]) -> Iterator[str]:
    """Rows of the table. Differences are taken run by run, of means over k."""
    for what in WHAT:
        numbers = {name: _numbers(some, what) for name, some in walks.items()}
        if what == "steps":
            numbers["DP-HST seeds, swaps at random"] = _numbers(walks["DP-HST"], "aimless_steps")
        for name, some in numbers.items():
            shown = [_shown(some[:, place]) for place in range(some.shape[1])] + [_shown(some.mean(axis=1))]
            lower = "" if name == "DP-HST" else _shown((some - numbers["DP-HST"]).mean(axis=1))
            yield f"{what} | {name} | {' | '.join(shown)} | {lower} |"


def _numbers(some: list[list[Run]], what: str) -> np.ndarray:
    return np.array([[getattr(run, what) for run in line] for line in some], dtype=float)  # (runs, k)


def _shown(runs: np.ndarray) -> str:
    return f"{float(f'{runs.mean():.4g}'):g} ± {float(f'{runs.std(ddof=1) / np.sqrt(len(runs)):.2g}'):g}"


if __name__ == "__main__":
    main()
