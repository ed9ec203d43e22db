"""The endpoints, as a client meets them: statuses, bytes, headers; and that an answer of 200 means the disk."""

import asyncio
import hashlib
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from serving import KEY, PLAIN, opened, problem, reports, serving, stored
from starlette.requests import Request

from kveil.collect.collector import Collector
from kveil.collect.manifest import Signed, verified
from kveil.collect.notice import EndNotice
from kveil.collect.report import Report
from kveil.service import files
from kveil.service.admission import digest, new_code

pytestmark = pytest.mark.journey


@pytest.fixture(scope="module")
def open_(tmp_path_factory):
    """A campaign on SQLite that one service serves for many tests."""
    place = tmp_path_factory.mktemp("service") / "collector.db"
    campaign, manifest = opened(place)
    with serving(place, origins=["https://page.example"]) as service:
        service.campaign, service.manifest, service.place = campaign, manifest, place
        yield service


def test_a_report_is_on_the_disk_when_the_answer_is_200_and_empty(open_):
    one, *many = reports(41)
    for body in (one, one, b"".join(many), b"".join(many[::-1]), one + one):
        status, headers, told = open_.send(open_.manifest, body)
        assert (status, told) == (200, b"")
        assert headers["cache-control"] == "no-store"
    assert {one, *many} <= stored(open_.place)


def test_refused_reports_are_listed_in_order_with_a_reason_and_the_others_are_stored(open_):
    one, two, three = reports(3)
    assert open_.send(open_.manifest, one)[0] == 200
    altered = one[:-2] + bytes([one[-2] ^ 1, 0])
    unknown = Report(9, b"q" * 16, 0).to_bytes()
    status, headers, told = open_.send(open_.manifest, two + altered + unknown + three)
    assert status == 200
    assert headers["content-type"] == "application/vnd.kveil.collect;message=upload-errors"
    assert told == one[4:20] + b"\1" + b"q" * 16 + b"\3"
    assert {two, three, one} <= stored(open_.place)
    assert altered not in stored(open_.place)
    only = open_.send(open_.manifest, unknown)
    assert only[2] == b"q" * 16 + b"\3"


def test_what_is_no_upload_is_a_problem_and_stores_nothing(open_):
    before, (one,) = stored(open_.place), reports(1)
    path = f"/v1/manifests/{open_.manifest}/reports"
    assert problem(open_.send(open_.manifest, one[:-1])) == "malformed"
    assert problem(open_.send(open_.manifest, b"")) == "malformed"
    assert problem(open_.send("ab" * 32, one)) == "unknown-round"
    for name in ("ab", open_.manifest.upper(), "%27%20OR%201=1", "x" * 64):
        assert problem(open_.send(name, one)) == "not-found"
    assert problem(open_.request("POST", path, one, {"content-type": "application/octet-stream"})) == "media-type"
    assert problem(open_.request("POST", path, one)) == "media-type"
    large = open_.send(open_.manifest, one * 10_001)
    assert problem(large) == "too-large"
    assert large[1]["connection"] == "close"
    assert problem(open_.request("GET", path)) == "method"
    assert problem(open_.request("GET", "/v1/nothing")) == "not-found"
    assert problem(open_.request("DELETE", "/v1/campaigns")) == "method"
    assert stored(open_.place) == before


def test_everyone_reads_the_same_campaigns_and_manifests(open_):
    status, headers, body = open_.request("GET", "/v1/campaigns")
    (told,) = json.loads(body)["campaigns"]
    assert (status, headers["cache-control"]) == (200, "public, max-age=60")
    assert headers["access-control-allow-origin"] == "*"
    assert set(told) == {"campaign", "name", "state", "round", "not_before", "not_after", "manifests"}, "no live counts"
    assert (told["state"], told["round"], told["manifests"]) == ("open", 1, [open_.manifest])
    assert json.loads(open_.request("GET", f"/v1/campaigns/{open_.campaign}")[2]) == told
    status, headers, body = open_.request("GET", f"/v1/manifests/{open_.manifest}")
    assert headers["content-type"] == "application/vnd.kveil.collect;message=signed-manifest"
    assert headers["etag"] == f'"{hashlib.sha256(body).hexdigest()}"'
    assert verified([Signed.from_bytes(body)], KEY.public)[0].hash == open_.manifest
    again = open_.request("GET", f"/v1/manifests/{open_.manifest}", headers={"if-none-match": headers["etag"]})
    assert (again[0], again[2]) == (304, b"")
    assert problem(open_.request("GET", f"/v1/manifests/{'ab' * 32}")) == "unknown-round"
    assert problem(open_.request("GET", "/v1/campaigns/x")) == "not-found"
    assert problem(open_.request("GET", f"/v1/campaigns/{open_.campaign}/result")) == "no-result"
    assert problem(open_.request("GET", f"/v1/campaigns/{open_.campaign}/end")) == "not-found"
    assert json.loads(open_.request("GET", "/v1/rotations")[2]) == {"rotations": []}


