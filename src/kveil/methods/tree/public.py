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
from kveil.solve.prototypes import prototypes, settled
from kveil.solve.synopsis import Synopsis
from kveil.solve.wkmeans import thorough_kmeans
from kveil.space.bounds import public_domain
from kveil.space.euclidean import Centers, nearest

OF_VOTES, OF_GATE = 0.15, 0.02  # of the budget
PER_PROTOTYPE, MOST_PROTOTYPES = 8, 1000  # deviations of a vote that a prototype's rows should be, on average
SHOWN = 1.5  # deviations of a vote that counts
OF_EXPLAINED = {True: 0.4, False: 0.8}  # of what the sample explains of itself: the bar where the tree projects; where not
MOST_JUDGED = 10_000  # rows of the sample that its own fit is measured on

FEW_COLUMNS = "the public sample was not used: with at most 3 columns the grid of the tree sees all that it could tell."
NOT_FOUND = "the public sample did not fit the rows and was not used; {:.0f} % of the budget was spent on finding out."
NOT_SURE = (
    "the public sample was not used: with this budget and so few rows noise hides whether it fits them. {} "
    "kveil.tuning.Tree(trust_public=True) uses it without asking."
)
USED = "a public sample was used. Its rows are not protected, and centres may show them."


class Tried(NamedTuple):
    """Where centres start, if the sample was found to fit; what was released on the way; and what to say of it."""

    start: Floats | None
    synopsis: Synopsis | None
    told: dict[str, Any]
    note: str


class _Fit(NamedTuple):
    """How well a sample fits itself: what k centres of one half lower of the cost of the other half, and that cost per row, in
    squared radii."""

    explained: float
    cost: float


def unused(task: Task) -> Tried:
    """What to say where there are too few columns for a sample to help."""
    return Tried(None, None, {**_told(task, _codes(task)), "used": False}, FEW_COLUMNS)


def tried(ground: Ground, seen: FirstLook, rng: np.random.Generator, *, is_projected: bool) -> Tried:
    """Votes for prototypes of the sample, the centres that these suggest, and whether they fit. Charged, unless the sample can
    be told to be of no use beforehand.

    A sample of no use would cost much of a good fit: so the pair of `Gain` is asked for, and centres must explain a good part of
    what the sample's own centres explain of itself. Where noise of that pair is larger than this part, nobody could tell.
    """
    task, desk = ground.task, ground.desk
    codes, is_trusted = _codes(task), task.tuning.trust_public
    told: dict[str, Any] = _told(task, codes)
    points = ground.whole.measured(codes).astype(np.float64)
    of_itself = _fits_itself(points, ground.k, seen.radius, rng)
    bar = OF_EXPLAINED[is_projected] * of_itself.explained
    told["of_sample"] = of_itself.explained
    deviation = sqrt(desk.spread(2, LENGTH / TOP, OF_GATE) / 2)
    if not is_trusted and not deviation <= bar * seen.n * of_itself.cost:  # if rows spread as the sample does
        return Tried(None, None, {**told, "used": False}, NOT_SURE.format("Nothing was spent on it."))
    progress("votes for the public sample", 2, 5)
    codes, synopsis = _votes(ground, seen, points, rng)
    told["prototypes"] = len(codes)
    start = _start(codes, synopsis, points, ground, rng)
    if is_trusted:
        return Tried(start, synopsis, {**told, "used": True}, f"{USED} Nobody asked whether it fits: trust_public=True.")
    ((pair, _),) = desk.ask(Gain(ground.frame(seen.middle, seen.radius), Centers(start, None)), OF_GATE)  # public, charged
    cost = max(float(pair[0, 0]), deviation, 1e-9)
    explained, slack = float(pair[0, 1]) / cost, deviation / cost
    told["of_rows"] = explained
    if not slack <= bar:
        spent = f"{100 * (OF_VOTES + OF_GATE):.0f} % of the budget was spent on finding out."
        return Tried(None, None, {**told, "used": False}, NOT_SURE.format(spent))
    if explained + slack < bar:
        return Tried(None, None, {**told, "used": False}, NOT_FOUND.format(100 * (OF_VOTES + OF_GATE)))
    return Tried(start, synopsis, {**told, "used": True}, USED)


def _votes(ground: Ground, seen: FirstLook, points: Floats, rng: np.random.Generator) -> tuple[Integers, Synopsis]:
    """Prototypes of the sample, in whole steps, and with noisy numbers of rows, as leaves of a tree are kept."""
    deviation = ground.desk.deviation(OF_VOTES)
    wanted = min(seen.n / (PER_PROTOTYPE * max(deviation, 1e-9)), MOST_PROTOTYPES)
    codes = whole_steps(prototypes(points, int(max(2 * ground.k, wanted)), rng), ground.reach)
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
    return np.sqrt(np.maximum(sums[1] / n - (sums[0] / n) ** 2, 0.0))


def _start(codes: Integers, synopsis: Synopsis, points: Floats, ground: Ground, rng: np.random.Generator) -> Floats:
    """k centres of the prototypes by their votes, and then of the sample, whose rows share the votes of their prototype, in whole
    steps. Post-processing."""
    votes, places = synopsis.counts, codes.astype(np.float64)
    weights = np.where(votes > SHOWN * synopsis.deviation, votes, 0.0)
    if np.count_nonzero(weights) < min(ground.k, len(votes)):
        weights = np.maximum(votes, 0.0) + 0.001
    centers = thorough_kmeans(places, weights, ground.k, rng)
    owner = nearest(points, Centers(places, None))[0]
    of_rows = (weights / np.maximum(np.bincount(owner, minlength=len(places)), 1))[owner]
    return whole_steps(settled(points, of_rows, centers, rng), ground.reach).astype(np.float64)


def _fits_itself(points: Floats, k: int, radius: float, rng: np.random.Generator) -> _Fit:
    """What k centres of one half of the sample explain of the other half. Public."""
    some = points[rng.permutation(len(points))[:MOST_JUDGED]]
    first, second = some[: (len(some) + 1) // 2], some[(len(some) + 1) // 2 :]
    if not len(second):
        return _Fit(0.0, 0.0)
    of_mean, of_centers = (
        float(np.minimum(nearest(second, Centers(np.rint(places), None))[1] / radius**2, 1.0).mean())
        for places in (first.mean(axis=0)[None, :], prototypes(first, k, rng))
    )
    return _Fit((of_mean - of_centers) / max(of_mean, 1e-9), of_mean)


def _codes(task: Task) -> Integers:
    return np.asarray(task.domain.encode(task.sample)).astype(np.int64)


def _told(task: Task, codes: Integers) -> dict[str, Any]:
    """How many rows the sample has, and their digest: of the codes, row by row, after their shape and the domain."""
    head = RELEASE.write({"shape": list(codes.shape), **public_domain(task.domain)})
    return {"rows": len(codes), "sha256": hashlib.sha256(head + codes.astype("<i8").tobytes()).hexdigest()}
