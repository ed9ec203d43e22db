"""Every model of kveil attacked, every broken twin caught, and diffprivlib's KMeans: `make audit`.

A model passes if it is consistent with the epsilon that it declares; and if its lower bound is at least 0.7, where its law allows
it: where its draws let an ideal attack on 40 000 fits expect 0.8 or more, and what leaves shows all of them. It is fitted until
its lower bound is 0.7, as often as the ideal attack would need for 0.8. A twin and diffprivlib's KMeans pass if they are
violated. Exit code 4 if one does not pass. Files are written anew after every audit, so a run that is stopped leaves them.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.twins import ALL as TWINS
from benchmarks.twins.twin import LARGEST
from kveil.audit import Neighbours, Verdict, check
from kveil.auditing.best_event import best_event
from kveil.auditing.catalogue import SUBJECTS, Subject
from kveil.auditing.check import rounds
from kveil.auditing.exact import law_of
from kveil.auditing.fitting import fitted
from kveil.auditing.ideal import ideal_bound
from kveil.auditing.report import to_html
from kveil.kernel.loss import Charge

EPSILON, CONFIDENCE = 1.0, 0.999
RUNS, FEWER = (10_000, 20_000, 40_000), 6_000  # fits at the most; fewer where even an ideal attack would see less than ALLOWED
ALLOWED, NEEDED = 0.8, 0.7
HALVED_RUNS = 20_000
MANY_STEPS = 64  # that a person moves a number by: its noise is then Laplace's
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
        return self.verdict.outcome == "consistent" and (not self.is_allowed or self.verdict.lower >= NEEDED)

    @property
    def is_allowed(self) -> bool:
        """Whether the law of a model allows a lower bound of NEEDED."""
        return self.ideal is not None and self.ideal >= ALLOWED and not self.unseen

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "passed": self.passed, "ideal": self.ideal, "unseen": self.unseen, **self.verdict.to_dict()}

    def __str__(self) -> str:
        ideal = "" if self.ideal is None else f" An ideal attack expects {self.ideal:.2f}."
        unseen = f" Not seen: {self.unseen}." if self.unseen else ""
        return f"{self.kind} {self.verdict}{ideal}{unseen} ({self.verdict.seconds:.0f} s)"


def main() -> None:
    asked = _arguments()
    if asked.peer:
        print(_checked(PEER, diffprivlib_in_64_columns(), asked.runs or FEWER, asked.workers).to_json())
        return
    if asked.ideal:
        for name, make in SUBJECTS.items():
            subject = make()
            print(f"{name:24}", *(f"{_ideal(subject, runs):.2f}" for runs in ([asked.runs] if asked.runs else RUNS)))
        return
    start, lines = time.monotonic(), list[Line]()
    for line in _lines(asked):
        lines.append(line)
        print(f"{'ok   ' if line.passed else 'WRONG'} {line} [{time.monotonic() - start:.0f} s so far]", flush=True)
        _write(lines, asked)
    if not lines:
        sys.exit(f"no audit has the name {asked.only!r}, so nothing was checked. `kveil audit --list` has the names of models.")
    _show(lines)
    wrong = sum(not line.passed for line in lines)
    slowest = max((line.verdict.seconds for line in lines if line.kind == "twin"), default=0.0)
    took = f"{time.monotonic() - start:.0f} s, the slowest twin {slowest:.0f} s of {LARGEST:.0f}"
    print(f"{len(lines)} audits, {wrong} wrong, {took}")
    sys.exit(NOT_PASSED if wrong else 0)


def _write(lines: list[Line], asked: argparse.Namespace) -> None:
    if asked.json:
        Path(asked.json).write_text(json.dumps([line.to_dict() for line in lines], indent=1), encoding="utf-8")
    if asked.html:
        Path(asked.html).write_text(to_html([line.verdict for line in lines]), encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit", description=__doc__)
    parser.add_argument("--only", nargs="+", default=None, metavar="NAME", help="names of models, twins or peers")
    parser.add_argument(
        "--runs", type=int, default=None, help=f"fits of each; default up to {RUNS[-1]}, or {FEWER} where more show little"
    )
    parser.add_argument("--enough", type=float, default=NEEDED, help=f"fit a model until its bound is so large; default {NEEDED}")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--html", metavar="FILE")
    parser.add_argument("--ideal", action="store_true", help="only what an ideal attack would expect, without audits")
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _lines(asked: argparse.Namespace) -> Iterator[Line]:
    for kind, name, audit in _audits(asked):
        if asked.only is not None and name not in asked.only:
            continue
        try:
            yield audit()
        except Exception as error:  # of whatever kind: the other audits go on, and this one is not passed
            promise = (EPSILON, 0.0, "add-remove", CONFIDENCE)
            reason = f"the audit itself raised {type(error).__name__}: {error}"
            yield Line(kind, Verdict("unknown", *promise, 0.0, None, "", "", 0, 0.0, reason, name))


def _audits(asked: argparse.Namespace) -> Iterator[tuple[str, str, Callable[[], Line]]]:
    """Kind, name, and what to call."""
    for name, make in SUBJECTS.items():
        yield "model", name, partial(_of_model, name, make, asked)
    for name, make in _twins().items():
        yield "twin", name, partial(_of_twin, name, make, asked)
    for twin in TWINS:
        yield "twin", twin.name, lambda twin=twin: Line("twin", twin.verdict())
    if PEERS.exists():
        yield "peer", PEER, partial(_peer, asked)
    elif asked.only is None or PEER in asked.only:
        print(f"skip  {PEER}: {PEERS} is not here, `make .venv-peers/.installed` makes it")


def _of_model(name: str, make: Callable[[], Subject], asked: argparse.Namespace) -> Line:
    subject = make()
    ideals = {runs: _ideal(subject, runs) for runs in RUNS}
    enough = [runs for runs in RUNS if ideals[runs] >= ALLOWED and not subject.unseen]
    runs = asked.runs or next(iter(enough), FEWER)
    return Line("model", _checked(name, subject, runs, asked.workers, asked.enough), _ideal(subject, runs), subject.unseen)


def _of_twin(name: str, make: Callable[[], Subject], asked: argparse.Namespace) -> Line:
    return Line("twin", _checked(name, make(), asked.runs or HALVED_RUNS, asked.workers))


def _ideal(subject: Subject, runs: int) -> float:
    """The bound that an ideal attack would expect in the last round."""
    last = rounds(len(subject.pairs), runs, 1 - CONFIDENCE)[-1]
    laws = [] if subject.law is None else [subject.law(EPSILON)]
    laws += [law_of(subject.made(EPSILON), *pair.tables()) for pair in subject.pairs] if subject.is_listed else []
    if laws:
        return max(best_event(law, runs=last.runs, error=last.error) for law in laws)
    epsilons, rhos, laplace = _draws(subject)
    return ideal_bound(epsilons, rhos, laplace, runs=last.runs, delta=subject.delta, error=last.error)


def _checked(name: str, subject: Subject, runs: int, workers: int, enough: float = math.inf) -> Verdict:
    return check(
        subject.made(EPSILON), epsilon=EPSILON, delta=subject.delta, relation=subject.relation, pairs=subject.pairs,
        runs=runs, workers=workers, confidence=CONFIDENCE, enough=enough, name=name,
    )  # fmt: skip


def _draws(subject: Subject) -> tuple[list[float], list[float], list[float]]:
    """What every draw of a fit costs, as its guarantee tells: pure epsilons, rhos, and epsilons of sums with Laplace noise."""
    found = fitted(subject.made(EPSILON), subject.pairs[0].tables()[1])
    promise: Any = getattr(found, "guarantee_", None) or getattr(found, "guarantee", None)
    if promise is None:  # find_bounds: one draw
        return [EPSILON], [], []
    charges = [charge for charge in promise.draws or promise.charges for _ in range(charge.times)]
    pure = [charge for charge in charges if charge.rho is None]
    sums = [charge for charge in pure if charge.mechanism == "discrete-laplace" and charge.sensitivity >= MANY_STEPS]
    return (
        [part for charge in pure if charge not in sums for part in _of_counts(charge, subject.relation)],
        [float(charge.rho) for charge in charges if charge.rho is not None],
        [float(charge.epsilon) for charge in sums],
    )


def _of_counts(charge: Charge, relation: str) -> list[float]:
    """Losses that a draw shows. A replaced row leaves one cell and enters another: two counts, each of which shows half."""
    epsilon = float(charge.epsilon)
    moves_two = relation == "replace-one" and charge.mechanism == "discrete-laplace" and charge.sensitivity == 2
    return [epsilon / 2] * 2 if moves_two else [epsilon]


def _twins() -> dict[str, Callable[[], Subject]]:
    """Models with noise of half the width."""
    return {f"{name}, noise halved": _halved(SUBJECTS[name]) for name in HALVED}


def _halved(make: Callable[[], Subject]) -> Callable[[], Subject]:
    def twin() -> Subject:
        subject = make()
        return replace(subject, made=lambda epsilon: subject.made(2 * epsilon))

    return twin


def _peer(asked: argparse.Namespace) -> Line:
    """In the environment of peers: diffprivlib needs an older scikit-learn."""
    command = [str(PEERS), "-W", "ignore", "-m", "benchmarks.audit", "--peer", "--runs", "1000", "--workers", str(asked.workers)]
    told = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    return Line("peer", Verdict(**{**told, "looks": ()}))


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
