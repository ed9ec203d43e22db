"""Centres and the promise they carry: everything that leaves the house, and nothing that was computed from rows besides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from kveil.errors import InvalidValue, ReleaseError
from kveil.kernel.grid import Ball, Box
from kveil.kernel.loss import Guarantee
from kveil.release import answers
from kveil.release.answers import rows_of
from kveil.release.card import card
from kveil.release.document import fingerprint, plain
from kveil.release.registry import deployment
from kveil.release.verdict import Verdict, judged
from kveil.solve.synopsis import Synopsis, UniverseSynopsis, is_finite

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kveil.release.curve import CostCurve
    from kveil.signing import SigningKey


def _today() -> str:
    return datetime.now(UTC).date().isoformat()  # not the time, which would tell how long a fit ran


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """What a fit lets out. All of it may be shared, as far as its guarantee goes.

    Attributes
    ----------
    centers : array
        (k, d) float64 in the units of the data; or (k,) int64, points of a public universe such as a graph.
    weights : array or None
        (k,) noisy shares of the clusters, if they were released.
    errors : array or None
        (k,) the standard error of each centre, if known: the root mean squared length of the noise in it, in the units of
        the data, from released values alone.
    names : tuple[str, ...] or None
        k names of the centres, if they are points of a public universe whose points have names.
    places : array or None
        (k, c) public coordinates of the centres, if they are points of a public universe whose points have some.
    features : tuple[str, ...] or None
        Names of the columns, if they have any.
    guarantee : Guarantee
        What is promised, to whom, and how it was added up.
    receipt : Receipt or dict
        {token, ledger, charges, secure}: the reservation that paid for it, on which ledger, by how many draws, and
        whether the noise came from the operating system.
    kind, method, parameters, notes : str, Mapping[str, Any], dict, tuple[str, ...]
        How it was made, from public facts alone.
    synopsis : Synopsis or UniverseSynopsis or None
        What else the fit released (cells, distances, steps), for questions that come later; None if it kept nothing.
    purpose, data_name : str
        What it is for and what the data is called, as the operator states it (`Ledger.stating`); "" if nobody did. For a
        fit without a ledger: dataclasses.replace(release, purpose=..., data_name=...).
    created : str
        The day it was made.

    Notes
    -----
    `predict` and `transform` answer whoever holds rows. Their answers are functions of those rows and not private.

    Examples
    --------
    >>> from kveil.kernel.loss import PrivacyUnit, no_guarantee
    >>> release = Release(
    ...     centers=[[0.0], [1.0]], weights=None, features=("age",), kind="PrivateKMeans",
    ...     guarantee=no_guarantee("add-remove", PrivacyUnit(), "curator"),
    ...     receipt={"token": None, "ledger": None, "charges": 0, "secure": False},
    ...     method={"asked": "auto", "used": "lloyd", "why": ""}, parameters={"bounds": [0, 1]}, notes=(),
    ... )
    >>> release
    Release(PrivateKMeans, 2 centers, 1 features, no guarantee)
    >>> release.predict([[0.2], [5.0]]), release.transform([[0.25], [5.0]])[:, 0]
    (array([0, 1], dtype=int32), array([0.25, 1.  ]))
    """

    centers: NDArray[Any]
    weights: NDArray[np.float64] | None
    features: tuple[str, ...] | None
    guarantee: Guarantee
    receipt: Mapping[str, Any]
    kind: str
    method: Mapping[str, Any]
    parameters: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    errors: NDArray[np.float64] | None = None
    names: tuple[str, ...] | None = None
    places: NDArray[np.float64] | None = None
    synopsis: Synopsis | UniverseSynopsis | None = None
    purpose: str = ""
    data_name: str = ""
    created: str = field(default_factory=_today)

    def __post_init__(self) -> None:
        keep = object.__setattr__  # frozen for everyone else
        keep(self, "centers", _centers(self.centers))
        keep(self, "weights", None if self.weights is None else _numbers("weights", self.weights, len(self.centers)))
        keep(self, "errors", None if self.errors is None else _numbers("errors", self.errors, len(self.centers)))
        keep(self, "features", None if self.features is None else _names(self.features, self.n_features))
        keep(self, "names", None if self.names is None else _called(self.names, self.centers))
        keep(self, "places", None if self.places is None else _places(self.places, self.centers))
        keep(self, "receipt", _fields("receipt", self.receipt, RECEIPT))
        keep(self, "method", _fields("method", self.method, METHOD))
        keep(self, "parameters", plain(self.parameters))
        keep(self, "notes", tuple(self.notes))
        _check_synopsis(self.synopsis, self.n_features)
        if not isinstance(self.guarantee, Guarantee):
            raise ReleaseError("a release needs its guarantee: centres without one promise nothing. Pass a Guarantee.")
        if not isinstance(self.kind, str) or not all(isinstance(note, str) for note in self.notes):
            raise ReleaseError("the kind and the notes of a release must be text, because they are read by people.")
        if not all(isinstance(text, str) and (text == "" or text.isprintable()) for text in (self.purpose, self.data_name)):
            raise ReleaseError(
                "the purpose and the name of the data must be one line of text each, because they are read by people."
            )
        if not _is_day(self.created):
            raise ReleaseError("a release was created on a day, written YYYY-MM-DD.")

    @property
    def n_features(self) -> int | None:
        """How many features a centre has; None if centres are points of a universe."""
        return self.centers.shape[1] if self.centers.ndim == 2 else None

    def save(
        self, path: str | PathLike[str], *, format: Literal["parquet", "csv"] = "parquet", overwrite: bool = False,
        sign: SigningKey | str | PathLike[str] | None = None,
    ) -> Path:  # fmt: skip
        """Write the release as a folder, whole or not at all, and return its path.

        Parameters
        ----------
        path : str or path
            The folder.
        format : {"parquet", "csv"}, default "parquet"
            Of the file that holds the centres.
        overwrite : bool, default False
            Replace a release that is already there; anything else in the way is never touched.
        sign : SigningKey, str or path, optional
            A key, or where it lies: signature.json then says who vouches for all files of the folder.
        """
        from kveil.release import folder  # it needs Release itself

        return folder.save(self, path, format=format, overwrite=overwrite, sign=sign)

    def predict(self, X: Any) -> NDArray[np.int32]:
        """The nearest centre of every row, exactly as the fitted model answers. Not private: keep it where the rows are.

        Parameters
        ----------
        X : table, path or Source
            Rows with the columns of the fit.

        Returns
        -------
        array (n,) of int32
            The number of the nearest centre, per row.
        """
        domain = self.domain()
        return answers.labels(self._rows(X), self.centers, domain, answers.scaling_of(self.parameters))

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Distances of every row, clipped to the domain, to every centre, exactly as the fitted model answers. Not private.

        In the units of the data; with scaling="bounds" in half-widths of the bounds.

        Parameters
        ----------
        X : table, path or Source
            Rows with the columns of the fit.

        Returns
        -------
        array (n, k)
            Distances, not squared.
        """
        domain = self.domain()
        return answers.distances(self._rows(X), self.centers, domain, answers.scaling_of(self.parameters))

    def domain(self) -> Box | Ball:
        """The public domain that rows were clipped to."""
        if self.n_features is None:
            raise InvalidValue(
                "the centres of this release are points of a public universe, given by index, so rows of numbers have no "
                "distance to them. Ask the universe: universe.nearest(release.centers)."
            )
        return answers.domain_of(self.parameters, self.n_features)

    def verdict(self) -> Verdict:
        """Is it any good? "good", "rough" or "noise", with reasons, and intervals for every number of every centre.

        Free: a function of what was released, which needs no rows and no budget. It tells what noise did to the centres, and not
        whether there are clusters.
        """
        return judged(self)

    def recluster(self, k: int, *, random_state: Any = None) -> Release:
        """The same release with `k` centres, for no charge: its synopsis is clustered again. No rows are needed.

        It has the same guarantee and receipt, because it is a function of what was released already. With at most 3 columns the
        cells of the grid are clustered: such centres are nearly as good as those of a fit with this k. With more columns, fewer
        centres than the fit has are merged from these; more are found from the leaves of the tree, which is rougher. To have
        many k afterwards, fit with the largest one of interest. Refused where there is no synopsis, and for more than one
        centre for every two cells.

        Parameters
        ----------
        k : int
            How many centres.
        random_state : int, optional
            Steers the clustering of released points; None is a fixed seed, so that everybody gets the same centres.

        Examples
        --------
        >>> import numpy as np
        >>> from kveil import PrivateKMeans
        >>> X = np.repeat([[-4.0, 0.0], [4.0, 1.0], [0.0, 4.0]], 5000, axis=0)
        >>> release = PrivateKMeans(n_clusters=3, epsilon=1.0, bounds=(-5, 5), random_state=0).fit(X).release_
        >>> two = release.recluster(2)
        >>> len(two.centers), two.guarantee.epsilon, two.notes[-1]
        (2, 1.0, 'clustered again from its synopsis: no new charge')
        """
        from kveil.release.recluster import recluster  # it needs Release itself

        return recluster(self, k, random_state)

    def cost_curve(self, k_range: tuple[int, int] | None = None, *, random_state: Any = None) -> CostCurve:
        """What 1, 2, 3, ... clusters would cost, and how many the release suggests. No charge, and no rows are needed.

        `str` of it is a table, `.suggested` the number of clusters, `.is_clear` whether two ways to choose agree, `.why` what
        they say; `.save("curve.svg")` draws it. Costs are estimates from cells: good for a shape, not as a result.

        Parameters
        ----------
        k_range : (int, int), optional
            (low, high); by default that of a fit with n_clusters="auto", else (1, 30).
        random_state : int, optional
            As in `recluster`.
        """
        from kveil.release.curve import cost_curve

        return cost_curve(self, k_range, random_state)

    def sample(self, n: int, *, random_state: Any = None) -> NDArray[np.float64]:
        """`n` made-up rows (n, d), inside the domain, that lie about where the rows of the fit did. No charge, no rows needed.

        A cell or leaf is drawn by its noisy count, then a place in it: evenly in a cell (at most 3 columns), from a round blob
        above that. To try out code, plots and parameters on. They are NOT data: above 3 columns every cluster is a round blob,
        and a column that is mostly 0, or has few values, looks nothing like it. Do not publish them as if they were rows.

        Parameters
        ----------
        n : int
            How many rows.
        random_state : int, optional
            As in `recluster`; give different ones for different rows.
        """
        from kveil.release.synthetic import sample

        return sample(self, n, random_state)

    def density(self, bins: int = 32) -> NDArray[np.float64]:
        """Noisy shares of rows in `bins` equal parts of the domain: (bins,) of one feature, (bins, bins) of two, the first
        feature down the rows. They add up to 1. No charge, and no rows are needed.

        Every cell of the release is spread evenly over the parts that it touches; cells that do not stand out of the noise count
        as empty.
        """
        from kveil.release.synthetic import density

        return density(self, bins)

    def plot(self, path: str | PathLike[str] | None = None, **options: Any) -> Figure:
        """A picture of the release, from the release alone, as a matplotlib Figure; also saved, if a path (.svg, .png) is given.

        One or two columns: the centres at their place, discs by weight, ellipses that hold the noise in each, over a heat map of
        the noisy counts. More columns: every number, coloured by how far it lies from the weighted mean of all centres. Points
        of a universe with coordinates: a map. It carries the promise and may leave the house as far as the release may.

        Needs matplotlib: pip install "kveil[report]".

        Parameters
        ----------
        path : str or path, optional
            Where to save it, too: .svg or .png.

        Other Parameters
        ----------------
        theme : {"light", "dark", "auto"}, default "light"
            "auto": an SVG that follows the page, or the reader's system.
        level : float, default 0.95
            The probability that an ellipse holds the noise in a centre.
        columns : list of str or int, optional
            One or two columns, by name or number, to draw a map of them where there are more.
        universe : Graph, optional
            The graph of the fit, to draw its edges, too.
        """
        from kveil.release.plot import plot

        return plot(self, path, **options)

    def to_geojson(self, longitude: str | int | None = None, latitude: str | int | None = None) -> dict[str, Any]:
        """The centres as a GeoJSON FeatureCollection of points, with weights and errors as properties; `json.dumps` writes it.

        Parameters
        ----------
        longitude, latitude : str or int, optional
            The columns that hold degrees. By default columns called lon..., lng... and lat..., or the two there are, the
            longitude first; or the coordinates of the universe, if it was made with degrees=True.
        """
        from kveil.release.geojson import to_geojson

        return to_geojson(self, longitude, latitude)

    def report(self, path: str | PathLike[str] | None = None, *, ledger: Any = None, universe: Any = None) -> str:
        """One HTML page that needs no other file and no network: promise, verdict, centres, pictures, budget and card.

        For whoever signs the release off. Drawn from the release alone.

        Parameters
        ----------
        path : str or path, optional
            A file to write it to, too.
        ledger : Ledger, str or path, optional
            A ledger, or where it lies, whose state is shown with it.
        universe : Graph, optional
            The public graph of the fit: its edges are drawn behind the centres.
        """
        from kveil.release.report import report

        return report(self, path, ledger=ledger, universe=universe)

    def card(self) -> str:
        """The release as a page of Markdown: what it means for a person, what not to do with it, numbers, how it was made."""
        return card(self)

    def deployment(self) -> dict[str, Any]:
        """The same as a record for the registry of differential privacy deployments; what nobody stated is blank."""
        return deployment(self)

    def fingerprint(self) -> str:
        """The SHA-256 of what was released: the same in every file format, and on any day. A ledger notes it after a fit.

        Not in it: `purpose`, `data_name` and `created`, which are statements.
        """
        return fingerprint(self)

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] | None = None) -> Any:
        """The centres as a data frame, one row per centre: the columns of the data, then `weight` and `error`, if they were
        released. Centres that are points of a universe have a column `index`, and `name` and coordinates if points have them.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            Default: a pandas frame if pandas is installed, else a pyarrow table.

        Examples
        --------
        >>> from kveil import PrivateKMeans
        >>> model = PrivateKMeans(n_clusters=2, bounds=(0, 9), random_state=0).fit([[1.0], [8.0]] * 500)
        >>> model.release_.to_frame("pyarrow").column_names
        ['x0', 'weight', 'error']
        """
        from kveil.release.frame import to_frame

        return to_frame(self, backend)

    def to_sklearn(self, *, clip: bool = False) -> Any:
        """The centres as a fitted `sklearn.cluster.KMeans`, for whatever takes one, such as ONNX and MLflow.

        Its `predict` gives the labels of this release for rows inside the bounds, but where two centres are equally far to the
        precision of the grid. Outside the bounds they may differ: pass clip=True there. It has no `labels_` and no `inertia_`:
        these would be functions of rows. Nothing private is in it.

        Parameters
        ----------
        clip : bool, default False
            Make a `Pipeline` that first clips rows to the bounds and measures as the fit did. It agrees for all finite rows but
            those as near to two centres. It is needed with scaling="bounds" or "private", and with metric="cosine". A ball has
            no such pipeline.
        """
        from kveil.release.as_sklearn import to_sklearn

        return to_sklearn(self, clip)

    def _repr_html_(self) -> str:
        from kveil.release.shown import release_html

        return release_html(self)

    def _rows(self, X: Any) -> Any:
        assert self.n_features is not None
        return rows_of(X, self.features, self.n_features)

    def __repr__(self) -> str:
        shape = "" if self.n_features is None else f", {self.n_features} features"
        promise = f"epsilon={self.guarantee.epsilon:.6g}, delta={self.guarantee.delta:.3g}"
        if self.guarantee.route == "none":
            promise = "no guarantee"
        return (
            f"Release({self.kind}, {len(self.centers)} centers{shape}, {promise}{'' if self.guarantee.valid else ', NOT VALID'})"
        )


