"""What a campaign is about, before anyone answers, and what it found in the end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Real
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kveil.arrays import Floats
from kveil.collect import protocols
from kveil.collect.constants import checked
from kveil.collect.forecast import LocalPlan, cautions, plan
from kveil.collect.manifest import LEAST_RADIUS, MOST_NAME, Header, Mode, parse_epsilon, parse_ratio, split_cohorts
from kveil.collect.queries import LARGEST, MOST_CENTRES, MOST_COLUMNS, MOST_PEOPLE, LocalProtocol, Terms, whole
from kveil.collect.shuffle import conditional
from kveil.errors import InvalidValue
from kveil.kernel.loss import Charge, Guarantee, Plan, guarantee
from kveil.tuning import Lae as Tuning

HONEST = (
    "every device runs an unchanged client that trusts no key but the pinned one, and its ledger was never restored from a copy",
    "who answers, when and from where does not depend on points; it is not hidden either",
)


@dataclass(frozen=True, eq=False)
class Campaign:
    """The terms of a campaign; all public, and fixed before anyone answers.

    n: about how many people there are.
    epsilon: of each person, a number or a fraction "p/q" with at most 4 digits each.
    center, radius: a ball that holds their points, from public knowledge, never from the points.
    protocol: "auto" refuses if there are too few people to learn anything; naming one ("grid", "zoom", "refine", "lae",
        "lae-ball", "lae-paper", "lma") runs it all the same.
    mode: "one_round", everyone answers once with all of epsilon; or "all_rounds", everyone in every round with an equal part of
        it, which is noisier.
    min_reports: a round with fewer is not decoded: once its days are over, closing it ends the campaign.
    tuning: kveil.tuning.Lae(...), for "lae" and "lae-paper"; its numbers with at most 4 digits on either side of p/q. Manifests
        state it, so it cannot change between rounds.

    Terms that no device could be asked under are refused here, and too few people by `plan().check()` and `Collector.open`.
    """

    name: str
    n: int
    n_clusters: int
    epsilon: float | str | Fraction
    center: ArrayLike
    radius: float
    protocol: str = "auto"
    mode: Mode = "one_round"
    min_reports: int = 1
    tuning: Tuning | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and 1 <= len(self.name) <= MOST_NAME and self.name.isprintable()):
            raise InvalidValue(f"name must be text of 1 to {MOST_NAME} printable characters: devices are shown it.")
        whole("n, about how many people there are,", self.n, 1, MOST_PEOPLE)
        whole("n_clusters", self.n_clusters, 1, MOST_CENTRES)
        whole("min_reports", self.min_reports, 0, self.n)  # more could never come, and the round would stay open
        exact_epsilon(self.epsilon)
        _middle(self.center)
        _check_radius(self.radius)
        check_one_of("protocol", self.protocol, ("auto", *protocols.PROTOCOLS))
        check_one_of("mode", self.mode, get_args(Mode))
        if self.tuning is not None:
            check_one_of("protocol of a campaign with a tuning", self.protocol, tuple(protocols.TUNED))
            exact_tuning(self.tuning)

    def plan(self) -> LocalPlan:
        """What to expect, for each round's part of epsilon."""
        epsilon, columns = exact_epsilon(self.epsilon), _middle(self.center).size
        expected = forecast(self.protocol, self.n, self.n_clusters, columns, epsilon, self.tuning)
        if self.mode == "all_rounds":
            each = epsilon / expected.rounds
            expected = forecast(expected.protocol, self.n, self.n_clusters, columns, each, self.tuning)
        return expected

    def header(self, key: str) -> Header:
        """The same as every manifest of the campaign will state it; `key` signs."""
        expected = self.plan().check()
        shares = np.array(expected.people) / self.n
        return Header(
            name=self.name,
            center=_middle(self.center),
            radius=float(np.float32(self.radius)),
            k=int(self.n_clusters),
            method=protocols.written(expected.protocol if self.protocol == "auto" else self.protocol),
            n=int(self.n),
            epsilon=exact_epsilon(self.epsilon),
            cohorts=split_cohorts(shares.tolist(), self.mode),
            key=key,
            mode=self.mode,
            epsilon_rounds=(expected.terms.epsilon,) * expected.rounds if self.mode == "all_rounds" else (),
            tuning=exact_tuning(self.tuning),
        )


def forecast(name: str, n: int, k: int, n_columns: int, epsilon: Fraction, tuning: Tuning | None = None) -> LocalPlan:
    """The plan of a protocol by its name, "auto" among them; the families of "lae" differ in hashing and constants only."""
    family, preset = (
        (name.split("-")[0], "paper" if name == "lae-paper" else "lite") if name in protocols.PROTOCOLS else (name, "lite")
    )
    return plan(n, k, n_columns, epsilon, family, preset, tuning=tuning)  # type: ignore[arg-type]


def protocol_of(header: Header) -> LocalProtocol:
    """The protocol of a campaign. Its public choices follow from the campaign's hash: anyone can repeat them."""
    terms = Terms(header.n, header.k, header.n_columns, header.epsilon_of(1))
    return protocols.rebuild(header.method, terms, bytes.fromhex(header.campaign), header.tuning)


def cautions_of(header: Header) -> tuple[str, ...]:
    """What a campaign was warned of beforehand."""
    if header.method in protocols.FIRST:
        built = protocol_of(header)
        return cautions(built.terms, header.method, built)[0]
    method, epsilon = protocols.read(header.method), header.epsilon_of(1)
    return forecast(method, header.n, header.k, header.n_columns, epsilon, header.tuning).warnings


