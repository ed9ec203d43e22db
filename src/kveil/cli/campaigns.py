"""`kveil collect init | status | close | next | result | end | delete | codes`: a campaign, step by step.

Exit codes: 0 done, 2 refused in words, 3 not yet.
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kveil.cli._options import parse_numbers
from kveil.errors import InvalidValue

if TYPE_CHECKING:
    from kveil.collect.collector import Collector

NOT_YET = 3
SHOWN = 12  # digits of a hash; as many as tell campaigns apart are read
REASONS = {"few": "few reports", "withdrawn": "withdrawn", "fault": "fault"}

Place = Annotated[str, typer.Option("--storage", envvar="KVEIL_STORAGE", help="SQLite file, or postgresql+psycopg://...")]
Name = Annotated[str, typer.Argument(metavar="CAMPAIGN", help="its hash, or as many digits as tell it apart")]
Key = Annotated[Path, typer.Option("--key", help="the campaign's secret key")]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON")]


def init(
    storage: Place,
    name: Annotated[str, typer.Option(help="what devices are shown")],
    people: Annotated[int, typer.Option(min=1, help="how many people there are, about")],
    k: Annotated[int, typer.Option("--k", "-k", min=1, help="number of clusters")],
    center: Annotated[str, typer.Option(help="centre of the public ball that holds the points, one number per column")],
    radius: Annotated[float, typer.Option(help="its radius, from public knowledge")],
    key: Key,
    epsilon: Annotated[str, typer.Option(help="of each person: a number, or a fraction p/q")] = "1",
    days: Annotated[int, typer.Option(min=1, max=365, help="that the first round is open, from today on")] = 30,
    protocol: Annotated[str, typer.Option(help="auto, grid, zoom, refine, lae, lae-ball, lae-paper or lma")] = "auto",
    min_reports: Annotated[
        int | None, typer.Option(min=0, help="a round with fewer is not decoded; default: 5 % of those it asks, or 100")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Open a campaign: terms are checked, signed and published as round 1."""
    from kveil.collect.campaign import Campaign
    from kveil.collect.collector import Collector
    from kveil.signing import SigningKey

    middle = parse_numbers("--center", center)
    terms: dict[str, Any] = {
        "name": name, "n": people, "n_clusters": k, "epsilon": epsilon, "radius": radius, "protocol": protocol,
        "center": middle if isinstance(middle, list) else [middle],
    }  # fmt: skip
    expected = Campaign(**terms).plan()
    least = _proposed(min(expected.people)) if min_reports is None else min_reports
    today = datetime.now(UTC).date()
    last = today + timedelta(days=days - 1)
    with Collector(storage, key=SigningKey.load(key)) as collector:
        collector.open(Campaign(**terms, min_reports=least), today, last)
        campaign = collector.campaigns()[-1]
    told = {
        "campaign": campaign, "rounds": expected.rounds, "not_before": today.isoformat(), "not_after": last.isoformat(),
        "min_reports": least, "protocol": expected.protocol, "ratio": expected.ratio,
    }  # fmt: skip
    rounds = "one round" if expected.rounds == 1 else f"round 1 of {expected.rounds}"
    ratio = "" if expected.ratio is None else f" Expect {expected.ratio:.2g} times the cost without privacy."
    _say(as_json, told, f"campaign {campaign} opened: {rounds}, {today} to {last}, at least {least} reports.{ratio}")


def status(storage: Place, as_json: AsJson = False) -> None:
    """Every campaign: its round, how many reports it has, and what it waits for."""
    from kveil.collect.storage import Storage
    from kveil.service.views import overview

    opened = Storage(_there(storage))
    told = overview(opened)
    opened.dispose()
    if as_json:
        typer.echo(json.dumps({"campaigns": told}))
        return
    for one in told:
        typer.echo(_line(one))
    if not told:
        typer.echo("There is no campaign here. Open one: kveil collect init.")


