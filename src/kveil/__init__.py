"""kveil: clustering that keeps people's secrets.

Names are loaded when they are first used, so that `import kveil` stays quick: scikit-learn alone takes more than a second.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kveil._version import __version__

if TYPE_CHECKING:
    from kveil.kernel.ledger import Ledger
    from kveil.kernel.loss import Guarantee, PrivacyUnit
    from kveil.models.compare import Comparison, compare
    from kveil.models.describe import describe
    from kveil.models.evaluate import evaluate
    from kveil.models.evaluation import Evaluation
    from kveil.models.federated_kmeans import FederatedKMeans
    from kveil.models.find_bounds import find_bounds
    from kveil.models.kmedian import KMedian
    from kveil.models.local_kmeans import LocalKMeans
    from kveil.models.online_kmeans import OnlineKMeans
    from kveil.models.plan import CuratorPlan, plan
    from kveil.models.private_candidates import private_candidates
    from kveil.models.private_kmeans import PrivateKMeans
    from kveil.models.private_kmedian import PrivateKMedian
    from kveil.models.stream_kmeans import StreamKMeans
    from kveil.models.themes import Themes
    from kveil.release import Release, load
    from kveil.release.candidate_set import CandidateSet
    from kveil.release.verify import Verified, verify
    from kveil.signing import SigningKey
    from kveil.source import Source, inspect, read
    from kveil.space.bounds import Bounds
    from kveil.space.callable import Metric
    from kveil.space.graph import Graph
    from kveil.space.matrix import Precomputed
    from kveil.space.vectors import Euclidean, Manhattan

_HOMES = {
    "Bounds": "kveil.space.bounds",
    "CandidateSet": "kveil.release.candidate_set",
    "Comparison": "kveil.models.compare",
    "CuratorPlan": "kveil.models.plan",
    "Euclidean": "kveil.space.vectors",
    "Evaluation": "kveil.models.evaluation",
    "FederatedKMeans": "kveil.models.federated_kmeans",
    "Graph": "kveil.space.graph",
    "Guarantee": "kveil.kernel.loss",
    "KMedian": "kveil.models.kmedian",
    "Ledger": "kveil.kernel.ledger",
    "LocalKMeans": "kveil.models.local_kmeans",
    "Manhattan": "kveil.space.vectors",
    "Metric": "kveil.space.callable",
    "OnlineKMeans": "kveil.models.online_kmeans",
    "Precomputed": "kveil.space.matrix",
    "PrivacyUnit": "kveil.kernel.loss",
    "PrivateKMeans": "kveil.models.private_kmeans",
    "PrivateKMedian": "kveil.models.private_kmedian",
    "Release": "kveil.release",
    "SigningKey": "kveil.signing",
    "Source": "kveil.source",
    "StreamKMeans": "kveil.models.stream_kmeans",
    "Themes": "kveil.models.themes",
    "Verified": "kveil.release.verify",
    "compare": "kveil.models.compare",
    "describe": "kveil.models.describe",
    "evaluate": "kveil.models.evaluate",
    "find_bounds": "kveil.models.find_bounds",
    "inspect": "kveil.source",
    "load": "kveil.release",
    "plan": "kveil.models.plan",
    "private_candidates": "kveil.models.private_candidates",
    "read": "kveil.source",
    "verify": "kveil.release.verify",
}

__all__ = [
    "Bounds", "CandidateSet", "Comparison", "CuratorPlan", "Euclidean", "Evaluation", "FederatedKMeans", "Graph", "Guarantee",
    "KMedian", "Ledger", "LocalKMeans", "Manhattan", "Metric", "OnlineKMeans", "Precomputed", "PrivacyUnit", "PrivateKMeans",
    "PrivateKMedian", "Release", "SigningKey", "Source", "StreamKMeans", "Themes", "Verified", "__version__", "compare",
    "describe", "evaluate", "find_bounds", "inspect", "load", "plan", "private_candidates", "read", "verify",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in ("audit", "errors", "federate", "seeding", "testing", "tuning"):
        return import_module(f"kveil.{name}")
    raise AttributeError(f"module 'kveil' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "audit", "errors", "federate", "seeding", "testing", "tuning"])
