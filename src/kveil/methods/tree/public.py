"""A public sample before a tree is grown: its prototypes are free, private rows vote for them, and a gate asks whether it fits.

Rows of the sample are known to everyone, so whatever is computed from them alone costs nothing, and protects none of them.
"""

from __future__ import annotations

import hashlib
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from kveil.arrays import Floats, Integers
from kveil.canonical import RELEASE
from kveil.methods.ground import Ground
from kveil.methods.task import Task
from kveil.methods.tree.stages import FirstLook
from kveil.progress import step as progress
from kveil.questions.frame import whole_steps
from kveil.questions.public_sample import LENGTH, TOP, Gain, Votes
from kveil.solve.prototypes import clustered, settled
from kveil.solve.synopsis import Synopsis
from kveil.solve.wkmeans import thorough_kmeans
from kveil.space.bounds import public_domain
from kveil.space.euclidean import Centers, nearest

OF_GATE, OF_VOTES = 0.02, 0.15  # of the budget
PER_PROTOTYPE, MOST_PROTOTYPES = 8, 1000  # deviations of a vote that a prototype's rows should be, on average
PER_CENTER = 10  # finer prototypes that are clustered
OF_EXPLAINED = {True: 0.4, False: 0.8}  # of what the sample explains of itself: the bar where the tree projects; where not
TOO_FEW = 1000  # times the squared error of noise: where chance in the sample's own means is larger, the tree needs no sample
MOST_JUDGED = 10_000  # rows of the sample that its own fit is measured on

FEW_COLUMNS = "the public sample was not used: with at most 3 columns the grid of the tree sees all that it could tell."
NOT_FOUND = "the public sample did not fit the rows and was not used; 2 % of the budget was spent on finding out."
NOT_SURE = (
    "the public sample was not used: with this budget and so few rows noise hides whether it fits them. "
    "kveil.tuning.Tree(trust_public=True) uses it without asking."
)
TOO_SMALL = "the public sample was not used: it is so small that chance in its rows is far larger than the noise of this budget."
USED = "a public sample was used. Its rows are not protected, and centres may show them."
TRUSTED = f"{USED} Nobody asked whether it fits: trust_public=True."


class Tried(NamedTuple):
    """Where centres start, if the sample was found to fit; what was released on the way; and what to say of it.

    squared_error: how far off each centre may be, squared, in steps; None if nobody asked.
    """

    start: Floats | None
    synopsis: Synopsis | None
    told: dict[str, Any]
    note: str
    squared_error: float | None = None


class Judge(NamedTuple):
    """Public centres (k, d) of one half of a sample, in whole steps; what they explain of the cost of one mean for the other
    half; and that cost per row, in squared radii."""

    centers: Centers
    explained: float
    cost: float


def unused(task: Task) -> Tried:
    """What to say where there are too few columns for a sample to help."""
    return Tried(None, None, {**_told(task, _codes(task)), "used": False}, FEW_COLUMNS)


def tried(ground: Ground, seen: FirstLook, rng: np.random.Generator, *, is_projected: bool) -> Tried:
    """Whether a public sample fits the rows and, if so, centres from it that the rows have voted for. Charged.

    A sample of no use would ruin a fit, so there is a gate: centres of one half of the sample must explain as good a part of the
    rows as, more or less, of the other half. Where noise is larger than that part nobody could tell, and the sample is not used.
    """
    task = ground.task
    codes = _codes(task)
    told, points = _told(task, codes), ground.whole.measured(codes).astype(np.float64)
    squared_error = None
    if not task.tuning.trust_public:
        if _is_too_small(len(points), ground, seen.n):
            return Tried(None, None, {**told, "used": False}, TOO_SMALL)
        judge = _judge(points, ground, seen.radius, rng)
        gain, why_not = _asked(ground, seen, judge, OF_EXPLAINED[is_projected] * judge.explained)
        told |= {"of_sample": judge.explained} | ({} if gain is None else {"of_rows": gain.explained})
        if why_not is not None:
            return Tried(None, None, {**told, "used": False}, why_not)
        assert gain is not None
        worse = max(0.0, judge.explained - gain.explained) + gain.slack + (1 - judge.explained) * ground.k / len(points)
        squared_error = worse * gain.cost * seen.radius**2
    progress("votes for the public sample", 2, 5)
    prototypes, synopsis = _votes(ground, seen, points, rng)
    told |= {"prototypes": len(prototypes), "used": True}
    start = _start(prototypes, synopsis.counts, synopsis.deviation, points, ground, rng)
    return Tried(start, synopsis, told, TRUSTED if task.tuning.trust_public else USED, squared_error)


def _is_too_small(n_rows: int, ground: Ground, n: float) -> bool:
    """Whether chance in the mean of an equal share of the sample is far larger than noise in a step with half of what is left.

    The squared error of a mean of n_rows/k rows is their spread over that number; that of noise is spread times the expected
    squared length of noise for rows of length 1, over (n/k)^2.
    """
    noise = ground.desk.spread(ground.d, 1.0, ground.desk.left / 2) * (ground.k / max(n, 1.0)) ** 2
    return ground.desk.kind != "none" and ground.k / n_rows > TOO_FEW * noise