def promise(header: Header, reports: Sequence[int] = ()) -> Guarantee:
    """What a campaign promises each person. `reports`: how many came in each round, for the line that needs a shuffler."""
    times = header.n_rounds if header.mode == "all_rounds" else 1
    charge = Charge(
        "randomiser", "one report a person" + " and round" * (times > 1), 1, "range", header.epsilon_of(1), times=times
    )
    made = guarantee(Plan((charge,), "replace-one"), trust="local")
    hidden = conditional(made.epsilon, min(reports)) if reports and times == 1 else ()  # over rounds these would add up
    return replace(made, assumptions=(*made.assumptions, *HONEST), conditional=hidden)


@dataclass(frozen=True, eq=False)
class Result:
    """What a campaign found, in the units of the points. May be shared: it is a function of reports.

    counts, count_sd: people of each centre, and its standard deviation. sd: of a coordinate of each centre. None: not known.
    reports: of each query, a list a round. epsilon: what devices enforced, ln(a/b). padded: centres that are mere filling.
    forgery: what reports that nobody's point stands behind could have moved, in words.
    """

    campaign: str
    protocol: str
    manifests: tuple[str, ...]
    centers: Floats
    counts: Floats | None
    count_sd: float | None
    sd: Floats | None
    reports: tuple[tuple[int, ...], ...]
    epsilon: float
    padded: int
    warnings: tuple[str, ...]
    guarantee: Guarantee
    forgery: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Centres and their people, warnings, and the guarantee."""
        people = [""] * len(self.centers) if self.counts is None else [f"   about {count:.0f}" for count in self.counts]
        spread = "" if self.counts is None else " people" if self.count_sd is None else f" +- {self.count_sd:.0f} people"
        places = ("  ".join(f"{x: .4g}" for x in center) for center in self.centers)
        rows = [f"  {place}{about}{spread}" for place, about in zip(places, people, strict=True)]
        told = [*(f"warning: {text}" for text in self.warnings), *(f"forgery: {text}" for text in self.forgery)]
        return "\n".join([*rows, *told, "", str(self.guarantee)])

    def to_json(self) -> str:
        """The same text for the same result."""
        plain = {**vars(self), "guarantee": json.loads(self.guarantee.to_json())}
        return json.dumps(plain, sort_keys=True, allow_nan=False, default=np.ndarray.tolist)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` wrote."""
        try:
            return cls._read(json.loads(text))
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError):
            wrong = InvalidValue("this is no result of a campaign, or a damaged one. `Result.to_json` writes it.")
        raise wrong

    @classmethod
    def _read(cls, data: Any) -> Self:
        arrays = {name: None if data[name] is None else np.array(data[name]) for name in ("centers", "counts", "sd")}
        lists = {name: tuple(data[name]) for name in ("manifests", "warnings")}
        lists["forgery"] = tuple(data.get("forgery", ()))  # earlier versions did not state it
        lists |= {"reports": tuple(map(tuple, data["reports"]))}
        return cls(**{**data, **arrays, **lists, "guarantee": Guarantee.from_json(json.dumps(data["guarantee"]))})


def check_one_of(name: str, value: Any, allowed: Sequence[str]) -> None:
    if not isinstance(value, str) or value not in allowed:
        raise InvalidValue(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}.")


def _check_radius(radius: Any) -> None:
    if isinstance(radius, bool) or not isinstance(radius, Real) or not LEAST_RADIUS <= float(radius) <= LARGEST:
        raise InvalidValue(
            f"radius must be a number from 2**-40 to 2**40, got {radius!r}: of a ball that holds the points, from public "
            "knowledge. Devices move points outside to its surface."
        )


def _middle(center: ArrayLike) -> NDArray[np.float32]:
    """The centre of the domain, one number per column, as manifests hold it."""
    try:
        given = np.atleast_1d(np.asarray(center, dtype=np.float64))
    except (TypeError, ValueError):
        given = np.empty(0)
    if given.ndim != 1 or not 1 <= given.size <= MOST_COLUMNS or not (np.abs(given) <= LARGEST).all():
        raise InvalidValue(
            f"center must be a list of 1 to {MOST_COLUMNS} numbers between -2**40 and 2**40, one for each number in a point. "
            "It is the middle of a ball that holds the points, from public knowledge."
        )
    return given.astype(np.float32)


def exact_tuning(tuning: Tuning | None) -> Tuning | None:
    """With fractions, as manifests hold it; a float is taken for the decimal that it is printed as. None if it says nothing."""
    if tuning is None or checked(tuning) == Tuning():
        return None
    try:
        alpha, c = (None if x is None else parse_ratio(str(Fraction(str(x)))) for x in (tuning.alpha, tuning.c))
    except InvalidValue:
        wrong = InvalidValue("alpha and c of a campaign's tuning must be p or p/q with at most 4 digits each.")
    else:
        return checked(Tuning(tuning.lsh, alpha, c))
    raise wrong


def exact_epsilon(epsilon: float | str | Fraction) -> Fraction:
    """As a fraction; a float is taken for the decimal that it is printed as."""
    try:
        return parse_epsilon(str(Fraction(str(epsilon))))
    except (ValueError, ZeroDivisionError):  # InvalidValue is a ValueError
        wrong = InvalidValue(f"epsilon must be above 0, at most 10, and p or p/q with at most 4 digits each, got {epsilon!r}.")
    raise wrong
