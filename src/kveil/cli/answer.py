"""`kveil collect answer`: a device in a shell. It asks a collector what is asked, and sends 22 bytes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kveil.cli._options import parse_numbers
from kveil.cli.campaigns import NOT_YET
from kveil.cli.wording import in_shell_words
from kveil.errors import InvalidValue

if TYPE_CHECKING:
    from kveil.collect.book import Spend
    from kveil.collect.client import LocalClient
    from kveil.service.sender import Code, Sender

REFUSED = 2
LATER = ("not now", "not asked")  # of refusals, those that say nothing against what was asked
OUTCOMES = {
    "stored": "sent and stored",
    "refused": "refused for good; it stays spent",
    "not admitted": "not admitted: a code is missing, wrong or used. They stay stored; run this again with a right code, and the "
    "same bytes are sent",
    "later": "not taken; try again later",
}


def answer(
    url: Annotated[str, typer.Argument(help="the collector's address")],
    key: Annotated[str, typer.Option("--key", help="its public key, 64 digits or a file; by a way that you trust")],
    ledger: Annotated[Path, typer.Option("--ledger", help="this device's own ledger; keep it")],
    campaign: Annotated[str | None, typer.Option(help="which one, by its first digits, if several are open")] = None,
    point_file: Annotated[
        Path | None, typer.Option("--point-file", exists=True, dir_okay=False, help="file with the point; else it is asked for")
    ] = None,  # a name that was mistyped must not be paid for; what the file holds is never refused
    code: Annotated[
        str | None, typer.Option(help="one-time code, where the collector asks for one; with --campaign, all of its digits")
    ] = None,
    cap: Annotated[float, typer.Option(help="epsilon that this device may spend in 365 days")] = 4.0,
    first: Annotated[bool, typer.Option("--first", help="this device has no ledger yet; a lost one means a quiet year")] = False,
    now: Annotated[
        bool, typer.Option("--now", help="send at once, not at the time that was drawn: the moment tells more")
    ] = False,
) -> None:
    """Answer the open round, once: the point is randomised here, and only the randomised report leaves this machine.

    Run again it sends what is due, the same bytes. Exit code 2: the device refused what it was asked. 3: something waits to be
    sent, or nothing is asked of this device now.
    """
    from kveil.collect.client import LocalClient, Refusal
    from kveil.collect.manifest import verified
    from kveil.service.sender import Sender
    from kveil.signing import public_key

    pinned, own = public_key(key), _of_campaign(code, campaign)
    with Sender(url) as sender:
        open_ = [one for one in sender.campaigns() if one["state"] == "open" and one["campaign"].startswith(campaign or "")]
        if len(open_) > 1:
            names = ", ".join(one["campaign"][:12] for one in open_)
            raise InvalidValue(f"several campaigns are open: {names}. Choose one: --campaign and the first digits of its hash.")
        chain = sender.chain(open_[0]["manifests"]) if open_ else []
        n_columns = verified(chain, pinned)[-1].header.n_columns if chain else 1
        terms: dict[str, Any] = {"n_features": n_columns, "key": pinned, "cap": cap, "is_first": first}
        with LocalClient(ledger, **terms) as client:
            if chain:
                told = client.answer(chain, _point(point_file, n_columns))
                why = told.why if isinstance(told, Refusal) else "answered"
                if isinstance(told, Refusal):
                    typer.echo(f"{told.why}: {in_shell_words(str(told), ())}")
            else:
                why = "not now"
                typer.echo("no campaign is open there.")
            waits = [_sent(sender, client, spend, own, now) for spend in client.pending()]
            typer.echo(f"{float(client.remaining()):g} of epsilon {cap:g} is left for 365 days.")
    if why not in ("answered", *LATER):
        raise typer.Exit(REFUSED)
    if any(waits) or why in LATER:
        raise typer.Exit(NOT_YET)


def _of_campaign(code: str | None, campaign: str | None) -> Code | None:
    """Fewer digits would do for most people, and let a collector that lists other campaigns have the code with their reports."""
    from kveil import canonical
    from kveil.service.sender import Code

    if code is None:
        return None
    if campaign is None or not canonical.is_digest(campaign):
        raise InvalidValue("a code is sent with reports of its own campaign alone. Name it: --campaign and all 64 digits.")
    return Code(campaign, code)


def _point(path: Path | None, n_columns: int) -> Any:
    """Loads the point; called after everything was checked. What is no point counts as the centre, and nothing is said."""

    def load() -> Any:
        text = path.read_text(encoding="utf-8") if path is not None else typer.prompt(f"your point, {n_columns} number(s)")
        return parse_numbers("the point", text.replace("\n", ",").strip(", "))

    return load


def _sent(sender: Sender, client: LocalClient, spend: Spend, code: Code | None, now: bool) -> bool:
    """Send a report that is due; whether it still waits."""
    if not now and spend.send_at > datetime.now(UTC):
        typer.echo(f"22 bytes are stored, to be sent at {spend.send_at:%Y-%m-%d %H:%M} UTC: run this again then.")
        return True
    outcome = sender.deliver(client, spend, code)
    typer.echo(f"22 bytes {spend.report.hex()}: {OUTCOMES[outcome]}.")
    return outcome in ("not admitted", "later")
