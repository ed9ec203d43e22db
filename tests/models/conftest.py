"""The tests of models share modules that lie beside them: `universe_laws`, `refusals`."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def blobs():
    """3000 made-up rows around three places in [-5, 5]^2."""
    rng = np.random.default_rng(7)
    places = np.array([[-3.0, -3.0], [0.0, 3.0], [3.5, -1.0]])
    return np.repeat(places, 1000, axis=0) + 0.4 * rng.standard_normal((3000, 2))
