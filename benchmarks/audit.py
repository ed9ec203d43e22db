"""Every model of kveil attacked, every broken twin caught, and diffprivlib's KMeans: `make audit`.

A model passes if it is consistent with the epsilon that it declares; and if its lower bound is at least 0.7, where its draws
let an ideal attack expect 0.8 or more and all of them can be seen. A twin and diffprivlib's KMeans pass if they are violated.
Exit code 4 if one does not pass.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.twins import ALL as TWINS
from kveil.audit import Neighbours, Verdict, check
from kveil.auditing.catalogue import SUBJECTS, Subject
from kveil.auditing.check import rounds
from kveil.auditing.fitting import fitted
from kveil.auditing.ideal import ideal_bound
from kveil.auditing.report import to_html

EPSILON, CONFIDENCE = 1.0, 0.999
RUNS, FEWER = 20_000, 6_000  # fits; fewer where even an ideal attack would see less than ALLOWED
ALLOWED, NEEDED = 0.8, 0.7
HALVED = ("grid", "mean", "tree", "universe counts")  # asked for twice the epsilon that they are held to
PEERS = Path(".venv-peers/bin/python")
PEER = "diffprivlib KMeans, 64 columns"
NOT_PASSED = 4


@dataclass(frozen=True)
class Line:
    """One audit. ideal: the bound that an ideal attack would expect, of a model of ours."""

    kind: str  # model, twin or peer
    verdict: Verdict
    ideal: float | None = None
    unseen: str = ""

    @property
    def passed(self) -> bool:
        if self.kind != "model":
            return self.verdict.is_violated
        has_teeth = self.ideal is None or self.ideal < ALLOWED or bool(self.unseen) or self.verdict.lower >= NEEDED
        return self.verdict.outcome == "consistent" and has_teeth


def main() -> None:
    asked = _arguments()
    if asked.peer:
        print(_checked(PEER, diffprivlib_in_64_columns(), asked.runs or FEWER, asked.workers).to_json())
        return
    if asked.ideal:
        for name, make in SUBJECTS.items():
            print(f"{name:24}{_ideal(make(), asked.runs or RUNS):.2f}")
        return
    start, lines = time.monotonic(), []
    for line in _lines(asked):
        lines.append(line)
        ideal = "" if line.ideal is None else f" An ideal attack expects {line.ideal:.2f}."
        took = f"{line.verdict.seconds:.0f} s"
        print(f"{'ok   ' if line.passed else 'WRONG'} {line.kind} {line.verdict}{ideal} ({took})", flush=True)
    if not lines:
        sys.exit(f"no audit has the name {asked.only!r}, so nothing was checked. `kveil audit --list` has the names of models.")
    _show(lines)
    wrong = sum(not line.passed for line in lines)
    print(f"{len(lines)} audits, {wrong} wrong, {time.monotonic() - start:.0f} s")
    if asked.json:
        told = [{"kind": line.kind, "ideal": line.ideal, **line.verdict.to_dict()} for line in lines]
        Path(asked.json).write_text(json.dumps(told, indent=1))
    if asked.html:
        Path(asked.html).write_text(to_html([line.verdict for line in lines]), encoding="utf-8")
    sys.exit(NOT_PASSED if wrong else 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit", description=__doc__)
    parser.add_argument("--only", nargs="+", default=None, metavar="NAME", help="names of models, twins or peers")
    parser.add_argument("--runs", type=int, default=None, help=f"fits of each; default {RUNS}, or {FEWER} where more show little")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--html", metavar="FILE")
    parser.add_argument("--ideal", action="store_true", help="only what an ideal attack would expect, without audits")
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _lines(asked: argparse.Namespace) -> Iterator[Line]:
    for name, make in SUBJECTS.items():
        if asked.only is None or name in asked.only:
            yield _of_model(name, make(), asked)
    for name, make in _twins().items():
        if asked.only is None or name in asked.only:
            yield Line("twin", _checked(name, make(), asked.runs or RUNS, asked.workers))
    for twin in TWINS:
        if asked.only is None or twin.name in asked.only:
            yield Line("twin", twin.verdict())
    if asked.only is None or PEER in asked.only:
        yield from _peer(asked)


def _of_model(name: str, subject: Subject, asked: argparse.Namespace) -> Line:
    can_be_seen = _ideal(subject, RUNS) >= ALLOWED and not subject.unseen
    runs = asked.runs or (RUNS if can_be_seen else FEWER)
    return Line("model", _checked(name, subject, runs, asked.workers), _ideal(subject, runs), subject.unseen)


def _ideal(subject: Subject, runs: int) -> float:
    """The bound that an ideal attack would expect in the last round."""
    last = rounds(len(subject.pairs), runs, 1 - CONFIDENCE)[-1]
    epsilons, rhos = _draws(subject)
    return ideal_bound(epsilons, rhos, runs=last.runs, delta=subject.delta, error=last.error)


def _checked(name: str, subject: Subject, runs: int, workers: int) -> Verdict:
    return check(
        subject.made(EPSILON), epsilon=EPSILON, delta=subject.delta, relation=subject.relation, pairs=subject.pairs,
        runs=runs, workers=workers, confidence=CONFIDENCE, name=name,
    )  # fmt: skip


def _draws(subject: Subject) -> tuple[list[float], list[float]]:
    """What every draw of a fit costs, as its guarantee tells: pure epsilons, and rhos."""
    found = fitted(subject.made(EPSILON), subject.pairs[0].tables()[1])
    promise: Any = getattr(found, "guarantee_", None) or getattr(found, "guarantee", None)
    if promise is None:  # find_bounds: one draw
        return [EPSILON], []
    charges = [charge for charge in promise.draws or promise.charges for _ in range(charge.times)]
    return (
        [float(charge.epsilon) for charge in charges if charge.rho is None],
        [float(charge.rho) for charge in charges if charge.rho is not None],
    )


def _twins() -> dict[str, Callable[[], Subject]]:
    """Models with noise of half the width."""
    return {f"{name}, noise halved": _halved(SUBJECTS[name]) for name in HALVED}


def _halved(make: Callable[[], Subject]) -> Callable[[], Subject]:
    def twin() -> Subject:
        subject = make()
        return replace(subject, made=lambda epsilon: subject.made(2 * epsilon))

    return twin


def _peer(asked: argparse.Namespace) -> Iterator[Line]:
    """In the environment of peers: diffprivlib needs an older scikit-learn."""
    if not PEERS.exists():
        print(f"skip  {PEER}: {PEERS} is not here, `make bench-peers` makes it")
        return
    command = [str(PEERS), "-W", "ignore", "-m", "benchmarks.audit", "--peer", "--runs", "1000", "--workers", str(asked.workers)]
    told = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    yield Line("peer", Verdict(**{**told, "looks": ()}))


def diffprivlib_in_64_columns() -> Subject:
    """All rows in the middle, and one in a corner. Only the released centres are looked at, not `labels_` or `n_iter_`.

    diffprivlib 0.6.6 starts from centres with all coordinates within a quarter of the width from the middle, and skips a
    cluster without rows. So the second centre leaves that region only if a row was nearest to it: with one in the corner often,
    and else never.
    """
    from diffprivlib import BudgetAccountant
    from diffprivlib.models import KMeans

    d = 64
    bounds = (np.zeros(d), np.ones(d))
    rows = np.full((2000, d), 0.5)

    def centres(table: Any, epsilon: float) -> Any:
        return KMeans(2, epsilon=epsilon, bounds=bounds, accountant=BudgetAccountant()).fit(table).cluster_centers_

    pair = Neighbours("empty cluster", rows, np.vstack([rows, np.ones((1, d))]), rule="a cluster has one row or none")
    return Subject(lambda epsilon: lambda table: centres(table, epsilon), [pair])


def _show(lines: list[Line]) -> None:
    table = Table("", "verdict", "lower bound", "ideal attack", "seen", "fits", "pair")
    for line in lines:
        one = line.verdict
        ideal, seen = "-" if line.ideal is None else f"{line.ideal:.2f}", "-" if one.power is None else f"x {one.power:.2g}"
        table.add_row(one.name, one.outcome, f"{one.lower:.2f}", ideal, seen, str(one.runs), one.pair)
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
