"""Another number of centres from the same release: what the fit released besides its centres is clustered again, for free."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kveil.errors import InvalidValue
from kveil.release.kept import Kept, fitted, generator, kept
from kveil.solve import again
from kveil.solve.choosing import CHOSE
from kveil.solve.cloud import cloud
from kveil.solve.placed import Clustering, Placed, merged
from kveil.solve.wkmeans import thorough_kmeans
from kveil.solve.wkmedian import thorough_kmedian
from kveil.space.euclidean import clip

if TYPE_CHECKING:
    from kveil.release.release import Release

RECLUSTERED = "clustered again from its synopsis: no new charge"


def recluster(release: Release, k: int, random_state: Any = None) -> Release:
    """`Release.recluster`."""
    shown = kept(release, "recluster")
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InvalidValue(f"k must be a whole number of at least 1, got {k!r}.")
    placed, why = _placed(release, shown, int(k), generator(random_state))
    counts, domain = np.maximum(placed.counts, 0.0), release.domain()
    return replace(
        release,
        centers=clip(domain, placed.centers * shown.unit),
        weights=counts / counts.sum() if counts.sum() > 0 else np.full(k, 1 / k),
        errors=placed.errors * shown.length,
        method={**release.method, "why": why},
        parameters={name: value for name, value in release.parameters.items() if name != "k_range"} | {"n_clusters": int(k)},
        notes=(*(note for note in release.notes if note != RECLUSTERED and not note.startswith(CHOSE)), RECLUSTERED),
    )


def is_reclustered(release: Release) -> bool:
    """Whether these centres are not those that the steps in its synopsis are about."""
    return RECLUSTERED in release.notes


def _placed(release: Release, shown: Kept, k: int, rng: np.random.Generator) -> tuple[Placed, str]:
    """k centres, in the distance of the model, and what they were made from."""
    synopsis, unit, _ = shown
    clustered: Clustering = thorough_kmedian if release.kind == "PrivateKMedian" else thorough_kmeans
    most, found = int(np.count_nonzero(synopsis.kept & (synopsis.counts > 0))) // 2, fitted(release, shown)
    if k <= len(found.counts) and (synopsis.kind != "cells" or k > most):  # measured: never worse than leaves, often better
        return merged(found, k, rng, clustered), f"clustered again from the {len(found.counts)} centres of the fit"
    if k > most:
        raise InvalidValue(
            f"this release tells at most {most} clusters apart afterwards, one for two of its cells, and {k} were asked for. Ask "
            "for fewer, or fit again with more centres."
        )
    if synopsis.kind == "cells":
        return again.of_cells(synopsis, unit, k, rng), "clustered again from the noisy counts of its cells"
    if synopsis.kind == "centers":
        errors = np.zeros(len(synopsis.counts)) if synopsis.errors is None else synopsis.errors
        cells = Placed(synopsis.points / unit, synopsis.counts, errors)
        return again.of_recovered(cells, found, k, rng, clustered), "clustered again from the clusters of its projection"
    leaves = cloud(synopsis, unit)
    assert leaves is not None
    return again.of_leaves(leaves, found, k, rng, clustered), "clustered again from the leaves of its tree"
