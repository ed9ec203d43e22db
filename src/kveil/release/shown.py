"""The centres of a release as a table for people: shares, numbers with their errors, and which can be told apart."""

from __future__ import annotations

from html import escape
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from kveil.release.card import categories_of
from kveil.release.numbers import decimals_of, decimals_of_two_digits, of_level
from kveil.release.picture import place_names
from kveil.release.verdict import last_step
from kveil.release.words import printable, promise
from kveil.solve.synopsis import Synopsis

if TYPE_CHECKING:
    from kveil.release.release import Release
    from kveil.release.verdict import Verdict

MOST_CENTERS, MOST_COLUMNS, WIDEST_NAME = 30, 6, 24


class Shown(NamedTuple):
    """A table of texts, and how much of the release is not in it."""

    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    more_centers: int
    more_columns: int

    @property
    def left_out(self) -> str:
        """What is not shown, in words; "" if nothing is missing."""
        parts = {"centre": self.more_centers, "column": self.more_columns}
        told = " and ".join(f"{n} more {what}{'s' * (n > 1)}" for what, n in parts.items() if n)
        return f"Not shown: {told}." if told else ""


def centers_table(release: Release, verdict: Verdict | None = None) -> Shown:
    """One line per centre. An error is the standard error that noise causes; it says nothing about the spread of rows."""
    found = release.verdict() if verdict is None else verdict
    k, d = len(release.centers), release.n_features
    names = place_names(release) if d is None else release.features or tuple(f"x{place}" for place in range(d))
    n_columns = min(len(names), MOST_COLUMNS)
    header = ["centre", *([] if release.weights is None else ["share"]), *(["point"] if d is None else [])]
    header += [printable(name, WIDEST_NAME) for name in names[:n_columns]]
    header += [] if found.told_apart is None else ["told apart"]
    rows = [_row(release, found, number, n_columns) for number in range(min(k, MOST_CENTERS))]
    return Shown(tuple(header), rows, max(0, k - MOST_CENTERS), len(names) - n_columns)


def share_error(release: Release) -> float | None:
    """The standard error that noise causes in the share of a centre; None if nothing tells."""
    step = last_step(release, release.synopsis if isinstance(release.synopsis, Synopsis) else None)
    n = 0.0 if step is None else float(step.counts.sum())
    return step.count_deviation / n if step is not None and n > 0 else None


def release_html(release: Release) -> str:
    """The same for a notebook: the table, the verdict and the promise. It holds released values and public words alone."""
    verdict = release.verdict()
    table = centers_table(release, verdict)
    head = "".join(f"<th>{escape(name)}</th>" for name in table.header)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    lines = (table.left_out, f"Verdict: {verdict.word}. {verdict.reasons[0]}", *promise(release.guarantee))
    words = "".join(f"<div>{escape(line)}</div>" for line in lines if line)
    title = f"{len(release.centers)} private centres" if release.guarantee.route != "none" else f"{len(release.centers)} centres"
    return f"<div><b>{escape(release.kind)}: {title}</b><table><tr>{head}</tr>{body}</table>{words}</div>"


def _row(release: Release, verdict: Verdict, number: int, n_columns: int) -> tuple[str, ...]:
    cells = [str(number), *([] if release.weights is None else [_share(float(release.weights[number]), share_error(release))])]
    if release.n_features is None:
        cells.append(printable(release.names[number], WIDEST_NAME) if release.names else str(release.centers[number]))
        cells += [] if release.places is None else [f"{value:.6g}" for value in release.places[number, :n_columns].tolist()]
    else:
        own = [None] * release.n_features if verdict.column_errors is None else verdict.column_errors[number].tolist()
        levels = {place: block.high for block in categories_of(release) for place in block.places}
        cells += [
            of_level(value, error, levels[place]) if place in levels else with_error(value, error)
            for place, (value, error) in enumerate(zip(release.centers[number].tolist(), own, strict=True))
        ][:n_columns]
    if verdict.told_apart is not None:
        cells.append("yes" if verdict.told_apart[number] else "no")
    return tuple(cells)


def _share(share: float, error: float | None) -> str:
    """A share with one decimal, or none where its error is larger."""
    return f"{100 * share:.{1 if error is None else min(max(decimals_of([100 * error]), 0), 1)}f} %"


def with_error(value: float, error: float | None) -> str:
    """A number to as many digits as its error leaves.

    >>> with_error(34.21879, 0.0831), with_error(51230.4, 812.0), with_error(0.5, None)
    ('34.219 ± 0.083', '51230 ± 810', '0.5')
    """
    if error is None or not isfinite(error) or error <= 0:
        return f"{value:.6g}"
    if not 1e-9 < error < 1e12 or abs(value) >= 1e12:
        return f"{value:.4g} ± {error:.2g}"
    decimals = decimals_of_two_digits(error)
    kept = [round(number, decimals) + 0.0 for number in (value, error)]
    shown = max(0, decimals)
    return f"{kept[0]:.{shown}f} ± {kept[1]:.{shown}f}"
