"""Centres of a stream: ordinary ones of a synopsis, or private ones of a table of leaves, with their promise."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from kveil.arrays import Floats
from kveil.desk.leaf_table import LeafTable
from kveil.desk.pool import Pool
from kveil.errors import FewerDistinctPoints, InvalidValue
from kveil.kernel.grid import Box
from kveil.kernel.ledger import UNIT
from kveil.kernel.loss import Guarantee, PrivacyUnit, guarantee, no_guarantee
from kveil.methods.base import check_width, shares
from kveil.methods.leaves import FEW, LENGTH, LeafReading
from kveil.models.judging import with_verdict
from kveil.models.paying import file_release, open_ledger, receipt_of, reserve, stated_by
from kveil.release import Release
from kveil.solve.wkmeans import thorough_kmeans
from kveil.space.euclidean import clip
from kveil.space.widths import domain_notes
from kveil.stream.coreset import Coreset
from kveil.stream.flow import Flow

LEAST_UNITS = 2**14  # of a ledger, so that no share of the budget is lost in rounding


class Released(NamedTuple):
    """What a private stream let out, and the public domain of its rows."""

    centers: Floats
    weights: Floats
    errors: Floats
    release: Release
    domain: Box


def centers_of(synopsis: Coreset, n_clusters: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Centres of a synopsis and the shares of the rows they stand for; copies, with a warning, if it has too few points."""
    points, weights = synopsis.points, synopsis.weights.astype(np.float64)
    distinct = np.unique(points, axis=0) if len(points) <= 2 * n_clusters else points
    if len(distinct) <= n_clusters:
        if len(distinct) < n_clusters:
            warnings.warn(
                FewerDistinctPoints(f"the stream has fewer distinct rows than {n_clusters}: centres repeat."), stacklevel=3
            )
        centers = np.resize(distinct, (n_clusters, points.shape[1]))
    else:
        centers = thorough_kmeans(points, weights, n_clusters, rng)
    owner = cdist(points, centers, "sqeuclidean").argmin(axis=1)
    return centers, np.bincount(owner, weights, minlength=n_clusters) / weights.sum()


def pool_of(budget: tuple[Fraction | None, Fraction], table: LeafTable, ledger: Any) -> Pool:
    """A budget to be shared out; one that is too small for all its draws is refused here, from public parameters."""
    epsilon, delta = budget
    is_zcdp = bool(delta) and ledger is not None and open_ledger(ledger).rule == "zcdp"
    is_pure = not delta or (table.domain.n_columns <= FEW and not is_zcdp)
    pool = Pool(epsilon, delta, "add-remove", PrivacyUnit(), is_pure=is_pure)
    if pool.kind != "none" and pool.total * UNIT < LEAST_UNITS:
        raise InvalidValue("this budget is too small to be shared out among the draws of a stream. Raise epsilon.")
    check_width(pool, max(LENGTH, table.leaves.frame.radius), 0.2)
    return pool


def promised(pool: Pool) -> Guarantee:
    plan = pool.plan()
    return no_guarantee("add-remove", PrivacyUnit(), "stream") if plan is None else guarantee(plan, trust="stream")


def earlier(flow: Flow) -> tuple[str, ...]:
    """What a reader must know of a stream that was released before: no single promise covers all of its releases."""
    if not flow.n_released:
        return ()
    return (f"records of this stream were in up to {flow.n_released} earlier release(s) of it: the promises of all add up",)


def released(flow: Flow, pool: Pool, n_clusters: int, rng: np.random.Generator, model: Any) -> Released:
    """Charge the budget, then read the table; everything here comes out of `pool` or was public."""
    table = flow.kept
    assert isinstance(table, LeafTable)
    plan = pool.plan()
    with reserve(plan, model.ledger, model.epsilon, model.delta) as ticket, np.errstate(all="ignore"):  # the whole plan is spent
        placed = LeafReading(table.leaves, table.open(pool, ticket), n_clusters, rng).run()  # public, charged
    domain, frame = table.domain, table.leaves.frame
    unit = frame.unit(domain)
    centers = clip(domain, domain.center + placed.centers * unit)
    errors = np.minimum(placed.errors, frame.radius) * float(np.sqrt(np.mean(np.square(unit))))
    weights = shares(placed.counts)
    promise = (
        no_guarantee("add-remove", PrivacyUnit(), "stream")
        if plan is None or ticket is None
        else guarantee(plan, trust="stream", receipts=ticket.receipts, reasons=ticket.reasons)
    )
    parameters = {
        "n_clusters": n_clusters, "epsilon": "inf" if pool.kind == "none" else float(pool.epsilon), "delta": float(model.delta),
        "bounds": [domain.lower.tolist(), domain.upper.tolist()], "bits": domain.bits, "scaling": None, "relation": "add-remove",
        "memory": int(model.memory),
    }  # fmt: skip
    release = Release(
        centers=centers, weights=weights, errors=errors, features=flow.names, guarantee=promise,
        receipt=receipt_of(ticket, model.ledger), kind=type(model).__name__,
        method={"asked": "auto", "used": "leaves", "why": "a stream keeps a linear summary of public cells"},
        parameters=parameters, notes=(*earlier(flow), *domain_notes(domain, None, flow.names)), **stated_by(model.ledger),
    )  # fmt: skip
    judged = with_verdict(release)
    file_release(model.ledger, judged)
    return Released(centers, weights, errors, judged, domain)
