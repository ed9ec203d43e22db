"""`import kveil` in a fresh interpreter, beyond what starting the interpreter takes."""

import subprocess
import sys
from collections.abc import Iterator

from benchmarks.bar import Bar, best_seconds


def run() -> Iterator[Bar]:
    def seconds(code: str) -> float:
        return best_seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True), 7)

    yield Bar("import kveil", seconds("import kveil") - seconds("pass"), 0.4, " s")
