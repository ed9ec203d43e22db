"""Private seeds by name, without any Lloyd step: for figures and tables that compare seedings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from kveil.arrays import Floats
from kveil.desk.bounded_share import BoundedShare
from kveil.desk.noisy_sample import NoisySample
from kveil.desk.seeds import LaplaceSeeds, projected, widest
from kveil.kernel.grid import Ball, Box
from kveil.kernel.ledger import Ledger
from kveil.kernel.loss import Plan, PrivacyUnit, floor_epsilon
from kveil.research.l1_ball import L1Ball
from kveil.source import read
from kveil.space.bounds import check_domain

Mechanism = NoisySample | BoundedShare | LaplaceSeeds
MAX_ROWS = 2**40
BITS = 16


class Seeds(NamedTuple):
    """Centres as they were drawn, and moved into the domain; both are public."""

    drawn: Floats
    inside: Floats


def private_seeds(how: str, rows: Any, n_clusters: int, epsilon: float, domain: Mapping[str, Any]) -> Seeds:
    """k seeds with noise, for at most `epsilon` in all, add-remove; `how` is a key of `SEEDERS`."""
    return released(lambda place: SEEDERS[how](place, n_clusters, floor_epsilon(epsilon)), rows, domain)


def conditional_seeds(rows: Any, n_clusters: int, tilde: float, domain: Mapping[str, Any]) -> Seeds:
    """k seeds with the noise of sigma_1, for a given epsilon_tilde. They cost k epsilon_tilde; see `conditional_laplace`."""
    return released(lambda place: _sigma_2(place, n_clusters, n_clusters * Fraction(tilde)), rows, domain)


def released(mechanism_in: Callable[[Box | Ball], Mechanism], rows: Any, domain: Mapping[str, Any]) -> Seeds:
    source = read(rows)
    place = _place(domain, source.n_columns)
    mechanism = mechanism_in(place)
    plan = Plan(mechanism.charges, "add-remove", PrivacyUnit())
    cost = sum((charge.pure() or Fraction(0) for charge in mechanism.charges), Fraction(0))
    with Ledger.memory("these seeds", cost, relation="add-remove").reserve(plan) as ticket:
        noisy = mechanism.release(source, ticket)
    return Seeds(place.decode(noisy), projected(noisy, place))


def _place(domain: Mapping[str, Any], n_columns: int) -> Box | Ball:
    """bounds, or center and radius, as for PrivateKMeans; or l1_radius, of an L1 ball about 0."""
    if "l1_radius" in domain:
        return L1Ball(np.zeros(n_columns), domain["l1_radius"], BITS)
    return check_domain(domain.get("bounds"), domain.get("center"), domain.get("radius"), n_columns, BITS)


def _is_vector(domain: Box | Ball) -> bool:
    """Whether noise by the L2 norm is narrower. In an L1 ball, where both diameters are the same, Laplace noise is."""
    return not isinstance(domain, L1Ball)


def _bounded_share(domain: Box | Ball, k: int, epsilon: Fraction) -> BoundedShare:
    few, cap = floor_epsilon(epsilon / (10 * k)), max(1, widest(domain, None) // max(4, k))
    of_center, unit = floor_epsilon(9 * epsilon / (10 * k)), PrivacyUnit()
    return BoundedShare(domain, k, None, cap, MAX_ROWS, few, few, of_center, None, unit, is_vector=_is_vector(domain))


def _amplified_forgy(domain: Box | Ball, k: int, epsilon: Fraction) -> NoisySample:
    of_size, of_sample = floor_epsilon(epsilon / 10), floor_epsilon(9 * epsilon / 10)
    return NoisySample(domain, k, of_size, of_sample, None, PrivacyUnit(), is_vector=_is_vector(domain))


def _forgy_dp(domain: Box | Ball, k: int, epsilon: Fraction) -> NoisySample:
    """As the paper has it: every row is released with epsilon/k. M = s means that nothing is amplified, and the charge is then
    epsilon/k for all of them together, because a row is drawn at most once; the paper pays k times that."""
    return NoisySample(domain, k, Fraction(0), floor_epsilon(epsilon / k), k, PrivacyUnit(), is_vector=False)


def _sigma_2(domain: Box | Ball, k: int, epsilon: Fraction) -> LaplaceSeeds:
    return LaplaceSeeds.of(domain, k, None, k * floor_epsilon(epsilon / k), is_vector=False)


SEEDERS: dict[str, Callable[[Box | Ball, int, Fraction], Mechanism]] = {
    "variates": _bounded_share,
    "amplified-forgy": _amplified_forgy,
    "forgy-dp": _forgy_dp,
    "sigma-2": _sigma_2,
}
