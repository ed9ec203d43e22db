"""A private set of candidates: places near which k-means, k-median and others may look for centres, charged for once."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kveil.errors import InvalidType, InvalidValue
from kveil.kernel.ledger import Ledger
from kveil.kernel.loss import Guarantee, guarantee
from kveil.methods.base import Facts
from kveil.methods.candidate_search import Projected
from kveil.methods.candidate_set import CandidatePoints
from kveil.methods.candidates import Candidates
from kveil.methods.task import Task, check_budget, check_clusters, check_count, check_expected_rows
from kveil.models.paying import open_ledger, public_generator, receipt_of
from kveil.partition.projection import AXIS_BITS
from kveil.release.candidate_set import CandidateSet
from kveil.source import read
from kveil.space.bounds import BoundsLike, check_domain
from kveil.space.euclidean import clip
from kveil.tuning import Candidates as Tuning


def private_candidates(
    data: Any,
    epsilon: float,
    *,
    ledger: Ledger | str | os.PathLike[str],
    n_clusters: int = 8,
    delta: float = 0.0,
    bounds: BoundsLike | None = None,
    center: float | ArrayLike | None = None,
    radius: float | None = None,
    expected_rows: float | None = None,
    tuning: Tuning | None = None,
    random_state: Any = None,
) -> CandidateSet:
    """Places that many rows are near to: some k of them cost little more than the best k centres, if clusters are large enough.

    The paper calls C an (alpha, beta)-approximate candidate set if some k points of it cost at most alpha OPT + beta;
    docs/methods.md has what was measured. With more than 5 columns rows are projected first, to half the logarithm of their
    number, and the points are places of that projection.

    Parameters
    ----------
    data : table, path or Source
        Rows, in any form that `kveil.read` takes.
    epsilon : float
        The whole cost of the search.
    ledger : Ledger or path
        A Ledger, or the path of one, that this search is charged to. Its relation says who neighbours are.
    n_clusters : int, default 8
        The k that shall be chosen: at least 4 k points are kept where there are so many.
    delta : float, default 0.0
        With delta > 0 Gaussian noise may be used.
    bounds, center, radius, expected_rows, random_state : optional
        As in PrivateKMeans.
    tuning : object of kveil.tuning, optional
        kveil.tuning.Candidates(...): repetitions, levels, dimension, kappa, most; nonzeros, for sparse rows.

    Notes
    -----
    - Private: the rows and their number.  Public: all parameters, the columns, the projection and the shifts of the cubes.
    - Neighbours: those of the ledger; one record, or one person (`kveil.read(X, person=...)`).
    - Sensitivity: `kveil.questions.cubes.CubeCounts`: a row adds 1 to one child of the active cubes of a level.
    - Cost: epsilon (and delta), reserved before a row is read. Whoever chooses among the points by rows pays for that.
    - Not covered: running time; whatever is not released here.

    Examples
    --------
    >>> from kveil import Ledger, private_candidates
    >>> X = np.repeat([[-4.0, 0.0], [4.0, 1.0]], 5000, axis=0)
    >>> ledger = Ledger.memory("doc", 1.0, relation="add-remove")
    >>> found = private_candidates(X, 1.0, ledger=ledger, n_clusters=2, bounds=(-5, 5), random_state=0)
    >>> found.points.shape[1], found.axes is None, ledger.remaining().epsilon
    (2, True, 0.0)
    """
    source, account = read(data), open_ledger(ledger)
    k = check_clusters(n_clusters, source.n_columns)
    budget, leak = check_budget(epsilon, delta)
    if budget is None:
        raise InvalidValue("epsilon=inf adds no noise, so there is nothing to charge. Give epsilon a number.")
    if tuning is not None and type(tuning) is not Tuning:
        raise InvalidType("tuning must be kveil.tuning.Candidates(...) or None.")
    constants, rows = tuning or Tuning(), check_expected_rows(expected_rows)
    facts = Facts(source.n_columns, float(budget), rows, source.max_rows)
    bits = Candidates.bits(facts) if constants.bits is None else check_count("bits", constants.bits)
    domain = check_domain(bounds, center, radius, source.n_columns, bits, source.names)
    task = Task(
        k, budget, leak, domain, None, account.relation, source.unit, constants, expected_rows=rows, max_rows=source.max_rows,
        is_sparse=source.is_sparse, is_zcdp=bool(leak) and account.rule == "zcdp",
    )  # fmt: skip
    method = CandidatePoints(task)
    source.check(domain)
    rng, plan = public_generator(random_state), method.budget.plan()
    assert plan is not None
    with account.reserve(plan) as ticket, np.errstate(all="ignore"):  # all of it is spent
        found = method.run(method.budget.open(source, domain, ticket), rng)  # rows stay behind the desk
    promise = guarantee(plan, trust="curator", receipts=ticket.receipts, reasons=ticket.reasons)
    return _kept(found, task, source.names, promise, receipt_of(ticket, account))


def _kept(
    found: Projected, task: Task, names: tuple[str, ...] | None, promise: Guarantee, receipt: dict[str, Any]
) -> CandidateSet:
    """Points in the units of the data. From here on all is public."""
    domain, frame = task.domain, found.frame
    unit = frame.unit(domain)
    length = float(np.max(unit))  # one for all columns: nothing is scaled by bounds
    terms = (names, promise, receipt, task.public())
    if frame.axes is None:
        places = clip(domain, domain.center + found.points * unit)
        return CandidateSet(places, None, domain.center, frame.radius * length, *terms)
    axes = frame.axes.astype(np.float64) / 2**AXIS_BITS
    return CandidateSet(found.points.astype(np.float64) * length, axes, domain.center, frame.reach * length, *terms)
