"""Centres as GeoJSON (RFC 7946), for maps: points in degrees, longitude first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kveil.arrays import Floats
from kveil.errors import InvalidValue
from kveil.release.picture import is_geographic
from kveil.release.words import sentence

if TYPE_CHECKING:
    from kveil.release.release import Release

PLACES = 7  # decimals: a centimetre


def to_geojson(release: Release, longitude: str | int | None = None, latitude: str | int | None = None) -> dict[str, Any]:
    """`Release.to_geojson`. The promise stands beside the points, as a member that readers of maps ignore."""
    spots, taken = _spots(release, longitude, latitude)
    if not (np.abs(spots) <= (180.0, 90.0)).all():
        raise InvalidValue(
            "GeoJSON holds degrees: longitudes of -180 to 180 and latitudes of -90 to 90. These centres lie elsewhere. Name the "
            "columns with longitude=... and latitude=..., or turn coordinates of another system into degrees first."
        )
    points = [
        {
            "type": "Feature",
            "id": place,
            "geometry": {"type": "Point", "coordinates": [round(float(value), PLACES) for value in spot]},
            "properties": _properties(release, place, taken),
        }
        for place, spot in enumerate(spots)
    ]
    return {
        "type": "FeatureCollection",
        "features": points,
        "kveil": {"guarantee": sentence(release.guarantee), "kind": release.kind},
    }


def _spots(release: Release, longitude: str | int | None, latitude: str | int | None) -> tuple[Floats, list[int]]:
    """(k, 2) degrees, and which columns they are."""
    if release.n_features is None:
        if release.places is None or release.places.shape[1] != 2 or not is_geographic(release):
            raise InvalidValue(
                "the universe of this release has no coordinates in degrees. Make it with xy=... and degrees=True, and fit on it."
            )
        return np.asarray(release.places), []
    names = release.features or tuple(f"x{place}" for place in range(release.n_features))
    chosen = [_column(names, longitude, ("lon", "lng"), 0), _column(names, latitude, ("lat",), 1)]
    return np.asarray(release.centers[:, chosen]), chosen


def _column(names: tuple[str, ...], given: str | int | None, starts: tuple[str, ...], usual: int) -> int:
    if given is not None:
        place = names.index(given) if given in names else given
        if not isinstance(place, int) or not 0 <= place < len(names):
            raise InvalidValue(f"there is no column {given!r} in this release. It has {', '.join(names[:20])}.")
        return place
    found = [place for place, name in enumerate(names) if name.lower().startswith(starts)]
    if len(found) == 1:
        return found[0]
    if len(names) == 2 and not found:
        return usual
    raise InvalidValue("which columns are degrees? Name them: longitude=... and latitude=....")


def _properties(release: Release, place: int, taken: list[int]) -> dict[str, Any]:
    told: dict[str, Any] = {"centre": place}
    if release.names is not None:
        told["name"] = release.names[place]
    if release.weights is not None:
        told["weight"] = float(release.weights[place])
    if release.n_features is None:
        return told | {"point": int(release.centers[place])}
    names, errors = release.features or tuple(f"x{i}" for i in range(release.n_features)), release.verdict().column_errors
    if errors is not None:
        told["standard_error"] = {names[i]: float(errors[place, i]) for i in range(len(names))}
    return told | {
        names[i]: float(release.centers[place, i]) for i in range(len(names)) if i not in taken and names[i] not in told
    }
