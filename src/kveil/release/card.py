"""The card of a release: one page of Markdown for people who will never run the code.

First what a person can use, then the numbers, technical detail last.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kveil._version import __version__
from kveil.errors import InvalidValue
from kveil.kernel.grid import Box
from kveil.release.numbers import with_error
from kveil.release.odds import in_words
from kveil.release.table import column_names
from kveil.release.words import code, escaped, printable
from kveil.space.widths import by_column

if TYPE_CHECKING:
    from kveil.release.release import Release

MOST_ROWS, MOST_COLUMNS, MOST_TEXT = 20, 12, 160
MOST_LEVELS = 3  # of a category, in a line of the table

ERROR = "standard error of a number: the noise in it, in the unit of its column"

NOT_TO_DO = (
    "Do not publish labels. The nearest centre of a row is a function of that row, so labels and distances are not private.",
    "Do not add statistics that were not released with it. Row counts, cluster sizes, averages or costs computed from the "
    "rows carry no promise, and next to these centres they undo the one above.",
    "Do not fit again on the same rows without counting: every release adds to what is known about them. A ledger counts.",
    "Do not take bounds, parameters, scalers or other preprocessing from the rows, and do not choose among fits by their "
    "score. The promise treats all of these as known to everyone. Bounds that were found privately cost their own charge.",
    "Do not take the digest in `release.json` for a signature: it finds damage, and does not tell who made the release. "
    "`kveil verify` checks both.",
)

NOT_COVERED = (
    "what the data says of everybody: a conclusion about people like you can be drawn whether you are in it or not",
    "other releases about the same people: what is promised for each adds up",
    "how the data was collected, kept, cleaned or chosen, and whoever may read it there",
)
SEVERAL = "somebody with several records: the promise is for each record by itself"


def card(release: Release) -> str:
    """The page, from the release alone."""
    said = (f"bounds: {_bounds(release)}", release.verdict().note)  # other parts of the card say that already
    notes = [note for note in release.notes if note not in said]
    parts = [
        f"# {len(release.centers)} {_plural(len(release.centers), 'centre')} by {escaped(release.kind)}",
        _warning(release),
        "## In short",
        escaped(in_words(release.guarantee)),
        _stated(release),
        _not_covered(release),
        "## What not to do with it",
        "\n".join(f"- {line}" for line in NOT_TO_DO),
        "## Is it any good?",
        "\n".join(_line(line) for line in str(release.verdict()).splitlines()),
        "## The centres",
        _what(release),
        _table(release),
        "## What was protected",
        "\n".join(_line(line) for line in str(release.guarantee).splitlines()),
        "## How it was made",
        _method(release),
        "## Receipt",
        _receipt(release),
        _synopsis(release),
        "## Notes" if notes else "",
        "\n".join(f"- {escaped(note)}" for note in notes),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _warning(release: Release) -> str:
    guarantee = release.guarantee
    if guarantee.route == "none":
        return "**WARNING: this result has no privacy guarantee. It was computed without noise. Do not let it leave the house.**"
    if guarantee.valid:
        return ""
    reasons = escaped("; ".join(guarantee.reasons)) or "no reason was recorded"
    return f"**WARNING: the guarantee below is NOT VALID: {reasons}. Treat these centres as if they were rows.**"


def _stated(release: Release) -> str:
    facts = (("Made on", release.created), ("Data", release.data_name), ("Purpose", release.purpose))
    return "\n".join(f"- {name}: {escaped(text) or 'not stated'}" for name, text in facts)


def _not_covered(release: Release) -> str:
    if release.guarantee.route == "none":
        return ""
    several = (SEVERAL,) if release.guarantee.unit.kind == "record" else ()
    return "\n".join(["Not covered:", "", *(f"- {text}" for text in (*several, *NOT_COVERED))])


def _what(release: Release) -> str:
    k = len(release.centers)
    what = "points of a public universe, given by index" if release.n_features is None else _features(release)
    share = "share" if release.guarantee.route == "none" else "noisy share"
    weights = f"Each carries the {share} of records near it." if release.weights is not None else "No weights were released."
    errors = "" if release.errors is None else f" ± is the {ERROR}."
    return f"A release of kveil: {k} {_plural(k, 'centre')} of clusters, {what}. {weights}{errors}"


def _features(release: Release) -> str:
    named = "" if release.features is not None else ", which have no names"
    return f"in the units of {release.n_features} {_plural(release.n_features or 0, 'feature')}{named}"


def _line(line: str) -> str:
    bare = line.lstrip()
    return f"  - {escaped(bare[2:])}" if bare.startswith("- ") else escaped(line)


def _method(release: Release) -> str:
    asked, used, why = (escaped(release.method[key]) for key in ("asked", "used", "why"))
    lines = [f"Method: {used} (asked for: {asked}).{' Why: ' + why + '.' if why else ''}", "", "Public parameters:", ""]
    for name, value in release.parameters.items():
        if name == "bounds" and _bounds(release):
            lines.append(f"- bounds: {escaped(_bounds(release))}")
            continue
        text = json.dumps(value, ensure_ascii=False)
        more = "" if len(text) <= MOST_TEXT else " … (all of it in release.json)"
        lines.append(f"- {escaped(name)}: {code(text[:MOST_TEXT])}{more}")
    lines = lines if release.parameters else [*lines[:-2], "No public parameters were recorded."]
    return "\n".join([*lines, *_sample(release.parameters.get("public_sample"))])


def _sample(told: Any) -> list[str]:
    """What became of a public sample, if there was one."""
    if not isinstance(told, dict):
        return []
    which = f"A public sample of {told.get('rows')!s:.20} rows (SHA-256 {told.get('sha256')!s:.64})"
    if told.get("used") is not True:
        return ["", escaped(f"{which} was offered and not used: the notes say why.")]
    rest = "Its rows are NOT protected: centres may show them. The promise is for the private table alone."
    return ["", escaped(f"{which} was used. {rest}")]


def _bounds(release: Release) -> str:
    """Low and high by column, where the parameters tell them."""
    try:
        domain = release.domain()
    except InvalidValue:
        return ""
    return by_column(domain.lower, domain.upper, release.features) if isinstance(domain, Box) else ""


def _table(release: Release) -> str:
    names = list(column_names(release))
    weight = names.pop() if release.weights is not None else None
    of_levels = categories_of(release)
    names = [name for place, name in enumerate(names) if not any(place in block.places for block in of_levels)]
    shown = names[:MOST_COLUMNS]
    rows = _numbers(release.centers, of_levels)[:MOST_ROWS, : len(shown)]
    header = ["", *(escaped(printable(name, 40)) for name in shown)] + [escaped(printable(b.column, 40)) for b in of_levels]
    header += [escaped(weight)] if weight else []
    header += [] if release.names is None else ["name"]
    lines, errors = [_cells(header), _cells(["---:"] * len(header))], release.verdict().column_errors
    errors = None if errors is None else _numbers(errors, of_levels)
    for place, row in enumerate(rows):
        own = [] if release.weights is None else [f"{release.weights[place]:.4g}"]
        own += [] if release.names is None else [escaped(printable(release.names[place], 40))]
        told = [f"{value:.6g}" if release.n_features else str(value) for value in row]
        if errors is not None:
            told = [with_error(value, error) for value, error in zip(row.tolist(), errors[place].tolist(), strict=False)]
        levels = [_largest(block, release.centers[place]) for block in of_levels]
        lines.append(_cells([str(place), *told, *levels, *own]))
    more = [
        f"and {left} more {_plural(left, what)}"
        for left, what in ((len(release.centers) - len(rows), "centre"), (len(names) - len(shown), "feature"))
        if left > 0
    ]
    return "\n".join(lines) + ("\n\n" + ", ".join(more) + ": see the table beside this card." if more else "")


class Block(NamedTuple):
    """The columns of a category: their places, names of levels, and what the column of a row's level holds."""

    column: str
    levels: list[str]
    places: range
    high: float


