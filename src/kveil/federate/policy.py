"""What a party agrees to answer, fixed by its owner: public, and checked before anything is charged."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from kveil.errors import InvalidValue

PROTOCOLS = ("cells", "sample", "pdk", "dk")


@dataclass(frozen=True)
class Policy:
    """Limits of a party. The budget over all runs is its ledger's.

    epsilon_per_run, delta_per_run: the most that one run may cost.
    coordinators: names that may ask, as the transport proves them; empty: whoever the transport lets through.
    parties: names of all parties of a run, this one too, as its coordinator states them; empty: whoever they are.
    protocols: those that are answered.
    allow_exact: whether runs without noise are answered ("cells" with epsilon=None, and "dk"). They promise nothing: with "cells"
        among the protocols a coordinator may then read all rows, cell by cell; with "dk" alone it gets sums over clusters.
    max_rounds, max_clusters, max_level, max_cells, max_rows: sizes of what may be asked.
    longest_hold: seconds that a run may stay open.
    longest_silence: seconds after which a run that asks nothing gives way to another.
    """

    epsilon_per_run: float = 1.0
    delta_per_run: float = 0.0
    coordinators: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ("cells", "sample", "pdk")
    allow_exact: bool = False
    max_rounds: int = 4096
    max_clusters: int = 4096
    max_level: int = 62
    max_cells: int = 2**16
    max_rows: int = 2**16
    longest_hold: int = 86_400
    longest_silence: int = 600
    parties: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        numbers = {field.name: getattr(self, field.name) for field in fields(self) if field.type == "int"}
        bad = [name for name, value in numbers.items() if type(value) is not int or value < 1]
        bad += [name for name in ("epsilon_per_run", "delta_per_run") if not _is_number(getattr(self, name))]
        bad += [name for name in ("coordinators", "protocols", "parties") if not _are_texts(getattr(self, name))]
        bad += ["allow_exact"] if type(self.allow_exact) is not bool else []
        bad += ["max_level"] if not bad and self.max_level > 62 else []
        bad += ["max_cells"] if not bad and self.max_cells > 2**20 else []
        bad += ["protocols"] if not bad and not set(self.protocols) <= set(PROTOCOLS) else []
        if bad:
            raise InvalidValue(f"a policy cannot be read: {', '.join(sorted(set(bad)))} is not of the kind that belongs there.")

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Policy:
        """The policy in a JSON file; a key that is not known is refused, so that no limit is misspelt unnoticed."""
        try:
            found: Any = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            found = None
        known = {field.name for field in fields(cls)}
        if not isinstance(found, dict) or not set(found) <= known:
            raise InvalidValue(
                f"{os.fspath(path)!r} is no policy: it must be a JSON object with keys among {', '.join(sorted(known))}."
            )
        given: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in found.items()}
        return cls(**given)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1024


def _are_texts(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(item, str) for item in value)
