"""Vectors are made with the small campaigns of `tests/collect`."""

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "collect")]