def _is_day(given: Any) -> bool:
    try:
        return isinstance(given, str) and date.fromisoformat(given).isoformat() == given
    except ValueError:
        return False


TEXT = (str,)
RECEIPT: dict[str, tuple[type, ...]] = {
    "token": (str, type(None)), "ledger": (str, type(None)), "charges": (int,), "secure": (bool,),
}  # fmt: skip
METHOD: dict[str, tuple[type, ...]] = {"asked": TEXT, "used": TEXT, "why": TEXT}


def _centers(given: Any) -> NDArray[Any]:
    centers = np.array(given)
    is_index = centers.ndim == 1 and centers.dtype.kind in "iu"
    centers = centers.astype(np.int64 if is_index else np.float64)
    if (
        not centers.size
        or not (is_index or centers.ndim == 2)
        or not np.isfinite(centers).all()
        or (is_index and centers.min() < 0)
    ):
        raise ReleaseError(
            "the centres of a release must be a table of finite numbers, one row per centre, or a list of indices from 0 on. "
            "Anything else has no place in space."
        )
    centers.setflags(write=False)
    return centers


def _numbers(what: str, given: Any, k: int) -> NDArray[np.float64]:
    numbers = np.array(given, dtype=np.float64)
    if numbers.shape != (k,) or not np.isfinite(numbers).all():
        raise ReleaseError(f"the {what} of a release must be finite numbers, one a centre. Pass None if there are none.")
    numbers.setflags(write=False)
    return numbers