def test_pages_of_other_hosts_may_send_only_if_they_are_named(open_):
    path, (one,) = f"/v1/manifests/{open_.manifest}/reports", reports(1)
    asked = {"origin": "https://page.example", "access-control-request-method": "POST"}
    status, headers, _ = open_.request("OPTIONS", path, headers=asked)
    assert (status, headers["access-control-allow-origin"]) == (204, "https://page.example")
    assert headers["access-control-max-age"] == "3600"
    assert open_.send(open_.manifest, one, origin="https://page.example")[1]["access-control-allow-origin"] == asked["origin"]
    other = {**asked, "origin": "https://evil.example"}
    assert "access-control-allow-origin" not in open_.request("OPTIONS", path, headers=other)[1]
    assert "access-control-allow-origin" not in open_.send(open_.manifest, one, origin="https://evil.example")[1]


def test_counts_are_on_the_operators_address_alone(open_):
    assert open_.send(open_.manifest, *reports(1))[0] == 200
    assert problem(open_.request("GET", "/metrics")) == "not-found"
    status, _, body = open_.request("GET", "/metrics", admin=True)
    assert status == 200
    numbers = dict(line.rsplit(" ", 1) for line in body.decode().splitlines() if not line.startswith("#"))
    name = f'kveil_round_reports{{campaign="{open_.campaign}",round="1"}}'
    assert int(numbers[name]) == len(stored(open_.place))
    assert int(numbers['kveil_reports_total{outcome="stored"}']) >= int(numbers[name])
    assert int(numbers["kveil_commits_total"]) == int(numbers["kveil_commit_seconds_count"]) > 0
    assert numbers["kveil_waiting_reports"] == "0"
    (told,) = json.loads(open_.request("GET", "/status", admin=True)[2])["campaigns"]
    assert (told["state"], told["laid_out_for"]) == ("open", 5000)
    assert told["days_left"] in (9, 10)  # midnight may have passed since it was opened
    page, script = (open_.request("GET", path, admin=True) for path in ("/", "/client/operator.js"))
    assert b"Campaigns of this collector" in page[2]
    assert page[1]["content-security-policy"].startswith("default-src 'none'")
    assert (script[0], script[1]["content-type"]) == (200, "text/javascript")
    for path in ("/status", "/metrics", "/", "/client/operator.js"):
        assert problem(open_.request("GET", path, headers={"host": "evil.example"}, admin=True)) == "not-found"


def test_health_readiness_and_the_marker(open_):
    assert open_.request("GET", "/health")[::2] == (200, b"ok\n")
    assert open_.request("GET", "/ready")[::2] == (200, b"ready\n")
    status, headers, _ = open_.request("GET", "/client/marker")
    assert (status, headers["set-cookie"].split(";")[0]) == (204, "kveil=1")
    assert open_.request("GET", "/client/../app.py")[0] == 404
    assert open_.request("GET", "/client/%2e%2e/app.py")[0] == 404
    assert "server" not in headers


