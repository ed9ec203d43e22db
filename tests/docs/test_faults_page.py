"""Pages that name tests and files: each of them exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("faults.md", "threat-model.md", "evaluation.md")
NAMED = re.compile(r"`((?:tests|src|benchmarks)/[\w./-]+?)(?:::(\w+))?`")


def functions(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("page", PAGES)
def test_every_test_and_file_that_a_page_names_exists(page):
    named = NAMED.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert len(named) > 10
    files = [(ROOT / path, test) for path, test in named]
    missing = [f"{path}::{test}" for path, test in files if not path.exists()]
    missing += [f"{path}::{test}" for path, test in files if test and path.is_file() and test not in functions(path)]
    assert missing == []


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_somewhere(page):
    links = re.findall(r"\]\(([\w./-]+\.md)(#[\w-]+)?\)", (ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert [link for link, _ in links if not (ROOT / "docs" / link).exists()] == []


def test_every_kind_of_fault_has_its_table():
    page = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
    tables = {head: text for head, _, text in (part.partition("\n") for part in page.split("\n## ")[1:])}
    kinds = ("full disk", "killed", "clock", "Two processes", "other versions", "Damaged files")
    for kind in kinds:
        assert [head for head, text in tables.items() if kind in head and text.count("\n|") > 4], kind
