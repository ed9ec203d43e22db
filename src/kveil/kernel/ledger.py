"""A budget that several fits, threads and processes draw on, and that nobody overdraws.

What was reserved is spent, whatever happens next: money leaves at `reserve`, before any noise exists, and a crash at any
later point leaves the reservation standing. Later requests may depend on earlier releases, so a ledger adds by one rule
fixed at its creation (the least of several accountants is not known to be a valid stopping rule):

    pure    adds epsilon
    zcdp    adds rho, up to the largest rho whose epsilon at the ledger's delta fits
    approx  adds the (epsilon, delta) of closed plans

Each bounds the total on every adaptive path, also when fits interleave. Not covered: a copied or restored file (two
copies are two budgets), network file systems (WAL needs shared memory), and whoever may edit the file.

A charge may carry notes: what the operator states of it, and what becomes known afterwards, such as the release's digest.
Notes are a table of their own, to which lines are added and which is never changed. They decide nothing about money.
"""

import json
import math
import os
import pathlib
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, NamedTuple, NoReturn, Self, get_args

from kveil.errors import BudgetError, BudgetExceeded, InvalidValue, LedgerMismatch, TicketError
from kveil.kernel import loss
from kveil.kernel.exact import entropy
from kveil.kernel.loss import Charge, Plan, PrivacyUnit, Receipt, Relation

Number = float | Fraction
Path = str | os.PathLike[str]
UNIT, DELTA_UNIT = 2**40, 2**60  # costs are counted in whole 1/UNIT of epsilon or rho, rounded up, so sums are exact

SCHEMA, NOTES = (pathlib.Path(__file__).with_name(name).read_text("utf-8") for name in ("ledger.sql", "ledger_notes.sql"))
LONGEST_NOTE = 200  # characters


class Amount(NamedTuple):
    """Part of a budget. `rho` is set where the ledger adds zCDP, and `epsilon` is then its value at the ledger's delta."""

    epsilon: float
    delta: float
    rho: float | None = None

    def __str__(self) -> str:
        rho = "" if self.rho is None else f"rho {self.rho:.6g}, on its own "  # epsilons of a zCDP ledger do not add, rhos do
        return f"{rho}epsilon {self.epsilon:.6g}, delta {self.delta:.3g}"


class Entry(NamedTuple):
    """One reservation as the ledger recorded it. `committed` is bookkeeping; a reservation counts in full either way."""

    token: str
    amount: Amount
    plan: str
    secure: bool
    reserved_at: str
    committed: bool
    notes: tuple[tuple[str, str], ...] = ()  # names and texts, oldest first