def test_the_whole_of_a_campaign_is_told_as_it_goes(place):
    """Both storages: open, closed, done; what is sent too late; a result, and what a retry of stored bytes is told."""
    campaign, manifest = opened(place, n=300)
    batch = reports(200)
    with serving(place) as service, Collector(place, key=KEY) as collector:
        assert service.send(manifest, b"".join(batch))[::2] == (200, b"")
        collector.close(campaign)
        assert json.loads(service.request("GET", f"/v1/campaigns/{campaign}")[2])["state"] == "closed"
        (late,) = reports(1)
        assert problem(service.send(manifest, late)) == "closed"
        assert service.send(manifest, batch[0])[::2] == (200, b""), "a retry of what is stored"
        assert service.send(manifest, batch[0] + late)[2] == late[4:20] + b"\2"
        assert collector.next_manifest(campaign) is None
        _, headers, body = service.request("GET", f"/v1/campaigns/{campaign}/result")
        assert body.decode() == collector.result(campaign).to_json()
        assert headers["cache-control"] == "public, max-age=3600"
        assert json.loads(service.request("GET", "/v1/campaigns")[2])["campaigns"][0]["state"] == "done"
        collector.delete(campaign, everything=True)
        assert problem(service.send(manifest, late)) == "closed", "the process knew the round"
        assert problem(service.request("GET", f"/v1/manifests/{manifest}")) == "unknown-round"


def test_an_end_is_told_and_verified_by_whoever_pins_the_key(tmp_path):
    place = tmp_path / "collector.db"
    campaign, manifest = opened(place)
    with serving(place) as service, Collector(place, key=KEY) as collector:
        (one,) = reports(1)
        service.send(manifest, one)
        collector.end(campaign, "withdrawn")
        assert problem(service.send(manifest, one)) == "ended"
        assert problem(service.request("GET", f"/v1/campaigns/{campaign}/result")) == "ended"
        body = service.request("GET", f"/v1/campaigns/{campaign}/end")[2]
        assert EndNotice.from_bytes(body).verified(KEY.public)["campaign"] == campaign
        assert json.loads(service.request("GET", f"/v1/campaigns/{campaign}")[2])["state"] == "ended"


def test_what_is_kept_of_a_code_does_not_tell_it(tmp_path):
    place, code = tmp_path / "collector.db", new_code()
    campaign, _ = opened(place)
    with Collector(place) as collector:
        collector.add_codes(campaign, [digest(code, campaign)])
        kept = b"".join(one.read_bytes() for one in tmp_path.iterdir())
    assert digest(code, campaign) in kept
    assert code.encode() not in kept
    assert digest(code, campaign) != digest(code, "ab" * 32), "nor can it be looked up in another campaign"


def test_codes_admit_one_report_each(place):
    campaign, manifest = opened(place)
    codes = [new_code() for _ in range(3)]
    with Collector(place) as collector:
        collector._storage.add_codes(campaign, [digest(code, campaign) for code in codes])
    one, two, three, four = reports(4)
    pairs = {"content-type": "application/vnd.kveil.collect;message=upload-req-admitted"}
    with serving(place, admission="codes") as service:
        assert problem(service.send(manifest, one)) == "admission"
        assert problem(service.send(manifest, one + two, authorization=f"Bearer {codes[0]}")) == "admission"
        assert service.send(manifest, one, authorization=f"Bearer {new_code()}")[2] == one[4:20] + b"\4"
        assert service.send(manifest, one, authorization=f"Bearer {codes[0].lower()}")[::2] == (200, b"")
        assert service.send(manifest, one, authorization="Bearer x")[::2] == (200, b""), "a retry of stored bytes"
        assert service.send(manifest, two, authorization=f"Bearer {codes[0]}")[2] == two[4:20] + b"\4"
        body = b"".join(report + code.encode() for report, code in [(two, codes[1]), (three, codes[1]), (four, codes[2])])
        told = service.request("POST", f"/v1/manifests/{manifest}/reports", body, pairs)
        assert told[2] == three[4:20] + b"\4"
    assert stored(place) == {one, two, four}
    with serving(place) as service:
        assert problem(service.request("POST", f"/v1/manifests/{manifest}/reports", body, pairs)) == "media-type"


def test_a_round_takes_so_many_reports_and_no_more(tmp_path):
    place = tmp_path / "collector.db"
    _, manifest = opened(place, n=10, min_reports=0, epsilon=4)
    with serving(place, most_times=2.0) as service:
        batch = reports(15)
        assert service.send(manifest, b"".join(batch))[::2] == (200, b"")
        more = reports(6)
        assert service.send(manifest, b"".join(more))[2] == b"".join(one[4:20] + b"\5" for one in more)
        assert service.send(manifest, b"".join(batch[:6]))[::2] == (200, b""), "what is stored stays acknowledged"
    assert stored(place) == set(batch)


