"""The page and the modules of the browser client, from the folder `static`: read once, the same bytes for everyone."""

from __future__ import annotations

import hashlib
import mimetypes
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from kveil.service.problems import NOT_FOUND, Problem

FOLDER = Path(__file__).with_name("static")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "cache-control": "public, max-age=300", "content-security-policy": POLICY, "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff", "cross-origin-opener-policy": "same-origin", "access-control-allow-origin": "*",
}  # fmt: skip
MARKER = "kveil=1; Max-Age=34560000; Path=/; SameSite=Strict"  # 400 days; it names nobody
TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".html": "text/html; charset=utf-8", ".css": "text/css"}


class Files:
    def __init__(self, has_marker: bool) -> None:
        self._has_marker = has_marker
        found = [path for path in sorted(FOLDER.rglob("*")) if path.is_file() and not path.name.startswith(".")]
        self._files = {path.relative_to(FOLDER).as_posix(): path.read_bytes() for path in found}

    async def index(self, request: Request) -> Response:
        return self._answer("index.html", request)

    async def operator(self, request: Request) -> Response:
        return self._answer("operator.html", request)

    async def client(self, request: Request) -> Response:
        return self._answer(request.path_params["path"], request)

    async def marker(self, request: Request) -> Response:
        """A cookie that says "this browser has answered somewhere here", so that a cleared ledger is noticed."""
        cookie = {"set-cookie": MARKER} if self._has_marker else {}
        return Response(status_code=204, headers={"cache-control": "no-store", **cookie})

    def _answer(self, name: str, request: Request) -> Response:
        body = self._files.get(name)
        if body is None:
            return _problem(NOT_FOUND)
        etag = f'"{hashlib.sha256(body).hexdigest()}"'
        if etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers={**HEADERS, "etag": etag})
        media = TYPES.get(Path(name).suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
        return Response(body, headers={**HEADERS, "etag": etag, "content-type": media})


def _problem(problem: Problem) -> Response:
    return Response(problem.body(), problem.status, {name.decode(): value.decode() for name, value in problem.headers()})
