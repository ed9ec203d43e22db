"""What to expect of a campaign, from public facts alone: which protocol, how much worse than without privacy, when to let it be.

Up to four columns the figures were fitted to campaigns on ten tables of places and numbers and on eight made-up kinds (round,
tight, overlapping, uneven, twice as many clusters as centres, evenly spread, along a path, heavy-tailed); in more columns and for
three columns of a grid to round clusters alone. No forecast can know the shape of the data: so there is a range, too, in which
four campaigns of five lay. The cost of a result is not known to the collector, so nobody can check afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, sqrt
from numbers import Rational, Real
from typing import Literal, get_args

import numpy as np

from kveil.collect import lae, lma
from kveil.collect import one_grid as grid
from kveil.collect.descent import threshold
from kveil.collect.oracles import best_oracle, variance
from kveil.collect.protocols import build
from kveil.collect.queries import LocalProtocol, Query, Terms
from kveil.collect.vector import codebook
from kveil.errors import InvalidValue
from kveil.kernel.loss import MOST_LOCAL_EPSILON
from kveil.partition.public_map import side
from kveil.tuning import Lae as Tuning

Protocol = Literal["auto", "refine", "zoom", "grid", "lae", "lma"]
Preset = Literal["lite", "paper"]

REPORT_BYTES = 22
COST = 0.0144  # mean squared distance to the centre, over the squared radius of the domain: of the round clusters
USUAL = {1: 0.12, 2: 0.12, 3: 0.09, 4: 0.12}  # by columns: the same times k**(2/D), a median over tables
LAWS = {("grid", 2): (2.0, 0.56), ("refine", 1): (6.5, 0.64), ("refine", 2): (6.5, 0.64), ("refine", 3): (3.5, 0.33),
        ("refine", 4): (15.0, 0.76), ("zoom", 2): (0.8, 0.95), ("zoom", 3): (6.0, 1.3)}  # fmt: skip
# An excess is about factor * quality**-power, for clusters of the usual cost; "zoom" by detectability.
# The power of the usual cost over the cost: narrower clusters lose more by the same noise and cells.
BY_COST = {"grid": 0.6, "refine": 0.6, "zoom": 0.75}
GRID_FIT = 5.0  # of one and three columns, a grid's excess is about (GRID_FIT / detectability)**2
GRID_CELL = 1 / 4  # of what clusters narrower than a cell would lose, beside that: real clusters are neither all so nor round
# Of ten campaigns one had less than the first part of the excess, one more than the second; if the cost is given, and if not.
LIKELY = {("grid", 2): ((0.18, 4.9), (0.19, 8.6)), ("grid", 3): ((0.4, 5.0), (0.22, 10.0)),
          ("zoom", 2): ((0.3, 2.7), (0.3, 5.1)), ("zoom", 3): ((0.19, 2.1), (0.19, 5.1)),
          ("refine", 2): ((0.43, 2.7), (0.39, 4.4)), ("refine", 3): ((0.55, 1.9), (0.3, 7.5)),
          ("refine", 4): ((0.12, 2.6), (0.16, 5.1)), ("refine", 5): ((0.5, 6.5), (0.22, 12.0))}  # or the nearest  # fmt: skip
GRID_WARN, GRID_REFUSE = 4.0, 1.5
FINE_3D = 6.0  # three columns: a grid from this detectability on
SHOWS = 100.0  # two columns: "zoom", if a hundredth of all people would stand out in a cell of a grid
GOOD, POOR, BAD, HOPELESS = 250.0, 100.0, 30.0, 8.0  # quality n/(D k^2 V) of "refine"
SMALL_CLUSTER = 0.02  # share of people that LAE's buckets are meant to find
BUCKET_CUT = 3.5
NEEDED_FOR = {
    "grid": "for clusters of equal share to stand out",
    "zoom": "for clusters of equal share to stand out",
    "refine": "for a cost within a few per cent",
    "lae": "for its buckets to be seen",
    "lae-paper": "for its buckets to be seen",
}


@dataclass(frozen=True)
class LocalPlan:
    """A forecast.

    excess: cost over the cost without privacy, minus 1, about; None where no model is known.
    ratio_range: four campaigns of five had a cost between these, over the cost without privacy; None where that is not known.
    min_detectable: the least share of people that stands out in the first look, if all are in one cell.
    people: expected reports a round. bytes: of one report. quality: what the rule of the protocol looks at.
    people_needed: about how many people it takes until clusters of equal share stand out ("grid"), the cost is within a few per
        cent of that without privacy ("refine"), or buckets are seen ("lae"); None where that cannot be said.
    refusal: why "auto" does not run it.
    """

    terms: Terms
    protocol: str
    why: str
    excess: float | None
    ratio_range: tuple[float, float] | None
    min_detectable: float
    rounds: int
    people: tuple[float, ...]
    bytes: int
    quality: float
    people_needed: float | None
    warnings: tuple[str, ...]
    refusal: str | None

    def __str__(self) -> str:
        return "\n".join(f"{name}: {text}" for name, text in as_table(self))

    @property
    def ratio(self) -> float | None:
        """Expected cost over the cost without privacy."""
        return None if self.excess is None else 1 + self.excess

    def check(self) -> LocalPlan:
        """Itself, unless it should not be run."""
        if self.refusal is not None:
            raise InvalidValue(self.refusal)
        return self


def plan(
    n: int,
    k: int,
    n_columns: int,
    epsilon: Fraction | float,
    protocol: Protocol = "auto",
    preset: Preset = "lite",
    *,
    cost: float | None = None,
    tuning: Tuning | None = None,
) -> LocalPlan:
    """What to expect of `n` people with one point of `n_columns` each.

    epsilon: of each person, at most 10.
    cost: a guess, from public knowledge, of the mean squared distance to the nearest centre over the squared radius; None: what
        is usual.
    tuning: kveil.tuning.Lae(...), for protocol "lae".

    >>> plan(1_000_000, 8, 10, 1).protocol, round(plan(1_000_000, 8, 10, 1).ratio, 2)
    ('refine', 1.05)
    >>> plan(1_000, 8, 10, 1).refusal is None
    False
    """
    for what, value, most in (("epsilon", epsilon, MOST_LOCAL_EPSILON), ("cost", COST if cost is None else cost, 1)):
        if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value <= most:
            raise InvalidValue(f"{what} must be a number above 0 and at most {most}, got {value!r}.")
    terms = Terms(n, k, n_columns, Fraction(epsilon if isinstance(epsilon, Rational) else float(epsilon)))
    name, why = _chosen(terms, protocol, preset)
    built = build(name, terms, b"plan", tuning)
    quality, excess, needed = _outlook(terms, name, built, cost)
    excess, likely = _bounded(terms, name, excess, cost)
    warnings, refusal = cautions(terms, name, built)
    if protocol != "auto":
        refusal = None
    people = tuple(share * terms.n for share in built.shares)
    least = min_detectable(terms, built)
    return LocalPlan(
        terms, name, why, excess, likely, least, len(built.shares), people, REPORT_BYTES, quality, needed, warnings, refusal
    )  # fmt: skip


def cautions(terms: Terms, name: str, built: LocalProtocol) -> tuple[tuple[str, ...], str | None]:
    """Warnings, and why not to run it at all; both from public facts."""
    warnings, refusal = _judged(terms, name, built.version)
    least = min_detectable(terms, built)
    if least > 1 / (2 * terms.k):
        warnings = (*warnings, f"undetectable: a cluster needs about {least:.1%} of all people to stand out at first.")
    return warnings, refusal


def quality_of_means(terms: Terms) -> float:
    """n/(D k^2 V): people over the noise of k means in D columns."""
    v = codebook(terms.n_columns + 1, terms.epsilon).variance
    return terms.n / (terms.n_columns * terms.k**2 * v)


def min_detectable(terms: Terms, protocol: LocalProtocol) -> float:
    """The least share of people in one cell that passes the cut of the first round's deepest grid."""
    queries = protocol.first().queries
    deepest = max((query for query in queries if query.depth and query.kind != "vec"), key=lambda query: query.depth or 0)
    reports = protocol.shares[0] * terms.n * deepest.weight / sum(query.weight for query in queries)
    sd = sqrt(variance(deepest.kind, deepest.M, terms.epsilon) / max(1.0, reports))
    cut = {"lma": lma.CUT, "lae": lae.LITE.cut, "lae-paper": lae.PAPER.cut}.get(protocol.name, grid.CUT)
    n_candidates = _looked_at(deepest, protocol) if protocol.name in ("grid", "zoom", "refine") else 1 << protocol_axes(protocol)
    return min(1.0, threshold(cut, sd, n_candidates))