def test_too_many_requests_are_put_off(tmp_path):
    place = tmp_path / "collector.db"
    _, manifest = opened(place)
    with serving(place, most_requests=2) as service, ThreadPoolExecutor(24) as senders:  # at once: however slow a machine is
        told = list(senders.map(lambda one: service.send(manifest, one), reports(24)))
    refused = [one for one in told if one[0] == 429]
    assert refused
    assert {problem(one) for one in refused} == {"rate"}
    assert all(2 <= int(one[1]["retry-after"]) <= 10 for one in refused)
    assert len(stored(place)) == sum(one[0] == 200 for one in told)


def test_two_processes_do_not_serve_one_file(tmp_path):
    place = tmp_path / "collector.db"
    opened(place)
    with serving(place):
        with pytest.raises(AssertionError, match="another process serves this storage"):
            serving(place).__enter__()
        with pytest.raises(AssertionError, match="served by one process"):
            serving(tmp_path / "other.db", workers=2).__enter__()


def test_several_processes_serve_one_postgresql_storage(postgresql):
    place = postgresql.database()
    _, manifest = opened(place)
    batches = [reports(20) for _ in range(12)]
    with serving(place, workers=2) as service:
        for batch in batches:
            assert service.send(manifest, b"".join(batch))[::2] == (200, b"")
            assert service.send(manifest, b"".join(batch[::-1]))[::2] == (200, b"")
        numbers = service.request("GET", "/metrics", admin=True)[2].decode()
        assert 'kveil_reports_total{outcome="stored"} 480' in numbers, "of both processes"
        service.stop()
        assert '"event": "stop"' in service.said()
    assert stored(place) == {one for batch in batches for one in batch}


def test_a_stop_in_the_middle_finishes_what_it_took(tmp_path):
    place = tmp_path / "collector.db"
    _, manifest = opened(place)
    batch = reports(300)
    with serving(place) as service:
        assert service.send(manifest, b"".join(batch))[::2] == (200, b"")
        service.stop()
        assert service.process.is_over()
        said = [json.loads(line) for line in service.said().splitlines()]
    assert [one["event"] for one in said] == ["start", "stop"]
    assert said[-1]["reports_stored"] == 300
    assert datetime.strptime(said[0]["at"], "%Y-%m-%dT%H:%MZ").replace(tzinfo=UTC), "no time finer than the minute"
    assert stored(place) == set(batch)


def test_headers_of_the_page_let_nothing_else_in(tmp_path, monkeypatch):
    (tmp_path / "modules").mkdir()
    (tmp_path / "index.html").write_text("<p>hello</p>")
    (tmp_path / "modules" / "wire.js").write_text("export {}")
    monkeypatch.setattr(files, "FOLDER", tmp_path)
    made = files.Files(has_marker=False)

    def get(answer, path="", etag=""):
        scope = {"type": "http", "headers": [(b"if-none-match", etag.encode())], "path_params": {"path": path}}
        return asyncio.run(answer(Request(scope)))

    page = get(made.index)
    assert page.body == b"<p>hello</p>"
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
    assert page.headers["referrer-policy"] == "no-referrer"
    assert get(made.client, "modules/wire.js").headers["content-type"].startswith("text/javascript")
    assert get(made.index, etag=page.headers["etag"]).status_code == 304
    assert get(made.client, "none.js").status_code == 404
    assert get(made.client, "../service.py").status_code == 404
    assert "set-cookie" not in get(made.marker).headers


def test_taking_reports_in_loads_no_decoder():
    """A cold start, since that is the question: decoders would take 100 MB and two seconds of every process."""
    code = "import sys, kveil.service.server; print(sorted({'numba', 'scipy', 'sklearn'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "[]\n"


def test_the_media_type_may_be_written_with_a_blank(open_):
    (one,) = reports(1)
    media = {"content-type": PLAIN["content-type"].replace(";", "; ")}
    assert open_.request("POST", f"/v1/manifests/{open_.manifest}/reports", one, media)[0] == 200