class Ledger:
    """A privacy budget with one relation, one unit and one rule.

    Made by `Ledger.memory`, `Ledger.create` or `Ledger.open`. What names it as `ledger` is charged to it before a row is read.

    Attributes
    ----------
    name : str
        What the budget is called.
    epsilon, delta : Fraction
        The limit.
    relation : str
        The relation that all charges must have: "add-remove" or "replace-one".
    unit : PrivacyUnit
        The unit that all charges must have.
    rule : str
        How charges add up: "pure", "zcdp" or "approx".
    stated : dict
        What the operator states of charges from here on: see `stating`.

    Examples
    --------
    >>> ledger = Ledger.memory("clinic", epsilon=1.0, relation="add-remove")
    >>> print(ledger.remaining())
    epsilon 1, delta 0
    """

    def __init__(self, book: "_File | _Memory", terms: tuple[Any, ...]) -> None:
        self.name, self.relation, unit, self.rule, epsilon, delta, *limits = terms
        self.epsilon, self.delta = loss.read_fraction(epsilon), loss.read_fraction(delta)
        self.unit, self._book, self._limits = PrivacyUnit(**json.loads(unit)), book, tuple(limits)
        self.stated: dict[str, str] = {}

    @classmethod
    def memory(cls, name: str, epsilon: Number, delta: Number = 0, *,
               relation: Relation, unit: PrivacyUnit = PrivacyUnit(), rule: str = "auto") -> Self:  # fmt: skip
        """A budget that lives as long as this process.

        Parameters
        ----------
        name : str
            What releases and reports call the budget.
        epsilon : float or Fraction
            The budget for all releases together.
        delta : float or Fraction, default 0
            The same of delta.
        relation : str
            Neighbouring tables: "add-remove" (one record more or less) or "replace-one" (another one).
        unit : PrivacyUnit
            Whom it protects; default one record.
        rule : str, default "auto"
            How losses add up: "pure", "zcdp" or "approx"; "auto" is "zcdp" if there is a delta, else "pure".
        """
        terms = _terms(name, epsilon, delta, relation, unit, rule)
        return cls(_Memory(terms[-2:]), terms)

    @classmethod
    def create(cls, path: Path, name: str, epsilon: Number, delta: Number = 0, *,
               relation: Relation, unit: PrivacyUnit = PrivacyUnit(), rule: str = "auto") -> Self:  # fmt: skip
        """A budget in a new SQLite file, shared by every process that opens it.

        Parameters
        ----------
        path : str or path
            The file; one that exists is never overwritten.
        name : str
            What releases and reports call the budget.
        epsilon : float or Fraction
            The budget for all releases together.
        delta : float or Fraction, default 0
            The same of delta.
        relation : str
            Neighbouring tables: "add-remove" (one record more or less) or "replace-one" (another one).
        unit : PrivacyUnit
            Whom it protects; default one record.
        rule : str, default "auto"
            How losses add up: "pure", "zcdp" or "approx"; "auto" is "zcdp" if there is a delta, else "pure".
        """
        terms = _terms(name, epsilon, delta, relation, unit, rule)
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))  # two creators cannot both win
        except OSError as error:
            why = "exists already; a ledger is never overwritten" if isinstance(error, FileExistsError) else "cannot be written"
            raise InvalidValue(f"{os.fspath(path)!r} {why}. Choose another place.") from None
        _File(os.fspath(path)).initialise(terms)
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> Self:
        """The budget in an existing file."""
        if not os.path.isfile(path):
            raise InvalidValue(f"no ledger at {os.fspath(path)!r}. Check the name, or make one with Ledger.create.")
        book = _File(os.path.abspath(path))
        with suppress(Exception):  # a damaged file may make anything stumble
            *terms, version = book.terms()
            if version == 1:
                return cls(book, tuple(terms))
        raise InvalidValue("this file is no kveil ledger, or damaged, or of another version. Ledger.create makes one.")

    def stating(self, *, purpose: str = "", data_name: str = "", by: str = "") -> Self:
        """The same budget, whose charges from here on carry what the operator states: what for, on which data, who asked.

        Parameters
        ----------
        purpose : str, optional
            What a release is for; on the card, too.
        data_name : str, optional
            What the data is called; on the card, too.
        by : str, optional
            Who asked; on the ledger alone.

        Examples
        --------
        >>> ledger = Ledger.memory("clinic", epsilon=1.0, relation="add-remove").stating(purpose="beds per ward", by="A. Hill")
        >>> ledger.stated
        {'purpose': 'beds per ward', 'by': 'A. Hill'}
        """
        view = object.__new__(type(self))  # it shares the book: one budget, not a copy
        stated = {"purpose": purpose, "data_name": data_name, "by": by}
        vars(view).update(vars(self), stated=_readable({name: text for name, text in stated.items() if text != ""}))
        return view

    def reserve(self, plan: Plan, **notes: str) -> "Ticket":
        """Spend the whole cost of `plan`; durable when it returns, with its notes. BudgetExceeded or LedgerMismatch: nothing was
        charged."""
        notes = self.stated | _readable(notes)
        units, delta_units = (min(cost, 2**62) for cost in _cost(plan, self.rule))  # more than any limit
        token, secure = os.urandom(16).hex(), entropy().secure
        row = (units, delta_units, token, plan, secure, _day())
        tainted = self._book.add(row, notes, lambda first: self._check_kind(plan, first))
        if tainted is None:
            raise BudgetExceeded(
                f'this release needs {self._amount(units, delta_units)}; {self.remaining()} is left on ledger "{self.name}". '
                "Nothing was drawn and nothing was charged. Ask for less, or agree a new budget with the data owner."
            )
        return Ticket(self, plan, token, secure, tainted)

    def is_same(self, other: "Ledger") -> bool:
        """Whether both are one budget: the same object, or the same file."""
        if isinstance(self._book, _File) and isinstance(other._book, _File):
            return os.path.samefile(self._book.path, other._book.path)
        return self._book is other._book

    def spent(self) -> Amount:
        """What all charges so far add up to."""
        return self._amount(*self._book.spent())

    def remaining(self) -> Amount:
        """What is left of the limit."""
        return self._amount(*(limit - gone for limit, gone in zip(self._limits, self._book.spent(), strict=True)))

    def charges(self) -> tuple[Entry, ...]:
        """Every reservation, oldest first."""
        rows, noted = self._book.rows()
        notes: dict[str, list[tuple[str, str]]] = {}
        for token, name, text in noted:
            notes.setdefault(token, []).append((name, text))
        return tuple(
            Entry(t, self._amount(u, d), p, bool(s), at, state == "committed", tuple(notes.get(t, ())))
            for u, d, t, p, s, at, state in rows
        )

    def note(self, token: str, **notes: str) -> None:
        """Add notes to a charge that was made. What was noted before stays; the same note twice is one."""
        if not self._book.note(token, _readable(notes)):
            raise InvalidValue(f'ledger "{self.name}" knows no charge of this token, so nothing can be noted of it.')

    def _amount(self, units: int, delta_units: int) -> Amount:
        total = Fraction(units, UNIT)
        if self.rule == "zcdp":
            epsilon, delta = (loss.zcdp_epsilon(total, self.delta), float(self.delta)) if units else (0.0, 0.0)
            return Amount(epsilon, delta, float(total))
        return Amount(loss.round_up(total), loss.round_up(Fraction(delta_units, DELTA_UNIT)))

    def _check_kind(self, plan: Plan, first: PrivacyUnit | None) -> None:
        """One relation and one unit. Who is a person is fixed by the ledger or by its first charge."""
        column = self.unit.id_column or (first or plan.unit).id_column
        if plan.relation != self.relation or plan.unit != replace(self.unit, id_column=column):
            raise LedgerMismatch(
                f'ledger "{self.name}" protects {self.unit} under {self.relation}; this plan protects {plan.unit} under '
                f"{plan.relation}. A ledger adds up one kind of promise: fit as it says, or use another one. Nothing was charged."
            )

    def __repr__(self) -> str:
        return f"Ledger({self.name!r}, epsilon={float(self.epsilon):g}, delta={float(self.delta):g}, rule={self.rule!r})"

    def __deepcopy__(self, memo: Any = None) -> Self:
        return self  # a copy would be a second budget; scikit-learn's clone deep-copies parameters

    __copy__ = __deepcopy__

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self._book, _Memory):
            raise TicketError("an in-memory ledger cannot be pickled: two copies would be two budgets. Use Ledger.create.")
        return _opened, (type(self), self._book.path, self.stated)