def _looked_at(query: Query, protocol: LocalProtocol) -> int:
    """Cells among which one must stand out."""
    keys = np.arange(query.n_keys, dtype=np.uint64)
    is_bounded = protocol.version > 1 or protocol.name == "zoom"
    return int(query.maps[0].meets_ball(keys, query.depth or 0).sum()) if is_bounded else query.n_keys


def protocol_axes(protocol: LocalProtocol) -> int:
    """Dimensions of a protocol's image."""
    return int(protocol.first().queries[0].maps[0].n_axes)


def _chosen(terms: Terms, protocol: str, preset: str) -> tuple[str, str]:
    if protocol not in get_args(Protocol):
        raise InvalidValue(f'protocol must be "auto", "refine", "zoom", "grid", "lae" or "lma", got {protocol!r}.')
    if preset not in get_args(Preset):
        raise InvalidValue(f'preset must be "lite" or "paper", got {preset!r}.')
    if preset == "paper" and protocol != "lae":
        raise InvalidValue('preset="paper" belongs to protocol="lae". Leave it out, or use that protocol.')
    if protocol != "auto":
        return ("lae-paper" if preset == "paper" else protocol), "it was asked for"
    if terms.n_columns == 2 and terms.k * grid.detectability(terms, grid.DEPTHS[2]) >= SHOWS:
        return "zoom", "with so many people cells can be divided where people crowd"
    if terms.n_columns == 2 and cell_side(terms, grid.best_depth(terms)) > sqrt(COST):
        return "refine", "the cells of one grid are wider than the clusters to be expected"
    if terms.n_columns <= 2:
        return "grid", "one fine grid is the best for up to two columns"
    if terms.n_columns == 3 and grid.detectability(terms, grid.DEPTHS[3]) >= FINE_3D:
        return "zoom", "with so many people cells can be divided where people crowd"
    return "refine", "it is the best from four columns on, and for few people in three"


