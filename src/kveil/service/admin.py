"""The operator's address: a page, counts for Prometheus, and the state of every campaign. Read only, and by default local."""

from __future__ import annotations

import json
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kveil.errors import StorageUnavailable
from kveil.service import problems, views
from kveil.service.app import Service, problem_response
from kveil.service.files import Files

LOCAL = ("localhost", "127.0.0.1", "[::1]")


def app(service: Service) -> Starlette:
    files = Files(has_marker=False)

    async def page(request: Request) -> Response:
        is_meant = _is_meant(request, service.settings.admin_host)
        return await files.operator(request) if is_meant else problem_response(problems.NOT_FOUND)

    async def client(request: Request) -> Response:
        is_meant = _is_meant(request, service.settings.admin_host)
        return await files.client(request) if is_meant else problem_response(problems.NOT_FOUND)

    async def metrics(request: Request) -> Response:
        return await _told(request, lambda rounds: (service.counts.text(rounds), "text/plain; version=0.0.4"))

    async def status(request: Request) -> Response:
        return await _told(request, lambda rounds: (json.dumps({"campaigns": rounds}), "application/json"))

    async def _told(request: Request, write: Any) -> Response:
        if not _is_meant(request, service.settings.admin_host):
            return problem_response(problems.NOT_FOUND)
        try:
            rounds = await run_in_threadpool(views.overview, service.storage)
        except StorageUnavailable:
            return problem_response(problems.STORAGE)
        text, media = write(rounds)
        return Response(text, headers={"content-type": media, "cache-control": "no-store"})

    paths = {"/": page, "/client/{path:path}": client, "/metrics": metrics, "/status": status}
    return Starlette(routes=[Route(path, answer) for path, answer in paths.items()])


def _is_meant(request: Request, host: str) -> bool:
    """Other names may be rebound to this address by whoever owns them, and a browser would read it for them."""
    name = request.headers.get("host", "").rsplit(":", 1)[0] if "]" not in request.headers.get("host", "") else "[::1]"
    return name in (*LOCAL, host)
