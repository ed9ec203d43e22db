"""`kveil collect serve`: the collector as a service."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from kveil.cli.campaigns import Place
from kveil.errors import InvalidValue, MissingExtra


def serve(
    storage: Place,
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8080,
    admin_host: Annotated[str, typer.Option(help="address of the operator: metrics and status")] = "127.0.0.1",
    admin_port: Annotated[int, typer.Option(min=0, max=65535)] = 8081,
    workers: Annotated[int, typer.Option(min=1, max=64, help="processes; more than one on PostgreSQL only")] = 1,
    origin: Annotated[list[str] | None, typer.Option(help="a page on another host that may send reports; repeatable")] = None,
    admission: Annotated[
        str, typer.Option(help="none, codes (`kveil collect codes`), or tokens of another party (RFC 9578)")
    ] = "none",
    token_key: Annotated[Path | None, typer.Option(help="file with the public key of the tokens' issuer")] = None,
    token_issuer: Annotated[str, typer.Option(help="the issuer's name, as its tokens have it")] = "",
    token_origin: Annotated[str, typer.Option(help="whom tokens are redeemed at, if they say so")] = "",
    most_requests: Annotated[int, typer.Option(min=0, help="per second over all senders; 0: no limit")] = 10_000,
    most_times: Annotated[float, typer.Option(min=1, help="reports of a round over the people it was laid out for")] = 4.0,
    marker: Annotated[bool, typer.Option(help="whether the page sets the cookie kveil=1, which names nobody")] = True,
    auto_close: Annotated[bool, typer.Option("--auto-close", help="close, decode and publish rounds unattended")] = False,
    key: Annotated[Path | None, typer.Option("--key", help="the campaigns' secret key, for --auto-close alone")] = None,
    days: Annotated[int, typer.Option(min=1, max=365, help="that a next round is open")] = 30,
    grace: Annotated[int, typer.Option(min=0, max=30, help="days after a round's last day until it is closed")] = 2,
    end_if_few: Annotated[bool, typer.Option("--end-if-few", help="end a campaign whose round missed its least number")] = False,
    keep_reports: Annotated[int, typer.Option(min=0, help="days after a campaign's end until its reports are deleted")] = 30,
) -> None:
    """Take reports in over HTTP until a signal ends it. An answer of 200 means that the reports are on the disk.

    Without --auto-close this machine needs no key, which is safer.
    """
    try:
        from kveil.service.server import serve as run
    except ImportError:
        raise MissingExtra('serving needs starlette and uvicorn. Install them: pip install "kveil[service]"') from None
    from kveil.service.settings import Settings
    from kveil.service.tend import Rules

    if auto_close and key is None:
        raise InvalidValue("--auto-close publishes rounds, which takes the campaign's key: pass --key.")
    if key is not None and not auto_close:
        raise InvalidValue("a key is used by --auto-close alone. Leave it out: a machine that only serves needs none.")
    rules = None if key is None else Rules(str(key.resolve()), days, grace, end_if_few, keep_reports)
    place = storage if "://" in storage else os.path.abspath(storage)
    settings = Settings(
        storage=place, host=host, port=port, admin_host=admin_host, admin_port=admin_port, workers=workers,
        origins=tuple(origin or ()), admission=admission, most_requests=most_requests, most_times=most_times, has_marker=marker,
        token_key="" if token_key is None else str(token_key), token_issuer=token_issuer, token_origin=token_origin,
    )  # fmt: skip

    def announce(public: int, own: int) -> None:
        typer.echo(f"serving on http://{host}:{public}, counts for you on http://{admin_host}:{own}/status. Stop it with Ctrl-C.")

    run(settings, announce, rules)
