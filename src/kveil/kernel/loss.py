"""What a release costs: charges, plans, and the guarantee they add up to.

A plan lists every mechanism of one fit, fixed before a row is read. For a closed plan each of the routes below is an
upper bound on the privacy loss, so the least of them is one too, and the guarantee names it. (An open ledger may not
take the least of several; see ledger.py.)

    charge              pure      zCDP (rho)
    discrete-gaussian   -         given by the charge
    laplace, k-norm,
    randomiser, pick,
    peel                eps       eps**2 / 2
    select              eta       eta**2 / 8, its log-ratios staying in an interval of length eta
    threshold           (eps, delta), added outside the routes
"""

import json
import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Generic, Literal, NamedTuple, Self, TypeVar, get_args

import numpy as np

from kveil.errors import InvalidValue, KveilError
from kveil.kernel.exact import Entropy, entropy, exp_bounds

Relation = Literal["add-remove", "replace-one"]
Trust = Literal["curator", "federation", "stream", "local"]
Mechanism = Literal[
    "discrete-laplace", "discrete-gaussian", "k-norm", "select", "threshold", "randomiser", "pick", "peel", "given"
]  # fmt: skip
Route = Literal["pure", "zcdp", "none"]

OTHER_WEIGHT, MOST_LOCAL_EPSILON = 2**32, 10  # of local reports; all weights of one then stay below 2**63

ASSUMPTIONS = (
    "the operating system's random generator cannot be predicted",
    "numpy's log and exp are accurate to 64 units in the last place on this machine",
    "running time, memory use and other side channels are not observed",
    "bounds, parameters and preprocessing come from public knowledge, or were paid for by a charge of their own",
)
TABLES = (  # whoever reads a table of rows assumes these too; a device that reports its own point does not
    "names and types of columns are public, and whether lists and Python objects hold numbers at all",
    "where rows are read, matrix products of whole numbers below 2^53 are exact in float64; every process tries some first",
)


def check_word(name: str, given: Any, known: tuple[str, ...]) -> None:
    """Refuse a word that is not known: say which parameter it is, what was given, and what is known."""
    if not isinstance(given, str) or given not in known:
        raise InvalidValue(f"{name} must be {', '.join(map(repr, known[:-1]))} or {known[-1]!r}, got {given!r}.")


@dataclass(frozen=True, slots=True)
class PrivacyUnit:
    """Whom the guarantee protects: one record, or one person with at most `max_rows_per_person` records.

    Parameters
    ----------
    kind : str, default "record"
        "record": a row. "person": all rows with the same id.
    max_rows_per_person : int, default 1
        How many rows of one person are used at most.
    id_column : str or None
        The name of the column of ids.

    Examples
    --------
    >>> print(PrivacyUnit("person", 3, "patient"))
    one person by "patient" with at most 3 records
    """

    kind: Literal["record", "person"] = "record"
    max_rows_per_person: int = 1
    id_column: str | None = None

    def __post_init__(self) -> None:
        check_word("the kind of a privacy unit", self.kind, ("record", "person"))
        if type(self.max_rows_per_person) is not int or self.max_rows_per_person < 1:
            raise InvalidValue(
                f"a privacy unit has a whole number of max_rows_per_person, at least 1, got {self.max_rows_per_person!r}."
            )

    def __str__(self) -> str:
        m, who = self.max_rows_per_person, f' by "{self.id_column}"' if self.id_column else ""
        return "one record" if self.kind == "record" else f"one person{who} with at most {m} record{'s' * (m > 1)}"


@dataclass(frozen=True, slots=True)
class Charge:
    """One mechanism, described from public parameters only; `times` equal uses of it."""

    mechanism: Mechanism
    label: str
    sensitivity: int
    norm: Literal["l1", "l2", "range"]
    epsilon: Fraction | None = None  # the pure loss; for select, eta
    rho: Fraction | None = None  # set for the Gaussian, otherwise derived
    delta: Fraction = Fraction(0)
    times: int = 1
    one_coordinate: bool = False  # neighbours differ in a single coordinate of the vector
    reason: str = ""

    def __post_init__(self) -> None:
        losses = [loss for loss in (self.epsilon, self.rho) if loss is not None]
        is_known = self.mechanism == "given" or (self.mechanism == "discrete-gaussian") == (self.epsilon is None)
        if len(losses) != 1 or losses[0] <= 0 or not is_known or (self.mechanism == "threshold") != (self.delta > 0):
            raise InvalidValue("a Gaussian charge has rho, every other has epsilon, and a threshold has delta too; all above 0.")
        if self.times < 1 or self.sensitivity < 1 or not 0 <= self.delta < 1:
            raise InvalidValue("a charge needs times >= 1, sensitivity >= 1 and delta in [0, 1).")

    def pure(self) -> Fraction | None:
        """Epsilon of all uses together, if the mechanism is pure."""
        return None if self.epsilon is None or self.delta else self.times * self.epsilon

    def zcdp(self) -> Fraction | None:
        """rho of all uses together, if the mechanism has a zCDP bound."""
        if self.epsilon is None or self.delta:
            return None if self.rho is None else self.times * self.rho
        return self.times * self.epsilon**2 / (8 if self.mechanism == "select" else 2)

    def __str__(self) -> str:
        loss = f"epsilon {float(self.epsilon):.6g}" if self.epsilon is not None else f"rho {float(self.rho or 0):.6g}"
        delta = f", delta {float(self.delta):.3g}" if self.delta else ""
        kind = f"{self.mechanism}, {self.norm} sensitivity {self.sensitivity}, {self.times} x "
        return f"{self.label}: {'' if self.mechanism == 'given' else kind}{loss}{delta}"


