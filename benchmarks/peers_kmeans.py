"""k-means of other libraries beside ours, in one run on the same rows. `make bench-peers` runs it in an environment of its own.

Cost is over the best of ten scikit-learn runs (mean and standard deviation), CPU time of the quickest run over that of one
KMeans(n_init=1) fit, memory is what a fit adds to the peak of its process. Every line of the table is a process of its own.
Noise is fresh in every run, except in libraries that take it from a seed.
"""

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.metrics import pairwise_distances_argmin_min

from benchmarks.peers import PEERS, Peer, missing
from benchmarks.sets import MAKERS, is_here

FLOOR_RUNS = 10
USUAL = ("digits", "15 in the square", "15 in the ball, d=8", "64 tight, d=100", "MNIST", "s1")
QUICK = ("digits", "15 in the square", "s1")
NOTES = (
    "diffprivlib 0.6.6 unpacks its split of epsilon in swapped order and spends (1 + d c)/(d + c) times the asked epsilon, with "
    "c = cbrt(4 d 0.225^2), where bounds start at 0, less where they lie around 0 (benchmarks/peers.py). So it is shown twice: "
    "at the asked epsilon, and asked for so much that it truly spends the epsilon of the table. Besides, it skips empty clusters "
    "and takes its number of steps from the exact number of rows, which no epsilon covers.",
    "kveil uses a public ball where there is one; a library that knows boxes only gets the box around it.",
)


@dataclass(frozen=True)
class Line:
    """One line of the table. `promise` says what is spent, which is not always what was asked for."""

    data: str
    peer: str
    promise: str
    epsilon_asked: float | None = None
    epsilon_spent: float | None = None
    delta: float | None = None
    cost_ratio: float | None = None
    cost_ratio_sd: float | None = None
    runs: int = 0
    cpu_seconds: float | None = None
    cpu_ratio: float | None = None
    extra_mb: float | None = None
    trouble: str = ""


@dataclass(frozen=True)
class Cell:
    """What one process is asked to do."""

    rows: str
    k: int
    domain: dict[str, Any]
    peer: str
    epsilon: float
    delta: float
    runs: int
    adapters: tuple[str, ...]


def main() -> None:
    asked = _arguments()
    if asked.cell:
        print(json.dumps(_run_cell(Cell(**json.loads(sys.stdin.read())))))
        return
    lines = [line for name in asked.sets for line in _compare(name, asked)]
    for note in NOTES:
        _console().print(f"- {note}")
    if asked.json:
        Path(asked.json).write_text(json.dumps({"notes": NOTES, "lines": [asdict(line) for line in lines]}, indent=1))
    if asked.csv and lines:
        with open(asked.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, list(asdict(lines[0])))
            writer.writeheader()
            writer.writerows(map(asdict, lines))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers_kmeans", description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=list(MAKERS), metavar="SET", help=f"of: {', '.join(MAKERS)}")
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0])
    parser.add_argument("--delta", type=float, default=1e-6, help="for those who take one; they are shown at delta 0 too")
    parser.add_argument("--runs", type=int, default=None, help="default 5; 2 with --quick")
    parser.add_argument("--adapter", nargs="+", default=[], metavar="MODULE", help="modules with a list PEERS of more peers")
    parser.add_argument("--quick", action="store_true", help="fewer sets and runs")
    parser.add_argument("--csv", metavar="FILE")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--cell", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    asked.sets = asked.sets or (QUICK if asked.quick else USUAL)
    asked.runs = asked.runs or (2 if asked.quick else 5)
    return asked


def _compare(name: str, asked: argparse.Namespace) -> list[Line]:
    """All lines of one data set, printed as they are known."""
    if not is_here(MAKERS[name]):
        print(f"{name}: not run, ../shared/data is not here\n")
        return []
    rows, k, domain = MAKERS[name]()
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder) / "rows.npy")
        np.save(place, rows)  # a process that only loads them has no other peak of memory than its fit
        base = Cell(place, k, domain, PEERS[0].name, 1.0, 0.0, FLOOR_RUNS, tuple(asked.adapter))
        lines = list(_lines(name, rows, base, asked))
    _show(f"{name}: {rows.shape[0]} x {rows.shape[1]}, k = {k}", lines)
    return lines


def _lines(name: str, rows: np.ndarray, base: Cell, asked: argparse.Namespace) -> Iterator[Line]:
    ordinary = ask(base)
    floor, seconds = min(costs_of(rows, ordinary)), min(ordinary["cpu"])
    yield _line(Line(name, base.peer, "not private"), rows, ordinary, floor, seconds)
    for peer in _peers(base.adapters)[1:]:
        why = missing(peer)
        if why is not None:
            yield Line(name, peer.name, "", trouble=why)
            continue
        for epsilon in asked.epsilon:
            for blank in _promises(name, peer, epsilon, asked.delta, peer.factor(base.domain, rows.shape[1])):
                cell = Cell(
                    base.rows, base.k, base.domain, peer.name, blank.epsilon_asked, blank.delta, asked.runs, base.adapters
                )
                yield _line(blank, rows, ask(cell), floor, seconds)


