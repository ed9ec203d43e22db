"""A campaign by commands alone: keys, init, serve, answer, close, next, result; and what each refuses."""

from __future__ import annotations

import io
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kveil.collect.collector import Collector
from kveil.collect.keys import Rotation
from kveil.collect.report import Report
from kveil.signing import SigningKey

sys.path.insert(0, str(Path(__file__).parents[1] / "service"))

from serving import reports, serving

TERMS = ("--protocol", "grid", "--name", "trips", "--people", 400, "--k", 2, "--epsilon", 4, "--center", "50,10", "--radius", 5)


@pytest.fixture
def storage(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KVEIL_STORAGE", str(tmp_path / "collector.db"))
    SigningKey(bytes(range(32))).save(tmp_path / "c.key")
    return tmp_path / "collector.db"


def test_a_campaign_goes_from_init_to_result(kveil, storage, tmp_path):
    told = json.loads(kveil("collect", "init", *TERMS, "--key", "c.key", "--days", 9, "--json").out)
    assert told["min_reports"] == 100, "5 % of 400 people are few"
    name = told["campaign"]
    assert kveil("collect", "result", name[:8]).code == 3
    (manifest,) = [one.hash for one in Collector(storage).manifests(name)]
    key = SigningKey.load("c.key").public
    (tmp_path / "point").write_text("51.2,9.4")
    empty = kveil("collect", "status").out
    assert ("0 reports (at least" in empty, "not limited" in empty) == (True, False), "nobody knows yet who will be let in"
    with serving(storage) as service:
        url = f"http://127.0.0.1:{service.port}"
        device = ("collect", "answer", url, "--key", key, "--ledger", "device.db", "--point-file", "point")
        missing = kveil(*device[:-1], "no-point", "--first")
        assert (missing.code, (tmp_path / "device.db").exists()) == (2, False), "a mistyped name is not paid for"
        quiet = kveil(*device[:6], "quiet.db", *device[7:])
        assert (quiet.code, "new ledger file with --first. Nothing" in quiet.out) == (2, True)
        waits = kveil(*device, "--first")
        assert (waits.code, "22 bytes are stored, to be sent at" in waits.out) == (3, True)
        sent = kveil(*device, "--now")
        assert (sent.code, "sent and stored" in sent.out, "0 of epsilon 4 is left" in sent.out) == (0, True, True)
        shown = kveil("collect", "status").out
        assert ("1 report (at least" in shown, "Reports are not limited to one per person." in shown) == (True, True)
        again = kveil(*device)
        assert (again.code, "22 bytes" in again.out) == (0, False), "nothing waits"
        wrong = kveil(*device[:4], "ab" * 32, *device[5:])
        assert (wrong.code, "not signed by the key" in wrong.err) == (2, True)
        assert service.send(manifest, b"".join(reports(150)))[::2] == (200, b"")
    shown = kveil("collect", "status").out
    assert '"trips"  round 1 of 1, open, 9 days left, 151 reports (at least 100; laid out for 400).' in shown
    early = kveil("collect", "close", name)
    assert (early.code, "--early" in early.out) == (3, True)
    assert kveil("collect", "next", name, "--key", "c.key").code == 3
    assert kveil("collect", "close", name, "--early").out == "round 1: closed.\n"
    assert "there is a result" in kveil("collect", "next", name).out, "after the last round no key is needed"
    text = kveil("collect", "result", name, "--output", "result.json").out
    assert "forgery: reports were not limited to one per person." in text
    assert json.loads((tmp_path / "result.json").read_text())["reports"] == [[151]]
    assert kveil("collect", "delete", name).code == 0
    assert Collector(storage).last_round(name)[1] == 151, "the count stays"
    assert kveil("collect", "delete", name, "--everything").code == 0
    assert "no campaign" in kveil("collect", "status").out


def test_too_few_reports_wait_and_an_end_asks_for_the_name(kveil, storage, monkeypatch):
    name = json.loads(kveil("collect", "init", *TERMS, "--key", "c.key", "--json").out)["campaign"]
    few = kveil("collect", "close", name, "--early")
    assert (few.code, "fewer reports than it waits for (100). Wait, or end" in few.out) == (3, True)
    assert "one of few, withdrawn, fault" in kveil("collect", "end", name, "--key", "c.key", "--reason", "bored").err
    monkeypatch.setattr("sys.stdin", io.StringIO())
    nobody = kveil("collect", "end", name, "--key", "c.key", "--reason", "few")
    assert (nobody.code, "passes --yes" in nobody.err) == (2, True), "without a terminal"
    monkeypatch.setattr("typer.prompt", lambda *_, **__: "something else")
    assert kveil("collect", "end", name, "--key", "c.key", "--reason", "few").code == 2
    monkeypatch.setattr("typer.prompt", lambda *_, **__: "trips")
    told = kveil("collect", "end", name, "--key", "c.key", "--reason", "few")
    assert told.out == "ended. 0 reports deleted. Those who have sent have spent epsilon 4.\n"
    assert kveil("collect", "result", name).code == 2
    assert ", ended," in kveil("collect", "status").out


def test_codes_are_printed_once_and_kept_as_digests(kveil, storage):
    name = json.loads(kveil("collect", "init", *TERMS, "--key", "c.key", "--json").out)["campaign"]
    told = kveil("collect", "codes", name, "--count", 5)
    codes = told.out.split()
    assert len(set(codes)) == 5
    linked = json.loads(kveil("collect", "codes", name, "--count", 2, "--page", "https://page.example/", "--json").out)
    codes += linked["codes"]
    assert linked["links"] == [f"https://page.example/#campaign={name}&code={code}" for code in codes[5:]]
    (link,) = kveil("collect", "codes", name, "--count", 1, "--page", "https://page.example/?lang=en").out.split()
    assert link.startswith(f"https://page.example/?lang=en#campaign={name}&code=")
    codes.append(link.split("=")[-1])
    for page in ("page.example", "https://page.example/#top"):
        assert kveil("collect", "codes", name, "--count", 1, "--page", page).code == 2
    assert "tie a report to a person" in told.err
    Collector(storage).dispose()
    text = storage.read_bytes()
    assert not any(code.encode() in text for code in codes)


def test_a_device_sends_a_code_with_its_own_campaign_alone(kveil, storage, tmp_path):
    init = ("collect", "init", "--key", "c.key", "--json", "--name")
    terms = ("--protocol", "grid", "--people", 5000, "--k", 2, "--epsilon", 1, "--center", "50,10", "--radius", 5)
    home, work = (json.loads(kveil(*init, name, *terms).out)["campaign"] for name in ("home", "work"))
    code = kveil("collect", "codes", work, "--count", 1).out.strip()
    (tmp_path / "point").write_text("51.2,9.4")
    with serving(storage, admission="codes") as service:
        url, key = f"http://127.0.0.1:{service.port}", SigningKey.load("c.key").public
        device = ("collect", "answer", url, "--key", key, "--ledger", "device.db", "--point-file", "point", "--now")
        assert kveil(*device, "--first", "--campaign", home[:12]).code == 3, "its report waits for a code"
        for wrong in ((), ("--campaign", work[:12])):
            told = kveil(*device, "--code", code, *wrong)
            assert (told.code, "all 64 digits" in told.err) == (2, True)
        told = kveil(*device, "--code", code, "--campaign", work)
        assert (
            told.code,
            told.out.count("not admitted: a code is missing, wrong or used"),
            told.out.count("sent and stored"),
        ) == (3, 1, 1)
        code = kveil("collect", "codes", home, "--count", 1).out.strip()
        assert kveil(*device, "--code", code, "--campaign", home).out.count("sent and stored") == 1
        other = (*device[:6], "other.db", *device[7:], "--first", "--code", code, "--campaign", home)
        used = kveil(*other)
        assert (used.code, "not admitted: a code is missing, wrong or used. They stay stored;" in used.out) == (3, True)
    with Collector(storage) as collector:
        assert [collector.last_round(name)[1] for name in (home, work)] == [1, 1]


def test_keys_follow_each_other_by_a_statement_that_is_published(kveil, storage, tmp_path):
    assert kveil("collect", "keys", "new", "d.key").code == 0
    assert kveil("collect", "keys", "rotate", "c.key", "d.key", "--serial", 1).code == 0
    assert kveil("collect", "keys", "rotate", "c.key", "d.key", "--serial", 1).code == 2, "never overwritten"
    assert kveil("collect", "keys", "publish", "rotation.json").code == 0
    text = (tmp_path / "rotation.json").read_bytes()
    (tmp_path / "rotation.json").write_bytes(text.replace(b'"serial\\":1', b'"serial\\":2'))
    assert (tmp_path / "rotation.json").read_bytes() != text
    assert "both keys have signed" in kveil("collect", "keys", "publish", "rotation.json").err
    (kept,) = Collector(storage)._storage.rotations()
    old, new = (SigningKey.load(name).public for name in ("c.key", "d.key"))
    assert Rotation.from_bytes(kept).verified(old) == (new, 1)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("status",), "no collector's database"), (("close", "ab"), "no storage at"),
        (("serve", "--auto-close"), "pass --key"), (("serve", "--key", "c.key"), "needs none"),
        (("serve", "--workers", 2), "served by one process"), (("serve", "--admission", "luck"), "none"),
        (("answer", "ftp://x", "--key", "ab" * 32, "--ledger", "d.db"), "begins with https"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_in_words(kveil, storage, monkeypatch, arguments, word):
    if arguments == ("status",):
        monkeypatch.setenv("KVEIL_STORAGE", "postgresql+psycopg://someone:secret@127.0.0.1:1/none")
    told = kveil("collect", *arguments)
    assert (told.code, word in told.err) == (2, True), told
    assert "secret" not in told.err + told.out
    assert arguments[0] == "serve" or not storage.exists()


def test_a_device_does_not_answer_for_a_collector_that_is_not_there(kveil, storage):
    told = kveil("collect", "answer", "http://127.0.0.1:9", "--key", "ab" * 32, "--ledger", "device.db", "--first")
    assert (told.code, "does not answer" in told.err) == (2, True)
    assert not Path("device.db").exists()


def test_a_refused_report_is_final_and_a_busy_collector_is_asked_again(storage):
    from kveil.service.sender import Sender

    today = datetime.now(UTC).date()
    from kveil.collect.campaign import Campaign

    with Collector(storage, key=SigningKey.load("c.key")) as collector:
        survey = Campaign("s", 1000, 2, 4, [0, 0], 1.0, "grid", min_reports=0)
        signed = collector.open(survey, today, today + timedelta(days=1))
        (one, two) = reports(2)
        with serving(storage) as service, Sender(f"http://127.0.0.1:{service.port}") as sender:
            assert sender.send(signed.hash, one) == "stored"
            assert sender.send(signed.hash, one[:-2] + bytes([one[-2] ^ 1, 0])) == "refused", "the id is taken"
            collector.close(collector.campaigns()[0])
            assert sender.send(signed.hash, two) == "refused", "closed"
            service.stop()
            assert sender.send(signed.hash, Report(0, bytes(16), 0).to_bytes()) == "later"
        with serving(storage, admission="codes") as service, Sender(f"http://127.0.0.1:{service.port}") as sender:
            assert sender.send(signed.hash, two) == "not admitted", "another proof may admit the same bytes"
