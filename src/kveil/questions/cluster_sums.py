"""Counts and coordinate sums of the rows nearest to each centre."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kveil.arrays import Integers
from kveil.questions import _kernels
from kveil.questions.base import Part, Question
from kveil.space.euclidean import Centers, Domain, Scaling, assign


@dataclass(frozen=True, eq=False)
class ClusterSums(Question):
    """Counts (k,) and sums (k, d) of the rows nearest to each centre, whatever the other rows are: a row adds 1 to one count, and
    to the sum of the same cluster its code, which is as long as the domain allows."""

    domain: Domain
    centers: Centers
    by_coordinates: bool = False

    @classmethod
    def of(cls, centers: Any, domain: Domain, scaling: Scaling, *, by_coordinates: bool = False) -> ClusterSums:
        return cls(domain, Centers.of(centers, domain, scaling), by_coordinates)

    @property
    def parts(self) -> tuple[Part, Part]:
        return sums_in(self.domain, by_coordinates=self.by_coordinates)

    def raw(self, rows: Any) -> tuple[Integers, Integers]:
        owner = assign(rows, self.centers)
        raw_counts = np.zeros(len(self.centers.codes), dtype=np.int64)
        raw_sums = np.zeros(self.centers.codes.shape, dtype=np.int64)
        if hasattr(rows, "indices"):
            _kernels.add_sparse_rows(rows.data, rows.indices, rows.indptr, owner, raw_counts, raw_sums)
        else:
            _kernels.add_rows(rows, owner, raw_counts, raw_sums)
        return raw_counts, raw_sums


def sums_in(domain: Domain, *, by_coordinates: bool = False) -> tuple[Part, Part]:
    """What one row can do to counts and sums of clusters in a domain, whatever the centres: known before a plan is made."""
    counts = Part("counts", "counts", reason="a row is in one cluster")
    if by_coordinates:
        return counts, Part(
            "sums", "coordinates", domain.l1_sensitivity, reason="a row adds one code, of bounded L1 norm, to one cluster"
        )
    return counts, Part("sums", "vectors", domain.l2_sensitivity, reason="a row adds one code, of bounded norm, to one cluster")
