"""What a model says of its own result, once all that was paid for is kept."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from kveil.errors import NoisyResultWarning
from kveil.release import Release


def with_verdict(release: Release) -> Release:
    """The release with its verdict among its notes."""
    with np.errstate(all="ignore"):
        return replace(release, notes=(*release.notes, release.verdict().note))


def warn_of_noise(release: Release, stacklevel: int = 2) -> None:
    """Warn if the verdict is noise. Call it last: a warning that is made an error must lose nothing that was paid for."""
    with np.errstate(all="ignore"):
        verdict = release.verdict()
    if verdict.word == "noise":
        warnings.warn(NoisyResultWarning(f"these centres are mostly noise. {verdict.reasons[0]}"), stacklevel=stacklevel + 1)
