"""The notebook of the tutorial: the same as the page, and it runs."""

import json
import os
import shutil

from tools.docs.notebook import NOTEBOOK, PAGE, cells_to_run, notebook
from tools.docs.running import PLAIN, WHOLE_PAGE

import warm


def test_the_notebook_is_the_page():
    """`make docs-outputs` makes it."""
    assert json.loads(NOTEBOOK.read_text(encoding="utf-8")) == notebook(PAGE.read_text(encoding="utf-8"))


def test_the_notebook_runs_from_top_to_bottom(tmp_path):
    shutil.copytree(NOTEBOOK.parent / "data", tmp_path / "data")
    cells = cells_to_run(json.loads(NOTEBOOK.read_text(encoding="utf-8")))
    done = warm.run(WHOLE_PAGE, cwd=tmp_path, text=json.dumps([cells, True]), env={**os.environ, **PLAIN})
    assert done.returncode == 0, done.stderr
    assert len(cells) > 8


def test_outputs_of_the_notebook_are_small():
    assert NOTEBOOK.stat().st_size < 60_000
