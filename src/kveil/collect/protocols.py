"""The protocols by name, and which one "auto" is: from public facts alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

from kveil.collect.lae import LITE, PAPER, Lae
from kveil.collect.lma import Lma
from kveil.collect.one_grid import GridProtocol
from kveil.collect.queries import LocalProtocol, Terms
from kveil.collect.refine import Refine
from kveil.collect.zoom import Zoom
from kveil.errors import InvalidValue
from kveil.tuning import Lae as Tuning

Name = Literal["grid", "zoom", "refine", "lae", "lae-ball", "lae-paper", "lma"]

PROTOCOLS: dict[str, Callable[[Terms, bytes], LocalProtocol]] = {
    "grid": GridProtocol,
    "zoom": Zoom,
    "refine": Refine,
    "lae": Lae,
    "lae-ball": lambda terms, seed: Lae(terms, seed, LITE, Tuning(lsh="ball")),
    "lae-paper": lambda terms, seed: Lae(terms, seed, PAPER),
    "lma": Lma,
}


SECOND = "-2"  # after their name in manifests; without it a campaign was begun with version 1, and ends with it
FIRST: dict[str, Callable[[Terms, bytes], LocalProtocol]] = {
    "grid": partial(GridProtocol, version=1),
    "refine": partial(Refine, version=1),
    "lma": partial(Lma, version=1),
}
TUNED = {"lae": LITE, "lae-paper": PAPER}  # protocols whose hashing, alpha and c may be chosen


def build(name: str, terms: Terms, seed: bytes, tuning: Tuning | None = None) -> LocalProtocol:
    """The protocol of that name. `seed`: public, fixed before any report; the maps of the campaign follow from it."""
    if name not in PROTOCOLS:
        raise InvalidValue(f"there is no protocol {name!r}; there are {', '.join(PROTOCOLS)}.")
    if tuning is None:
        return PROTOCOLS[name](terms, seed)
    if name not in TUNED:
        raise InvalidValue(
            f"tuning is for the protocols {' and '.join(TUNED)}, not for {name}. Leave it out, or name one of them."
        )
    return Lae(terms, seed, TUNED[name], tuning)


def written(name: str) -> str:
    """How the manifests of a new campaign call a protocol."""
    return name + SECOND if name in FIRST else name


def read(method: str) -> str:
    """The protocol that manifests call so, whichever version."""
    name = method.removesuffix(SECOND)
    return name if name in FIRST else method


def rebuild(method: str, terms: Terms, seed: bytes, tuning: Tuning | None = None) -> LocalProtocol:
    """The protocol that manifests call so, in the version with which the campaign began."""
    if method in FIRST and tuning is None:
        return FIRST[method](terms, seed)
    return build(read(method), terms, seed, tuning)
