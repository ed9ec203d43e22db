"""What *near* means: distances and clipping, exact on the grid; finite public universes with any metric."""

from kveil.space.extent import diameter

__all__ = ["diameter"]
