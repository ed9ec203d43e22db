"""The calibration of the k-variates++ paper that rests on a promise about the data (sigma_1). For study; never a default."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kveil.desk.seeds import LaplaceSeeds, projected
from kveil.errors import InvalidType, InvalidValue
from kveil.kernel.ledger import Ledger
from kveil.kernel.loss import Conditional, Guarantee, Plan, floor_epsilon, guarantee
from kveil.methods.task import check_clusters
from kveil.source import read
from kveil.space.bounds import check_domain

BITS = 16


class ConditionalSeeds(NamedTuple):
    """Seeds in the units of the data, and what they promise: without any assumption first."""

    centers: NDArray[np.float64]
    guarantee: Guarantee


def conditional_laplace(
    data: Any,
    n_clusters: int,
    *,
    epsilon: float,
    delta_w: float,
    delta_s: float,
    f_k: float,
    i_accept_the_assumption: bool = False,
    bounds: Any = None,
    center: Any = None,
    radius: Any = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
) -> ConditionalSeeds:
    """k-variates++ seeds with noise of scale L1 diameter / epsilon_tilde, where

        epsilon_tilde = ln[(e^epsilon - (1 + delta_w)^(k-1)) / (f_k delta_w (1 + delta_s)^(k-1))].

    delta_w, delta_s, f_k: numbers that you type, from public knowledge of how spread and how monotonic such data is (Definitions
        7 and 8 of the paper) and from its supplement. Nothing is estimated from the rows: a scale that follows the data has no
        epsilon at all (docs/errata.md). Arrays, and numbers of numpy, which are mostly computed from data, are refused.
    i_accept_the_assumption: must be True.
    bounds, center, radius: the public domain, as for PrivateKMeans.
    ledger: charged with what holds unconditionally, k epsilon_tilde, whatever `epsilon` says.

    Private:      the rows.  Public: all parameters.
    Neighbours:   one record replaced. The unconditional figure holds for any two tables.
    Sensitivity:  that of `kveil.desk.seeds.LaplaceSeeds`: the L1 diameter of the domain, k times.
    Cost:         k epsilon_tilde. `guarantee.conditional` says that it is epsilon if this data set and every neighbour of it
                  keep the promise; outside it, nothing but the first figure is true.
    Reference:    Nock, Canyasse, Boreli, Nielsen (2016), Theorems 9 and 12.

    >>> rows = np.linspace(-1, 1, 400)[:, None]
    >>> found = conditional_laplace(
    ...     rows, 2, epsilon=1.0, delta_w=0.01, delta_s=1.0, f_k=1.0, i_accept_the_assumption=True, bounds=(-1, 1)
    ... )
    >>> round(found.guarantee.epsilon, 2), found.guarantee.conditional[0].epsilon
    (8.9, 1.0)
    """
    if i_accept_the_assumption is not True:
        raise InvalidValue(
            "these seeds are epsilon-private only if the data and all its neighbours are as spread and monotonic as you say; "
            "nobody checks that. Pass i_accept_the_assumption=True to accept that, or use PrivateKMeans(init='variates')."
        )
    numbers = {"epsilon": epsilon, "delta_w": delta_w, "delta_s": delta_s, "f_k": f_k}
    promised = {name: _typed(name, value) for name, value in numbers.items()}
    source = read(data)
    k = check_clusters(n_clusters, source.n_columns)
    if source.unit.kind != "record" or source.is_sparse:
        raise InvalidValue("this calibration is for dense rows, each a person's only one. Use PrivateKMeans(init='variates').")
    tilde = epsilon_tilde(k, **promised)
    seeds = LaplaceSeeds.of(check_domain(bounds, center, radius, source.n_columns, BITS), k, None, k * tilde, is_vector=False)
    source.check(seeds.domain)
    plan = Plan(seeds.charges, "replace-one", source.unit)
    with _account(ledger, k * tilde).reserve(plan) as ticket:  # the unconditional cost is spent here
        centers = projected(seeds.release(source, ticket), seeds.domain)  # (k, d)  public, charged
    sure = guarantee(plan, trust="curator", receipts=ticket.receipts, reasons=ticket.reasons)
    return ConditionalSeeds(centers, replace(sure, conditional=(_promise(promised),)))


def epsilon_tilde(n_clusters: int, *, epsilon: float, delta_w: float, delta_s: float, f_k: float) -> Fraction:
    """What one centre may lose, rounded down. Refused where the promise leaves less than the plain share of a centre."""
    try:
        top = math.exp(epsilon) - (1 + delta_w) ** (n_clusters - 1)
        argument = top / (f_k * delta_w * (1 + delta_s) ** (n_clusters - 1))
    except OverflowError:
        argument = 0.0
    if not argument > 1:
        raise InvalidValue(
            "with these constants the calibration does not apply: the argument of its logarithm is at most 1. Data as little "
            "spread as that has no such gain; use PrivateKMeans(init='variates'), which needs no assumption."
        )
    return floor_epsilon(math.log(argument) * (1 - 1e-12))


def _typed(name: str, value: Any) -> float:
    if isinstance(value, bool) or type(value) not in (int, float):
        raise InvalidType(f"{name} must be a plain number that you type, from public knowledge; got {type(value).__name__}.")
    if not (math.isfinite(value) and (value > 0 or (value == 0 and name == "delta_s"))):
        raise InvalidValue(f"{name} must be finite and above 0 (delta_s may be 0).")
    return float(value)


def _promise(promised: dict[str, float]) -> Conditional:
    spread, monotonic, f_k = (promised[name] for name in ("delta_w", "delta_s", "f_k"))
    words = (
        f"data set and every neighbour are delta_w<={spread:g}-spread and delta_s<={monotonic:g}-monotonic; not checked; "
        f"f(k)={f_k:g} supplied by caller"
    )
    return Conditional(promised["epsilon"], 0.0, words)


def _account(ledger: Any, cost: Fraction) -> Ledger:
    if ledger is None:
        return Ledger.memory("these seeds", cost, relation="replace-one")
    if isinstance(ledger, Ledger):
        return ledger
    if not isinstance(ledger, str | os.PathLike):
        raise InvalidType("ledger must be a kveil Ledger, the path of one, or None.")
    return Ledger.open(ledger)
