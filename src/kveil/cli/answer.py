"""`kveil collect answer`: a device in a shell. It asks a collector what is asked, and sends 22 bytes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kveil.cli._options import parse_numbers
from kveil.cli.campaigns import NOT_YET
from kveil.errors import InvalidValue

if TYPE_CHECKING:
    from kveil.collect.client import LocalClient
    from kveil.service.sender import Sender


def answer(
    url: Annotated[str, typer.Argument(help="the collector's address")],
    key: Annotated[str, typer.Option("--key", help="its public key, 64 digits or a file; by a way that you trust")],
    ledger: Annotated[Path, typer.Option("--ledger", help="this device's own ledger; keep it")],
    campaign: Annotated[str | None, typer.Option(help="which one, by its first digits, if several are open")] = None,
    point_file: Annotated[
        Path | None, typer.Option("--point-file", exists=True, dir_okay=False, help="file with the point; else it is asked for")
    ] = None,  # a name that was mistyped must not be paid for; what the file holds is never refused
    code: Annotated[str | None, typer.Option(help="one-time code, where the collector asks for one")] = None,
    cap: Annotated[float, typer.Option(help="epsilon that this device may spend in 365 days")] = 4.0,
    first: Annotated[bool, typer.Option("--first", help="this device has no ledger yet; a lost one means a quiet year")] = False,
    now: Annotated[
        bool, typer.Option("--now", help="send at once, not at the time that was drawn: the moment tells more")
    ] = False,
) -> None:
    """Answer the open round, once: the point is randomised here, and only the randomised report leaves this machine.

    Run again it sends what is due, the same bytes. Exit code 3: something waits to be sent.
    """
    from kveil.collect.client import LocalClient, Refusal
    from kveil.collect.manifest import verified
    from kveil.service.sender import Sender
    from kveil.signing import public_key

    pinned = public_key(key)
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
                if isinstance(told, Refusal):
                    typer.echo(f"{told.why}: {told}")
            else:
                typer.echo("no campaign is open there.")
            waits = [_sent(sender, client, spend, code, now) for spend in client.pending()]
            typer.echo(f"{float(client.remaining()):g} of epsilon {cap:g} is left for 365 days.")
    if any(waits):
        raise typer.Exit(NOT_YET)


def _point(path: Path | None, n_columns: int) -> Any:
    """Loads the point; called after everything was checked. What is no point counts as the centre, and nothing is said."""

    def load() -> Any:
        text = path.read_text(encoding="utf-8") if path is not None else typer.prompt(f"your point, {n_columns} number(s)")
        return parse_numbers("the point", text.replace("\n", ",").strip(", "))

    return load


def _sent(sender: Sender, client: LocalClient, spend: Any, code: str | None, now: bool) -> bool:
    """Send a report that is due; whether it still waits."""
    if not now and spend.send_at > datetime.now(UTC):
        typer.echo(f"22 bytes are stored, to be sent at {spend.send_at:%Y-%m-%d %H:%M} UTC: run this again then.")
        return True
    outcome = sender.deliver(client, spend.manifest_hash, spend.report, code)
    words = {"stored": "sent and stored", "refused": "refused for good; it stays spent", "later": "not taken; try again later"}
    typer.echo(f"22 bytes {spend.report.hex()}: {words[outcome]}.")
    return outcome == "later"
