"""Options from a file: `kveil.toml` in the folder where a command is run, or `--config FILE`.

A table per command holds its options, `[all]` those of several commands:

    [all]
    ledger = "budget.db"

    [fit]
    epsilon = 0.5
    bounds = [0, 120]
    columns = ["age", "height"]

    [ledger.init]
    epsilon = 2

What is typed wins over the table of the command, and this over `[all]`. Paths begin where the command is run.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from kveil.cli.commands import COMMANDS
from kveil.cli.state import log, state
from kveil.errors import InvalidValue

DEFAULT = Path("kveil.toml")
TYPED = {"force", "no-privacy", "yes", "config", "quiet", "verbose", "help"}  # what must be meant each time


def set_defaults(ctx: Any, given: Path | None) -> None:
    """Give the command of this context the options of the file, if there is one."""
    path = given or (DEFAULT if DEFAULT.is_file() else None)
    if path is None:
        return
    tables, names = _read(path), _path_of(ctx)
    _check_tables(path, tables)
    own, common, known = _own(path, tables, names), tables.get("all", {}), _options(ctx.command)
    unknown = [key for key in own if _word(key) not in known]
    if unknown:
        able = _listed(sorted(known))
        raise InvalidValue(f"{path}: `kveil {' '.join(names)}` has no option {_listed(unknown)} for a file. It has {able}.")
    _check_common(path, [key for key in common if _word(key) not in known])
    given_here = {_word(key): value for key, value in {**common, **own}.items() if _word(key) in known}
    values = {word: _plain(path, known[word], value) for word, value in given_here.items()}
    ctx.default_map = {known[word].name: value for word, value in values.items()}
    state.config, state.options = path, {f"--{word}": value for word, value in values.items()}
    log.info("options in %s: %s", path, _listed(state.options) or "none")


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        why = error.strerror or "it cannot be read"
    except (ValueError, RecursionError):  # of TOML, or of UTF-8
        why = "it is no TOML"
    raise InvalidValue(f"--config: {path} cannot be used: {why}. Write one table per command, such as [fit].")


def _path_of(ctx: Any) -> list[str]:
    """The words of the command: ["fit"], or ["ledger", "init"]."""
    words: list[str] = []
    while ctx is not None and ctx.parent is not None:
        words, ctx = [ctx.info_name, *words], ctx.parent
    return words


def _check_tables(path: Path, tables: dict[str, Any]) -> None:
    outside = [key for key, value in tables.items() if key not in ("all", *COMMANDS) and not isinstance(value, dict)]
    if outside:
        raise InvalidValue(
            f"{path}: `{outside[0]}` stands outside a table: write [fit] above it, or the name of another command."
        )
    unknown = [key for key in tables if key != "all" and key not in COMMANDS]
    if unknown:
        raise InvalidValue(
            f"{path}: there is no command {_listed(unknown)}. Tables are called after commands, or [all] for several of them."
        )
    plain = [key for key, value in tables.items() if not isinstance(value, dict)]
    if plain:
        raise InvalidValue(f"{path}: {_listed(plain)} must be a table of options. Write it as [{plain[0]}], options below it.")


def _own(path: Path, tables: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """The table of this command. Of a group its commands have tables inside, and nothing else is."""
    own: dict[str, Any] = tables
    for depth, name in enumerate(names):
        own = own.get(name, {})
        if not isinstance(own, dict):
            raise InvalidValue(f"{path}: {'.'.join(names[: depth + 1])} must be a table of options.")
    return own


def _options(command: Any) -> dict[str, Any]:
    """The options of a command that a file may set, by the words that are typed."""
    options = {max(each.opts, key=len).lstrip("-"): each for each in command.params if each.param_type_name == "option"}
    return {word: each for word, each in options.items() if word not in TYPED}


def _check_common(path: Path, strange: list[str]) -> None:
    """Refuse what no command has. The others are loaded only if the one that runs does not have it."""
    everywhere = {word for command in (_all_commands() if strange else ()) for word in _options(command)}
    unknown = [key for key in strange if _word(key) not in everywhere]
    if unknown:
        raise InvalidValue(f"{path}: no command has the option {_listed(unknown)}, which [all] sets. Check its spelling.")


def _all_commands() -> list[Any]:
    from kveil.cli.door import loaded

    found, waiting = [], [loaded(name) for name in COMMANDS]
    while waiting:
        command = waiting.pop()
        inner = getattr(command, "commands", None)
        if inner is None:
            found.append(command)
        else:
            waiting += inner.values()
    return found


def _plain(path: Path, option: Any, value: Any) -> Any:
    """A value as it would be typed: a list is its members with commas between."""
    if isinstance(value, list) and all(isinstance(each, str | int | float) and not isinstance(each, bool) for each in value):
        return list(map(str, value)) if option.multiple else ",".join(map(str, value))
    if isinstance(value, str | int | float) and not option.multiple:
        return value
    raise InvalidValue(f"{path}: {option.opts[0]} takes a text, a number, true or false, or a list of texts or numbers.")


def _word(key: str) -> str:
    return key.replace("_", "-")


def _listed(names: Any) -> str:
    return ", ".join(map(str, names))
