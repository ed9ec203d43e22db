"""k-means over rows that stay with their holders: each party adds noise to what it tells, and nobody is trusted with rows."""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from contextlib import closing
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kveil.errors import FederationError, InvalidType, InvalidValue
from kveil.federate.by_cells import FEW_COLUMNS
from kveil.federate.coordinator import Coordinator, Hello
from kveil.federate.layout import Layout, grid_bits
from kveil.federate.link import InProcess, Joined, Link, Transport
from kveil.federate.party import Party
from kveil.federate.plan import LONGEST_HOLD, MOST_CLUSTERS, RunPlan, roster_of
from kveil.federate.policy import Policy
from kveil.federate.promise import promised
from kveil.federate.protocols import PROTOCOLS, RUNS, check_protocol, schedule
from kveil.kernel.loss import Guarantee, PrivacyUnit
from kveil.methods.base import shares
from kveil.methods.task import check_budget, check_choice, check_clusters, check_count
from kveil.models.clusterer import EuclideanClusterer
from kveil.models.judging import warn_of_noise, with_verdict
from kveil.models.paying import public_generator
from kveil.release import Release
from kveil.release.words import printable
from kveil.solve.placed import Placed
from kveil.source import read
from kveil.space.bounds import BoundsLike, check_domain, domain_width, names_of, public_domain
from kveil.space.euclidean import Scaling
from kveil.space.widths import domain_notes

Number = float | ArrayLike
MOST_STEPS = 20
WIDEST = 200  # characters of what a party holds, in a message


