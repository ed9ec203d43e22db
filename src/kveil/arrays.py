"""Names of the arrays that pass through the house."""

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Words = NDArray[np.uint64]
Steps = NDArray[np.int32]  # distances of a universe, as multiples of its step
