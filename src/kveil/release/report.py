"""`Release.report`: a release as one HTML page that needs no other file, for whoever signs it off.

Written from the release alone, and from the ledger that paid, if it is given. Whatever is shown is escaped; the page asks the
network for nothing and runs no program.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from kveil._version import __version__
from kveil.errors import InvalidValue, MissingExtra
from kveil.kernel.ledger import Ledger
from kveil.release.card import NOT_COVERED, NOT_TO_DO, SEVERAL
from kveil.release.look import DARK, LIGHT, Look, variables
from kveil.release.odds import in_words, odds, percent
from kveil.release.plot import on_universe
from kveil.release.report_budget import budget_section
from kveil.release.report_parts import facts, scrolling, shown, warning
from kveil.release.report_table import centres_table
from kveil.release.words import sentence

if TYPE_CHECKING:
    from kveil.release.release import Release

WORDS = {
    "good": "Good: noise moved the centres little.",
    "rough": "Rough: noise can be seen in the centres.",
    "noise": "Noise: the centres say little about the data.",
}
GOOD_ON_GRAPH = "Good: noise could hide little of the demand."  # its centres are points, which noise does not move
UNSAVED = "not looked at: this page was made without the saved folder"


def report(
    release: Release,
    path: str | PathLike[str] | None = None,
    *,
    ledger: Any = None,
    signature: str = UNSAVED,
    universe: Any = None,
) -> str:
    """The page; written to `path` too, if there is one. signature: who signed the folder of the release, in words. universe: the
    public graph that is drawn behind the centres."""
    account = Ledger.open(ledger) if isinstance(ledger, str | PathLike) else ledger
    k = len(release.centers)
    parts = {
        "title": shown(f"{k} {'centre' if k == 1 else 'centres'}{f' of {release.data_name}' if release.data_name else ''}"),
        "style": Template(_file("report.css")).substitute(light=_colours(LIGHT), dark=_colours(DARK)),
        "facts": _facts(release),
        "promise": _promise(release),
        "verdict": _verdict(release),
        "picture": _picture(release, universe),
        "table": centres_table(release if universe is None else on_universe(release, universe)),
        "ledger": "" if account is None else budget_section(release, account),
        "uses": _uses(release),
        "made": _made(release, signature),
        "card": shown(release.card(), keep_lines=True),
        "version": shown(__version__),
        "source": "the release alone" if account is None else shown(f'the release and the ledger "{account.name}"'),
        "sentence": shown(sentence(release.guarantee)),
        "fingerprint": shown(release.fingerprint()),
    }
    page = Template(_file("report.html")).substitute(parts)
    if path is not None:
        Path(path).write_text(page, encoding="utf-8")
    return page


def _file(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def _colours(look: Look) -> str:
    """Of pictures, and of what a verdict says."""
    return variables(look) + (
        "--good:#7ee787;--rough:#f2cc60;--noise:#ff9492;--soft:#2a2e37" if look is DARK else
        "--good:#116329;--rough:#7d4e00;--noise:#a40e26;--soft:#f3f5f7"
    )  # fmt: skip


def _facts(release: Release) -> str:
    model = f"{release.kind}, method {release.method['used']}"
    return facts([("Made on", release.created), ("Model", model), ("Purpose", release.purpose or "not stated")])


def _promise(release: Release) -> str:
    guarantee = release.guarantee
    if guarantee.route == "none":
        return warning("No privacy guarantee", "This result was computed without noise. Do not let it leave the house.")
    if not guarantee.valid:
        why = "; ".join(guarantee.reasons) or "no reason was recorded"
        return warning("The guarantee is NOT VALID", f"{why}. Treat these centres as if they were rows.")
    found = odds(guarantee)
    exact = (
        f"epsilon {guarantee.epsilon:.6g}, delta {guarantee.delta:.3g}, protects one {guarantee.unit.kind}, "
        f"{guarantee.relation}, {guarantee.trust} model"
    )
    sure = found.surest if not found.failing else found.guess
    bar = (
        f'<div class="odds" role="img" aria-label="From 50 % to at most {percent(sure)}"><span class="bar"><span class="track">'
        f'<span class="fill" style="width:{100 * sure:.2f}%"></span><span class="half"></span></span>'
        f'<span class="before">50 %</span></span><span class="after">{percent(sure)}</span></div>'
    )
    return (
        f'<section class="promise"><h2>What one {shown(guarantee.unit.kind)} is promised</h2>{bar}'
        f'<p>{shown(in_words(guarantee))}</p><p class="exact">{shown(exact)}.</p></section>'
    )


def _verdict(release: Release) -> str:
    found = release.verdict()
    lines = "".join(f"<li>{shown(line)}</li>" for line in (*found.reasons, *str(found).splitlines()[1:]))
    word = GOOD_ON_GRAPH if release.n_features is None and found.word == "good" else WORDS[found.word]
    said = f'<p class="word">{word}</p><ul>{lines}</ul>'
    return f'<section class="verdict {found.word}"><h2>Is it any good?</h2>{said}</section>'


def _picture(release: Release, universe: Any) -> str:
    """The picture as part of the page, in colours that follow it; or why there is none."""
    try:
        drawn: Any = release.plot(theme="auto", universe=universe)
    except MissingExtra:
        return '<p class="missing">The picture is left out: matplotlib is not installed. pip install "kveil[report]"</p>'
    except InvalidValue:
        return '<p class="missing">There is no picture: these centres are points of a universe without coordinates.</p>'
    label = shown(f"Picture of the centres. {sentence(release.guarantee)} The table below holds all numbers.")
    return scrolling("figure", "Picture", drawn.part_of_page(label))


def _uses(release: Release) -> str:
    several = (SEVERAL,) if release.guarantee.unit.kind == "record" else ()
    covered = "".join(f"<li>{shown(text[0].upper() + text[1:])}.</li>" for text in (*several, *NOT_COVERED))
    first = (text.replace("`", "").partition(". ")[0].rstrip(".") for text in NOT_TO_DO)  # the card has their reasons, too
    dont = "".join(f"<li>{shown(text)}.</li>" for text in first)
    covers = "" if release.guarantee.route == "none" else f"<div><h2>Not covered</h2><ul>{covered}</ul></div>"
    return f'<section class="uses">{covers}<div><h2>What not to do with it</h2><ul>{dont}</ul></div></section>'


def _made(release: Release, signature: str) -> str:
    method, receipt = release.method, release.receipt
    why = f" Why: {method['why']}." if method["why"] else ""
    source = "the operating system" if receipt["secure"] else "a script, or there was none"
    rows = [
        ("Method", f"{method['used']} (asked for: {method['asked']}).{why}"),
        ("Paid by", receipt["ledger"] or "no ledger: nobody adds this release to earlier ones"),
        ("Token", receipt["token"] or "none: nothing was charged"),
        ("Draws of noise", f"{receipt['charges']}, from {source}"),
        ("Signature", signature),
    ]
    return facts(rows)
