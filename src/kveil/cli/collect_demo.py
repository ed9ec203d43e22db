"""`kveil collect demo`: a server, a few hundred made-up devices, and what they said, on one machine in a minute."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

PLACES = [(48.5, 9.0), (51.5, 8.0), (50.5, 12.5)]
CENTER, RADIUS, EPSILON = [50.0, 10.0], 5.0, 4


def demo(
    people: Annotated[int, typer.Option(min=50, max=5000, help="made-up devices")] = 400,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Where do made-up people start their trips? Every one randomises its own point and sends 22 bytes over HTTP."""
    from kveil.collect.campaign import Campaign
    from kveil.collect.collector import Collector
    from kveil.signing import SigningKey

    began, today = time.perf_counter(), datetime.now(UTC).date()
    with tempfile.TemporaryDirectory() as folder:
        storage, key = str(Path(folder) / "collector.db"), SigningKey.generate()
        survey = Campaign("where trips start", people, len(PLACES), EPSILON, CENTER, RADIUS, "grid", min_reports=people // 2)
        with Collector(storage, key=key) as collector:
            collector.open(survey, today, today + timedelta(days=1))
            (name,) = collector.campaigns()
            with _Served(storage) as url:
                if not as_json:
                    typer.echo(
                        f"A collector serves on {url}. {people} devices answer it, each with its own ledger and its own coins."
                    )
                stored = _answer(url, key.public, people)
            collector.close(name)
            collector.next_manifest(name)
            found = collector.result(name)
    seconds = time.perf_counter() - began
    if as_json:
        typer.echo(json.dumps({"stored": stored, "seconds": seconds, "result": json.loads(found.to_json())}))
        return
    typer.echo(f"{stored} reports of 22 bytes are on its disk, in {seconds:.0f} s. It has seen no point.\n")
    typer.echo("\n".join(_drawn(found)))
    typer.echo(f"\n{found}\n")
    typer.echo(f"The made-up places were {', '.join(map(str, PLACES))}.")


def _answer(url: str, pinned: str, people: int) -> int:
    """Every device fetches what is asked, answers, and sends; how many reports were stored."""
    from kveil.collect.client import LocalClient
    from kveil.collect.ledger_file import LedgerFile
    from kveil.service.sender import Sender

    ledgers, points, stored = LedgerFile(None), _points(people), 0
    with Sender(url) as sender:
        chain = sender.chain(sender.campaigns()[0]["manifests"])
        for number, point in enumerate(points):
            client = LocalClient(ledgers, n_features=2, key=pinned, is_first=True, device_name=str(number))
            client.answer(chain, point)
            stored += sum(sender.deliver(client, spend) == "stored" for spend in client.pending())
    ledgers.close()
    return stored


def _points(people: int) -> Any:
    import numpy as np

    rng = np.random.default_rng(2026)  # made-up people, not noise for privacy
    return np.array(PLACES)[np.arange(people) % len(PLACES)] + rng.normal(0, 0.3, (people, 2))


def _drawn(found: Any) -> list[str]:
    """The centres in the public box around the ball, as a release is drawn."""
    import numpy as np

    from kveil.release.picture import Scene, relative_sizes, scene_lines

    low, high = np.array(CENTER) - RADIUS, np.array(CENTER) + RADIUS
    sizes = relative_sizes(found.counts)
    return scene_lines(Scene(found.centers[:, ::-1], low[::-1], high[::-1], ("east", "north"), sizes, "public ball"))


class _Served:
    """The service in a process of its own, on a port that was free."""

    def __init__(self, storage: str) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._ours, theirs = spawn.Pipe(duplex=False)
        self._process = spawn.Process(target=_serve, args=(storage, theirs), daemon=True)

    def __enter__(self) -> str:
        self._process.start()
        return f"http://127.0.0.1:{self._ours.recv()}"

    def __exit__(self, *error: object) -> None:
        self._process.terminate()
        self._process.join()


def _serve(storage: str, ready: Any) -> None:
    from kveil.service.server import serve
    from kveil.service.settings import Settings

    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 the service's own lines are not the demo's
    serve(Settings(storage, port=0, admin_port=0), lambda public, own: ready.send(public))
