"""What a question is: public parameters, how the exact answer is computed, and how far one row can move it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np

from kveil.arrays import Floats, Integers

Kind = Literal["counts", "vectors", "coordinates", "total", "costs", "cell costs", "peeled costs", "active"]


@dataclass(frozen=True)
class Part:
    """One array of an answer, and all that one row can do to it.

    "counts"       a row adds numbers that are not negative, `length` together at most; nearly always that is 1 in one cell
    "vectors"      a row is in at most one cell, an entry of the first axis, and adds a vector of L2 norm at most `length`
    "coordinates"  the same with the L1 norm, for noise on every coordinate
    "total"        a row adds to one number between 0 and `length`, so a replaced row moves it no further than an added one
    "costs"        what a row adds to any two of the numbers differs by at most `length`
    "cell costs"   a row is in one cell, an entry of the first axis; the costs there are "costs", and no others move
    "peeled costs" a row is in one cell, where costs move by at most `largest` each and `length` in L1, and no others move
    "active"       a row of codes of cells and a row of their counts; a row is in at most one cell, and adds 1 there

    unit: what 1 stands for in the released array. Public; it broadcasts.
    is_signed: whether a row's vector may have negative entries. If not, a replaced one moves a sum less far, in L2.
    in_l2: counts whose `length` bounds the L2 norm alone. Laplace noise is refused for them.
    """

    label: str
    kind: Kind
    length: int = 1
    unit: Any = 1.0
    reason: str = ""
    in_l2: bool = False
    is_signed: bool = True
    largest: int = 0  # of "peeled costs" alone


class Noisy(NamedTuple):
    """A released array, and the noise in it: of one count its standard deviation; of one vector sum its root mean squared length,
    for rows of length 1."""

    values: Floats
    noise: float


class Page(Protocol):
    """What an earlier question noted of the rows of this block, if it is still there: it spares work, and changes no answer."""

    def find(self, key: tuple[Hashable, ...]) -> Any: ...

    def guess(self, family: tuple[Hashable, ...]) -> Any:
        """The note whose key begins so, whatever follows: for who can tell whether it still holds."""

    def keep(self, key: tuple[Hashable, ...], note: Any) -> None: ...


class NoPage:
    """Nothing is kept, and nothing found."""

    def find(self, key: tuple[Hashable, ...]) -> Any:
        return None

    def guess(self, family: tuple[Hashable, ...]) -> Any:
        return None

    def keep(self, key: tuple[Hashable, ...], note: Any) -> None:
        return None


NO_PAGE = NoPage()


class Question(ABC):
    """Public parameters of a statistic of rows. `parts` bounds what `raw` lets one row do; one property test tries every class.

    over: None if `raw` takes a block of encoded rows; otherwise the question whose raw answer it takes. A desk that holds
        anything else refuses it, since its `parts` would be untrue.
    """

    combine: ClassVar[Any] = np.add
    over: ClassVar[type[Question] | None] = None

    @property
    def lengths(self) -> Integers | None:
        """Bounds of the single cells of its vectors, where they differ; none above the `length` of that part."""
        return None

    @property
    @abstractmethod
    def parts(self) -> tuple[Part, ...]:
        """One entry for every array of `raw`, from public parameters alone."""

    def is_about(self, held: Question) -> bool:
        """Whether it is computed from the answer to `held`."""
        return type(held) is self.over

    @abstractmethod
    def raw(self, held: Any) -> tuple[Integers, ...]:
        """Exact integers; the answers of blocks merge by `combine`. Secret."""


@runtime_checkable
class Paged(Protocol):
    """A question about rows that another one is about, too: what is found out about them is done once."""

    takes_page: ClassVar[bool]

    def raw(self, held: Any, page: Page = ...) -> tuple[Integers, ...]:
        """The same integers whatever the page holds. Secret."""


class Raw:
    """As a source wants its kernels: it can be pickled, and is called with a block and a state, and a page if there is one."""

    takes_page = True

    def __call__(self, held: Any, question: Question, page: Page = NO_PAGE) -> tuple[Integers, ...]:
        if getattr(question, "takes_page", False):  # isinstance of a protocol takes as long as a small block
            return cast(Paged, question).raw(held, page)
        return question.raw(held)


raw = Raw()
