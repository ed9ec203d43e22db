"""The command line as a page: every command with its help and options, read from the program itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

COMMON = "All commands"  # the panel of options that every command has; the page names them once


def commands() -> str:
    from kveil.cli.commands import COMMANDS
    from kveil.cli.door import loaded

    panels = dict.fromkeys(home.panel for home in COMMANDS.values())
    return "\n".join(
        line for panel in panels for line in _panel(panel, [n for n, home in COMMANDS.items() if home.panel == panel], loaded)
    )


def _panel(panel: str, names: list[str], loaded: Any) -> Iterator[str]:
    yield f"## {panel}\n"
    for name in names:
        yield from _lines(loaded(name), f"kveil {name}")


def _lines(command: Any, name: str) -> Iterator[str]:
    if not hasattr(command, "commands"):
        yield f"### {name}\n\n{_plain(command.help)}\n"
        yield from _usage(command, name)
        return
    for sub, found in command.commands.items():
        if not found.hidden:
            yield from _lines(found, f"{name} {sub}")


def _usage(command: Any, name: str) -> Iterator[str]:
    given = [param for param in command.params if not getattr(param, "hidden", False) and param.name != "help"]
    given = [param for param in given if getattr(param, "rich_help_panel", None) != COMMON]
    arguments = [param for param in given if param.param_type_name == "argument"]
    options = [param for param in given if param.param_type_name == "option"]
    shown = "".join(f" {_metavar(one)}" for one in arguments)
    yield f"```\n{name}{' [OPTIONS]' if options else ''}{shown}\n```\n"
    if given:
        yield "| option | what it is |\n| --- | --- |"
        yield from (f"| {_code(_metavar(one))} | {_cell(one)} |" for one in arguments)
        yield from (f"| {', '.join(map(_code, [*one.opts, *one.secondary_opts]))} | {_cell(one)} |" for one in options)
        yield ""


def _metavar(argument: Any) -> str:
    word = (argument.metavar or argument.name).upper()
    return word if argument.required else f"[{word}]"


def _code(name: str) -> str:
    """A name in a frame of its own: a line breaks between names, and never at the hyphens of one."""
    return f"`{name}`{{ .option }}"


def _cell(param: Any) -> str:
    text = _plain(getattr(param, "help", "") or "")
    default = param.default
    if default not in (None, False, True, "", ()) and not callable(default) and default is not ... and not param.required:
        text += f" (default {default})" if "default" not in text else ""
    return (text.strip() or "&nbsp;").replace("|", "\\|").replace("\n", " ")


def _plain(text: str | None) -> str:
    text = re.sub(r"\[/?(?:bold|dim|italic|cyan|green|red|yellow)[^\]]*\]", "", text or "")
    return re.sub(r"<(?=\w)", "&lt;", text.replace("\b", "")).strip()
