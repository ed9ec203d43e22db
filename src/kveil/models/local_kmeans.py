"""k-means when nobody is trusted, simulated: every row is a person whose device randomises one report."""

from __future__ import annotations

import warnings
from dataclasses import asdict, replace
from fractions import Fraction
from math import sqrt
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kveil.collect.encoding import into_domain
from kveil.collect.forecast import LocalPlan, plan
from kveil.collect.protocols import build
from kveil.collect.shuffle import conditional
from kveil.collect.simulate import Devices, Simulated, simulate
from kveil.errors import BoundsRequired, InvalidValue
from kveil.kernel.grid import Ball
from kveil.kernel.loss import MOST_LOCAL_EPSILON, Charge, Guarantee, Plan, PrivacyUnit, Receipt, guarantee
from kveil.methods.base import shares
from kveil.methods.task import check_budget, check_choice, check_clusters
from kveil.models.clusterer import EuclideanClusterer
from kveil.models.judging import warn_of_noise, with_verdict
from kveil.models.paying import public_generator
from kveil.release import Release
from kveil.source import Source, read
from kveil.source.base import missing_of
from kveil.space.bounds import check_domain
from kveil.space.euclidean import Scaling
from kveil.tuning import Lae

FAST = 'devices="fast" draws the law of reports in floats from a generator with a seed, so it hides nothing'
PLAYED = "whoever runs this simulation may see all rows: one process holds them and plays every device"


