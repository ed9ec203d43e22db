"""The centres as a table of HTML: numbers with their errors, shares, and which centres stand apart from the others."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from kveil.release.card import categories_of
from kveil.release.numbers import of_level, percents, with_error
from kveil.release.picture import place_names
from kveil.release.report_parts import scrolling
from kveil.release.shown import share_error
from kveil.release.words import printable

if TYPE_CHECKING:
    from kveil.release.release import Release

MOST_ROWS, MOST_COLUMNS = 200, 200  # of the page; the file beside the card holds all
PRINTED_ROWS, PRINTED_COLUMNS = 14, 7  # of two sheets of paper
ERRORS = " ±: the standard error of a number, which is the noise in it."


def centres_table(release: Release) -> str:
    """The table in a frame that scrolls by itself, with a keyboard too; and what is left out."""
    names, rows = _cells(release)
    told = release.verdict().told_apart if len(rows) > 1 else None
    shares = None if release.weights is None else percents(release.weights, share_error(release))
    head = ['<th scope="col">centre</th>', *(['<th scope="col">share</th>'] if shares else [])]
    head += [f'<th scope="col"{_late(place, PRINTED_COLUMNS)}>{_text(name, 40)}</th>' for place, name in enumerate(names)][
        :MOST_COLUMNS
    ]
    head += ['<th scope="col">told apart</th>'] if told is not None else []
    lines = []
    for place, row in enumerate(rows[:MOST_ROWS]):
        cells = [f'<th scope="row">{place}</th>', *([f"<td>{shares[place]}</td>"] if shares else [])]
        cells += [f"<td{_late(number, PRINTED_COLUMNS)}>{text}</td>" for number, text in enumerate(row[:MOST_COLUMNS])]
        cells += [f"<td>{'yes' if told[place] else 'no'}</td>"] if told is not None else []
        lines.append(f"<tr{_late(place, PRINTED_ROWS)}>{''.join(cells)}</tr>")
    table = f"<table><thead><tr>{''.join(head)}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    frame = scrolling("div", "Table of centres", table)
    return f"{frame}<p>{_said(release, len(rows), len(names))}</p>{_on_paper(len(rows), len(names))}"


def _cells(release: Release) -> tuple[list[str], list[list[str]]]:
    """Names of columns, and texts of every row, as HTML."""
    if release.n_features is None:
        return _points(release)
    errors, levels = release.verdict().column_errors, {p: block.high for block in categories_of(release) for p in block.places}
    rows = []
    for number, center in enumerate(release.centers.tolist()):
        own = [None] * len(center) if errors is None else errors[number].tolist()
        rows.append(
            [_number(value, error, levels.get(place)) for place, (value, error) in enumerate(zip(center, own, strict=True))]
        )
    return list(release.features or (f"x{place}" for place in range(release.n_features))), rows


def _points(release: Release) -> tuple[list[str], list[list[str]]]:
    """The same of points of a universe: their numbers, names and places, as far as they have some."""
    names, rows = ["point"], [[str(point)] for point in release.centers.tolist()]
    if release.names is not None:
        names, rows = [*names, "name"], [[*row, _text(name, 60)] for row, name in zip(rows, release.names, strict=True)]
    if release.places is not None:
        names += place_names(release)
        rows = [[*row, *(f"{value:.6g}" for value in spot)] for row, spot in zip(rows, release.places.tolist(), strict=True)]
    return names, rows


def _number(value: float, error: float | None, high: float | None) -> str:
    """A number with its error; a level of a category, whose column ends at `high`, as a share."""
    return with_error(value, error) if high is None else of_level(value, error, high)


def _said(release: Release, k: int, d: int) -> str:
    noisy = "" if release.guarantee.route == "none" else "noisy "
    share = "No shares were released." if release.weights is None else f"Share: the {noisy}share of records near the centre."
    apart = " Told apart: at least three standard errors from every other centre." if k > 1 and release.errors is not None else ""
    errors = ERRORS if release.errors is not None and release.n_features else ""
    left = [f"{n - most} more {what}" for n, most, what in ((k, MOST_ROWS, "centres"), (d, MOST_COLUMNS, "columns")) if n > most]
    more = f" {' and '.join(left)} are in the table beside the card." if left else ""
    return f"{share}{errors}{apart}{more}"


def _on_paper(k: int, d: int) -> str:
    """What a reader of the printed page must know."""
    if k <= PRINTED_ROWS and d <= PRINTED_COLUMNS:
        return ""
    return f'<p class="paper">On paper: {min(k, PRINTED_ROWS)} of {k} centres, {min(d, PRINTED_COLUMNS)} of {d} columns.</p>'


def _late(place: int, most: int) -> str:
    """A mark for what paper has no room for."""
    return ' class="late"' if place >= most else ""


def _text(text: str, width: int) -> str:
    return escape(printable(text, width))
