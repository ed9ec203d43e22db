"""Verdicts as one HTML page that needs no other file: a picture of all lower bounds, then every audit with its counts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from kveil._pages import page, scrolling
from kveil.auditing.verdict import Verdict

COLOURS = {"consistent": "#0072B2", "violated": "#D55E00", "unknown": "#999999"}  # Okabe and Ito: told apart by everyone
WIDTH, LEFT, RIGHT, LINE, TOP, BOTTOM = 760, 190, 110, 22, 24, 34
NAMES = ("round", "pair", "event", "likelier on", "fits with it", "fits with it, other table", "epsilon at least")


def to_html(verdicts: Sequence[Verdict]) -> str:
    """A page to print or to file."""
    meaning = (
        "<p>An audit fits neighbouring tables many times and looks for an event that is likelier on one of them than the promise "
        "allows. <b>Violated</b>: there is one, at the stated confidence. <b>Consistent</b>: none was found; this proves "
        "nothing, but a bug of the stated size would have been seen. <b>Unknown</b>: fits failed, or there were too few.</p>"
    )
    parts = "\n".join(_section(verdict) for verdict in verdicts)
    return page("Privacy audit", f"{meaning}\n{scrolling(svg(verdicts))}\n{parts}")


def svg(verdicts: Sequence[Verdict]) -> str:
    """How much of its epsilon was each seen to spend? A bar up to the lower bound, and a line at what was promised."""
    most = max([1.25, *(1.1 * _share(verdict) for verdict in verdicts)])
    wide, high = WIDTH - LEFT - RIGHT, TOP + LINE * len(verdicts)

    def x(share: float) -> float:
        return LEFT + wide * min(share, most) / most

    marks = [
        f'<line x1="{x(part):.1f}" x2="{x(part):.1f}" y1="{TOP - 6}" y2="{high}" stroke="currentColor" stroke-opacity="0.2"/>'
        f'<text x="{x(part):.1f}" y="{high + 16}" text-anchor="middle">{part:g}</text>'
        for part in (0.0, 0.25, 0.5, 0.75)
    ]
    marks.append(
        f'<line x1="{x(1):.1f}" x2="{x(1):.1f}" y1="{TOP - 6}" y2="{high}" stroke="currentColor" stroke-dasharray="4 3"/>'
    )
    marks.append(f'<text x="{x(1):.1f}" y="{high + 16}" text-anchor="middle">promised</text>')
    for place, verdict in enumerate(verdicts):
        y, colour = TOP + LINE * place, COLOURS[verdict.outcome]
        end = x(_share(verdict))
        marks.append(f'<text x="{LEFT - 6}" y="{y + 13}" text-anchor="end">{escape(verdict.name or "model")}</text>')
        marks.append(f'<rect x="{LEFT}" y="{y + 2}" width="{end - LEFT:.1f}" height="{LINE - 7}" fill="{colour}"/>')
        marks.append(f'<text x="{max(end, x(1)) + 6:.1f}" y="{y + 13}">{verdict.outcome}</text>')
    size = f'viewBox="0 0 {WIDTH} {high + BOTTOM}" width="{WIDTH}" height="{high + BOTTOM}"'
    title = "<title>epsilon that was seen to be spent, as a share of what was promised</title>"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" fill="currentColor" font-family="sans-serif" font-size="12">'
    )
    return f"{head}{title}{''.join(marks)}</svg>"


def _share(verdict: Verdict) -> float:
    return verdict.lower / verdict.epsilon if verdict.epsilon else (2.0 if verdict.lower else 0.0)


def _section(verdict: Verdict) -> str:
    rows = "".join(
        f"<tr><td>{look.round}</td><td>{escape(look.pair)}</td><td><code>{escape(look.event)}</code></td><td>{look.likelier}</td>"
        f"<td>{look.bound.hits} of {look.bound.runs}</td><td>{look.bound.other_hits} of {look.bound.other_runs}</td>"
        f"<td>{look.bound.epsilon:.3f}</td></tr>"
        for look in verdict.looks
    )
    head = "".join(f"<th>{name}</th>" for name in NAMES)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    counted = scrolling(table) if rows else "<p>Nothing was counted.</p>"
    return f"<h2>{escape(verdict.name or 'model')}: {verdict.outcome}</h2><p>{escape(str(verdict))}</p>\n{counted}"
