"""What forged reports can do to a result: anyone may send 22 bytes that no point stands behind. Stated on every result.

A report on a key moves the estimate of one cell by (1 - q)/(p - q) at most, if it supports it, and by -q/(p - q) if not, where
p and q are the chances that an honest report supports its own and another cell. Ids decide the hash and are the sender's choice,
so one report may be ground to support several chosen cells at once. A vector moves the sum of a cluster by at most 1/m radii.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil

from kveil.collect import oracles, vector
from kveil.collect.manifest import Manifest
from kveil.collect.queries import Query


def moves(query: Query, epsilon: Fraction) -> tuple[float, float]:
    """People by which one report on a key can move the count of a cell: up, and down."""
    own, other = oracles.chances(query.kind, query.M, epsilon)
    return (1 - other) / (own - other), other / (own - other)


def reports_for_one_deviation(query: Query, epsilon: Fraction, received: int) -> int:
    """Forged reports that lift a cell by one standard deviation of its noise, among so many reports."""
    return max(1, ceil(oracles.deviation(query, received, epsilon) / moves(query, epsilon)[0]))


def forged_words(manifests: Sequence[Manifest], reports: Sequence[int], *, is_admitted: bool) -> tuple[str, ...]:
    """The bounds in words, from what is public: the rounds' queries and how many reports came."""
    told = [_on_keys(manifests, reports), _on_vectors(manifests)]
    admitted = (
        "every report came with a proof that was used once" if is_admitted else "reports were not limited to one per person"
    )
    return (*(text for text in told if text), f"{admitted}.")


def _on_keys(manifests: Sequence[Manifest], reports: Sequence[int]) -> str:
    """The round in which the fewest forged reports do it; reports of a round are split over its queries."""
    asked = [
        (reports_for_one_deviation(query, one.epsilon, round(n * query.weight / sum(q.weight for q in one.queries))), query, one)
        for one, n in zip(manifests, reports, strict=True)
        for query in one.queries
        if query.kind != "vec"
    ]
    if not asked:
        return ""
    n, query, one = min(asked, key=lambda entry: entry[0])
    up, down = moves(query, one.epsilon)
    return (
        f"one forged report moves the count of a cell up by at most {up:.1f} people or down by {down:.2g} (of those who were "
        f"asked the same). {n} of them move a cell by one standard deviation of its noise (round {one.number}). Ground ids "
        "lift several cells at once."
    )


def _on_vectors(manifests: Sequence[Manifest]) -> str:
    books = [
        vector.codebook(query.length(one.header.n_columns), one.epsilon).m
        for one in manifests
        for query in one.queries
        if query.kind == "vec"
    ]
    if not books:
        return ""
    return (
        f"one forged vector moves the sum of a cluster by at most {1 / min(books):.1f} times the radius that vectors are cut to."
    )
