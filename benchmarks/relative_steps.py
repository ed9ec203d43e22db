"""What the number of relative steps is worth: the default against a fixed number, as in `docs/methods.md`.

Cost over the best of ten runs without privacy, means of 10 runs with standard errors, epsilon 1.
"""

import warnings
from collections.abc import Iterator

import numpy as np

from benchmarks.bar import Bar
from benchmarks.sets import MAKERS, is_here
from benchmarks.utility.reference import lowest
from kveil import PrivateKMeans
from kveil.tuning import Tree

RUNS = 10
SETS = ("15 in the ball, d=8", "adult", "diamonds")


def run() -> Iterator[Bar]:
    warnings.simplefilter("ignore")
    for name in SETS:
        if not is_here(MAKERS[name]):
            print(f"{name}: not run, ../shared/data is not here")
            continue
        rows, k, domain = MAKERS[name]()
        floor = lowest(rows, k, None, runs=10)
        for delta in (1e-6, 0.0):
            told = {}
            for steps in (None, 2):
                models = (PrivateKMeans(k, delta=delta, random_state=s, tuning=Tree(steps=steps), **domain) for s in range(RUNS))
                costs = np.array([-model.fit(rows).score(rows) / floor for model in models])
                told[steps] = costs.mean(), costs.std(ddof=1) / RUNS**0.5
            (mean, error), (few, few_error) = told[None], told[2]
            note = f"± {error:.4f}; with 2 steps {few:.4f} ± {few_error:.4f}"
            yield Bar(f"{name}, delta {delta:g}", mean, few + 3 * float(np.hypot(error, few_error)) + 1e-3, note=note)