def _names(given: Any, n_features: int | None) -> tuple[str, ...]:
    names = tuple(given)
    if len(names) != n_features or len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
        raise ReleaseError(
            "the features of a release must be different names, one a column of its centres, or None. Otherwise nobody could "
            "tell which column is which."
        )
    return names


def _called(given: Any, centers: NDArray[Any]) -> tuple[str, ...]:
    names = tuple(given)
    if centers.ndim != 1 or len(names) != len(centers) or not all(isinstance(name, str) for name in names):
        raise ReleaseError(
            "the names of a release must be text, one a centre that is a point of a universe. Pass None otherwise."
        )
    return names


def _places(given: Any, centers: NDArray[Any]) -> NDArray[np.float64]:
    places = np.array(given, dtype=np.float64)
    if (
        centers.ndim != 1
        or places.ndim != 2
        or len(places) != len(centers)
        or not places.shape[1]
        or not np.isfinite(places).all()
    ):
        raise ReleaseError(
            "the places of a release must be finite coordinates, one row per centre that is a point of a universe. Pass None "
            "otherwise."
        )
    places.setflags(write=False)
    return places


def _check_synopsis(given: Any, n_features: int | None) -> None:
    """A synopsis that belongs to these centres: of as many columns, or of a universe."""
    kind = UniverseSynopsis if n_features is None else Synopsis
    fits = isinstance(given, kind) and is_finite(given)
    if fits and isinstance(given, Synopsis):
        tables = [given.points, *(part for step in given.steps for part in (step.centers, step.moves) if part is not None)]
        tables += [] if given.projected is None else [given.projected.axes.T]
        fits = all(table.shape[1] == n_features for table in tables)
    if given is not None and not fits:
        raise ReleaseError(
            "the synopsis of a release must be a kveil Synopsis of finite numbers with the columns of its centres, or None. "
            "Pass the one that the fit kept."
        )


def _fields(what: str, given: Any, types: Mapping[str, tuple[type, ...]]) -> dict[str, Any]:
    """The named fields of `given`, each of a known type; others are left out."""
    found = plain(given)
    if not isinstance(found, dict) or not all(key in found and type(found[key]) in types[key] for key in types):
        raise ReleaseError(
            f"the {what} of a release must hold {', '.join(types)}, each of its own type. Without them a reader could not check "
            "how it was made."
        )
    return {key: found[key] for key in types}
