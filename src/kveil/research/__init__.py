"""Reproductions of published figures, and a calibration that rests on an assumption. Of ours only the command line imports it."""

from kveil.research.conditional import ConditionalSeeds, conditional_laplace

__all__ = ["ConditionalSeeds", "conditional_laplace"]
