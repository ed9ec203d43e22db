"""Made-up audience tags, 50 000 rows of 75 688 columns: adjusted Rand index of the default for metric="cosine", beside a rival.

Noise is exact. Five sets of every preset, one fit each, on seeds that no constant was chosen on; the mean, its standard error,
and the least and the largest. The rival is `made_tags.lloyd96`, on the first two sets. A fit's processor time and memory are
bars too.
"""

import resource
import time
import warnings
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from scipy.sparse import csr_array
from sklearn.metrics import adjusted_rand_score

from benchmarks.bar import Bar
from benchmarks.made_tags import PRESETS, lloyd96, tags
from kveil import PrivateKMeans
from kveil.kernel.loss import zcdp_epsilon

SEEDS, OF_RIVAL = (701, 702, 703, 704, 705), 2
RHOS, DELTA = (0.02, 0.1, 0.5), 1e-6
LEAST = {
    "default": (0.94, 0.98, 0.98),
    "weak": (0.60, 0.86, 0.92),
    "overlap": (0.92, 0.95, 0.97),
    "many": (0.83, 0.88, 0.94),
    "hard": (0.0, 0.42, 0.60),
}
MOST_SECONDS, MOST_MEGABYTES = 5.0, 2000.0


def run(*presets: str) -> Iterator[Bar]:
    warnings.simplefilter("ignore")
    slowest = 0.0
    for preset in presets or tuple(LEAST):
        bars = LEAST[preset]
        mine, rival = np.zeros((len(RHOS), len(SEEDS))), np.zeros((len(RHOS), OF_RIVAL))
        for place, seed in enumerate(SEEDS):
            rows, label = tags(preset, seed)
            for number, rho in enumerate(RHOS):
                mine[number, place], seconds = fitted(rows, label, PRESETS[preset].k, rho, seed)
                slowest = max(slowest, seconds)
                if place < OF_RIVAL:
                    centers = lloyd96(rows, PRESETS[preset].k, rho, seed)
                    rival[number, place] = adjusted_rand_score(label, np.asarray(rows @ centers.T).argmax(axis=1))
        for rho, bar, found, other in zip(RHOS, bars, mine, rival, strict=True):
            spread = f"+-{found.std(ddof=1) / len(found) ** 0.5:.2g} ({found.min():.3f} to {found.max():.3f})"
            yield Bar(f"tags, {preset}, rho {rho:g}: ARI", float(found.mean()), bar, at_least=True, note=spread)
            told = f"({', '.join(f'{x:.2f}' for x in other)})"
            yield Bar(
                f"tags, {preset}, rho {rho:g}: over lloyd96", float(found.mean() - other.mean()), 0.0, at_least=True, note=told
            )
    yield Bar("tags: processor seconds of the slowest fit", slowest, MOST_SECONDS, "s")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield Bar("tags: memory of all of it", memory, MOST_MEGABYTES, " MB")


def fitted(rows: csr_array, label: np.ndarray, k: int, rho: float, seed: int) -> tuple[float, float]:
    """Agreement of a fit, and its processor time."""
    epsilon = zcdp_epsilon(Fraction(rho), Fraction(DELTA))
    model, begun = PrivateKMeans(k, epsilon=epsilon, delta=DELTA, metric="cosine", random_state=seed), time.process_time()
    model.fit(rows)
    seconds = time.process_time() - begun
    return float(adjusted_rand_score(label, model.predict(rows))), seconds