def close(
    storage: Place,
    campaign: Name,
    early: Annotated[
        bool, typer.Option("--early", help="before its last day is over: devices that would still answer lose what they spend")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """End the open round: no report comes in any more. With too few after its last day, the campaign ends."""
    with _opened(storage) as collector:
        name = _found(collector, campaign)
        _, not_after, count, least = _round(collector, name)
        is_over = datetime.now(UTC).date() > not_after
        state = collector.state(name)[1]
        if state == "open" and not is_over and not early:
            _not_yet(as_json, f"the round is open until {not_after}. Close it before that with --early.")
        if state == "open" and not is_over and count < least:
            few = f"the round has fewer reports than it waits for ({least})"
            _not_yet(as_json, f"{few}. Wait, or end the campaign: kveil collect end.")
        collector.close(name)
        number, state = collector.state(name)
    _say(as_json, {"campaign": name, "round": number, "state": state}, f"round {number}: {state}.")


def following(
    storage: Place,
    campaign: Name,
    key: Annotated[Path | None, typer.Option("--key", help="the campaign's secret key; not needed after the last round")] = None,
    days: Annotated[int, typer.Option(min=1, max=365, help="that the next round is open, from today on")] = 30,
    as_json: AsJson = False,
) -> None:
    """Decode the closed round and publish the next one; after the last, the result."""
    today = datetime.now(UTC).date()
    with _opened(storage, key) as collector:
        name = _found(collector, campaign)
        if collector.state(name)[1] == "open":
            _not_yet(as_json, "the round is open: close it first.")
        signed = collector.next_manifest(name, today, today + timedelta(days=days - 1))
        number, state = collector.state(name)
    done = "that was the last round: there is a result." if signed is None else f"round {number} is open for {days} days."
    _say(as_json, {"campaign": name, "round": number, "state": state}, done)


def result(
    storage: Place,
    campaign: Name,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="file to write the JSON to")] = None,
    as_json: AsJson = False,
) -> None:
    """Centres, people with their deviation, warnings, what forged reports could do, and the guarantee."""
    with _opened(storage) as collector:
        name = _found(collector, campaign)
        if collector.state(name)[1] in ("open", "closed"):
            _not_yet(as_json, "this campaign has no result yet. kveil collect status says what it waits for.")
        found = collector.result(name)
    if output is not None:
        output.write_text(found.to_json() + "\n", encoding="utf-8")
    typer.echo(found.to_json() if as_json else str(found))


def end(
    storage: Place,
    campaign: Name,
    key: Key,
    reason: Annotated[str, typer.Option(help="few, withdrawn or fault")],
    yes: Annotated[bool, typer.Option("--yes", help="do not ask for the campaign's name")] = False,
    as_json: AsJson = False,
) -> None:
    """End a campaign without a result: nothing is decoded, its reports are deleted, and a signed notice is published."""
    if reason not in REASONS:
        raise InvalidValue(f"--reason is one of {', '.join(REASONS)}.")
    with _opened(storage, key) as collector:
        name = _found(collector, campaign)
        stated, _, _, _ = _round(collector, name)
        if not yes and _typed("This cannot be undone. Type the campaign's name") != stated:
            raise InvalidValue("that is not its name. Nothing was done. A script that is sure passes --yes.")
        deleted = collector.end(name, REASONS[reason])  # type: ignore[arg-type]
        epsilon = collector.epsilon(name)
    told = f"ended. {deleted} reports deleted. Those who have sent have spent epsilon {epsilon}."
    _say(as_json, {"campaign": name, "state": "ended", "deleted": deleted}, told)


