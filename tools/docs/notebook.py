"""examples/tutorial.ipynb, made by `make docs-outputs` from docs/tutorial.md, so that both say the same."""

from __future__ import annotations

import json
import re
from typing import Any

from tools.docs.blocks import ROOT, blocks_of, shortened

PAGE, NOTEBOOK = ROOT / "docs" / "tutorial.md", ROOT / "examples" / "tutorial.ipynb"


def notebook(text: str) -> dict[str, Any]:
    """Cells of the page: text, code, and the outputs that the page shows."""
    cells, end = [], 0
    for block in blocks_of(text):
        cells += [_prose(text[end : block.start]), _code(block.language, block.code, block.output)]
        end = block.end
    cells.append(_prose(text[end:]))
    kept = [cell | {"id": f"cell-{number}"} for number, cell in enumerate(cells) if cell["source"]]
    about = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return {"cells": kept, "metadata": about, "nbformat": 4, "nbformat_minor": 5}


def cells_to_run(book: dict[str, Any]) -> list[tuple[str, str]]:
    """Language and code of each cell; `!kveil` lines are commands of a shell."""
    found = []
    for cell in book["cells"]:
        code = "".join(cell["source"])
        if cell["cell_type"] == "code":
            is_shell = code.startswith("!")
            found.append(("sh" if is_shell else "python", code.replace("!kveil ", "kveil ") + "\n" if is_shell else code))
    return found


HERE = {  # where the notebook lies, and runs, is another place than that of the page
    "The same steps are a notebook, `examples/tutorial.ipynb`. Run the code from the root of the repository.":
    "The same steps are a page, [docs/tutorial.md](../docs/tutorial.md). The code runs in the folder of this notebook.",
}  # fmt: skip


def _prose(text: str) -> dict[str, Any]:
    for page, here in HERE.items():
        text = text.replace(page, here)
    text = re.sub(r"<!--.*?-->\n?|\nNext: \[[^\n]*", "", text).strip()
    text = re.sub(r"\]\((?!https?:|#|\.\./)([\w-]+\.md)", r"](../docs/\1", text)
    text = re.sub(r"!\[([^\]]*)\]\(images/", r"![\1](../docs/images/", text)
    return {"cell_type": "markdown", "metadata": {}, "source": _lines(text)}


def _code(language: str, code: str, output: str | None) -> dict[str, Any]:
    code = code.strip("\n").replace("examples/data/", "data/")
    if language == "sh":
        code = "\n".join(f"!{line}" for line in code.splitlines())
    shown = [{"name": "stdout", "output_type": "stream", "text": _lines(shortened(output) + "\n")}] if output else []
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": shown, "source": _lines(code)}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def written(book: dict[str, Any]) -> str:
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    NOTEBOOK.write_text(written(notebook(PAGE.read_text(encoding="utf-8"))), encoding="utf-8")
