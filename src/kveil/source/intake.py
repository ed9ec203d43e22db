"""Which columns are read, and what is refused from the schema alone. Names and types are public, rows are not.

Every check here runs before a row is read and outside any `except`, so that no library's message, which may quote
rows or their number, travels along on the error.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from kveil.errors import InvalidType, InvalidValue, SourceError
from kveil.source.levels import Levels
from kveil.source.options import Options

NO_LEVELS: dict[Any, Levels] = {}


class Choice(NamedTuple):
    """The columns to read, in order, and the column of ids, which is never a feature, with the type ids are compared in."""

    features: tuple[Any, ...]
    person: Any = None
    id_kind: str = ""  # one of those in ids.py, fixed by the schema, if there is a person
    levels: Mapping[Any, Levels] = NO_LEVELS  # of the features that are categories

    @property
    def names(self) -> tuple[str, ...] | None:
        return tuple(self.features) if all(isinstance(name, str) for name in self.features) else None


def choose(available: Sequence[Hashable], options: Options) -> Choice:
    """The chosen columns of a table that has the `available` ones."""
    if len(set(available)) < len(available):
        twice = sorted({str(name) for name in available if available.count(name) > 1})
        raise SourceError(f"the table has more than one column called {_listed(twice)}. Rename them, so that a name means one.")
    wanted = options.columns
    if wanted is None:
        wanted = tuple(name for name in available if name not in (options.person, options.weight))
    others = tuple(name for name in (options.person, options.weight) if name is not None)
    unknown = [name for name in (*wanted, *others, *options.categories) if name not in available]
    if unknown:
        raise SourceError(f"there is no column {_listed(unknown)}. The columns are {_listed(available)}.")
    if len(set(wanted)) < len(wanted):
        raise SourceError(f"columns names a column more than once. The columns are {_listed(available)}.")
    if options.person is not None and options.person in wanted:
        raise SourceError(f"{_listed([options.person])} holds ids of people and cannot be a feature too. Take it out of columns.")
    if options.weight is not None and options.weight in (*wanted, options.person):
        raise SourceError(f"{_listed([options.weight])} holds weights of rows and cannot be anything else too.")
    unused = [name for name in options.categories if name not in wanted]
    if unused:
        raise SourceError(
            f"categories has levels of {_listed(unused)}, which is not in use. Name it in columns, or leave it out."
        )
    check_columns(len(wanted))
    read = wanted if options.weight is None else (*wanted, options.weight)  # a weight comes last, and is no feature
    return Choice(tuple(read), options.person, levels=dict(options.categories))


def check_columns(n_columns: int) -> None:
    if n_columns == 0:
        raise InvalidValue("Found array with 0 feature(s) while a minimum of 1 is required. Pass at least one column of numbers.")


def check_dimensions(ndim: int) -> None:
    """Rows must be a table: two dimensions."""
    if ndim in (0, 1):
        got = "1D" if ndim else "scalar"
        raise InvalidValue(
            f"Expected 2D array, got {got} array instead. Reshape your data: array.reshape(-1, 1) if it is a single feature, "
            "array.reshape(1, -1) if it is a single record."
        )
    if ndim > 2:
        raise InvalidValue(f"Expected 2D array, got {ndim}D array instead. Reshape your data to one row a record.")


def check_types(kinds: Mapping[Any, str | None]) -> None:
    """Refuse columns that hold no numbers; `kinds` tells the type of each such column, None for the others."""
    for kind in kinds.values():
        if kind is not None and "complex" in kind.lower():
            refuse_complex()
    bad = {name: kind for name, kind in kinds.items() if kind is not None}
    if bad:
        which = ", ".join(f"{_quoted(name)} ({kind})" for name, kind in list(bad.items())[:20])
        raise SourceError(f"these columns do not hold numbers: {which}. Drop them, or name the numeric ones with columns=[...].")


def check_levels(choice: Choice, texts: Mapping[Any, str | None]) -> None:
    """Refuse columns of categories whose type cannot hold their levels; `texts` tells the type where it holds no text."""
    for name, kind in texts.items():
        if choice.levels[name].are_text and kind is not None:
            raise SourceError(
                f"the levels of {_quoted(name)} are text, and the column is of type {kind}. Give its levels as numbers, or "
                "convert the column to text."
            )


def with_ids_of(choice: Choice, kind: str | None, type_name: str) -> Choice:
    """The choice with the kind of its ids; a `kind` of None is refused."""
    if kind is None:
        raise SourceError(
            f"the ids of people in {_quoted(choice.person)} are of type {type_name}. They must compare exactly, so convert the "
            "column to integers or strings."
        )
    return choice._replace(id_kind=kind)


def refuse_complex() -> NoReturn:
    raise InvalidValue("Complex data not supported. Pass real and imaginary part as two columns of real numbers.")


def refuse_objects(where: str) -> NoReturn:
    raise InvalidType(
        f"every cell of {where} argument must be a real number, not a string or another object in place of a number. "
        "Convert text to numbers first, or pass a frame and choose columns=[...]."
    )


def _quoted(name: Any) -> str:
    return f'"{name}"' if isinstance(name, str) else str(name)


def _listed(names: Sequence[Any]) -> str:
    shown = ", ".join(_quoted(name) for name in list(names)[:50])
    return shown + (", ..." if len(names) > 50 else "")
