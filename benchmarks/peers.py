"""Who is compared: a registry of k-means implementations. Peers are optional and never dependencies of kveil.

To add one, write `fit(rows, k, epsilon, delta, domain, seed) -> centres` and a `Peer` around it, here or in a module of your
own with a list called PEERS, passed by `--adapter`. `domain` is {"bounds": (low, high)} or {"radius": r}, public knowledge.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

Domain = dict[str, Any]
Fit = Callable[[np.ndarray, int, float, float, Domain, int], np.ndarray]


@dataclass(frozen=True)
class Peer:
    """One implementation. `module` must import for it to be installed; `kinds` says which promises it can make.

    factor: epsilon really spent over epsilon asked for, by (domain, columns). Where it is not 1, the peer is shown twice: at the
        asked epsilon, and asked for so much less (or more) that it spends the epsilon of the table.
    """

    name: str
    module: str
    fit: Fit
    kinds: tuple[str, ...]  # of "none", "pure" (delta 0), "approximate" (delta > 0)
    factor: Callable[[Domain, int], float] = lambda domain, d: 1.0


def missing(peer: Peer) -> str | None:
    """Why a peer cannot run here, or None."""
    try:
        import_module(peer.module)
    except ModuleNotFoundError:
        return "not installed"
    except ImportError as error:
        return f"installed, but does not import beside these libraries ({error.name or type(error).__name__})"
    return None


def box(domain: Domain, d: int) -> tuple[np.ndarray, np.ndarray]:
    """The public box, or the one around the public ball: what peers take that know no ball."""
    low, high = domain.get("bounds", (-domain.get("radius", 0.0), domain.get("radius", 0.0)))
    return np.broadcast_to(np.asarray(low, dtype=float), d).copy(), np.broadcast_to(np.asarray(high, dtype=float), d).copy()


def swapped_split(domain: Domain, d: int) -> float:
    """What diffprivlib 0.6.6 spends over what it is asked for, for rows added or removed.

    Its split gives a count c = cbrt(4 d 0.225^2) parts and every coordinate 1 of d + c parts, but is unpacked in swapped order:
    1 + d c parts are drawn. Its noise covers the width of a column, and a row moves a sum by the column's largest absolute value:
    the same for bounds from 0, half of it for bounds around 0. So (1 + d c)/(d + c) for bounds (0, w).
    """
    low, high = box(domain, d)
    c = float(np.cbrt(4 * d * 0.225**2))
    reach = np.maximum(np.abs(low), np.abs(high)) / (high - low)
    return float((1 + c * reach.sum()) / (d + c))


def _scikit_learn(rows: np.ndarray, k: int, epsilon: float, delta: float, domain: Domain, seed: int) -> np.ndarray:
    from sklearn.cluster import KMeans

    return KMeans(k, n_init=1, random_state=seed).fit(rows).cluster_centers_


def _kveil(method: str) -> Fit:
    def fit(rows: np.ndarray, k: int, epsilon: float, delta: float, domain: Domain, seed: int) -> np.ndarray:
        from kveil import PrivateKMeans

        model = PrivateKMeans(k, epsilon=epsilon, delta=delta, method=method, random_state=seed, **domain)
        return model.fit(rows).cluster_centers_

    return fit


def _diffprivlib(rows: np.ndarray, k: int, epsilon: float, delta: float, domain: Domain, seed: int) -> np.ndarray:
    from diffprivlib.models import KMeans

    return KMeans(k, epsilon=epsilon, bounds=box(domain, rows.shape[1]), random_state=seed).fit(rows).cluster_centers_


def _google(rows: np.ndarray, k: int, epsilon: float, delta: float, domain: Domain, seed: int) -> np.ndarray:
    """It takes rows around the origin within a radius, and may return fewer than k centres. It has no seed."""
    from clustering.clustering_algorithm import private_lsh_clustering
    from clustering.clustering_params import Data, DifferentialPrivacyParam

    low, high = box(domain, rows.shape[1])
    middle, radius = (low + high) / 2, domain.get("radius", float(np.linalg.norm(high - low)) / 2)
    promise = DifferentialPrivacyParam(epsilon=epsilon, delta=delta)
    return private_lsh_clustering(k, Data(rows - middle, radius), promise).centers + middle


PEERS = [
    Peer("scikit-learn KMeans", "sklearn", _scikit_learn, ("none",)),
    Peer("diffprivlib KMeans", "diffprivlib", _diffprivlib, ("pure",), swapped_split),
    Peer("Google LSH tree", "clustering.clustering_algorithm", _google, ("approximate",)),  # from source; on no package index
    Peer("kveil lloyd", "kveil", _kveil("lloyd"), ("pure", "approximate")),
    Peer("kveil", "kveil", _kveil("auto"), ("pure", "approximate")),
]