def _promises(name: str, peer: Peer, epsilon: float, delta: float, factor: float) -> Iterator[Line]:
    """The lines of a peer before they are measured: for every kind of promise, as asked and at the true epsilon."""
    for kind, chance in (("pure", 0.0), ("approximate", delta)):
        if kind not in peer.kinds or (kind == "approximate" and not delta):
            continue
        if factor == 1:
            yield Line(name, peer.name, f"epsilon {epsilon:g}, delta {chance:g}", epsilon, epsilon, chance)
            continue
        spent, less = epsilon * factor, epsilon / factor
        yield Line(name, peer.name, f"at asked epsilon {epsilon:g}: spends {spent:.3g}", epsilon, spent, chance)
        yield Line(name, peer.name, f"at true epsilon {epsilon:g}: asked for {less:.3g}", less, epsilon, chance)


def _line(blank: Line, rows: np.ndarray, answer: dict[str, Any], floor: float, seconds: float) -> Line:
    if "trouble" in answer:
        return Line(**{**asdict(blank), "trouble": answer["trouble"]})
    ratios = np.array(costs_of(rows, answer)) / floor
    cpu = min(answer["cpu"])  # the least of several: what the machine can do when others leave it alone
    found = {"cost_ratio": float(ratios.mean()), "cost_ratio_sd": float(ratios.std(ddof=1)) if len(ratios) > 1 else None}
    spent = {"runs": len(ratios), "cpu_seconds": cpu, "cpu_ratio": cpu / seconds, "extra_mb": answer["extra_mb"]}
    return Line(**{**asdict(blank), **found, **spent})


def costs_of(rows: np.ndarray, answer: dict[str, Any]) -> list[float]:
    """The k-means cost of every run, on the rows as they are, clipped by nobody."""
    return [float((pairwise_distances_argmin_min(rows, np.array(centers))[1] ** 2).sum()) for centers in answer["centers"]]


def ask(cell: Cell, python: str = sys.executable) -> dict[str, Any]:
    """What the fits of a cell gave, in a process of its own."""
    command = [python, "-W", "ignore", "-m", "benchmarks.peers_kmeans", "--cell"]
    calm = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # threads that wait in a loop burn CPU time
    done = subprocess.run(command, input=json.dumps(asdict(cell)), stdout=subprocess.PIPE, text=True, env=calm)
    return json.loads(done.stdout) if done.returncode == 0 else {"trouble": f"failed, exit code {done.returncode}"}


def _run_cell(cell: Cell) -> dict[str, Any]:
    """In its own process: fits one after another, their CPU time, and by how much they raised the peak of memory."""
    rows = np.load(cell.rows)
    fit = next(peer for peer in _peers(cell.adapters) if peer.name == cell.peer).fit
    parameters = (cell.epsilon, cell.delta, cell.domain)
    centers, cpu = [], []
    try:
        fit(rows[:500], 2, *parameters, 0)  # imports and compiles
        memory = _Memory()
        for seed in range(cell.runs):
            start = time.process_time()
            found = fit(rows, cell.k, *parameters, seed)
            cpu.append(time.process_time() - start)
            centers.append(np.asarray(found).tolist())
    except Exception as error:  # another library's trouble is a line of the table, not the end of it
        return {"trouble": f"failed: {type(error).__name__}"}
    return {"centers": centers, "cpu": cpu, "extra_mb": memory.added()}


class _Memory:
    """By how much the peak of resident memory rises from now on, in MB.

    Linux counts it for the process itself, from when it is told to start anew. getrusage, which must do elsewhere, starts a
    process at the peak of its parent and remembers what was freed long ago, so it may show too little.
    """

    def __init__(self) -> None:
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
        self._before = self._peak()

    def added(self) -> float:
        return self._peak() - self._before

    def _peak(self) -> float:
        with suppress(OSError):
            (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
            return int(line.split()[1]) / 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def _peers(adapters: tuple[str, ...]) -> list[Peer]:
    return [*PEERS, *(peer for module in adapters for peer in import_module(module).PEERS)]


def _show(title: str, lines: list[Line]) -> None:
    table = Table(title=title, title_justify="left")
    for column, side in (
        ("library", "left"),
        ("promise", "left"),
        ("cost ratio", "right"),
        ("CPU ratio", "right"),
        ("MB", "right"),
    ):
        table.add_column(column, justify=side)  # type: ignore[arg-type]
    for line in lines:
        if line.cost_ratio is None:
            table.add_row(line.peer, line.trouble, "-", "-", "-")
            continue
        spread = "" if line.cost_ratio_sd is None else f" ± {line.cost_ratio_sd:.2g}"
        table.add_row(line.peer, line.promise, f"{line.cost_ratio:.4g}{spread}", f"{line.cpu_ratio:.2g}", f"{line.extra_mb:.0f}")
    _console().print(table)


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else 120)


if __name__ == "__main__":
    main()
