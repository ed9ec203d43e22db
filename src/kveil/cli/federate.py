"""`kveil federate`: keys for everybody, a party beside its rows, and a run over all of them."""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from kveil.cli._options import (
    BY,
    DATA_NAME,
    PURPOSE,
    parse_bounds,
    parse_label,
    parse_labels,
    parse_numbers,
    progress_on_terminals,
    stated,
)
from kveil.cli.choices import Format
from kveil.cli.saving import check_place, next_steps, show_centers, signing_key, summary
from kveil.cli.state import state
from kveil.errors import InvalidValue

app = typer.Typer(no_args_is_help=True, add_completion=False)


class Protocol(StrEnum):
    cells = "cells"
    sample = "sample"
    pdk = "pdk"
    dk = "dk"


@app.command("keys")
def keys(
    folder: Annotated[Path, typer.Argument(help="folder to make, with one inside for each role; must not exist")],
    parties: Annotated[str, typer.Option(help="names separated by commas")],
    hosts: Annotated[
        str, typer.Option(help="names and addresses of the machines of coordinator and listening parties")
    ] = "127.0.0.1,localhost",
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Certificates and tokens for a coordinator and its parties. Hand each its own folder, and keep no copy."""
    from kveil.federate import Keys, make_keys

    names = [name.strip() for name in parties.split(",")]
    make_keys(folder, names, [host.strip() for host in hosts.split(",")])
    made = [str(folder / name) for name in ("coordinator", *names)]
    ends = f"{Keys.at(made[0]).ends()['certificate']:%Y-%m-%d}"
    typer.echo(json.dumps({"folders": made, "ends": ends}) if as_json else "\n".join(made))
    typer.echo(f"These certificates end on {ends}; `kveil federate renew` makes the next ones.", err=True)


@app.command("renew")
def renew(
    folder: Annotated[Path, typer.Argument(help="this role's own folder of keys")],
    switch: Annotated[bool, typer.Option("--switch", help="use the next certificate, which all peers have accepted")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Make the next certificate of this role, for its peers to accept; then, with --switch, use it."""
    from kveil.federate import renewal
    from kveil.federate.keys import Keys, certificates, end_of

    if switch:
        renewal.switch(folder)
        made, words = folder / "certificate.pem", "is in use from the next start"
    else:
        made = renewal.renew(folder)
        words = f"is for {', '.join(Keys.at(folder).peers)} to accept (`kveil federate accept`); then switch to it with --switch"
    ends = f"{end_of(certificates(made)[0]):%Y-%m-%d}"
    typer.echo(json.dumps({"certificate": str(made), "ends": ends}) if as_json else f"{made} {words}. It ends on {ends}.")


@app.command("accept")
def accept(
    folder: Annotated[Path, typer.Argument(help="this role's own folder of keys")],
    peer: Annotated[str, typer.Argument(help="whose certificate it is: a party, or coordinator")],
    certificate: Annotated[Path, typer.Argument(help="the file that `kveil federate renew` made there")],
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Believe the next certificate of a peer, beside the one that is known."""
    from kveil.federate import renewal
    from kveil.federate.keys import Keys

    renewal.accept(folder, peer, certificate)
    ends = f"{Keys.at(folder).ends()[peer]:%Y-%m-%d}"
    typer.echo(json.dumps({"peer": peer, "ends": ends}) if as_json else f"{peer} is known until {ends}.")


@app.command("free")
def free(
    ledger: Annotated[Path, typer.Option(help="the party's ledger; its journal lies beside it")],
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Close the run that a party holds open, so that another can begin. What it has spent stays spent."""
    from kveil.federate.journal import Journal

    journal = Journal(f"{ledger}.runs", None)
    closed = [run.id for run in journal.open_runs()]
    for run in closed:
        journal.shut(run)
    journal.close()
    words = "\n".join(f"run {run[:8]} is closed" for run in closed) or "no run was open"
    typer.echo(json.dumps({"closed": closed}) if as_json else words)


@app.command("flower-app")
def flower_app(
    folder: Annotated[Path, typer.Argument(help="folder to make; must not exist")],
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Write an app for `flwr run`: a relay to parties behind sockets, and a coordinator."""
    from kveil.federate.flower import write_app

    made = str(write_app(folder))
    typer.echo(json.dumps({"app": made}) if as_json else made)


@app.command("party")
def party(
    data: Annotated[Path, typer.Option(help=".csv (with header), .npz (array x), .npy, .parquet (file or folder)")],
    keys: Annotated[Path | None, typer.Option(help="this party's folder of keys, from `kveil federate keys`")] = None,
    coordinator: Annotated[str | None, typer.Option(help="call in at this address, https://host:port")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="listen on this port instead; 0: any free one")] = None,
    host: Annotated[str, typer.Option(help="with --port: address to listen at")] = "127.0.0.1",
    socket: Annotated[Path | None, typer.Option(help="answer a relay on this machine, at this Unix socket")] = None,
    name: Annotated[str | None, typer.Option(help="default: the name of the folder of keys")] = None,
    dataset: Annotated[str, typer.Option(help="what the rows are called; the same at all parties")] = "rows",
    bounds: Annotated[str | None, typer.Option(help="LOW,HIGH or a JSON file; public, the same at all parties")] = None,
    center: Annotated[str | None, typer.Option(help="with --radius: centre of a public ball, default 0")] = None,
    radius: Annotated[float | None, typer.Option(help="radius of a public ball, instead of --bounds")] = None,
    columns: Annotated[str | None, typer.Option(help="names, or numbers of arrays, separated by commas; default all")] = None,
    person: Annotated[str | None, typer.Option(help="column of ids: protect people instead of records")] = None,
    max_rows_per_person: Annotated[int, typer.Option(help="rows per person that count")] = 1,
    ledger: Annotated[Path | None, typer.Option(help="budget over all runs, from `kveil ledger init`")] = None,
    purpose: PURPOSE = None,
    data_name: DATA_NAME = None,
    by: BY = None,
    policy: Annotated[Path | None, typer.Option(help="JSON file of limits, as docs/federation.md lists them")] = None,
    epsilon_per_run: Annotated[float | None, typer.Option(help="the most that one run may cost; default 1")] = None,
    secret: Annotated[Path | None, typer.Option(help="file of random bytes that all parties share, for `--protocol dk`")] = None,
    mutual: Annotated[bool, typer.Option("--mutual", help="prove who calls by certificates instead of tokens")] = False,
    reply_every: Annotated[float | None, typer.Option(help="answer on a tick of so many seconds")] = None,
) -> None:
    """Answer a coordinator's questions about DATA with noise, within a policy and a budget, until interrupted."""
    from kveil import read
    from kveil.federate import Door, Keys, Party, call_in, serve
    from kveil.federate.client import Client
    from kveil.federate.keys import COORDINATOR

    if [coordinator, port, socket].count(None) != 2:
        raise InvalidValue("pass one of --coordinator https://host:port (call in), --port (listen) or --socket (behind a relay).")
    if keys is None and (socket is None or name is None):
        raise InvalidValue("--keys is missing: the folder that says who this party is. Behind a --socket, --name will do.")
    if ledger is None:
        raise InvalidValue(
            "--ledger is missing: a budget in memory would be full again after every crash, and whoever asks can cause one. "
            "Make one with `kveil ledger init`."
        )
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    own = None if keys is None else Keys.at(keys)
    if own is not None and COORDINATOR not in own.peers:
        raise InvalidValue(
            f"{str(keys)!r} has no certificate of a coordinator: it is not the folder of a party. Pass a party's own."
        )
    source = read(
        data, columns=parse_labels(columns, data), person=parse_label(person, data), max_rows_per_person=max_rows_per_person
    )
    held = Party(
        source, bounds=parse_bounds(bounds, source.names), center=parse_numbers("--center", center), radius=radius,
        name=name or (keys or Path()).resolve().name, dataset=dataset, ledger=stated(ledger, purpose, data_name, by),
        journal=f"{ledger}.runs", policy=_policy(policy, epsilon_per_run), secret=_secret(secret),
    )  # fmt: skip
    if coordinator is not None:
        Client(coordinator, own, mutual=mutual)  # refuses an address that is none, before anybody is told it will be called
        typer.echo(f"party {held.name} calls in at {coordinator}")
        call_in(held, coordinator, own, mutual=mutual, reply_every=reply_every)
    elif socket is not None:
        door = Door(held, socket, reply_every=reply_every)
        typer.echo(f"party {held.name} answers at {door.path}")
        threading.Event().wait()
    else:
        server = serve(held, host, port or 0, own, mutual=mutual, reply_every=reply_every)
        typer.echo(f"party {held.name} listens at {server.url}")
        threading.Event().wait()


@app.command("run")
def run(
    keys: Annotated[Path, typer.Option(help="the coordinator's folder of keys, from `kveil federate keys`")],
    out: Annotated[Path, typer.Option("--out", "-o", help="folder for the release; must not exist")],
    parties: Annotated[str | None, typer.Option(help="addresses https://host:port; with --listen names, default all")] = None,
    listen: Annotated[str | None, typer.Option(help="HOST:PORT to listen at for parties that call in")] = None,
    k: Annotated[int, typer.Option("--k", "-k", help="number of clusters")] = 8,
    epsilon: Annotated[float, typer.Option(help="privacy loss; smaller is more private")] = 1.0,
    delta: Annotated[float, typer.Option(help="0 for a pure guarantee")] = 0.0,
    protocol: Annotated[Protocol, typer.Option(help="how; dk and exact cells need --no-privacy")] = Protocol.cells,
    n_steps: Annotated[int, typer.Option(help="steps relative to released centres")] = 1,
    timeout: Annotated[float, typer.Option(help="seconds a party has for an answer")] = 60.0,
    no_privacy: Annotated[bool, typer.Option("--no-privacy", help="no noise, no promise; parties must allow it")] = False,
    mutual: Annotated[bool, typer.Option("--mutual", help="prove who calls by certificates instead of tokens")] = False,
    log: Annotated[Path | None, typer.Option(help="write every message to this file")] = None,
    purpose: Annotated[str | None, typer.Option(help="what it is for: for the card")] = None,
    data_name: Annotated[str | None, typer.Option(help="what the data is called: for the card")] = None,
    sign: Annotated[Path | None, typer.Option(help="sign the release with this key, from `kveil keys new`")] = None,
    format: Annotated[Format, typer.Option(help="of the centres")] = Format.parquet,
    force: Annotated[bool, typer.Option("--force", help="replace an older release at OUT")] = False,
    random_state: Annotated[int | None, typer.Option(min=0, max=2**32 - 1, help="steers public choices, never noise")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Cluster centres of what all parties hold, saved with their guarantee at OUT. No row comes here."""
    from kveil import FederatedKMeans
    from kveil.federate import Calling, Keys, Logged, Receiving
    from kveil.federate.keys import COORDINATOR

    check_place(out, force)
    key = None if sign is None else signing_key(sign)
    if COORDINATOR in Keys.at(keys).peers:
        raise InvalidValue(f"{str(keys)!r} is the folder of a party. A run needs the coordinator's, from `kveil federate keys`.")
    asked = None if parties is None else [name.strip() for name in parties.split(",")]
    transport: Any
    if listen is None:
        if asked is None:
            raise InvalidValue("name the parties: --parties https://host:port,... or --listen HOST:PORT for those that call in.")
        transport = Calling(keys, mutual=mutual)
    else:
        host, port = _place(listen)
        asked = asked or list(Keys.at(keys).peers)
        transport = Receiving(keys, host, port, mutual=mutual, announce=partial(_announce, names=asked, timeout=timeout))
    model = FederatedKMeans(
        k, epsilon=None if no_privacy else epsilon, delta=delta, protocol=protocol.value, n_steps=n_steps, timeout=timeout,
        transport=transport if log is None else Logged(transport, log), random_state=random_state,
    )  # fmt: skip
    with progress_on_terminals():
        model.fit(asked)
    model.release_ = replace(model.release_, purpose=purpose or "", data_name=data_name or "")
    model.release_.save(out, format=format.value, overwrite=force, sign=key)
    if as_json:
        typer.echo(json.dumps({**summary(model, out), "receipts": model.receipts_}))
    else:
        _tell(model, out)


def _policy(path: Path | None, epsilon_per_run: float | None) -> Any:
    from kveil.federate import Policy

    found = Policy() if path is None else Policy.read(path)
    return found if epsilon_per_run is None else replace(found, epsilon_per_run=epsilon_per_run)


def _secret(path: Path | None) -> bytes | None:
    try:
        return None if path is None else path.read_bytes()
    except OSError as error:
        raise InvalidValue(f"the secret at {path} cannot be read: {error.strerror}.") from None


def _place(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise InvalidValue(f"--listen takes HOST:PORT, such as 127.0.0.1:8443, got {text!r}.")
    return host, int(port)


def _announce(url: str, names: list[str], timeout: float) -> None:
    typer.echo(f"waiting at {url} for {', '.join(names)}, up to {timeout:g} seconds", err=True)


def _tell(model: Any, out: Path) -> None:
    """What `kveil fit` prints, with the whole guarantee."""
    if state.quiet:
        typer.echo(str(out))
        return
    k, d = model.cluster_centers_.shape
    show_centers(model.release_, model.verdict_, out)
    notes = "".join(f"\nNote: {note}" for note in model.release_.notes)
    typer.echo(f"\n{k} centres of {d} column{'s' * (d != 1)} by {model.method_} saved at {out}.{notes}\n\n{model.guarantee_}")
    typer.echo(f"\n{next_steps(model.release_, out)}")