class Ticket(AbstractContextManager["Ticket"]):
    """A reservation: the right to draw each charge of one plan once, in the process that reserved it."""

    def __init__(self, ledger: Ledger, plan: Plan, token: str, secure: bool, tainted: bool) -> None:
        self.ledger, self.plan, self.token, self.secure = ledger, plan, token, secure
        self.reasons = ("an earlier charge on this ledger was drawn with scripted noise",) if tainted else ()
        self.receipts: list[Receipt] = []
        self._taken: Counter[int] = Counter()
        self._lock, self._pid, self._open = threading.Lock(), os.getpid(), True

    def take(self, charge: Charge) -> int:
        """Use up one repetition of `charge` and return its place in the plan. Called by the gate, before noise is drawn."""
        with self._lock:
            self.check()
            for index, planned in enumerate(self.plan.charges):
                if planned == charge and self._taken[index] < planned.times:
                    self._taken[index] += 1
                    return index
            raise TicketError(f'"{charge.label}" is not in the reserved plan, or was drawn already. Nothing was drawn.')

    def check(self) -> None:
        """Refuse to draw on a closed reservation, in another process, or from another source than the one at its making."""
        if os.getpid() != self._pid or not self._open:
            raise TicketError("this reservation is closed, or belongs to another process. What it reserved stays spent.")
        if entropy().secure != self.secure:
            raise TicketError("the source of noise was changed after the budget was reserved. Nothing was drawn.")

    def close(self, is_complete: bool = True) -> None:
        """End the draws, and note if the release is complete. What was reserved is spent, also what was not drawn."""
        with self._lock:
            was_open, self._open = self._open, False
        if was_open and is_complete and os.getpid() == self._pid:
            with suppress(BudgetError):  # bookkeeping: the money went at reserve, and what was drawn must not be lost
                self.ledger._book.commit(self.token)

    def __exit__(self, *error: object) -> None:
        self.close(is_complete=error[0] is None)

    def __reduce__(self) -> NoReturn:
        raise TicketError("a reservation cannot be copied or sent elsewhere: its charges could then be drawn twice.")


