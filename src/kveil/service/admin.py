"""The operator's address: counts for Prometheus, and the state of every campaign. Read only, and by default local."""

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

LOCAL = ("localhost", "127.0.0.1", "[::1]")


def app(service: Service) -> Starlette:
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

    return Starlette(routes=[Route("/metrics", metrics), Route("/status", status)])


def _is_meant(request: Request, host: str) -> bool:
    """Other names may be rebound to this address by whoever owns them, and a browser would read it for them."""
    name = request.headers.get("host", "").rsplit(":", 1)[0] if "]" not in request.headers.get("host", "") else "[::1]"
    return name in (*LOCAL, host)
