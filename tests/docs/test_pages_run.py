"""What the README, the docs and the examples show is run, so that it stays true."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import warm

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
KVEIL = Path(sys.executable).with_name("kveil")


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S)


# One process for a page: each block has names of its own, and commands are run as `kveil` runs them.
WHOLE_PAGE = """
import json, shlex, sys
from kveil.cli.main import main
blocks, lines = json.loads(sys.stdin.read())
for number, code in enumerate(blocks):
    exec(compile(code, f"block {number + 1}", "exec"), {"__name__": "__main__"})
for line in lines:
    sys.argv = shlex.split(line)
    try:
        main()
    except SystemExit as end:
        if end.code:
            sys.exit(f"{line}: exit code {end.code}")
"""
REPRODUCTIONS = ("hst.md", "kvariates.md", "local.md", "reproduction.md")  # each runs `kveil reproduce`


def page_of(page: Path) -> object:
    return pytest.param(page, id=page.name, marks=[pytest.mark.research] if page.name in REPRODUCTIONS else [])


@pytest.mark.parametrize("page", [page_of(page) for page in PAGES])
def test_code_and_commands_run_in_order_in_an_empty_folder(page, tmp_path):
    """First the Python of the page, then its commands; `people.csv` and `bounds.json` are what the text says they are."""
    rng = np.random.default_rng(0)
    people = np.column_stack([np.arange(300) // 3, rng.uniform(0, 120, 300), rng.uniform(0, 1e5, 300)])
    np.savetxt(tmp_path / "people.csv", people, delimiter=",", header="id,age,income", comments="", fmt=["%d", "%.1f", "%.1f"])
    (tmp_path / "bounds.json").write_text('{"age": [0, 120], "income": [0, 100000]}')
    code, lines = blocks(page, "python"), [line for line in "".join(blocks(page, "sh")).splitlines() if line.startswith("kveil ")]
    if page.name != "README.md":
        done = warm.run(WHOLE_PAGE, cwd=tmp_path, text=json.dumps([code, lines]))
        assert done.returncode == 0, done.stderr
        return
    first, *others = [shlex.split(line)[1:] for line in lines]
    for step in [*([sys.executable, "-c", block] for block in code), [KVEIL, *first]]:  # as users do: a cold process each
        done = subprocess.run(step, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    for command in others:
        done = warm.run(warm.KVEIL, *command, cwd=tmp_path)
        assert done.returncode == 0, done.stderr


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
    done = warm.run(warm.SCRIPT, script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_every_make_target_that_a_page_names_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M))
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(encoding="utf-8"), flags=re.M):
            assert target in targets, f"{page.name}: make {target}"
