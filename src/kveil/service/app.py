"""The routes. The one that takes reports is a plain ASGI callable, since request objects cost as much as storing a report."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from kveil.collect.intake import Intake
from kveil.collect.storage import Storage
from kveil.errors import StorageUnavailable
from kveil.service import admission, problems, views
from kveil.service.counts import Counts
from kveil.service.files import Files
from kveil.service.intake import GroupCommit
from kveil.service.logs import tell
from kveil.service.problems import Problem
from kveil.service.settings import Settings
from kveil.service.upload import Upload
from kveil.service.views import Page

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
REPORTS = ("/v1/manifests/", "/reports")
STORED = {  # the usual answer, made once
    "type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0"), (b"cache-control", b"no-store")],
}  # fmt: skip
NOTHING = {"type": "http.response.body", "body": b""}


class Service:
    """The collector's HTTP application, for one process."""

    def __init__(self, settings: Settings, counts: Counts | None = None) -> None:
        self.settings, self.counts = settings, counts or Counts()
        self.storage = Storage(settings.storage)
        self.storage.check_durable()
        self.is_ending: Callable[[], bool] = lambda: False
        self.writer: GroupCommit | None = None
        self._upload: Upload | None = None
        self._intake = Intake(self.storage)
        self._admission = admission.named(settings)
        self._bucket = Bucket(settings.most_requests)
        self._pages = Starlette(routes=routes(self), exception_handlers={404: _problem, 405: _problem, 500: _problem})

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] != "http":
            return
        path, method = scope["path"], scope["method"]
        if not self._bucket.take():
            await self._send(send, problems.RATE)
        elif method == "POST" and path.startswith(REPORTS[0]) and path.endswith(REPORTS[1]):
            assert self._upload is not None  # begun with the server
            manifest_hash = path[len(REPORTS[0]) : -len(REPORTS[1])]
            answer, headers = await self._upload.take(manifest_hash, scope["headers"], receive)
            if answer or headers:
                await self._send(send, answer, headers)
            else:
                self.counts.add("requests_200")
                await send(STORED)
                await send(NOTHING)
        else:
            await self._pages(scope, receive, self._counting(send))

    def is_ready(self) -> bool:
        is_full = self.writer is None or self.writer.waiting > self.settings.most_waiting / 2
        return not (is_full or self.is_ending() or self.counts.mine("is_failing"))

    async def _send(self, send: Send, answer: Problem | bytes, headers: list[tuple[bytes, bytes]] | None = None) -> None:
        status, body = (answer.status, answer.body()) if isinstance(answer, Problem) else (200, answer)
        told = [*(answer.headers() if isinstance(answer, Problem) else []), *(headers or [])]
        self.counts.request(status)
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"%d" % len(body)), *told]})
        await send({"type": "http.response.body", "body": body})

    def _counting(self, send: Send) -> Send:
        async def counted(message: Any) -> None:
            if message["type"] == "http.response.start":
                self.counts.request(message["status"])
            await send(message)

        return counted

    async def _live(self, receive: Receive, send: Send) -> None:
        """Begin and end with the server: the queue is emptied before the process goes."""
        while True:
            event = await receive()
            if event["type"] == "lifespan.startup":
                limits = {"most_waiting": self.settings.most_waiting, "most_times": self.settings.most_times}
                self.writer = GroupCommit(self._intake, self.counts, **limits)  # type: ignore[arg-type]
                self._upload = Upload(self._intake, self.writer, self._admission, self.settings.origins, self.counts)
                await send({"type": "lifespan.startup.complete"})
            else:
                assert self.writer is not None
                await self.writer.stop()
                self.storage.dispose()
                await send({"type": "lifespan.shutdown.complete"})
                return


class Bucket:
    """At most so many requests per second over all senders. One can use it up: it protects the machine, nobody else."""

    def __init__(self, rate: int) -> None:
        self._rate, self._left, self._when = rate, float(rate), time.monotonic()

    def take(self) -> bool:
        if not self._rate:
            return True
        now = time.monotonic()
        self._left, self._when = min(float(self._rate), self._left + (now - self._when) * self._rate), now
        if self._left < 1:
            return False
        self._left -= 1
        return True


def routes(service: Service) -> list[BaseRoute]:
    """All of them but the hot one, which is listed for what it does with other methods."""
    files, get = Files(service.settings.has_marker), partial(Route, methods=["GET"])
    page = partial(_page, service)
    return [
        get("/v1/campaigns", page(lambda request: views.campaigns(service.storage))),
        get("/v1/campaigns/{campaign}", page(lambda request: views.campaign(service.storage, request.path_params["campaign"]))),
        get(
            "/v1/campaigns/{campaign}/result",
            page(lambda request: views.result(service.storage, request.path_params["campaign"])),
        ),
        get("/v1/campaigns/{campaign}/end", page(lambda request: views.end(service.storage, request.path_params["campaign"]))),
        get("/v1/manifests/{hash}", page(lambda request: views.manifest(service.storage, request.path_params["hash"]))),
        Route("/v1/manifests/{hash}/reports", partial(_preflight, service), methods=["OPTIONS"]),
        get("/v1/rotations", page(lambda request: views.rotations(service.storage))),
        get("/health", _health),
        get("/ready", partial(_ready, service)),
        get("/client/marker", files.marker),
        get("/client/{path:path}", files.client),
        get("/", files.index),
    ]


def problem_response(problem: Problem) -> Response:
    names = {name.decode(): value.decode() for name, value in problem.headers()}
    return Response(problem.body(), problem.status, {**names, "access-control-allow-origin": "*"})


def _page(service: Service, look: Callable[[Request], Page | Problem]) -> Callable[[Request], Awaitable[Response]]:
    """An answer from the storage, which is asked in a thread; with an ETag, for whoever has these bytes already."""

    async def answer(request: Request) -> Response:
        try:
            page = await run_in_threadpool(look, request)
        except StorageUnavailable as fault:
            tell("storage", fault=type(fault).__name__, is_passing=fault.is_passing)
            page = problems.STORAGE
        if isinstance(page, Problem):
            return problem_response(page)
        headers = {
            "etag": page.etag, "cache-control": f"public, max-age={page.seconds}", "access-control-allow-origin": "*",
            "x-content-type-options": "nosniff",
        }  # fmt: skip
        if page.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(page.body, headers={**headers, "content-type": page.media})

    return answer


async def _preflight(service: Service, request: Request) -> Response:
    """Pages on other hosts may send reports only if the operator named them: or any page could make its visitors forge some."""
    origin = request.headers.get("origin", "")
    if origin not in service.settings.origins:
        return Response(status_code=204, headers={"cache-control": "no-store"})
    allowed = {
        "access-control-allow-origin": origin, "access-control-allow-methods": "POST", "vary": "origin",
        "access-control-allow-headers": "content-type, authorization", "access-control-max-age": "3600",
    }  # fmt: skip
    return Response(status_code=204, headers=allowed)


async def _health(request: Request) -> Response:
    return Response("ok\n", media_type="text/plain", headers={"cache-control": "no-store"})


async def _ready(service: Service, request: Request) -> Response:
    if not service.is_ready():
        return problem_response(problems.BUSY)
    return Response("ready\n", media_type="text/plain", headers={"cache-control": "no-store"})


async def _problem(request: Request, error: Exception) -> Response:
    """404 and 405 of the routes; anything else is a fault, of which the log has the kind and nothing more."""
    status = getattr(error, "status_code", 500)
    if status == 500:
        tell("fault", fault=type(error).__name__)
    return problem_response({404: problems.NOT_FOUND, 405: problems.METHOD}.get(status, problems.FAULT))
