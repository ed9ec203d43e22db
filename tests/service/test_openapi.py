"""The text for other clients says what the routes do: the same paths and methods, and every problem where it may happen."""

import json
import re
from pathlib import Path

import pytest
from serving import opened

from kveil.service import app, problems
from kveil.service.settings import Settings

TEXT = json.loads((Path(app.__file__).with_name("openapi.json")).read_text(encoding="utf-8"))


@pytest.fixture
def service(tmp_path):
    opened(tmp_path / "collector.db")
    made = app.Service(Settings(str(tmp_path / "collector.db")))
    yield made
    made.storage.dispose()


def test_paths_and_methods_are_those_of_the_routes(service):
    served = {(route.path.replace(":path", ""), method) for route in app.routes(service) for method in route.methods}
    served |= {("{hash}".join(app.REPORTS), "POST")}
    written = {(path, method.upper()) for path, methods in TEXT["paths"].items() for method in methods}
    assert {pair for pair in served if pair[1] != "HEAD"} == written


def test_problems_are_listed_with_their_statuses():
    listed = {
        (int(status), name)
        for methods in TEXT["paths"].values()
        for told in methods.values()
        for status, answer in told["responses"].items()
        if answer["description"].startswith("problem: ")
        for name in re.split(", ", answer["description"].removeprefix("problem: "))
    }
    anywhere = {(405, "method"), (500, "fault")}
    assert listed | anywhere == {(one.status, one.name) for one in problems.ALL}