def _outlook(terms: Terms, name: str, built: LocalProtocol, cost: float | None) -> tuple[float, float | None, float | None]:
    """Quality by the protocol's own measure, expected excess, and the people that it needs."""
    q = quality_of_means(terms)
    if name == "grid":
        reference = grid.detectability(terms, grid.DEPTHS[terms.n_columns])
        return reference, _by_law(terms, name, q, cost) or _grid_excess(terms, cost), terms.n * (GRID_WARN / reference) ** 2
    if name == "zoom":
        reference = grid.detectability(terms, grid.DEPTHS[terms.n_columns])
        excess = _by_law(terms, name, reference, cost) or _grid_excess(terms, cost)
        return reference, excess, terms.n * (GRID_WARN / reference) ** 2
    if name == "refine":
        return q, _by_law(terms, name, q, cost) or _residual_excess(terms, built, q, cost), terms.n * GOOD / q
    if name == "lma":
        return q, None, None
    last = 1 / (0.8 * built.shares[3] * (cost or COST) * q)  # the last round's means alone: at least this
    return q, last, _bucket_people(terms, built)


def usual_cost(terms: Terms) -> float:
    """What k centres usually leave, over the squared radius; of many columns that of round clusters."""
    d = terms.n_columns
    return USUAL[d] * terms.k ** (-2 / d) if d in USUAL else COST


def _by_law(terms: Terms, name: str, quality: float, cost: float | None) -> float | None:
    """An excess from the quality alone, where a law is known."""
    law, usual = LAWS.get((name, terms.n_columns)), usual_cost(terms)
    return None if law is None else law[0] * quality ** -law[1] * (usual / (cost or usual)) ** BY_COST[name]


def _bounded(
    terms: Terms, name: str, excess: float | None, cost: float | None
) -> tuple[float | None, tuple[float, float] | None]:
    """An excess and the range around it; one centre in the middle costs at most the squared radius."""
    most = 1 / (cost or usual_cost(terms)) - 1
    if excess is None or name not in ("grid", "zoom", "refine"):
        return excess if excess is None else min(excess, most), None
    low, high = LIKELY[name, min(max(terms.n_columns, 2), 5)][cost is None]
    return min(excess, most), (1 + min(low * excess, most), 1 + min(high * excess, most))


def _grid_excess(terms: Terms, cost: float | None) -> float:
    """Clusters that do not stand out, and those narrower than a cell, which would lose this if drawn anywhere in it."""
    depth = grid.best_depth(terms)
    of_cell = terms.n_columns * cell_side(terms, depth) ** 2 / (12 * (cost or COST))
    return (GRID_FIT / grid.detectability(terms, depth)) ** 2 + GRID_CELL * of_cell