class FederatedKMeans(EuclideanClusterer):
    """k-means centres of rows that several parties hold and do not show to each other or to a coordinator.

    Parameters
    ----------
    n_clusters : int, default 8
        Number of centres.
    epsilon : float, optional
        The promise that every party makes to the people in its rows, against everybody else. None, the default, adds no
        noise and promises nothing: for rows that need no privacy, or to see what noise costs.
    delta : float, default 0
        0 is a pure promise; with delta > 0 Gaussian noise is used above 3 features.
    bounds : Bounds, pair, list of pairs or dict, optional
        Public (low, high) of the features, as in `PrivateKMeans`. Parties given as `federate.Party` or by address bring
        their own, which must all be the same.
    center : array-like or float, optional
        The middle of a public ball; default 0.
    radius : float, optional
        The radius of a public ball, instead of bounds.
    protocol : {"cells", "sample", "dk", "pdk"}, default "cells"
        "cells" (noisy counts and sums of public cells), "sample" (a noisy sample of rows), "pdk" (private k-variates++:
        parties are picked by noisy totals and give noisy rows), or "dk" (distributed k-means++, without privacy: rows go
        to all other parties, sealed from the coordinator). "sample" and "pdk" are for study; "cells" is better by far.
    n_steps : int, default 1
        Steps relative to released centres that follow.
    transport : object or None
        How parties that are not in this process are reached, such as `federate.Calling("keys/coordinator")`.
    timeout : float, default 60.0
        Seconds a party has for an answer; then it is left out and the run goes on with the others.
    random_state : int, Generator or None
        Steers public choices only. Private noise takes no seed.

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
    release_ : Release
        All of this as one object, to be saved and passed on.
    receipts_ : dict
        One per party: the digest of its whole conversation.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Names of the columns, if they have any.

    Notes
    -----
    All attributes may be shared.

    - Private: the rows of every party and their number, from all others and from the coordinator.  Public: all parameters,
      the columns, the names of the parties and which of them answered.
    - Neighbours: one record more or less at one party (or one person: `kveil.read(X, person=...)`).
    - Sensitivity: of counts and sums of disjoint cells: `kveil.desk.law.Law`, at every party.
    - Cost: at most `guarantee()`: a record is at one party, whose ledger is charged before each answer, and only for
      rounds that are asked.
    - Not covered: running time; a person with records at q parties pays q times; false answers of a party move the centres.

    Examples
    --------
    >>> import numpy as np
    >>> from kveil import FederatedKMeans
    >>> north, south = np.repeat([[-4.0, 0.0], [4.0, 1.0]], 5000, axis=0), np.repeat([[4.0, 1.0]], 3000, axis=0)
    >>> model = FederatedKMeans(n_clusters=2, epsilon=1.0, bounds=(-5, 5), random_state=0).fit([north, south])
    >>> model.cluster_centers_.shape, model.guarantee_.trust, model.guarantee_.epsilon
    ((2, 2), 'federation', 1.0)
    """

    scaling: ClassVar[Scaling] = None  # type: ignore[misc]  # distances are in the units of the data

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        bounds: BoundsLike | None = None,
        center: Number | None = None,
        radius: float | None = None,
        protocol: Literal["cells", "sample", "dk", "pdk"] = "cells",
        n_steps: int = 1,
        transport: Transport | None = None,
        timeout: float = 60.0,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.center = center
        self.radius = radius
        self.protocol = protocol
        self.n_steps = n_steps
        self.transport = transport
        self.timeout = timeout
        self.random_state = random_state

    def fit(self, parties: Sequence[Any], y: Any = None) -> Self:
        """Find centres of what all parties hold together.

        Parameters
        ----------
        parties : list
            For each anything `kveil.read` takes, a `federate.Party`, or an address that `transport` can reach. What parties must
            agree on is checked before anything is charged, and so are names and types of columns, which are public.
        y : ignored
            There for the interface of scikit-learn.
        """
        self._check()
        rng = public_generator(self.random_state)
        with closing(self._link(parties)) as link, np.errstate(all="ignore"):  # rounds that are paid for end, whatever is set
            coordinator = Coordinator(link, float(self.timeout))
            data, names, layout = self._agreed(coordinator.hello())
            plan = self._plan(layout, data, link.parties)
            self._warn_of_widths(layout.domain, names, stacklevel=2)  # not later: as an error it must cost nothing
            coordinator.open(plan)
            try:
                outcome = RUNS[plan.protocol](coordinator, layout, plan, rng).run()
            except BaseException:
                coordinator.abort()
                raise
            receipts = coordinator.done()
        return self._keep(outcome, plan, layout, names, coordinator, receipts)

    def fit_predict(self, X: Any, y: Any = None, **kwargs: Any) -> NDArray[np.int32]:
        """Refused: rows stay with their holders, who call `predict` on their own.

        Parameters
        ----------
        X, y : object
            Not looked at.
        """
        raise InvalidType("parties keep their rows, and labels are functions of rows. Call fit, then predict where the rows are.")

    def guarantee(self, n_features: int | None = None, *, unit: PrivacyUnit = PrivacyUnit()) -> Guarantee:
        """What `fit` will promise, from the parameters alone.

        Parameters
        ----------
        n_features : int, optional
            Where bounds or center do not tell.
        unit : PrivacyUnit
            That of the parties' rows, if people are protected.
        """
        self._check()
        width = n_features or domain_width(self.bounds, self.center) or getattr(self, "n_features_in_", None)
        if width is None:
            raise InvalidValue("how rounds share the budget depends on the number of features: pass guarantee(n_features=...).")
        bounds = (-1.0, 1.0) if self.bounds is None and self.radius is None else self.bounds  # the cost is the same in any domain
        names = names_of(bounds)
        domain = check_domain(bounds, self.center, self.radius, width, grid_bits(width), names)
        layout = Layout(domain, unit)
        return promised(self._plan(layout, "rows", ("party",)), layout)

    def _check(self) -> None:
        check_choice("protocol", self.protocol, PROTOCOLS)
        if self.epsilon is not None:
            check_budget(self.epsilon, self.delta)
        if (
            isinstance(self.n_steps, bool)
            or not isinstance(self.n_steps, int | np.integer)
            or not 0 <= self.n_steps <= MOST_STEPS
        ):
            raise InvalidValue(f"n_steps must be a whole number between 0 and {MOST_STEPS}, got {self.n_steps!r}.")
        if isinstance(self.timeout, bool) or not isinstance(self.timeout, int | float) or not 0 < self.timeout < math.inf:
            raise InvalidValue(f"timeout must be a number of seconds above 0, got {self.timeout!r}.")
        if check_count("n_clusters", self.n_clusters) > MOST_CLUSTERS:
            raise InvalidValue(f"n_clusters must be at most {MOST_CLUSTERS} in a federation, got {self.n_clusters}.")
        check_protocol(self.protocol, self.epsilon, self.delta, int(self.n_steps))

    def _budget(self, n_columns: int) -> tuple[Fraction | None, Fraction]:
        """Epsilon and delta as charged; delta is 0 where pure noise is smaller."""
        if self.epsilon is None:
            return None, Fraction(0)
        epsilon, delta = check_budget(self.epsilon, self.delta)
        return epsilon, delta if n_columns > FEW_COLUMNS else Fraction(0)

    def _link(self, parties: Any) -> Link:
        """All parties, wherever they are."""
        if isinstance(parties, str | bytes) or not isinstance(parties, Sequence):
            raise InvalidType("fit takes a list of parties: rows, a federate.Party or an address each.")
        is_afar = [isinstance(party, str) and (self.transport is not None or "://" in party) for party in parties]
        afar = [party for party, there in zip(parties, is_afar, strict=True) if there]
        if afar and self.transport is None:
            raise InvalidValue(
                "parties at an address need transport=federate.Calling(keys): their certificates must be known beforehand."
            )
        secret = secrets.token_bytes(32)  # rows in this process are sealed from nobody; parties elsewhere have their own
        here = [self._local(party, f"party{i}", secret) for i, party in enumerate(parties) if not is_afar[i]]
        links: list[Link] = [InProcess(here)] if here or not afar else []
        if afar:
            assert self.transport is not None
            links.append(self.transport.connect(afar, float(self.timeout)))
        return links[0] if len(links) == 1 else Joined(links)

    def _local(self, party: Any, name: str, secret: bytes) -> Party:
        """A party in this process; rows get one with a budget for this run alone."""
        if isinstance(party, Party):
            return party
        source = read(party)
        epsilon, delta = self._budget(source.n_columns)
        policy = Policy(
            1.0 if epsilon is None else float(epsilon), float(delta), protocols=tuple(PROTOCOLS), allow_exact=epsilon is None
        )
        return Party(source, bounds=self.bounds, center=self.center, radius=self.radius, name=name, policy=policy, secret=secret)

    def _agreed(self, hellos: dict[str, Hello]) -> tuple[str, tuple[str, ...] | None, Layout]:
        """What all parties hold alike: the name of the data, the columns and the layout; an error tells who differs."""
        first, told = next(iter(hellos.items()))
        for name, other in hellos.items():
            for what, mine, theirs, shown in (
                ("number of columns", told.layout.domain.n_columns, other.layout.domain.n_columns, _width),
                ("columns", told.columns, other.columns, _columns),
                ("name of the data", told.data, other.data, _data),
                ("bounds, grid or unit", told.layout.digest, other.layout.digest, _ground),
            ):
                if mine != theirs:
                    raise FederationError(
                        f"parties {first} and {name} differ in the {what}: {shown(told)} and {shown(other)}. All must hold the "
                        "same columns in the same order, public domain and unit, under one name of the data. Else their "
                        "answers cannot be added. Nothing was drawn and nothing was charged."
                    )
        self._check_domain(told)
        return told.data, told.columns or None, told.layout

    def _check_domain(self, told: Hello) -> None:
        """Refuse parties whose domain is not the one that was asked for."""
        if self.bounds is None and self.radius is None and self.center is None:
            return
        n_columns, names = told.layout.domain.n_columns, told.columns or None
        asked = check_domain(self.bounds, self.center, self.radius, n_columns, grid_bits(n_columns), names)
        if Layout(asked, told.layout.unit).digest != told.layout.digest:
            raise FederationError(
                "the parties clip their rows to other bounds than those given here. Agree on one public domain, or leave bounds "
                "out to take theirs. Nothing was drawn and nothing was charged."
            )

    def _plan(self, layout: Layout, data: str, parties: Sequence[str]) -> RunPlan:
        n_columns = layout.domain.n_columns
        epsilon, delta = self._budget(n_columns)
        k = check_clusters(self.n_clusters, n_columns)
        rounds = schedule(self.protocol, layout, epsilon, delta, int(self.n_steps), k, len(parties))
        return RunPlan(
            self.protocol, data, layout.digest, layout.unit.max_rows_per_person, k, epsilon, delta, rounds,
            min(LONGEST_HOLD, math.ceil((sum(part.times for part in rounds) + 2) * self.timeout)), roster_of(parties),
        )  # fmt: skip

    def _keep(
        self, outcome: Placed, plan: RunPlan, layout: Layout, names: tuple[str, ...] | None, coordinator: Coordinator,
        receipts: dict[str, str],
    ) -> Self:  # fmt: skip
        """Put on the object what may leave the house, and nothing else."""
        self.guarantee_ = promised(plan, layout, coordinator.noise)
        self.cluster_centers_ = layout.decoded(outcome.centers)
        self.cluster_weights_ = shares(outcome.counts)
        self.cluster_errors_ = np.minimum(outcome.errors, layout.frame.radius) * layout.step
        self.receipts_, self.method_, self._domain = receipts, str(self.protocol), layout.domain
        self.n_features_in_ = layout.domain.n_columns
        if names is not None:
            self.feature_names_in_: NDArray[Any] = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        told = [f"party {name}: receipt {receipt}" for name, receipt in receipts.items()]
        release = Release(
            centers=self.cluster_centers_,
            weights=self.cluster_weights_,
            errors=self.cluster_errors_,
            features=names,
            guarantee=self.guarantee_,
            receipt={
                "token": coordinator.run, "ledger": None, "charges": sum(part.times for part in plan.rounds),
                "secure": coordinator.noise == {"system"},
            },
            kind=type(self).__name__,
            method={"asked": self.protocol, "used": self.protocol, "why": "it was asked for"},
            parameters={
                "n_clusters": plan.n_clusters, "epsilon": "none" if plan.epsilon is None else float(plan.epsilon),
                "delta": float(plan.delta), **public_domain(layout.domain), "scaling": None, "relation": "add-remove",
                "n_steps": int(self.n_steps), "parties": len(coordinator.seats), "parties_per_person": plan.parties_per_person,
            },
            notes=(*coordinator.notes, *domain_notes(layout.domain, None, names), *told),
        )  # fmt: skip
        self.release_ = with_verdict(release)
        warn_of_noise(self.release_, stacklevel=3)
        return self


def _width(told: Hello) -> str:
    return str(told.layout.domain.n_columns)


def _columns(told: Hello) -> str:
    return printable(", ".join(map(repr, told.columns)) or "no names", WIDEST)


def _data(told: Hello) -> str:
    return repr(told.data)


def _ground(told: Hello) -> str:
    domain = ", ".join(f"{name} {value}" for name, value in public_domain(told.layout.domain).items())
    return printable(f"{domain} for {told.layout.unit}", WIDEST)