_Row = tuple[int, int, str, Plan, bool, str]  # units, units of delta, token, plan, whether the noise is secure, day
_Check = Callable[[PrivacyUnit | None], None]  # refuses what is not of the kind of the first charge


class _Memory:
    """The charges of this process."""

    def __init__(self, limits: tuple[int, int]) -> None:
        self._limits, self._pid, self._lock = limits, os.getpid(), threading.RLock()
        self._spent, self._tainted, self._is_busy = (0, 0), False, False
        self._rows, self._notes = dict[str, list[Any]](), dict[tuple[str, str, str], None]()

    def add(self, row: _Row, notes: dict[str, str], check: _Check) -> bool | None:
        """Make a charge, and tell whether one before was drawn with scripted noise; None if this one does not fit."""
        units, delta_units, token, _, secure, _ = row
        with self._alone():
            check(next((first[3].unit for first in self._rows.values()), None))
            spent, tainted = (self._spent[0] + units, self._spent[1] + delta_units), self._tainted
            if spent[0] > self._limits[0] or spent[1] > self._limits[1]:
                return None
            self._spent, self._tainted = spent, tainted or not secure  # first: what an interrupt cuts off here is spent
            self._rows[token] = [*row, "reserved"]
            self._notes |= {(token, *note): None for note in notes.items()}
            return tainted

    def note(self, token: str, notes: dict[str, str]) -> bool:
        with self._alone():
            self._notes |= {(token, *note): None for note in notes.items() if token in self._rows}
            return token in self._rows

    def commit(self, token: str) -> None:
        with self._alone():
            self._rows[token][-1] = "committed"

    def spent(self) -> tuple[int, int]:
        with self._alone():
            return self._spent

    def rows(self) -> tuple[list[Any], list[Any]]:
        with self._alone():
            return [(u, d, t, loss.to_json(plan), *rest) for u, d, t, plan, *rest in self._rows.values()], list(self._notes)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if os.getpid() != self._pid:
            raise TicketError("a fork copied this in-memory ledger: two copies would be two budgets. Use Ledger.create.")
        with self._lock:
            if self._is_busy:  # a signal or a finaliser cut in: what it spends would be lost when the other one goes on
                raise BudgetError("this thread is in the middle of another charge on this ledger. Nothing was charged.")
            try:
                self._is_busy = True
                yield
            finally:
                self._is_busy = False


