"""Reproductions of published figures, a calibration that rests on an assumption, and constants of theorems on public data.

Of ours only the command line imports it.
"""

from kveil.research.conditional import ConditionalSeeds, conditional_laplace
from kveil.research.spreads import delta_s, delta_w, eta, online_share, theorem_10_delta, theorem_10_g

__all__ = [
    "ConditionalSeeds", "conditional_laplace", "delta_s", "delta_w", "eta", "online_share", "theorem_10_delta", "theorem_10_g",
]  # fmt: skip
