"""What privacy costs: the cost of the default over a reference that is not beaten, beside other methods and libraries."""

from benchmarks.utility.command import run
from benchmarks.utility.rivals import ratios

__all__ = ["ratios", "run"]
