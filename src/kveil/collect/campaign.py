"""What a campaign is about, before anyone answers, and what it found in the end."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from kveil.collect.grid import Grid
from kveil.collect.manifest import Header, Mode, parse_epsilon, split_cohorts
from kveil.collect.queries import Floats, LocalProtocol, Terms
from kveil.collect.refine import Refine
from kveil.errors import InvalidValue

PROTOCOLS: dict[str, Callable[[Terms, bytes], LocalProtocol]] = {"grid": Grid, "refine": Refine}


@dataclass(frozen=True, eq=False)
class Campaign:
    """The terms of a campaign; all public, and fixed before anyone answers.

    n: about how many people there are. center, radius: a ball that holds their points, from public knowledge, never from the
    points. epsilon: of each person, a number or a fraction "p/q" with at most 4 digits each.
    min_reports: a round with fewer is not decoded.
    """

    name: str
    n: int
    n_clusters: int
    epsilon: float | str | Fraction
    center: ArrayLike
    radius: float
    protocol: str
    mode: Mode = "one_round"
    min_reports: int = 1

    def header(self, key: str) -> Header:
        """The same as every manifest of the campaign will state it; `key` signs."""
        if self.mode not in get_args(Mode):
            raise InvalidValue(f"mode must be one of {', '.join(get_args(Mode))}, got {self.mode!r}.")
        epsilon = _exact(self.epsilon)
        center = np.atleast_1d(np.asarray(self.center, dtype=np.float32))
        terms = Terms(self.n, self.n_clusters, center.size, epsilon)
        shares = _made(self.protocol, terms, b"").shares
        each = (epsilon / len(shares),) * len(shares) if self.mode == "all_rounds" else ()
        return Header(
            name=self.name,
            center=center,
            radius=float(np.float32(self.radius)),
            k=self.n_clusters,
            method=self.protocol,
            n=self.n,
            epsilon=epsilon,
            cohorts=split_cohorts(shares, self.mode),
            key=key,
            mode=self.mode,
            epsilon_rounds=each,
        )


def protocol_of(header: Header) -> LocalProtocol:
    """The protocol of a campaign. Its public choices follow from the campaign's hash: anyone can repeat them."""
    terms = Terms(header.n, header.k, header.n_columns, header.epsilon_of(1))
    return _made(header.method, terms, bytes.fromhex(header.campaign))


@dataclass(frozen=True, eq=False)
class Result:
    """What a campaign found, in the units of the points. May be shared: it is a function of reports.

    counts, count_sd: people of each centre, and its standard deviation. sd: of a coordinate of each centre. None: not known.
    reports: of each query, a list a round. epsilon: what devices enforced, ln(a/b). padded: centres that are mere filling.
    """

    campaign: str
    manifests: tuple[str, ...]
    centers: Floats
    counts: Floats | None
    count_sd: float | None
    sd: Floats | None
    reports: tuple[tuple[int, ...], ...]
    epsilon: float
    padded: int
    warnings: tuple[str, ...]

    def to_json(self) -> str:
        """The same text for the same result."""
        return json.dumps(asdict(self), sort_keys=True, default=np.ndarray.tolist)

    @classmethod
    def from_json(cls, text: str) -> Self:
        data = json.loads(text)
        arrays = {name: None if data[name] is None else np.array(data[name]) for name in ("centers", "counts", "sd")}
        lists = {name: tuple(data[name]) for name in ("manifests", "warnings")}
        return cls(**{**data, **arrays, **lists, "reports": tuple(map(tuple, data["reports"]))})


def _exact(epsilon: float | str | Fraction) -> Fraction:
    """As a fraction; a float is taken for the decimal that it is printed as."""
    try:
        return parse_epsilon(str(Fraction(str(epsilon))))
    except (ValueError, ZeroDivisionError):  # InvalidValue is a ValueError
        wrong = InvalidValue(f"epsilon must be above 0, at most 10, and p or p/q with at most 4 digits each, got {epsilon!r}.")
    raise wrong


def _made(method: str, terms: Terms, seed: bytes) -> LocalProtocol:
    if method not in PROTOCOLS:
        raise InvalidValue(f"protocol must be one of {', '.join(PROTOCOLS)}, got {method!r}.")
    return PROTOCOLS[method](terms, seed)
