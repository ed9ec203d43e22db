"""What the README, the docs and the examples show is run, so that it stays true."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
KVEIL = Path(sys.executable).with_name("kveil")


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_and_commands_run_in_order_in_an_empty_folder(page, tmp_path):
    """First the Python of the page, then its commands; `people.csv` and `bounds.json` are what the text says they are."""
    for code in blocks(page, "python"):
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    rng = np.random.default_rng(0)
    people = np.column_stack([np.arange(300) // 3, rng.uniform(0, 120, 300), rng.uniform(0, 1e5, 300)])
    np.savetxt(tmp_path / "people.csv", people, delimiter=",", header="id,age,income", comments="", fmt=["%d", "%.1f", "%.1f"])
    (tmp_path / "bounds.json").write_text('{"age": [0, 120], "income": [0, 100000]}')
    for line in "".join(blocks(page, "sh")).splitlines():
        if line.startswith("kveil "):
            done = subprocess.run([KVEIL, *shlex.split(line)[1:]], cwd=tmp_path, capture_output=True, text=True)
            assert done.returncode == 0, f"{line}: {done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_files_exist(page):
    for name in re.findall(
        r"`((?:src|tests|docs|benchmarks|requirements|examples)/[\w./*-]+)`", page.read_text(encoding="utf-8")
    ):
        assert list(ROOT.glob(name.rstrip("/"))), name


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda script: script.name)
def test_examples_run(script, tmp_path):
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_make_target_that_a_page_names_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M))
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"`?make ([a-z-]+)", page.read_text(encoding="utf-8")):
            assert target in targets, f"{page.name}: make {target}"
