"""Names of the arrays that pass through the house, and how some are put into a file."""

import io
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Words = NDArray[np.uint64]
Steps = NDArray[np.int32]  # distances of a universe, as multiples of its step


def npz(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """What `numpy.savez` writes, and no pickles. Before NumPy 2.1 it cannot be told to: it saves that wish as an array, too."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as file:
        for name, array in arrays.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)
    return sink.getvalue()
