"""A release as a model of scikit-learn, made of its own classes alone, so that whatever takes those takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kveil.arrays import Floats
from kveil.errors import InvalidValue
from kveil.kernel.grid import Box
from kveil.release.answers import scaling_of
from kveil.space.unit_ball import UnitBall

if TYPE_CHECKING:
    from kveil.release.release import Release


def to_sklearn(release: Release, clip: bool) -> Any:
    """A fitted KMeans, or with `clip` a Pipeline that ends in one."""
    domain = release.domain()
    is_plain = scaling_of(release.parameters) is None and not isinstance(domain, UnitBall)
    if not clip:
        if not is_plain:
            raise InvalidValue(
                "this release scales columns, or rows, before it measures distances, and KMeans alone does not. Pass clip=True: "
                "to_sklearn(clip=True) is a Pipeline that does."
            )
        return _kmeans(release.centers, release.features)
    from sklearn.pipeline import Pipeline

    if isinstance(domain, UnitBall):
        from sklearn.preprocessing import Normalizer

        lengths = np.linalg.norm(release.centers, axis=1, keepdims=True)
        unit = release.centers / np.where(lengths > 0, lengths, 1.0)
        return Pipeline([("direction", Normalizer()), ("centers", _kmeans(unit, None))])
    if not isinstance(domain, Box):
        raise InvalidValue("no transformer of scikit-learn clips rows to a ball. Use to_sklearn() for rows inside it.")
    if release.parameters.get("missing") == "mean":
        raise InvalidValue("missing cells were filled with released means, which this pipeline does not do. Use release.predict.")
    low, high = np.asarray(domain.lower), np.asarray(domain.upper)
    half = (high - low) / 2
    places = (release.centers - low) / half - 1  # between -1 and 1
    weights = np.ones(len(half)) if not is_plain else half / half.max()
    steps = [
        ("clip", _clipping(low, high, release.features)),
        ("widths", _widths(weights)),
        ("centers", _kmeans(places * weights, None)),
    ]
    return Pipeline(steps if is_plain else [steps[0], steps[2]])


def _kmeans(centers: Floats, features: tuple[str, ...] | None) -> Any:
    """What KMeans becomes when it is fitted to its own centres, without what would be about rows."""
    import warnings

    from sklearn.cluster import KMeans

    held = np.array(centers)
    model = KMeans(n_clusters=len(held), init=held, n_init=1, max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # centres may be equal
        model.fit(held)
    model.cluster_centers_ = held
    del model.labels_, model.inertia_
    _name(model, features)
    return model


def _clipping(low: Floats, high: Floats, features: tuple[str, ...] | None) -> Any:
    """To the bounds, and from there to [-1, 1]."""
    from sklearn.preprocessing import MinMaxScaler

    scaler = MinMaxScaler(feature_range=(-1, 1), clip=True).fit(np.stack([low, high]))
    _name(scaler, features)
    return scaler


def _widths(weights: Floats) -> Any:
    """Columns as wide again as they are beside each other."""
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler(with_mean=False).fit(np.stack([-1 / weights, 1 / weights]))
    return scaler


def _name(model: Any, features: tuple[str, ...] | None) -> None:
    if features is not None:
        model.feature_names_in_ = np.array(features, dtype=object)