def categories_of(release: Release) -> list[Block]:
    """Categories, as the parameters tell them; none if they do not fit the centres."""
    try:
        high, told = release.domain().half * 2, release.parameters.get("categories", ())
        found = [
            Block(str(one["column"]), [str(level) for level in one["levels"]],
                   range(one["first"], one["first"] + len(one["levels"])), float(high[one["first"]]))
            for one in told
        ]  # fmt: skip
    except (InvalidValue, TypeError, LookupError):
        return []
    return found if all(block.places.stop <= release.centers.shape[1] for block in found) else []


def _numbers(table: Any, blocks: list[Block]) -> Any:
    """A table of centres without columns of levels."""
    return np.delete(table.reshape(len(table), -1), [place for block in blocks for place in block.places], axis=1)


def _largest(block: Block, center: Any) -> str:
    """The three largest levels of a category in one centre, with their shares."""
    shares = np.clip(center[block.places.start : block.places.stop] / block.high, 0.0, 1.0)
    first = np.argsort(-shares, kind="stable")[:MOST_LEVELS]
    return ", ".join(f"{escaped(printable(block.levels[place], 30))} {shares[place]:.0%}" for place in first.tolist())


_ALONE = "none: nobody adds this release to earlier ones"
_NO_LEDGER = {"federation": "none here: every party keeps its own", "local": "none here: every device keeps its own"}
_NO_NOISE, _SIMULATED = "a script, or no noise at all", {"local": "a generator with a seed, or a script"}


def _receipt(release: Release) -> str:
    receipt = release.receipt
    source = "the operating system" if receipt["secure"] else _SIMULATED.get(release.guarantee.trust, _NO_NOISE)
    facts: list[tuple[str, Any]] = [
        ("made by kveil", __version__),
        ("token", receipt["token"] or "none: nothing was charged"),
        ("ledger", receipt["ledger"] or _NO_LEDGER.get(release.guarantee.trust, _ALONE)),
        ("draws of noise", receipt["charges"]),
        ("noise from", source),
    ]
    return "\n".join(f"- {name}: {escaped(str(value))}" for name, value in facts)


def _synopsis(release: Release) -> str:
    if release.synopsis is None:
        return ""
    covered = "No guarantee covers it." if release.guarantee.route == "none" else "The guarantee above covers it."
    return (
        "Beside the centres lies `synopsis.npz`: what else the fit released, such as noisy counts of cells. "
        f"{covered} Other numbers of clusters can be read off it for no charge: `kveil curve`, `kveil recluster`."
    )


def _cells(values: list[str]) -> str:
    return f"| {' | '.join(values)} |"


def _plural(count: int, word: str) -> str:
    return word if count == 1 else word + "s"
