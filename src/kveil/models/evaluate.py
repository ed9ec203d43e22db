"""How well a release fits rows, measured privately and charged for: cost, silhouette and sizes, with intervals that cover."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from kveil.desk.fixed import Fixed
from kveil.desk.law import Law
from kveil.errors import GridOverflow, InvalidType, InvalidValue
from kveil.kernel.ledger import UNIT, Ledger
from kveil.kernel.loss import floor_delta, floor_epsilon, guarantee, zcdp_rho
from kveil.methods.base import WIDEST
from kveil.models.evaluation import Clip, Evaluation, Noise, averaged, chosen_clip, from_zero, outer_edges, sized
from kveil.models.paying import open_ledger, receipt_of
from kveil.questions.base import Part
from kveil.questions.closeness import SILHOUETTE, TOP, Closeness, NearestBins, Shape
from kveil.questions.frame import Frame
from kveil.release import Release
from kveil.release.answers import scaling_of
from kveil.source import Source, read
from kveil.space.euclidean import Centers, step_length

SHARES = {"distances": Fraction(1, 5), "cost": Fraction(2, 5), "silhouette": Fraction(1, 5), "sizes": Fraction(1, 5)}
OF_ONE = {"distances": Fraction(1, 5), "cost": Fraction(3, 5), "sizes": Fraction(1, 5)}  # one centre has no silhouette
MOST_ROWS = 2**42  # sums of TOP stay below 2**63


def evaluate(
    release: Release, data: Any, epsilon: float, *, ledger: Ledger | str | os.PathLike[str], delta: float = 0.0
) -> Evaluation:
    """Cost, silhouette and sizes of a release on rows, these or others with the same columns, as noisy numbers with intervals.

    A model's `score` is exact and therefore not private. This one is, and is charged: all of `epsilon` is reserved first.

    Parameters
    ----------
    release : Release
        Centres in space, of PrivateKMeans, PrivateKMedian, StreamKMeans, FederatedKMeans or LocalKMeans. For k-median
        costs are sums of distances, otherwise of squared distances.
    data : table, path or Source
        Rows, or `kveil.read(...)`. Frames and files are read by the names of the release's features. With categories, or
        missing cells were not left at "middle", read them as for fit.
    epsilon : float
        The whole cost of this evaluation.
    ledger : Ledger or path
        The budget of the people in `data`; its relation decides who is hidden.
    delta : float, default 0.0
        Used only where the ledger adds zCDP; elsewhere Laplace noise is narrower, and the promise is pure.

    Notes
    -----
    Rows are clipped to the domain of the release. 20 % of epsilon buys a histogram of distances to the nearest centre, which
    chooses a clip; 40 % the cost of clipped distances; 20 % silhouettes; 20 % sizes (one centre: 60 % for the cost).

    - Private: the rows and their number.  Public: the release, epsilon, delta, and that an evaluation took place.
    - Neighbours: those of the ledger; a person has at most m rows.
    - Sensitivity: `kveil.questions.closeness`: a row is in one bin, adds at most TOP to one sum and to another, and 1 to one
      size. The centres are public, so no row changes what another adds. The clip follows from released counts.
    - Cost: epsilon, by four charges that do not depend on the rows; on a ledger that adds zCDP what these add up to there.
      Whoever sees the release and this has the sum of both, which a common ledger keeps.
    - Not covered: running time.

    Examples
    --------
    >>> import numpy as np
    >>> from kveil import Ledger, PrivateKMeans, evaluate
    >>> X = np.repeat([[-4.0, 0.0], [4.0, 1.0]], 5000, axis=0)
    >>> people = Ledger.memory("people", 2.0, relation="add-remove")
    >>> model = PrivateKMeans(2, epsilon=1.0, bounds=(-5, 5), ledger=people, random_state=0).fit(X)
    >>> found = evaluate(model.release_, X, 0.5, ledger=people)
    >>> found.silhouette.high > 0.9, len(found.sizes), found.guarantee.epsilon
    (True, 2, 0.5)
    """
    if not isinstance(release, Release):
        raise InvalidType("evaluate takes a release: model.release_, or kveil.load(folder).")
    domain, scaling = release.domain(), scaling_of(release.parameters)  # refuses points of a universe
    source, account = rows_for(release, data), account_of(ledger)
    source.check(domain)
    if source.max_rows > MOST_ROWS:
        raise GridOverflow(f"with max_rows={source.max_rows} a sum of costs can overflow: use max_rows of at most 2**42.")
    shares = OF_ONE if len(release.centers) == 1 else SHARES
    law, budgets = budgets_of(epsilon, delta, account, source, shares, "cost", SILHOUETTE)
    kind = Closeness if len(release.centers) == 1 else Shape
    reach = Frame.of(domain, scaling).radius
    edges = np.maximum(np.floor(outer_edges(2.0 * reach) ** 2), 1).astype(np.int64)
    bins = NearestBins(Centers.of(release.centers, domain, scaling), edges)
    parts = {part.label: part for part in (*bins.parts, *kind.parts)}
    charges = law.charges(tuple(parts.values()), 1, tuple(budgets[label] for label in parts))
    plan = Fixed(law, charges, delta=floor_delta(delta)).plan()
    assert plan is not None
    noise = {label: Noise(law.kind == "zcdp", scale_of(law, part, budgets[label])) for label, part in parts.items()}
    is_squared = not _is_median(release)
    with account.reserve(plan) as ticket, np.errstate(all="ignore"):
        desk = Fixed(law, charges).open(source, domain, ticket)
        (counts,) = desk.draw(bins, budgets["distances"])  # public, charged
        clip = chosen_clip(counts, noise["distances"], noise["cost"], TOP, is_squared=is_squared)
        question = kind(bins.centers, int(edges[clip.place]), is_squared)
        answers = desk.draw(question, *(budgets[part.label] for part in question.parts))  # public, charged
    found = {part.label: answer for part, answer in zip(question.parts, answers, strict=True)}
    step = step_length(domain, scaling)
    return _evaluation(
        found, noise, clip, step * math.sqrt(question.clip), step * 2.0 * reach, is_squared=is_squared,
        guarantee=guarantee(plan, trust="curator", receipts=ticket.receipts, reasons=ticket.reasons),
        receipt=receipt_of(ticket, account),
    )  # fmt: skip


def _evaluation(
    found: dict[str, Any], noise: dict[str, Noise], clip: Clip, length: float, diameter: float, *, is_squared: bool, **paid: Any
) -> Evaluation:
    """From here on all is public. `length` is the clip, in the units of the release."""
    power = 2 if is_squared else 1
    whole, half = length**power, noise["cost"].half_width(0.05)
    cost = from_zero(int(found["cost"][0]) / TOP * whole, half / TOP * whole)
    rows, sizes, together = sized(found["sizes"], noise["sizes"])
    shape = averaged(int(found["silhouette"][0]), noise["silhouette"], TOP, rows) if "silhouette" in found else None
    notes = () if clip.has_signal else ("no distance stands out from the noise: nothing was clipped. Use a larger epsilon.",)
    most = cost.high + clip.beyond * max(0.0, diameter**power - whole)
    return Evaluation(cost, length, clip.beyond, most, shape, rows, sizes, together, notes=notes, **paid)


def budgets_of(
    epsilon: float, delta: float, account: Ledger, source: Source, shares: Mapping[str, Fraction], rest: str, widest: Part
) -> tuple[Law, dict[str, Fraction]]:
    """The law of the noise, and what each draw is given: shares rounded down to units of a ledger, the rest of it for `rest`.

    widest: what needs the most noise. Budgets that would drown it are refused.
    """
    total, small = floor_epsilon(epsilon), floor_delta(delta)
    is_gaussian = bool(small) and account.rule == "zcdp"
    if is_gaussian:
        total = zcdp_rho(total, small)
    law = Law("zcdp" if is_gaussian else "pure", account.relation, source.unit)
    budgets = {label: Fraction(math.floor(total * share * UNIT), UNIT) for label, share in shares.items()}
    budgets[rest] += total - sum(budgets.values())
    if total * UNIT < 2**10 or law.deviation(widest, min(budgets.values())) > WIDEST:
        raise InvalidValue("this budget is too small: its noise would be wider than any result. Raise epsilon.")
    return law, budgets


def scale_of(law: Law, part: Part, budget: Fraction) -> float:
    """Of Laplace noise its scale, of Gaussian noise its deviation."""
    return law.deviation(part, budget) / (1.0 if law.kind == "zcdp" else math.sqrt(2))


def _is_median(release: Release) -> bool:
    return release.kind == "PrivateKMedian" or release.parameters.get("objective") == "k-median"


def account_of(ledger: Any) -> Ledger:
    if ledger is None:
        raise InvalidType("ledger must be a kveil Ledger or the path of one: this costs budget.")
    return open_ledger(ledger)


def rows_for(release: Release, data: Any) -> Source:
    """Rows with the release's columns, in its order. Arrays have no names, and are taken as they are."""
    wanted = release.features
    if release.parameters.get("categories") and not isinstance(data, Source):
        raise InvalidValue("this release has categories. Read the rows as for fit: kveil.read(data, categories=..., ...).")
    source = read(data) if wanted is None or not has_names(data) else read(data, columns=list(wanted))
    if wanted is not None and source.names is not None and tuple(source.names) != tuple(wanted):
        raise InvalidValue(
            f"the columns of this source are not those of the release. Read it with columns={list(wanted)!r}, in this order."
        )
    return source


def has_names(data: Any) -> bool:
    if isinstance(data, str | os.PathLike):
        return Path(data).suffix.lower() not in (".npy", ".npz")
    return not isinstance(data, Source) and (hasattr(data, "columns") or hasattr(data, "column_names"))
