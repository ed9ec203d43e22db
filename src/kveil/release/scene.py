"""What a picture of a release shows: centres between public bounds, from the release alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kveil.errors import InvalidValue

if TYPE_CHECKING:
    from kveil.release.release import Release

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scene:
    """Centres (k, d), the ends (d,) of the axes, names (d,), and sizes (k,) in [0, 1] if weights were released."""

    centers: Floats
    low: Floats
    high: Floats
    names: tuple[str, ...]
    sizes: Floats | None
    ends: str  # what the ends of the axes are

    def positions(self) -> Floats:
        """Where centres lie between the ends: 0 is low, 1 is high."""
        return np.clip((self.centers / 2 - self.low / 2) / (self.high / 2 - self.low / 2), 0.0, 1.0)


def scene(release: Release) -> Scene:
    """The scene of a release whose centres have coordinates."""
    low, high, ends = _ends(release)
    names = release.features or tuple(f"x{place}" for place in range(release.centers.shape[1]))
    return Scene(release.centers, low, high, names, _sizes(release.weights), ends)


def _ends(release: Release) -> tuple[Floats, Floats, str]:
    try:
        domain = release.domain()
    except InvalidValue:  # made without bounds: the centres themselves are all there is to go by
        least, most = release.centers.min(axis=0), release.centers.max(axis=0)
        margin = np.where(most > least, 0.0, np.maximum(np.abs(most), 1.0))
        return least - margin, most + margin, "range of the centres"
    return domain.center - domain.half, domain.center + domain.half, "public bounds"


def _sizes(weights: Floats | None) -> Floats | None:
    if weights is None:
        return None
    positive = np.maximum(weights, 0.0)
    return positive / positive.max() if positive.max() > 0 else positive
