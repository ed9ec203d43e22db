"""Private candidates and the promise they carry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kveil.arrays import Floats
from kveil.kernel.loss import Guarantee
from kveil.release.answers import domain_of, rows_of


@dataclass(frozen=True, eq=False, repr=False)
class CandidateSet:
    """Places that many rows are near to. All of it may be shared, as far as its guarantee goes.

    Attributes
    ----------
    points : array-like
        (c, p) in the units of the data. Without `axes` they are places of the domain; with `axes` they are places of the
        projection, as far from the image of `center` as rows are, on average, from `center`.
    axes : array or None
        (d, p) public directions that rows were projected to, or None where p = d.
    center : array-like
        (d,) of the domain.
    radius : float
        How far a projected row may be out: longer ones are clipped.
    features : tuple[str, ...] or None
        Names of the columns, if they have any.
    guarantee, receipt, parameters : Guarantee, Receipt or dict, dict
        As those of a `Release`.

    Notes
    -----
    `project` answers whoever holds rows. Its answer is a function of those rows and not private.
    """

    points: Floats
    axes: Floats | None
    center: Floats
    radius: float
    features: tuple[str, ...] | None
    guarantee: Guarantee
    receipt: Mapping[str, Any]
    parameters: Mapping[str, Any]

    def project(self, X: Any) -> Floats:
        """Rows, clipped to the domain, where `points` are: (n, p). Not private: keep it where the rows are."""
        rows = rows_of(X, self.features, len(self.center))
        domain = domain_of(self.parameters, len(self.center))
        codes: Any = domain.encode_sparse(rows) if hasattr(rows, "indptr") else domain.encode(rows)
        if self.axes is None:
            return np.asarray(self.center + (codes.toarray() if hasattr(codes, "indptr") else codes) * domain.step)
        image = codes @ (domain.step[:, None] * self.axes)
        lengths = np.maximum(np.linalg.norm(image, axis=1, keepdims=True), np.finfo(np.float64).tiny)
        return np.asarray(image * np.minimum(1.0, self.radius / lengths))

    def __repr__(self) -> str:
        n_points, p = self.points.shape
        where = f"{p} features" if self.axes is None else f"{p} axes of {len(self.axes)} features"
        promise = f"epsilon={self.guarantee.epsilon:.6g}, delta={self.guarantee.delta:.3g}"
        return f"CandidateSet({n_points} points, {where}, {promise}{'' if self.guarantee.valid else ', NOT VALID'})"
