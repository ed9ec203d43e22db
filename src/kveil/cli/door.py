"""The root command: it loads the command that was typed, gives it the options that all have, and reads `kveil.toml`."""

from __future__ import annotations

import logging
import re
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from kveil.cli.commands import COMMANDS
from kveil.cli.config import set_defaults
from kveil.cli.panels import MANY, panel_of, place_of
from kveil.cli.state import log, state

COMMON = "All commands"


class Door(TyperGroup):
    """A group whose commands are imported when they are run. For its own help a line about each is enough."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = Commands()

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _line(cmd_name) if cmd_name in COMMANDS else None

    def get_params(self, ctx: Any) -> list[Any]:
        return flags_alone(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else loaded(name), rest


class Commands(dict[str, Any]):
    """All commands by name, for whoever wants to see them all. Each is loaded when it is looked at."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(COMMANDS))

    def __getitem__(self, name: str) -> Any:
        return loaded(name)

    def values(self) -> Any:
        return [loaded(name) for name in self]

    def items(self) -> Any:
        return [(name, loaded(name)) for name in self]


@lru_cache(maxsize=len(COMMANDS))
def loaded(name: str) -> Any:
    """The command, or the group of commands, with the options that all commands have."""
    home = COMMANDS[name]
    found = getattr(import_module(f"kveil.cli.{home.module}"), home.name)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(name)(found)
        found = alone
    command = typer.main.get_command(found)
    command.name, command.help = name, command.help or home.help
    _dress(command)
    return command


@lru_cache(maxsize=len(COMMANDS))
def _line(name: str) -> Any:
    home = COMMANDS[name]
    return TyperCommand(name=name, help=home.help, callback=None, rich_help_panel=home.panel)


def _dress(command: Any) -> None:
    """Add the common options to a command, or to all commands of a group; help breaks lines by the width of the screen alone."""
    command.help = re.sub(r"(?<!\n)\n(?!\n)\s*", " ", command.help or "")
    for inner in getattr(command, "commands", {}).values():
        _dress(inner)
    if not hasattr(command, "commands"):
        options = [each for each in command.params if each.param_type_name == "option"]
        for option in options if len(options) >= MANY else ():
            option.rich_help_panel = option.rich_help_panel or panel_of(option.name)
        command.params.sort(key=lambda each: place_of(getattr(each, "rich_help_panel", None)))  # groups in one order everywhere
        taken = {option for parameter in command.params for option in parameter.opts}
        if "--k" in taken:
            command.context_settings["token_normalize_func"] = _as_typed_here
        command.params += [option for option in _common_options() if not taken & set(option.opts)]
    flags_alone(command.get_params(typer.Context(command)))  # with --help, which is made here and kept


def _as_typed_here(word: str) -> str:
    """The word of scikit-learn for -k is taken, too, without a line in the help."""
    return "k" if word == "n-clusters" else word


def flags_alone(params: Any) -> list[Any]:
    """Options as they are; help shows no type behind one that takes no value."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return list(params)


def _take_config(ctx: typer.Context, value: Path | None) -> Path | None:
    if not ctx.resilient_parsing:  # a shell that completes a line reads no file
        state.context = ctx
        set_defaults(ctx, value)
    return value


def _take_quiet(value: bool) -> bool:
    state.quiet = value
    return value


def _take_verbose(value: bool) -> bool:
    state.verbose = value
    if value:
        log.setLevel(logging.INFO)
    return value


def _all_commands_have(
    config: Annotated[
        Path | None,
        typer.Option(
            help="TOML file of options, one table per command; default kveil.toml, if it is here",
            callback=_take_config, is_eager=True, rich_help_panel=COMMON,
        ),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="print nothing but the answer", callback=_take_quiet, rich_help_panel=COMMON)
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="print all details", callback=_take_verbose, rich_help_panel=COMMON)
    ] = False,
) -> None:  # fmt: skip
    """Options that are added to every command; it is never called."""


@cache
def _common_options() -> list[Any]:
    made = typer.Typer(add_completion=False)
    made.command("all")(_all_commands_have)
    options = [option for option in typer.main.get_command(made).params if option.name in ("config", "quiet", "verbose")]
    for option in options:
        option.expose_value = False
    return options