def _judge(points: Floats, ground: Ground, radius: float, rng: np.random.Generator) -> Judge:
    """How well centres of one half of the sample fit the other half. Public."""
    some = points[rng.permutation(len(points))[:MOST_JUDGED]]
    first, second = some[: (len(some) + 1) // 2], some[(len(some) + 1) // 2 :]
    centers, middle = (
        Centers(whole_steps(places, ground.reach).astype(np.float64), None)
        for places in (clustered(first, ground.k, rng), first.mean(axis=0)[None, :])
    )
    if not len(second):
        return Judge(centers, 0.0, 0.0)
    of_centers, of_middle = (np.minimum(nearest(second, places)[1] / radius**2, 1.0).mean() for places in (centers, middle))
    return Judge(centers, float((of_middle - of_centers) / max(of_middle, 1e-9)), float(of_middle))


class _Gain(NamedTuple):
    """What public centres explain of the rows, the deviation of the noise in it, and the cost of one mean per row, in squared
    radii."""

    explained: float
    slack: float
    cost: float


def _asked(ground: Ground, seen: FirstLook, judge: Judge, bar: float) -> tuple[_Gain | None, str | None]:
    """What the judge's centres explain of the rows, if that was asked for; and why the sample is not used, if it is not."""
    deviation = sqrt(ground.desk.spread(2, LENGTH / TOP, OF_GATE) / 2)  # of either number of the pair
    if not deviation <= bar * seen.n * judge.cost:  # nothing is spent where, if rows spread like the sample, nobody could tell
        return None, NOT_SURE
    question = Gain(ground.frame(seen.middle, seen.radius), judge.centers)
    ((pair, _),) = ground.desk.ask(question, OF_GATE)  # public, charged
    cost = max(float(pair[0, 0]), deviation, 1e-9)
    gain = _Gain(float(pair[0, 1]) / cost, deviation / cost, min(cost / seen.n, 1.0))
    return gain, NOT_SURE if not gain.slack <= bar else NOT_FOUND if gain.explained + gain.slack < bar else None


def _votes(ground: Ground, seen: FirstLook, points: Floats, rng: np.random.Generator) -> tuple[Integers, Synopsis]:
    """Prototypes of the sample, in whole steps, and with noisy numbers of rows, as leaves of a tree are kept."""
    deviation = ground.desk.deviation(OF_VOTES)
    wanted = min(seen.n / (PER_PROTOTYPE * max(deviation, 1e-9)), MOST_PROTOTYPES)
    codes = whole_steps(clustered(points, int(max(2 * ground.k, wanted)), rng), ground.reach)
    centers = Centers(codes.astype(np.float64), None)
    ((votes, deviation),) = ground.desk.ask(Votes(ground.whole, centers), OF_VOTES)  # public, charged
    middle = None if seen.total is None else ground.positions(seen.middle)
    half = np.sqrt(3.0) * _deviations(points, centers) * ground.unit
    return codes, Synopsis(
        "leaves", ground.positions(centers.codes), votes, np.ones(len(votes), dtype=bool), half, deviation, seen.n,
        seen.n_deviation, middle, seen.total,
    )  # fmt: skip


def _deviations(points: Floats, centers: Centers) -> Floats:
    """(prototypes, columns) how far the sample's rows nearest to each prototype spread, by column. Public."""
    owner, k = nearest(points, centers)[0], len(centers.codes)
    sums = np.zeros((2, k, points.shape[1]))
    np.add.at(sums[0], owner, points)
    np.add.at(sums[1], owner, points**2)
    n = np.maximum(np.bincount(owner, minlength=k), 1)[:, None]
    return np.asarray(np.sqrt(np.maximum(sums[1] / n - (sums[0] / n) ** 2, 0.0)))


def _start(
    prototypes: Integers, votes: Floats, deviation: float, points: Floats, ground: Ground, rng: np.random.Generator
) -> Floats:
    """k centres of the sample, whose rows share the votes of their prototype, in whole steps. Post-processing.

    They are found among finer prototypes, `PER_CENTER` for each, and then settle among the rows.
    """
    owner = nearest(points, Centers(prototypes.astype(np.float64), None))[0]
    own = np.bincount(owner, minlength=len(prototypes))
    weights = (_weighed(votes, deviation, own / len(points)) / np.maximum(own, 1))[owner]
    fine = whole_steps(clustered(points, max(len(prototypes), PER_CENTER * ground.k), rng), ground.reach).astype(np.float64)
    of_fine = np.bincount(nearest(points, Centers(fine, None))[0], weights, minlength=len(fine)).astype(np.float64)
    centers = thorough_kmeans(fine, of_fine, ground.k, rng)
    return whole_steps(settled(points, weights, centers, rng), ground.reach).astype(np.float64)


def _weighed(votes: Floats, deviation: float, shares: Floats) -> Floats:
    """Votes, drawn towards what the shares of the sample suggest as far as noise could explain the difference."""
    expected = max(float(votes.sum()), 1.0) * shares
    apart = votes - expected
    kept = max(0.0, 1 - deviation**2 / max(float(np.mean(apart**2)), 1e-9))
    return np.maximum(expected + kept * apart, 0.0)


def _codes(task: Task) -> Integers:
    assert task.sample is not None
    return np.asarray(task.domain.encode(task.sample)).astype(np.int64)


def _told(task: Task, codes: Integers) -> dict[str, Any]:
    """How many rows the sample has, and their digest: of the codes, row by row, after their shape and the domain."""
    head = RELEASE.write({"shape": list(codes.shape), **public_domain(task.domain)})
    return {"rows": len(codes), "sha256": hashlib.sha256(head + codes.astype("<i8").tobytes()).hexdigest()}
