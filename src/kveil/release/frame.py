"""The centres of a release as a data frame of the reader's own library."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from kveil.errors import InvalidValue, MissingExtra
from kveil.release.picture import place_names
from kveil.release.table import column_names

if TYPE_CHECKING:
    from kveil.release.release import Release

BACKENDS = ("pandas", "polars", "pyarrow")


def to_frame(release: Release, backend: str | None) -> Any:
    """One row per centre, as a frame of `backend`: by default of pandas, or of pyarrow if that is not installed."""
    if backend is None:
        backend = "pandas" if find_spec("pandas") is not None else "pyarrow"
    if backend not in BACKENDS:
        raise InvalidValue(f"backend must be one of {', '.join(map(repr, BACKENDS))}, or None, got {backend!r}.")
    import pyarrow as pa

    table = pa.table(_columns(release))
    if backend == "pyarrow":
        return table
    _check_installed(backend)
    return table.to_pandas() if backend == "pandas" else import_module("polars").from_arrow(table)


def _columns(release: Release) -> dict[str, Any]:
    names = list(column_names(release))
    held = [release.centers] if release.n_features is None else list(release.centers.T.copy())
    columns = dict(zip(names, [*held, *([] if release.weights is None else [release.weights])], strict=True))
    places = () if release.places is None else zip(place_names(release), release.places.T, strict=True)
    for name, values in (("name", release.names), *places, ("error", release.errors)):
        if values is not None:
            columns[_free(name, columns)] = list(values)
    return columns


def _free(name: str, taken: dict[str, Any]) -> str:
    """The name, or one like it that no column of the data has."""
    name = name if name not in taken else f"kveil_{name}"
    while name in taken:
        name += "_"
    return name


def _check_installed(backend: str) -> None:
    if find_spec(backend) is None:
        raise MissingExtra(f"a frame of {backend} needs that library. Install it: pip install {backend}")