Secret = TypeVar("Secret")
Noisy = TypeVar("Noisy")


@dataclass(frozen=True, slots=True)
class Measurement(Generic[Secret, Noisy]):
    """A mechanism: what it costs, from public parameters alone, and how it draws. Only the gate calls `draw`."""

    charge: Charge
    draw: Callable[[Entropy, Secret], Noisy]


@dataclass(frozen=True, slots=True)
class Plan:
    """Every charge of one release. `delta` is what the reader accepts; 0 asks for a pure guarantee."""

    charges: tuple[Charge, ...]
    relation: Relation
    unit: PrivacyUnit = PrivacyUnit()
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        check_word("relation", self.relation, get_args(Relation))
        if not 0 <= self.delta < 1 or not self.charges:
            raise InvalidValue(f"a plan needs at least one charge, and delta in [0, 1), got {self.delta!r}.")


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof that one charge was spent; `secure` tells whether the bits came from the operating system."""

    token: str
    index: int
    charge: Charge
    secure: bool


@dataclass(frozen=True, slots=True)
class Conditional:
    """A better figure that holds only under an assumption. Never what `Guarantee.epsilon` says."""

    epsilon: float
    delta: float
    assumption: str


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What a release promises, to whom, under which assumptions, and how it was added up.

    `print` shows all of it in words.

    Attributes
    ----------
    epsilon, delta : float
        The promise, rounded up; delta 0 is a pure promise.
    relation : str
        Whether a unit is added or removed ("add-remove"), or exchanged for another ("replace-one").
    unit : PrivacyUnit
        Whom it protects.
    trust : str
        Who sees rows: "curator", "federation", "stream" or "local".
    charges : tuple of Charge
        What it is added up from.
    route : str
        How it was added up: "pure", "zcdp", "approx" or "none".
    assumptions : tuple of str
        What it rests on.
    valid : bool
        False, with `reasons`, when scripted noise was used; assumptions do not change it.
    reasons : tuple of str
        Why it is not valid.
    conditional : tuple of Conditional
        Better figures that hold under further assumptions.
    draws : tuple of Charge
        Every draw of noise that the charges paid for.

    Examples
    --------
    >>> from kveil import PrivateKMeans
    >>> promise = PrivateKMeans(3, epsilon=1.0, bounds=(0, 10)).guarantee(n_features=2)
    >>> promise.epsilon, promise.delta, promise.valid, promise.recompute() == promise
    (1.0, 0.0, True, True)
    """

    epsilon: float
    delta: float
    relation: Relation
    unit: PrivacyUnit
    trust: Trust
    charges: tuple[Charge, ...]
    route: Route
    assumptions: tuple[str, ...] = ASSUMPTIONS
    valid: bool = True
    reasons: tuple[str, ...] = ()
    conditional: tuple[Conditional, ...] = ()
    draws: tuple[Charge, ...] = field(default=(), compare=False)  # what "given" charges paid for: how, not what, is promised

    def recompute(self) -> Self:
        """The same guarantee with its numbers added up again from the charges alone."""
        if self.route == "none":
            return replace(self, epsilon=math.inf, delta=0.0)
        again = compose(Plan(self.charges, self.relation, self.unit, Fraction(self.delta if self.route != "pure" else 0)))
        return replace(self, epsilon=again.epsilon, delta=again.delta, route=again.route)

    def to_json(self) -> str:
        return to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read back what `to_json` wrote; anything else raises `InvalidValue`. Executes nothing."""
        try:
            data = json.loads(text)
            data["epsilon"], data["unit"] = float(data["epsilon"]), PrivacyUnit(**data["unit"])
            data["charges"] = tuple(_charge(item) for item in data["charges"])
            data["draws"] = tuple(_charge(item) for item in data.get("draws", ()))
            data["conditional"] = tuple(Conditional(**item) for item in data["conditional"])
            data["assumptions"], data["reasons"] = tuple(data["assumptions"]), tuple(data["reasons"])
            read = cls(**data)
            again = read.recompute()
            sound = math.isclose(again.epsilon, read.epsilon, rel_tol=1e-6) and again.delta == read.delta
            sound &= read.valid is (not read.reasons) and read.trust in get_args(Trust) and read.route in get_args(Route)
            str(read)  # a number may be too large to be written
        except (KveilError, ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError):
            sound = False
        if not sound:
            raise InvalidValue("this is no guarantee by kveil: it is damaged, or its numbers do not follow from its charges.")
        return read

    def __str__(self) -> str:
        if self.route == "none":
            return "No privacy guarantee: the result was computed without noise. Do not let it leave the house."
        change = "adding or removing" if self.relation == "add-remove" else "replacing"
        seen = {"federation": "any message", "local": "a report"}.get(self.trust, "the release")
        factor = f"e^{self.epsilon:.4g}" + (f" (about {math.exp(self.epsilon):.3g})" if self.epsilon < 700 else "")
        but, what = f", plus {self.delta:.3g}" * bool(self.delta), "epsilons" if self.route == "pure" else "losses in zCDP"
        lines = [] if self.valid else ["NOT VALID: " + "; ".join(self.reasons) + ".\n"]
        lines += [f"epsilon = {self.epsilon:.6g}, delta = {self.delta:.3g} for {self.unit}, {change} it; {self.trust} model."]
        lines += [f"Whoever sees {seen}, whatever else they know: {change} {self.unit} makes no outcome"]
        lines += [f"more than {factor} times as likely{but}.", f"\nAdded up by the {self.route} route ({what} are summed):"]
        lines += [f"  - {self._paid(charge)}" for charge in self.charges]
        lines += ["\nDraws:", *(f"  - {draw}" for draw in self.draws)] if self.draws else []
        lines += ["\nAssumes:"] + [f"  - {text}" for text in self.assumptions]
        lines += [f"\nOnly if {c.assumption}: epsilon = {c.epsilon:.6g}, delta = {c.delta:.3g}." for c in self.conditional]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{str(self).replace('&', '&amp;').replace('<', '&lt;')}</pre>"

    def _paid(self, charge: Charge) -> str:
        n = sum(draw.times for draw in self.draws) if charge.mechanism == "given" else 0
        return f"{charge}, split over {n} draw{'s' * (n > 1)} (listed below)" if n else str(charge)


class Total(NamedTuple):
    """The loss of a closed plan by its tightest route."""

    epsilon: float
    delta: float
    route: Route


def compose(plan: Plan) -> Total:
    """The least epsilon that some route proves for `plan` at its delta."""
    rest = [charge for charge in plan.charges if charge.mechanism != "threshold"]
    extra = Fraction(sum(c.times * (c.epsilon or 0) for c in plan.charges if c.mechanism == "threshold"))
    extra_delta = Fraction(sum(c.times * c.delta for c in plan.charges))
    left = plan.delta - extra_delta  # for the routes that need a delta of their own
    found = []
    if all(charge.epsilon is not None for charge in rest):
        found.append(Total(round_up(extra + sum(c.pure() or 0 for c in rest)), round_up(extra_delta), "pure"))
    if left > 0 and rest:
        epsilon = zcdp_epsilon(Fraction(sum(c.zcdp() or 0 for c in rest)), left)
        found.append(Total(round_up(Fraction(epsilon) + extra), round_up(plan.delta), "zcdp"))
    if not found:
        raise InvalidValue("Gaussian noise has no pure guarantee: pass delta > 0 (and above the threshold's own delta).")
    return min(found, key=lambda total: total.epsilon)  # the first of equals: pure before the others


def guarantee(
    plan: Plan, *, trust: Trust, receipts: Iterable[Receipt] = (), reasons: Iterable[str] = (), assumptions: Iterable[str] = ()
) -> Guarantee:
    """The guarantee of a closed plan. Invalid if scripted noise is installed or any receipt says it was used.

    `assumptions`: what it rests on besides those of every guarantee.
    """
    total = compose(plan)
    why, receipts = list(reasons), tuple(receipts)
    if not entropy().secure or not all(receipt.secure for receipt in receipts):
        why.insert(0, "the noise was scripted by kveil.testing, so it hides nothing")
    terms = (plan.relation, plan.unit, trust, plan.charges, total.route)
    held = (*ASSUMPTIONS, *(() if trust == "local" else TABLES), *assumptions)
    drawn = Counter(receipt.charge for receipt in receipts) if any(c.mechanism == "given" for c in plan.charges) else {}
    draws = tuple(replace(charge, times=times * charge.times) for charge, times in drawn.items())
    return Guarantee(total.epsilon, total.delta, *terms, assumptions=held, valid=not why, reasons=tuple(why), draws=draws)


def no_guarantee(relation: Relation, unit: PrivacyUnit, trust: Trust) -> Guarantee:
    """What a noise-free result promises: nothing."""
    return Guarantee(math.inf, 0.0, relation, unit, trust, (), "none", assumptions=())


def floor_epsilon(epsilon: float | Fraction) -> Fraction:
    """Epsilon as a multiple of 2**-40, rounded down, so that the noise only grows and ten tenths fit into one."""
    if not (_is_number(epsilon) and Fraction(1, 2**30) <= epsilon <= 2**10):
        raise InvalidValue(f"epsilon must be above 0, from 2**-30 to 1024, got {epsilon!r}. Smaller is more private and noisier.")
    return Fraction(math.floor(Fraction(epsilon) * 2**40), 2**40)


def floor_delta(delta: float | Fraction) -> Fraction:
    """Delta as a multiple of 2**-60, rounded down."""
    if not (_is_number(delta) and 0 <= delta < 1):
        raise InvalidValue(f"delta must be in [0, 1), got {delta!r}: it is the chance that the promise fails; 0 is a pure one.")
    if 0 < delta * 2**60 < 1:
        raise InvalidValue("delta below 2**-60 cannot be counted: use delta=0 for a pure guarantee.")
    return Fraction(math.floor(Fraction(delta) * 2**60), 2**60)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Fraction) and not isinstance(value, bool)  # True is no budget of 1


def floor_rho(rho: Fraction) -> Fraction:
    """rho as a multiple of 2**-60, rounded down."""
    floored = Fraction(math.floor(rho * 2**60), 2**60)
    if floored <= 0:
        raise InvalidValue("this budget is too small for Gaussian noise: raise epsilon, lower n_steps, or use delta=0.")
    return floored


@lru_cache(maxsize=64)
def response_weights(epsilon: Fraction) -> tuple[int, int]:
    """Weights a = floor(2**32 e**epsilon) and b = 2**32 of values that a local report prefers and does not; a/b <= e**epsilon.

    e**epsilon is irrational, so the ends of a narrow enough interval around it have the same floor.
    """
    if not 0 < epsilon <= MOST_LOCAL_EPSILON:
        raise InvalidValue(f"epsilon of a local report must be above 0 and at most {MOST_LOCAL_EPSILON}.")
    precision, floors = 64, {0, 1}
    while len(floors) > 1:
        precision *= 2
        bounds = exp_bounds(epsilon.numerator, epsilon.denominator, precision)
        floors = {(OTHER_WEIGHT << precision) // bound for bound in bounds}
    return floors.pop(), OTHER_WEIGHT


def zcdp_epsilon(rho: Fraction, delta: Fraction) -> float:
    """An epsilon such that rho-zCDP implies (epsilon, delta)-DP: the bound below holds for every order a > 1.

    a rho + ln(1 - 1/a) - (ln delta + ln a)/(a - 1), least over a fine grid of orders, rounded up.
    """
    excess = np.exp(np.linspace(-14.0, 60.0, 20_001))  # a - 1; any one of these orders is enough for a proof
    bounds = (1 + excess) * round_up(rho) - np.log1p(1 / excess) - (math.log(delta) + np.log1p(excess)) / excess
    least = float(bounds.min())
    return max(0.0, least + 1e-12 * (1 + abs(least)))


@lru_cache(maxsize=64)
def zcdp_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho, a multiple of 2**-40 (a ledger's unit), whose epsilon at delta does not pass `epsilon`."""
    units = range(math.ceil(epsilon * 2**40))  # rho-zCDP never gives an epsilon below rho
    too_many = bisect_left(units, True, key=lambda n: n > 0 and zcdp_epsilon(Fraction(n, 2**40), delta) > epsilon)
    return floor_rho(Fraction(too_many - 1, 2**40))


def round_up(value: Fraction) -> float:
    """The least float that is not below `value`."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def to_json(value: Plan | Guarantee) -> str:
    """All fields; fractions as "num/den", infinity as "inf"."""
    plain = asdict(value)
    if not plain.get("draws"):
        plain.pop("draws", None)  # came later: files without them read as before
    if plain.get("epsilon") == math.inf:
        plain["epsilon"] = "inf"
    return json.dumps(plain, sort_keys=True, allow_nan=False, default=lambda f: f"{f.numerator}/{f.denominator}")


def _charge(data: dict[str, Any]) -> Charge:
    return Charge(**{**data, **{key: read_fraction(data[key]) for key in ("epsilon", "rho", "delta") if data[key] is not None}})


def read_fraction(text: str) -> Fraction:
    """The fraction that was written as "num/den", or "num". Nothing else: "1e999999999" would take hours, and all memory."""
    if not re.fullmatch(r"[0-9]{1,1000}(/[0-9]{1,1000})?", text):
        raise ValueError
    return Fraction(text)
