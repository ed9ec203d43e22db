"""The tests of this room share modules that lie beside them, and those of the replay."""

import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "replay")]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    """Where a run is, and where its temporary files would be."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path
