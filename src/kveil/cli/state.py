"""What the command that runs now was told beside its own options: how much to say, and where options came from."""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

log = logging.getLogger("kveil")

FROM_FILE = "DEFAULT_MAP"  # the word of click


@dataclass
class State:
    """quiet, verbose: how much is said.  config: the file that options were read from.  options: those that it has.
    context: of the command, once it is known.  said: where log lines go, while a command runs."""

    quiet: bool = False
    verbose: bool = False
    config: Path | None = None
    options: dict[str, Any] = field(default_factory=dict)
    context: Any = None
    said: logging.Handler | None = None

    def reset(self) -> None:
        self.__init__()  # type: ignore[misc]

    def taken(self) -> dict[str, Any]:
        """Of the options that the file has, those that were not typed."""
        names = {max(each.opts, key=len): each.name for each in self.context.command.params} if self.options else {}
        sources = {option: self.context.get_parameter_source(names[option]) for option in self.options}
        return {option: self.options[option] for option, source in sources.items() if source is None or source.name == FROM_FILE}

    def tell_config(self) -> dict[str, Any]:
        """For `--json`: which file set which options, without passwords of URLs; nothing if there was none."""
        if self.config is None:
            return {}
        from kveil.source.places import called

        options = {name: called(value) if isinstance(value, str) else value for name, value in self.taken().items()}
        return {"config": {"file": str(self.config), "options": options}}


state = State()


class logging_to_stderr:
    """Log lines of kveil on stderr while a command runs. By default these are warnings, and progress once per minute."""

    def __enter__(self) -> None:
        news, handler = logging.getLogger(PROGRESS), _Lines()
        self._levels = {each: each.level for each in (log, news)}
        state.said = handler
        log.addHandler(handler)
        news.setLevel(logging.INFO)

    def __exit__(self, *error: object) -> None:
        if state.said is not None:
            log.removeHandler(state.said)
        for each, level in self._levels.items():
            each.setLevel(level)
        state.said = None


class _Lines(logging.Handler):
    """On the stderr of the moment, unless another handler of the process writes already."""

    def emit(self, record: logging.LogRecord) -> None:
        from kveil.release.words import printable

        if state.quiet or any(type(other) is logging.StreamHandler for other in logging.getLogger().handlers):
            return
        if record.levelno >= logging.WARNING or state.verbose or record.name == PROGRESS:
            text = record.getMessage()
            print(f"kveil: {printable(text, len(text))}", file=sys.stderr, flush=True)


PROGRESS = "kveil.progress"
