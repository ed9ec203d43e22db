"""Run the blocks of a page in order, in an empty folder, and catch what each prints."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from kveil import load
from tools.docs.blocks import ROOT, SHARED, blocks_of, with_outputs

# One process per page. Commands are run as `kveil` runs them; the outputs are the last line, as JSON.
WHOLE_PAGE = """
import contextlib, io, json, os, shlex, sys
from kveil.cli.main import main
blocks, shared = json.loads(sys.stdin.read())
names, outputs = {"__name__": "__main__"}, []
for number, (language, code) in enumerate(blocks):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        if language == "python":
            exec(compile(code, f"block {number + 1}", "exec"), names if shared else {"__name__": "__main__"})
        lines = [line for line in code.splitlines() if line.startswith("kveil ")] if language == "sh" else []
        for line in lines:
            if len(lines) > 1:
                print(f"{chr(10) if said.tell() else ''}$ {line.split('  #')[0].rstrip()}")
            sys.argv = shlex.split(line, comments=True)
            try:
                main()
            except SystemExit as end:
                if end.code:
                    sys.exit(f"{line}: exit code {end.code}")
    outputs.append(said.getvalue().replace(os.getcwd() + "/", ""))
sys.stdout.write(chr(10) + json.dumps(outputs) + chr(10))
"""
PLAIN = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "MPLBACKEND": "agg"}


def asked(text: str) -> str:
    """What `WHOLE_PAGE` reads."""
    return json.dumps([[(block.language, block.unbroken) for block in blocks_of(text)], SHARED in text])


def outputs_in(stdout: str) -> list[str]:
    found: list[str] = json.loads(stdout.splitlines()[-1])
    return found


def lay_out(folder: Path) -> None:
    """Pages run in an empty folder, but for the data of the examples, as if it were the root of the repository."""
    shutil.copytree(ROOT / "examples" / "data", folder / "examples" / "data")


DRAWN = {"adult-release": ROOT / "docs" / "images" / "tutorial.svg"}  # releases that a page saves and shows as a picture


def run(text: str, is_drawn: bool = False) -> list[str]:
    """What each block of the page prints. Pictures of what it released are drawn anew, if wished, to show the same numbers."""
    with tempfile.TemporaryDirectory() as folder:
        lay_out(Path(folder))
        command = [sys.executable, "-c", WHOLE_PAGE]
        done = subprocess.run(command, cwd=folder, input=asked(text), env={**os.environ, **PLAIN}, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        for name, picture in DRAWN.items() if is_drawn else ():
            if (Path(folder) / name).exists():
                load(Path(folder) / name).plot(picture, theme="auto")
    return outputs_in(done.stdout)


def rewrite(page: Path) -> bool:
    """The page on disk, with outputs of now; whether a word of them changed."""
    text = page.read_text(encoding="utf-8")
    new = with_outputs(text, run(text, is_drawn=True))
    page.write_text(new, encoding="utf-8")
    return new != text