class _File:
    """The charges in a SQLite file. Every use has a connection of its own: none is shared by threads or carried across a fork."""

    def __init__(self, path: str) -> None:
        self.path = path

    def initialise(self, terms: tuple[Any, ...]) -> None:
        with closing(_connect(self.path)) as db:
            db.executescript(f"PRAGMA journal_mode=WAL; BEGIN IMMEDIATE; {SCHEMA}")
            db.execute("INSERT INTO ledger VALUES (1,1,?,?,?,?,?,?,?,?)", terms)
            db.execute("COMMIT")

    def terms(self) -> Any:
        columns = "name, relation, unit, rule, epsilon, delta, limit_units, limit_delta, version"
        with self._connection() as db:
            terms = db.execute(f"SELECT {columns} FROM ledger").fetchone()
            _check(db, terms)
            return terms

    def add(self, row: _Row, notes: dict[str, str], check: _Check) -> bool | None:
        """As `_Memory.add`, durable when it returns."""
        units, delta_units, token, plan, secure, day = row
        with self._connection() as db, suppress(sqlite3.IntegrityError):  # the trigger `within`
            db.execute("BEGIN IMMEDIATE")
            tainted = bool(db.execute("SELECT COUNT(*) FROM charge WHERE secure=0").fetchone()[0])
            first = db.execute("SELECT plan FROM charge ORDER BY id LIMIT 1").fetchone()
            check(PrivacyUnit(**json.loads(first[0])["unit"]) if first else None)
            into = "INSERT INTO charge(units, delta_units, token, plan, secure, reserved_at) VALUES (?,?,?,?,?,?)"
            db.execute(into, (units, delta_units, token, loss.to_json(plan), int(secure), day))
            if db.execute("SELECT SUM(units) > limit_units OR SUM(delta_units) > limit_delta FROM charge, ledger").fetchone()[0]:
                return None  # undone: a damaged file may have lost its trigger
            _write_notes(db, token, notes)
            db.execute("COMMIT")
            return tainted
        return None

    def note(self, token: str, notes: dict[str, str]) -> bool:
        with self._connection() as db, suppress(sqlite3.IntegrityError):  # the trigger `note_of`
            db.execute("BEGIN IMMEDIATE")
            _write_notes(db, token, notes)
            db.execute("COMMIT")
            return True
        return False

    def commit(self, token: str) -> None:
        with self._connection() as db:
            db.execute("UPDATE charge SET state='committed', committed_at=? WHERE token=? AND state='reserved'", (_day(), token))

    def spent(self) -> tuple[int, int]:
        with self._connection() as db:
            rows = db.execute("SELECT units, delta_units FROM charge").fetchall()
        return sum(units for units, _ in rows), sum(delta_units for _, delta_units in rows)

    def rows(self) -> tuple[list[Any], list[Any]]:
        with self._connection() as db:
            rows = list(db.execute("SELECT units, delta_units, token, plan, secure, reserved_at, state FROM charge ORDER BY id"))
            has_notes = db.execute("SELECT 1 FROM sqlite_master WHERE name='note'").fetchone()
            return rows, list(db.execute("SELECT token, name, text FROM note ORDER BY id")) if has_notes else []

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(_connect(self.path)) as db:
                yield db
        except (sqlite3.DatabaseError, UnicodeError):  # SQLite quotes damaged names, which may be no text
            raise BudgetError("the ledger is locked, unwritable, damaged or gone. Nothing was drawn; look at its file.") from None


def _opened(kind: type[Ledger], path: str, stated: dict[str, str]) -> Ledger:
    return kind.open(path).stating(**stated)


def _readable(notes: dict[str, str]) -> dict[str, str]:
    for name, text in notes.items():
        if not isinstance(text, str) or not text.isprintable() or not 0 < len(text) <= LONGEST_NOTE:
            raise InvalidValue(f"{name} must be one line of text, at most {LONGEST_NOTE} characters, that a person can read.")
    return notes


