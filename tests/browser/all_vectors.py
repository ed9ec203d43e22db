"""All vector files, as a browser is given them, and a twin of them in which one case of every file is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "vectors"
SCRIPT = (Path(__file__).parent / "in_page" / "vectors.js").read_text(encoding="ascii")
WRONG: dict[str, tuple[int, Any]] = {  # of each file's first case: the place of what is expected, and something else
    "weights": (1, "1"), "blake2b": (4, "00"), "hash": (3, "00"), "canonical": (1, "neither"), "chosen": (5, -1),
    "manifests": (3, "neither"), "preferred": (4, [-1]), "answers": (5, "00" * 22), "reports": (0, "00" * 22),
    "ledger": (4, "99"), "rotations": (4, ["00" * 32, 1]),
}  # fmt: skip


def disagreements(page: Any, key: str, *, is_spoiled: bool = False) -> Any:
    """What a page finds wrong."""
    given = {path.stem: json.loads(path.read_text(encoding="ascii")) for path in FOLDER.glob("*.json")}
    assert {*given} == {*WRONG, "chains"}, "a file that no browser reads"
    if is_spoiled:
        for name, (place, value) in WRONG.items():
            given[name][0][place] = value
    return page.js(SCRIPT.replace("GIVEN", json.dumps({**given, "key": key})))
