"""What the README, the docs and the examples show is run, and prints what they show, so that it stays true."""

import difflib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tools.docs.blocks import blocks_of, pages, shortened, with_outputs, words
from tools.docs.running import PLAIN, WHOLE_PAGE, asked, lay_out, outputs_in

import warm

ROOT = Path(__file__).parents[2]
PAGES = pages()
KVEIL = Path(sys.executable).with_name("kveil")
REPRODUCTIONS = ("hst.md", "kvariates.md", "local.md", "reproduction.md")  # each runs `kveil reproduce`
PLANNED = re.compile(r"^\w+, \d+ clusters, method .*\n\nNoise, from public numbers alone.*(?:\n  .+)*", flags=re.M)
WIDEST = 96  # characters of code that the site shows at 1280 pixels
ALIKE = 0.7  # of the words of an output: noise decides about numbers, and about a few words


def page_of(page: Path) -> object:
    return pytest.param(page, id=page.name, marks=[pytest.mark.research] if page.name in REPRODUCTIONS else [])


def likeness(shown: str, printed: str) -> float:
    """Of the words, in order; numbers and rulers do not count."""
    return difflib.SequenceMatcher(None, words(shown), words(shortened(printed)), autojunk=False).ratio()


def plans(code: str, output: str) -> list[str]:
    """What `kveil.plan` and `kveil plan` tell from public numbers: without noise, so that every digit stays."""
    only_plans = "kveil.plan(" in code and not re.search(r"\.fit\(|sample=|public=", code)
    return [output.strip()] if only_plans else PLANNED.findall(output)


@pytest.mark.parametrize("page", [page_of(page) for page in PAGES if blocks_of(page.read_text(encoding="utf-8"))])
def test_code_and_commands_run_in_order_in_an_empty_folder_and_print_what_is_shown(page, tmp_path):
    text = page.read_text(encoding="utf-8")
    lay_out(tmp_path)
    done = warm.run(WHOLE_PAGE, cwd=tmp_path, text=asked(text), env={**os.environ, **PLAIN})
    assert done.returncode == 0, done.stderr
    for block, printed in zip(blocks_of(text), outputs_in(done.stdout), strict=True):
        assert bool(block.output) == bool(printed.strip()), f"`make docs-outputs` has not been run after a change:\n{block.code}"
        if block.output:
            assert likeness(block.output, printed) >= ALIKE, f"the page shows\n{block.output}\nand it prints\n{printed}"
            assert plans(block.code, block.output) == plans(block.code, shortened(printed)), "a plan is old: `make docs-outputs`"


def test_the_first_block_and_command_of_the_readme_run_in_cold_processes(tmp_path):
    found = blocks_of((ROOT / "README.md").read_text(encoding="utf-8"))
    code = next(block.code for block in found if block.language == "python")
    command = next(line for block in found for line in block.lines)
    for step in ([sys.executable, "-c", code], [KVEIL, *shlex.split(command, comments=True)[1:]]):
        done = subprocess.run(step, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_an_output_is_found_changed_by_its_words_and_not_by_its_numbers():
    shown = "Verdict: good. Noise is at most 0.01 times the spread.\n3 of 3 centres can be told apart."
    assert likeness(shown, shown.replace("0.01", "0.02").replace("3", "4")) == 1
    assert likeness(shown, "epsilon 1, delta 0: nothing else is left of it") < ALIKE


def test_the_picture_of_the_tutorial_shows_the_centres_of_the_page():
    page, picture = ((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("tutorial.md", "images/tutorial.svg"))
    told = re.findall(r"^\d +([\d.]+) +([\d.]+) +([\d.]+) +[\d.]+ +[\d.]+$", page, flags=re.M)
    drawn = re.findall(r"<!-- (\d+\.(\d+)) -->", picture)
    assert len(drawn) == 9
    for (shown, decimals), number in zip(drawn, [number for row in told for number in row], strict=True):
        assert abs(float(shown) - float(number)) < 0.51 * 10.0 ** -len(decimals) + 0.005, "`make docs-outputs` draws it anew"


def test_a_plan_is_found_changed_by_its_numbers():
    plan = "PrivateKMeans, 2 clusters, method tree\n\nNoise, from public numbers alone:\n  in a centre: 0.04\n  tree: 9 cells\n"
    shown = f"$ kveil plan\n{plan}\nTried on 1 500 public rows\n    0.01    1.468\n"
    assert plans("", shown) == plans("", shown.replace("1.468", "1.5")) == [plan.strip()]
    assert plans("", shown) != plans("", shown.replace("0.04", "0.05"))
    assert plans("print(kveil.plan(model))", "1 good 0.096\n") == ["1 good 0.096"]
    assert plans("kveil.plan(model); model.fit(rows)", "1 good 0.096\n") == []


def test_a_command_may_go_on_after_a_backslash():
    (block,) = blocks_of("```sh\nkveil fit a.csv \\\n    -k 3 \\\n    -o out\nls\nkveil verdict out\n```\n")
    assert block.lines == ["kveil fit a.csv -k 3 -o out", "kveil verdict out"]


def test_outputs_are_written_below_their_blocks_once():
    page = "Text.\n\n```python\nprint(1)\n```\n\nMore.\n\n```sh\nkveil demo\n```\n\n```text\nold\n```\n\nEnd.\n"
    once = with_outputs(page, ["1\n", "new\n"])
    assert once == page.replace("print(1)\n```\n", "print(1)\n```\n\n```text\n1\n```\n").replace("old", "new")
    assert with_outputs(once, ["1\n", "new\n"]) == once
    assert "```text" not in with_outputs(once, ["", ""])


def test_a_sentence_of_an_output_is_shown_to_its_end_and_json_is_cut():
    sentence = "Pass bounds from public knowledge, " * 8 + "or spend part of the budget."
    assert shortened(sentence) == sentence
    assert shortened('{"epsilon": ' + "1" * 300 + "}").endswith("1 ...")


MADE = [  # what refuses to overwrite
    r"(?<=\s)(?:-o|--out)[ =](\S+)", r"\b(?:ledger init|keys new|stream add|federate keys) (\S+)",
    r'\bLedger\.create\("([^"]+)"', r'\.save\("([^"]+)"(?!.*overwrite)',
]  # fmt: skip


def test_pages_that_are_followed_in_one_folder_do_not_meet():
    """Reproductions share folders with each other alone: whoever follows two of them overwrites figures, which is allowed."""
    makers: dict[str, set[str]] = {}
    for page in PAGES:
        code = "\n".join(
            block.code for block in blocks_of(page.read_text(encoding="utf-8")) if "kveil reproduce" not in block.code
        )
        for name in {name for pattern in MADE for name in re.findall(pattern, code)}:
            makers.setdefault(name, set()).add(page.name)
    assert {"stops", "clinic.db", "ward.key", "adult.db", "visits.db"} <= set(makers)
    assert {name: found for name, found in makers.items() if len(found) > 1} == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_lines_of_code_fit_into_the_page(page):
    code = re.findall(r"^```(?:python|py|sh|bash)\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    assert [line for block in code for line in block.splitlines() if len(line) > WIDEST] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_files_exist(page):
    for name in re.findall(
        r"`((?:src|tests|tools|docs|benchmarks|requirements|examples)/[\w./*-]+)`", page.read_text(encoding="utf-8")
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