def cell_side(terms: Terms, depth: int) -> float:
    """Side of a cell of a grid; the shorter one, where some axes were halved once more."""
    return side(depth // terms.n_columns)


def _residual_excess(terms: Terms, built: LocalProtocol, quality: float, cost: float | None) -> float:
    """Noise in means of residuals, and clusters that were never seen; fitted to medians of 25 places, from five columns on."""
    scale = COST / (cost or COST)
    seen = 8 / (terms.k**2 * min_detectable(terms, built))
    raw = 8 / quality + scale * (560 / quality**2 + 13 * exp(-seen / 0.9))
    return raw / (1 + raw / (25 * scale))  # about what centres cost that saw no data


def _bucket_people(terms: Terms, built: LocalProtocol) -> float:
    """People for LAE's second round to see a bucket that SMALL_CLUSTER of them share, with two queries a family."""
    assert isinstance(built, lae.Lae)
    families = sum(1 for _ in built.parts())
    oracle = best_oracle(2**12, terms.epsilon)
    v = variance(oracle.kind, oracle.M, terms.epsilon)
    return 2 * families * BUCKET_CUT**2 * v / SMALL_CLUSTER**2 / built.shares[1]


def _judged(terms: Terms, name: str, version: int) -> tuple[tuple[str, ...], str | None]:
    """Warnings, and why not to run it at all."""
    shape = f"{_some(terms.k, 'centre')} in {_some(terms.n_columns, 'column')}"
    few = f"too few people for {shape} at epsilon = {float(terms.epsilon):g}"
    more = f'Ask more people, fewer centres or a larger epsilon; or name the protocol, "{name}", to run it all the same.'
    if name == "lma" and terms.n_columns > lma.IMAGE:
        return ("one round is weak beyond 4 columns: expect several times the cost without privacy.",), None
    if name == "lae-paper":
        return ("the paper's formulas split people over very many queries: see people_needed of the plan.",), None
    if name in ("grid", "zoom") or (name == "refine" and terms.n_columns in ((3,) if version == 1 else (1, 2, 3))):
        m = grid.detectability(terms, grid.DEPTHS[terms.n_columns])
        if m < GRID_REFUSE:
            return (
                "noise_dominated: a cluster of equal share does not stand out.",
            ), f"{few}: no cluster would stand out. {more}"
        return (("noise_dominated: clusters of equal share hardly stand out.",) if m < GRID_WARN else ()), None
    quality = quality_of_means(terms)
    if quality < HOPELESS:
        return ("noise_dominated: centres that saw no data may do better.",), f"{few}: expect many times the cost. {more}"
    if quality < BAD:
        return ("noise_dominated: expect several times the cost without privacy, and whole clusters to be missed.",), None
    return (("noise_dominated: expect a good deal more than the cost without privacy.",) if quality < POOR else ()), None


def _some(number: int, thing: str) -> str:
    return f"{number} {thing}" + "s" * (number != 1)


def _needed(people: float, protocol: str) -> str:
    return f"about {_whole(float(f'{people:.2g}'))} {NEEDED_FOR[protocol]}"


def _whole(number: float) -> str:
    """As people write it.

    >>> _whole(250_000.0)
    '250 000'
    """
    return f"{number:,.0f}".replace(",", " ")


def as_table(forecast: LocalPlan) -> list[tuple[str, str]]:
    """The forecast in words, line by line."""
    ratio = "unknown" if forecast.ratio is None else f"about {forecast.ratio:.3g} times the cost without privacy"
    if forecast.ratio_range is not None:
        low, high = forecast.ratio_range
        ratio += f"; {low:.3g} to {high:.3g} times in four campaigns of five, by the shape of the data"
    needed = () if forecast.people_needed is None else (("people needed", _needed(forecast.people_needed, forecast.protocol)),)
    reports = ", ".join(map(_whole, forecast.people))
    return [
        ("protocol", f"{forecast.protocol} ({forecast.why})"),
        ("expect", ratio),
        ("least share that stands out", f"{100 * forecast.min_detectable:.3g} %"),
        ("rounds", f"{forecast.rounds} (reports: {reports}; {forecast.bytes} bytes each)"),
        *needed,
        *(("warning", text) for text in forecast.warnings),
        *((("refused", forecast.refusal),) if forecast.refusal else ()),
    ]
