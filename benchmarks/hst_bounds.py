"""Theorems of the HST paper, measured: `python -m benchmarks.hst_bounds [most points]` prints the tables of docs/hst.md."""

import sys

import numpy as np

from kveil.research.hst_bounds import STARTS, UNIVERSES, Measured, measure, proved_steps, search_term, seeds_term

CLUSTERS, RUNS, SIZES = (5, 10, 20), 5, (500, 1000, 2000, 4000)


def main() -> None:
    most = int(sys.argv[1]) if sys.argv[1:] else max(SIZES)
    found = [one for name in UNIVERSES for n in SIZES if n <= most for one in measure(name, n, CLUSTERS, RUNS)]
    print(f"Theorem 3.7: Algorithm 4 costs at most {max(one.tree for one in found):.4f} optima of its tree.\n")
    columns = [f"{start}, {what}" for what in ("seeds", "to 5 optima", "to the end") for start in STARTS]
    print(f"| universe | points | k | {' | '.join(columns)} |\n| --- |{' ---: |' * (len(columns) + 2)}")
    for name, n, k in dict.fromkeys((one.universe, one.points, one.k) for one in found):
        some = [one for one in found if (one.universe, one.points, one.k) == (name, n, k)]
        print(f"| {name} | {n} | {k} | {' | '.join(_columns(some))} |")
    print(f"\n| points | k | Theorem 4.2 | Theorem 4.3, T = 20 | T of its proof, C = 1 |\n|{' ---: |' * 5}")
    for n, k in ((3000, 2), (3000, 20), (10_000, 2), (10_000, 20)):
        print(f"| {n} | {k} | {seeds_term(n, k, 1):.0f} | {search_term(n, k, 1, 20):.0f} | {proved_steps(n, k):.0f} |")


def _columns(some: list[Measured]) -> list[str]:
    """Means over the runs, with standard errors."""
    all_of_it = np.array([[search[1:] for search in one.searches] for one in some], dtype=float)  # (runs, starts, 3)
    means, errors = all_of_it.mean(axis=0), all_of_it.std(axis=0, ddof=1) / np.sqrt(len(some))
    shown = (2, 1, 1)
    return [f"{means[s, w]:.{shown[w]}f} ± {errors[s, w]:.{shown[w]}f}" for w in range(3) for s in range(len(STARTS))]


if __name__ == "__main__":
    main()