def delete(
    storage: Place,
    campaign: Name,
    everything: Annotated[bool, typer.Option("--everything", help="manifests and result, too")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete the reports of a campaign that is over from the storage. Backups and archives of a database are yours to delete."""
    with _opened(storage) as collector:
        name = _found(collector, campaign)
        collector.delete(name, everything=everything)
    what = "everything about it" if everything else "its reports"
    _say(as_json, {"campaign": name, "deleted": what}, f"{what} deleted from the storage. Backups and log archives are yours.")


def codes(
    storage: Place,
    campaign: Name,
    count: Annotated[int, typer.Option(min=1, max=1_000_000, help="how many")],
    page: Annotated[str | None, typer.Option(help="address of the page: print links to it, one per person")] = None,
    as_json: AsJson = False,
) -> None:
    """One-time codes for `serve --admission codes`, printed once; the storage holds digests.

    A link names the campaign beside the code, so that no device sends the code with a report of another campaign. Whoever hands
    them out can tie a report to a person: the guarantee is then about the point alone, not about taking part.
    """
    from kveil.service.admission import digest, new_code

    if page is not None and (not page.startswith(("http://", "https://")) or "#" in page):
        raise InvalidValue("--page is the address of the page: it begins with https:// and has no # in it.")
    with _opened(storage) as collector:
        name = _found(collector, campaign)
        made = [new_code() for _ in range(count)]
        collector.add_codes(name, [digest(code, name) for code in made])
    links = [] if page is None else [f"{page}#campaign={name}&code={code}" for code in made]
    if as_json:
        typer.echo(json.dumps({"campaign": name, "codes": made, **({"links": links} if links else {})}))
        return
    typer.echo("\n".join(links or made))
    typer.echo("Whoever hands these out can tie a report to a person.", err=True)


def _proposed(asked: float) -> int:
    """5 % of the people that a round asks, at least 100, or half of them if that is less."""
    return max(1, ceil(max(0.05 * asked, min(100.0, asked / 2))))


def _opened(storage: str, key: Path | None = None) -> Collector:
    from kveil.collect.collector import Collector
    from kveil.signing import SigningKey

    return Collector(_there(storage), key=None if key is None else SigningKey.load(key))


def _there(storage: str) -> str:
    """A mistyped file would be made anew, and hold no campaign."""
    if "://" not in storage and not Path(storage).is_file():
        raise InvalidValue(f"no storage at {storage!r}. `kveil collect init` makes one.")
    return storage


def _found(collector: Collector, text: str) -> str:
    """The one campaign whose hash begins so."""
    fits = [name for name in collector.campaigns() if name.startswith(text.lower())]
    if len(fits) != 1:
        why = "several campaigns begin" if fits else "no campaign here begins"
        raise InvalidValue(f"{why} with {text!r}. `kveil collect status` lists them.")
    return fits[0]


def _round(collector: Collector, campaign: str) -> tuple[str, date, int, int]:
    """Name, last day, reports and least reports of the last round."""
    terms, count = collector.last_round(campaign)
    return terms.name, terms.not_after, count, terms.least


def _line(one: dict[str, Any]) -> str:
    from kveil.release.words import printable

    left = f", {one['days_left']} days left" if one["state"] == "open" else ""
    needs = f"at least {one['least']}; laid out for {one['laid_out_for']}"
    admitted = "" if one["admitted"] or not one["reports"] else " Reports are not limited to one per person."
    reports = f"{one['reports']} report{'' if one['reports'] == 1 else 's'}"
    stuck = " Its days are over with too few reports: end it." if one["stuck"] else ""
    where = f'{one["campaign"][:SHOWN]} "{printable(one["name"], 60)}"  round {one["round"]} of {one["rounds"]}'
    return f"{where}, {one['state']}{left}, {reports} ({needs}).{stuck}{admitted}"


def _typed(question: str) -> str:
    """What is typed; nothing where nobody can, as in a script without a terminal."""
    try:
        return str(typer.prompt(question))
    except typer.Abort:
        return ""


def _not_yet(as_json: bool, why: str) -> None:
    _say(as_json, {"not_yet": why}, f"not yet: {why}")
    raise typer.Exit(NOT_YET)


def _say(as_json: bool, data: dict[str, Any], text: str) -> None:
    typer.echo(json.dumps(data) if as_json else text)
