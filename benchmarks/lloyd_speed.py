"""Eight private Lloyd steps beside eight of scikit-learn's, on the same rows, in turn."""

import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.cluster import KMeans

from benchmarks.bar import Bar, best_seconds
from kveil import PrivateKMeans


def run() -> Iterator[Bar]:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1_000_000, 20)) + 0.3 * rng.integers(0, 16, (1_000_000, 1))
    start = rng.normal(size=(16, 20))

    def private() -> None:
        PrivateKMeans(16, method="lloyd", bounds=(-8, 8), init=start, n_steps=8).fit(rows)

    def ordinary() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            KMeans(16, n_init=1, max_iter=8, init=start, tol=0).fit(rows)

    private()  # compiles
    pairs = [(best_seconds(private, 1), best_seconds(ordinary, 1)) for _ in range(5)]
    mine, theirs = (min(times) for times in zip(*pairs, strict=True))
    note = f"({mine:.2f} s against {theirs:.2f} s)"
    yield Bar("8 private Lloyd steps, 1e6 x 20, k = 16, against scikit-learn", mine / theirs, 1.5, " times", note=note)