class LocalKMeans(EuclideanClusterer):
    """SIMULATION ONLY: k-means centres as a collector would learn them from devices that trust nobody.

    `fit` sees all rows and plays all devices, so it protects nobody from whoever runs it. It is for finding out, on public or
    made-up data, what a campaign would give; real campaigns are made of `kveil.collect`. Every row is one person, who sends one
    report in one round with all of epsilon.

    Parameters
    ----------
    n_clusters : int, default 8
        Number of centres.
    epsilon : float, default 1.0
        What each person's report may give away, at most 10.
    center : float or array-like, default 0
        The middle of a public ball that holds the rows; a row with a missing or infinite value counts as it.
    radius : float
        Of that ball: rows outside are moved to its surface.
    protocol : {"auto", "refine", "zoom", "grid", "lae", "lma"}, default "auto"
        "refine" (heavy cells of small images, then means of residuals, in up to four rounds), "zoom" (cells, then finer
        ones where people crowd; two rounds, up to 3 columns), "grid" (one round, up to 3 columns), "lae" and "lma" (the
        paper's four rounds and one round), or "auto": by the number of people and columns, and refused if there are too few
        people to learn anything. Naming a protocol runs it all the same, with a warning.
    preset : {"lite", "paper"}, default "lite"
        "lite", or "paper" for protocol "lae" with as many levels, scales, guesses and repeats as the paper's analysis
        asks for. It is not the paper to the letter: its image has at most 4 axes whatever k is, points are hashed by a
        rotated grid in place of lattices of balls, and no bucket spans two of the paper's large cells.
    tuning : object of kveil.tuning, optional
        kveil.tuning.Lae(lsh="ball", alpha=..., c=...), for protocol "lae": the paper's hashing, image and distance ratio.
    devices : Devices, default "fast"
        "exact" runs the randomiser of real devices for every row; "fast" draws what all reports add up to by the same
        law.
    random_state : int, Generator or None
        Public choices (cohorts, maps, ids); with "fast" the devices' own coins, too.

    Attributes
    ----------
    cluster_centers_ : array (k, d)
        The centres, in the units of the data.
    cluster_weights_ : array (k,) or None
        Noisy shares of rows per cluster; they add up to 1.
    cluster_errors_ : array (k,)
        Standard error of each centre: the root mean squared length of the noise in it.
    method_ : str
        The method that ran.
    guarantee_ : Guarantee
        What was promised and charged.
    plan_ : object
        What was to be expected.
    release_ : Release
        All of this as one object, to be saved and passed on.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Names of the columns, if they have any.

    Notes
    -----
    - Private: each row, from everyone but its own device.  Public: parameters, the number of rows, who answers which round.
    - Neighbours: any two values of one row.
    - Sensitivity: `kveil.kernel.response.subset_select`: a report is e**epsilon times likelier for one row than another at most.
    - Cost: epsilon per person, once; the rounds ask different people.
    - Not covered: running time; this simulation itself, which holds all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from kveil import LocalKMeans
    >>> X = np.repeat([[-0.5, 0.0], [0.5, 0.1]], 10_000, axis=0)
    >>> model = LocalKMeans(n_clusters=2, epsilon=4.0, radius=1.0, devices="exact", random_state=0).fit(X)
    >>> model.method_, model.cluster_centers_.shape, model.guarantee_.trust, model.guarantee_.valid
    ('zoom', (2, 2), 'local', True)
    """

    scaling: Scaling = None

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float = 1.0,
        center: float | ArrayLike = 0.0,
        radius: float | None = None,
        protocol: Literal["auto", "refine", "zoom", "grid", "lae", "lma"] = "auto",
        preset: Literal["lite", "paper"] = "lite",
        devices: Devices = "fast",
        tuning: Lae | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.center = center
        self.radius = radius
        self.protocol = protocol
        self.preset = preset
        self.devices = devices
        self.tuning = tuning
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Play a campaign in which every row of X is a person.

        Parameters
        ----------
        X : table, path or Source
            Dense rows, one per person.
        y : ignored
            There for the interface of scikit-learn.

        Returns
        -------
        LocalKMeans
            This model, fitted.
        """
        source = read(X)
        domain = self._domain_of(source.n_columns)
        k, epsilon = check_clusters(self.n_clusters, source.n_columns), self._epsilon()
        if source.is_sparse or source.unit.kind != "record":
            raise InvalidValue("a device holds one row of one person: give dense rows, not sparse ones, and one row a person.")
        if missing_of(source) in ("drop", "mean"):  # how many report is public, and nobody releases a mean before they do
            raise InvalidValue(
                f'missing="{missing_of(source)}" is not for devices: each of them reports, or its silence would tell that a cell '
                'is missing. Use missing="middle", or public values by column.'
            )
        check_choice("devices", self.devices, ("fast", "exact"))
        rng = public_generator(self.random_state)
        with np.errstate(all="ignore"):  # what rows hold never raises, whatever this process has set
            points = _points(source, domain)
            n, d = max(1, len(points)), source.n_columns
            forecast = plan(n, k, d, epsilon, self.protocol, self.preset, tuning=self.tuning).check()
            for text in forecast.warnings:
                warnings.warn(f"LocalKMeans: {text}", UserWarning, stacklevel=2)  # by public facts: no row is in it
            protocol = build(forecast.protocol, forecast.terms, rng.bytes(32), self.tuning)
            found = simulate(points, protocol, epsilon, rng, self.devices)
        return self._keep(found, forecast, domain, source)

    def guarantee(self, n_features: int | None = None) -> Guarantee:
        """What each person is promised, from the parameters alone. The line that needs a shuffler needs the people, too."""
        check_choice("devices", self.devices, ("fast", "exact"))
        return self._promised(())

    def _promised(self, receipts: tuple[Receipt, ...]) -> Guarantee:
        made = guarantee(self._promise(), trust="local", receipts=receipts, reasons=[FAST] if self.devices == "fast" else [])
        return replace(made, assumptions=(*made.assumptions, PLAYED))

    def _promise(self) -> Plan:
        return Plan((Charge("randomiser", "one report a person", 1, "range", self._epsilon()),), "replace-one", PrivacyUnit())

    def _epsilon(self) -> Fraction:
        given = self.epsilon
        if isinstance(given, bool) or not isinstance(given, Real) or not 0 < given <= MOST_LOCAL_EPSILON:
            raise InvalidValue(
                f"epsilon must be a number above 0 and at most {MOST_LOCAL_EPSILON}, got {given!r}. It is what one report may "
                "give away, and more hides nothing."
            )
        epsilon = check_budget(given, 0.0)[0]
        assert epsilon is not None
        return epsilon

    def _domain_of(self, n_columns: int) -> Ball:
        if self.radius is None:
            raise BoundsRequired(
                "radius is missing. No device could clip to a domain that was taken from everyone's rows. Pass center and radius "
                "of a ball that holds the rows, from public knowledge."
            )
        domain = check_domain(None, self.center, self.radius, n_columns, 16)
        assert isinstance(domain, Ball)
        return domain

    def _keep(self, found: Simulated, forecast: LocalPlan, domain: Ball, source: Source) -> Self:
        outcome, d = found.outcome, source.n_columns
        promise = self._promised(found.receipts)
        epsilon = float(promise.epsilon)
        hidden = conditional(epsilon, min(found.reports, default=0)) if promise.valid else ()  # nothing to add to no promise
        self.guarantee_ = replace(promise, conditional=hidden)
        self.cluster_centers_ = domain.center + domain.radius * outcome.centres
        self.cluster_weights_ = None if outcome.counts is None else shares(outcome.counts)
        self.cluster_errors_ = None if outcome.sd is None else domain.radius * sqrt(d) * outcome.sd
        self.method_, self.plan_, self.n_features_in_, self._domain = forecast.protocol, forecast, d, domain
        if source.names is not None:
            self.feature_names_in_: NDArray[Any] = np.array(source.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        filling = (f"{outcome.padded} of the centres are mere filling",) if outcome.padded else ()
        is_secure = bool(found.receipts) and all(receipt.secure for receipt in found.receipts)
        release = Release(
            centers=self.cluster_centers_,
            weights=self.cluster_weights_,
            errors=self.cluster_errors_,
            features=source.names,
            guarantee=self.guarantee_,
            receipt={"token": None, "ledger": None, "charges": len(found.receipts), "secure": is_secure},
            kind=type(self).__name__,
            method={"asked": self.protocol, "used": forecast.protocol, "why": forecast.why},
            parameters={
                "n_clusters": len(outcome.centres),
                "epsilon": epsilon,
                "center": domain.center.tolist(),
                "radius": domain.radius,
                "preset": self.preset,
                "devices": self.devices,
                **({} if self.tuning is None else {"tuning": _plain(self.tuning)}),
            },
            notes=("a simulation: one process held all rows", *forecast.warnings, *outcome.notes, *filling),
        )
        self.release_ = with_verdict(release)
        warn_of_noise(self.release_, stacklevel=3)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.allow_nan = True
        return tags


def _plain(tuning: Lae) -> dict[str, Any]:
    """As a release holds it: floats in the place of fractions."""
    return {name: float(value) if isinstance(value, Real) else value for name, value in asdict(tuning).items()}


def _points(source: Source, domain: Ball) -> NDArray[np.float64]:
    """All rows, in the unit ball."""
    blocks = [into_domain(np.asarray(block, dtype=np.float64), domain) for block in source.raw_blocks()]
    return np.vstack([np.empty((0, source.n_columns)), *blocks])
