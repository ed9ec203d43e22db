"""The tests of questions share a module that lies beside them: `question_examples`."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def rows_that_stay_sparse(monkeypatch):
    """Sparse rows of more than 16 columns stay sparse here, so that small tables try the kernels of both kinds."""
    from kveil.questions import frame

    monkeypatch.setattr(frame, "FEW_COLUMNS", 16)
