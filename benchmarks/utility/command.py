"""`python -m benchmarks utility`: what privacy costs, cell by cell, with a verdict each.

A cell is a set, an epsilon and a delta. Its number is the cost of the default over that of the reference: mean and standard error
of several runs. Bounds are public value ranges. Other methods and libraries get the same rows, bounds and budget.
"""

import argparse
import json
import warnings
from collections import Counter
from collections.abc import Iterator
from math import inf
from pathlib import Path

import numpy as np

from benchmarks.bar import Bar
from benchmarks.utility import rivals
from benchmarks.utility.limits import LIMITS
from benchmarks.utility.reference import KEPT, reference
from benchmarks.utility.tables import SETS
from benchmarks.utility.verdict import change, slack, told, verdict

Ratios = dict[str, np.ndarray]  # by who: the default, "kveil", first


def run(*arguments: str) -> Iterator[Bar]:
    warnings.simplefilter("ignore")
    asked = _asked(arguments)
    before, found, words = _read(asked.against), _read(asked.json), Counter[str]()
    for name in asked.sets:
        for cell, limit, ratios in _measured(name, asked, found if asked.resume else {}):
            said = _said(ratios, before.get(cell, {}).get("kveil"))
            words.update(said.keys())
            told_all = [*said.values(), *(f"{who} {told(costs)}" for who, costs in ratios.items())]
            yield Bar(cell, float(ratios["kveil"].mean()), limit, note="; ".join(told_all))
            yield from _beside(cell, ratios)
            found[cell] = ratios
            _write(asked.json, found)
    print("; ".join(f"{n} {word}" for word, n in words.most_common()))


def _said(ratios: Ratios, before: np.ndarray | None) -> dict[str, str]:
    """What is to be said of a cell: the words that are counted, and each with its numbers."""
    mine, others = ratios["kveil"], {who: costs for who, costs in ratios.items() if who != "kveil"}
    said = {}
    if others:
        word = verdict(mine, others)
        said[word] = word
    if before is not None:
        word = change(mine, before)
        said[word] = f"{word}, was {told(before)}"
    if mine.min() < 1 - 1e-9:
        said["reference beaten"] = f"reference beaten by {1 - mine.min():.2g}"
    return said


def _beside(cell: str, ratios: Ratios) -> Iterator[Bar]:
    """The default may not be behind the cheapest of the others."""
    who = min((who for who in ratios if who != "kveil"), key=lambda who: ratios[who].mean(), default=None)
    if who is not None:
        mine, other = ratios["kveil"], ratios[who]
        yield Bar(
            f"{cell}: cost over that of {who}", float(mine.mean() / other.mean()), 1 + slack(mine, other) / float(other.mean())
        )


def _asked(arguments: tuple[str, ...]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks utility", description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS), metavar="SET", help=f"of: {'; '.join(SETS)}")
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 0.25, 1.0, 4.0])
    parser.add_argument("--delta", nargs="+", type=float, default=[0.0, 1e-6], help="0 is pure")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--rivals", nargs="*", choices=["own", "peers"], default=["own", "peers"], help="none: the default alone")
    parser.add_argument("--barred", action="store_true", help="only cells that have a bar")
    parser.add_argument("--json", type=Path, metavar="FILE", help="all ratios; what it has of other cells is kept")
    parser.add_argument("--resume", action="store_true", help="cells that the file of --json has are told from it, not run again")
    parser.add_argument("--against", type=Path, metavar="FILE", help="an earlier file: better, same or worse for every cell")
    parser.add_argument("--references", type=Path, default=KEPT, metavar="FILE", help="where costs without privacy are kept")
    return parser.parse_args(arguments)


def _measured(name: str, asked: argparse.Namespace, known: dict[str, Ratios]) -> Iterator[tuple[str, float, Ratios]]:
    """The cells of a set: what each is called, its bar, and ratios of everybody who takes part."""
    limits = LIMITS.get(name, {})
    wanted = list(limits) if asked.barred else [(epsilon, delta) for delta in asked.delta for epsilon in asked.epsilon]
    cells = [cell for cell in wanted if _called(name, *cell) not in known]
    for cell in wanted:
        if cell not in cells:
            yield _called(name, *cell), limits.get(cell, inf), known[_called(name, *cell)]
    if not cells:
        return
    try:
        rows, k, domain = SETS[name].make()
    except FileNotFoundError:
        print(f"{name}: not run, ../shared/data is not here")
        return
    floor = reference(SETS[name], rows, k, asked.references)
    for epsilon, delta in cells:
        given = (rows, k, floor, asked.runs, delta)
        ratios = {"kveil": rivals.ratios(rows, k, floor, "auto", asked.runs, epsilon=epsilon, delta=delta, **domain)}
        if "own" in asked.rivals:
            ratios |= rivals.own(*given, epsilon=epsilon, **domain)
        if "peers" in asked.rivals:
            beside = rivals.peers(*given, epsilon=epsilon, **domain)
            ratios |= {who: costs for who, costs in beside.items() if isinstance(costs, np.ndarray)}
            for who in beside.keys() - ratios.keys():
                print(f"{_called(name, epsilon, delta)}: {who} is left out, {beside[who]}")
        yield _called(name, epsilon, delta), limits.get((epsilon, delta), inf), ratios


def _called(name: str, epsilon: float, delta: float) -> str:
    return f"{name}, epsilon {epsilon:g}, delta {delta:g}"


def _read(place: Path | None) -> dict[str, Ratios]:
    if place is None or not place.exists():
        return {}
    cells = json.loads(place.read_text())
    return {cell: {who: np.array(costs) for who, costs in ratios.items()} for cell, ratios in cells.items()}


def _write(place: Path | None, found: dict[str, Ratios]) -> None:
    if place is not None:
        cells = {cell: {who: costs.tolist() for who, costs in ratios.items()} for cell, ratios in found.items()}
        place.write_text(json.dumps(cells, indent=0))