def _write_notes(db: sqlite3.Connection, token: str, notes: dict[str, str]) -> None:
    for statement in NOTES.split("\n\n") if notes else ():
        db.execute(statement)
    for name, text in notes.items():
        if not db.execute("SELECT 1 FROM note WHERE token=? AND name=? AND text=?", (token, name, text)).fetchone():
            db.execute("INSERT INTO note(token, name, text, noted_at) VALUES (?,?,?,?)", (token, name, text, _day()))


def _day() -> str:
    return datetime.now(UTC).date().isoformat()  # not the time: two of them would tell how long a fit ran, which rows decide


def _connect(path: str) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=30.0, isolation_level=None)
    db.execute("PRAGMA synchronous=FULL")  # NORMAL may lose the last commits of a WAL
    return db


def _check(db: sqlite3.Connection, terms: tuple[Any, ...]) -> None:
    """Raise for a cell that is not of its kind: SQLite takes any value in any column, and a damaged page holds any."""
    name, relation, _, rule, _, delta, *limits, _ = terms
    sound = isinstance(name, str) and relation in get_args(Relation) and all(type(limit) is int for limit in limits)
    sound &= rule in ("pure", "zcdp", "approx") and (delta == "0") == (rule == "pure") and 0 <= loss.read_fraction(delta) < 1
    for units, more, token, text, on, ok in db.execute("SELECT units, delta_units, token, plan, reserved_at, secure FROM charge"):
        plan = json.loads(text)
        sound &= type(units) is type(more) is int and units > 0 <= more and isinstance(token, str) and ok in (0, 1)
        sound &= all(isinstance(charge["label"], str) and type(charge["times"]) is int for charge in plan.get("charges", ()))
        PrivacyUnit(**plan["unit"]), datetime.fromisoformat(on)
    if db.execute("SELECT 1 FROM sqlite_master WHERE name='note'").fetchone():
        sound &= all(isinstance(text, str) for note in db.execute("SELECT token, name, text FROM note") for text in note)
    if not sound:
        raise ValueError


def _terms(name: str, epsilon: Number, delta: Number, relation: Relation, unit: PrivacyUnit, rule: str) -> tuple[Any, ...]:
    """The row of table `ledger`, checked; limits are rounded down."""
    limit, limit_delta = loss.floor_epsilon(epsilon), loss.floor_delta(delta)
    rule = ("zcdp" if limit_delta else "pure") if rule == "auto" else rule
    loss.check_word("rule", rule, ("auto", "pure", "zcdp", "approx"))
    loss.check_word("relation", relation, get_args(Relation))
    if not isinstance(unit, PrivacyUnit):
        raise InvalidValue(f'unit must be a PrivacyUnit, such as PrivacyUnit("person", 3, "id"), got {unit!r}.')
    if (rule == "pure") != (limit_delta == 0):
        raise InvalidValue(f'the rule "pure" goes with delta=0; "zcdp" and "approx" need delta > 0. Got "{rule}" and {delta}.')
    units = math.floor((loss.zcdp_rho(limit, limit_delta) if rule == "zcdp" else limit) * UNIT)
    delta_units = math.floor(limit_delta * DELTA_UNIT) if rule == "approx" else 0
    return name, relation, json.dumps(asdict(unit)), rule, str(limit), str(limit_delta), units, delta_units


def _cost(plan: Plan, rule: str) -> tuple[int, int]:
    """What `plan` takes from a ledger of this rule, in whole units rounded up."""
    if rule == "approx":
        total = loss.compose(plan)
        return max(1, math.ceil(Fraction(total.epsilon) * UNIT)), math.ceil(Fraction(total.delta) * DELTA_UNIT)
    losses = [charge.pure() if rule == "pure" else charge.zcdp() for charge in plan.charges]
    if None in losses:
        raise LedgerMismatch(
            f'this ledger adds by the rule "{rule}", which cannot count every mechanism of this plan: Gaussian noise needs a '
            "ledger with delta > 0, a threshold on data-dependent keys one with the rule approx. Nothing was charged."
        )
    return math.ceil(sum(part or Fraction(0) for part in losses) * UNIT), 0
