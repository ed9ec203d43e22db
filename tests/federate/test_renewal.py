"""Certificates end: the owner is told in time, an error says so, and the next one takes over while the old one is still known."""

import ssl
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from federate_tools import message, party

from kveil.errors import InvalidValue
from kveil.federate import Calling, Keys, keys, make_keys, renewal, serve
from kveil.federate.client import CallFailed, Client
from kveil.federate.messages import Reply

ENDED = -0.01  # days: a quarter of an hour ago


def made(folder, monkeypatch, days=keys.VALID_DAYS):
    monkeypatch.setattr(keys, "VALID_DAYS", days)
    made_ = make_keys(folder / "keys", ["north", "south"])
    monkeypatch.undo()
    return made_


@pytest.fixture
def served():
    servers = []

    def start(folder, **options):
        servers.append(serve(party(), "127.0.0.1", 0, Keys.at(folder), **options))
        return servers[-1].url

    yield start
    for server in servers:
        server.stop()


@pytest.mark.parametrize("days", [1, 30.5, 825, 40_000])
def test_the_end_of_a_certificate_is_read_as_it_was_written(tmp_path, monkeypatch, days):
    """40 000 days from now a year has four digits in certificates."""
    path = made(tmp_path, monkeypatch, days) / "north" / "certificate.pem"
    (der,) = keys.certificates(path)
    assert keys.end_of(der) == x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc


def test_owners_are_told_sixty_days_before(tmp_path, monkeypatch, caplog):
    folder = made(tmp_path, monkeypatch, 61)
    Keys.at(folder / "north").for_calling()
    assert not caplog.records
    soon = made(tmp_path / "keys", monkeypatch, 59)
    end = f"{datetime.now(UTC) + timedelta(days=59):%Y-%m-%d}"
    for make in (Keys.at(soon / "coordinator").for_calling, Keys.at(soon / "north").for_listening):
        caplog.clear()
        make()
        assert {record.levelname for record in caplog.records} == {"WARNING"}
        assert f"the certificate of this role ends on {end}" in caplog.text
    assert "the certificate of coordinator ends on" in caplog.text
    assert "`kveil federate renew`" in caplog.text


def test_a_certificate_that_has_ended_is_named_as_the_reason(tmp_path, monkeypatch, served, caplog):
    folder = made(tmp_path, monkeypatch, ENDED)
    url = served(folder / "north")
    assert "the certificate of this role has ended on" in caplog.text
    with pytest.raises(CallFailed, match=r"its certificate has ended: .*`kveil federate renew`"):
        Client(url, Keys.at(folder / "coordinator")).connect(5.0)


def test_a_certificate_that_is_not_valid_yet_is_told_apart(tmp_path, monkeypatch, served):
    class Early(datetime):
        @classmethod
        def now(cls, zone=None):
            return datetime.now(zone) + timedelta(days=2)

    monkeypatch.setattr(keys, "datetime", Early)
    folder = made(tmp_path, monkeypatch)
    with pytest.raises(CallFailed, match="not valid yet"):
        Client(served(folder / "north"), Keys.at(folder / "coordinator")).connect(5.0)


def test_a_caller_whose_own_certificate_has_ended_is_told_so(tmp_path, monkeypatch, served):
    """With --mutual the other side looks at it."""
    folder, ended = made(tmp_path, monkeypatch), made(tmp_path / "keys", monkeypatch, ENDED)
    for name in renewal.FILES:
        (folder / "coordinator" / name).write_bytes((ended / "coordinator" / name).read_bytes())
    (folder / "north" / "coordinator.pem").write_bytes((ended / "coordinator" / "certificate.pem").read_bytes())
    client = Client(served(folder / "north", mutual=True), Keys.at(folder / "coordinator"), mutual=True)
    with closing(client), pytest.raises(CallFailed, match="certificate of this side has ended"):
        client.post("/v1/answer", message(0, "hello", {}), 5.0)


def hello(folder, url, mutual):
    link = Calling(folder / "coordinator", mutual=mutual).connect([url], 5.0)
    with closing(link):
        return Reply.from_bytes(link.ask({"north": message(0, "hello", {})}, 5.0)["north"]).body["data"]


@pytest.mark.parametrize("mutual", [False, True])
def test_peers_know_each_other_at_every_step_of_a_renewal(tmp_path, monkeypatch, served, mutual):
    folder = made(tmp_path, monkeypatch, 30)
    before = served(folder / "north", mutual=mutual)
    new = renewal.renew(folder / "north")
    assert (folder / "north" / "next" / "private.pem").stat().st_mode & 0o077 == 0
    renewal.accept(folder / "coordinator", "north", new)
    assert hello(folder, before, mutual) == "rows"  # the old one is still shown
    assert hello(folder, served(folder / "north", mutual=mutual), mutual) == "rows"
    renewal.switch(folder / "north")
    assert hello(folder, served(folder / "north", mutual=mutual), mutual) == "rows"
    renewal.accept(folder / "north", "coordinator", renewal.renew(folder / "coordinator"))
    renewal.switch(folder / "coordinator")
    assert hello(folder, served(folder / "north", mutual=mutual), mutual) == "rows"
    left = Keys.at(folder / "coordinator").ends()
    assert min(left["north"], left["certificate"]) > datetime.now(UTC) + timedelta(days=800) > left["south"]
    assert not (folder / "north" / "next").exists()


def test_a_certificate_that_has_ended_is_forgotten_when_the_next_is_accepted(tmp_path, monkeypatch):
    folder = made(tmp_path, monkeypatch, ENDED)
    renewal.accept(folder / "coordinator", "north", renewal.renew(folder / "north"))
    assert len(keys.certificates(folder / "coordinator" / "north.pem")) == 1


def test_what_is_no_certificate_of_that_peer_is_not_accepted(tmp_path, monkeypatch):
    folder, known = made(tmp_path, monkeypatch), tmp_path / "keys" / "coordinator" / "north.pem"
    before = known.read_bytes()
    (tmp_path / "garbage").write_text("no certificate")
    (tmp_path / "two").write_bytes(2 * (folder / "north" / "certificate.pem").read_bytes())
    ended = made(folder, monkeypatch, ENDED)
    for path, why in (
        (folder / "south" / "certificate.pem", "no certificate of"), (tmp_path / "garbage", "no certificate of"),
        (tmp_path / "two", "no certificate of"), (tmp_path / "missing", "no certificate of"),
        (ended / "north" / "certificate.pem", "has ended"),
    ):  # fmt: skip
        with pytest.raises(InvalidValue, match=why):
            renewal.accept(folder / "coordinator", "north", path)
    with pytest.raises(InvalidValue, match="knows no 'east'"):
        renewal.accept(folder / "coordinator", "east", folder / "north" / "certificate.pem")
    assert known.read_bytes() == before


def test_a_renewal_is_done_once(tmp_path, monkeypatch):
    folder = made(tmp_path, monkeypatch)
    with pytest.raises(InvalidValue, match="no next certificate"):
        renewal.switch(folder / "north")
    renewal.renew(folder / "north")
    with pytest.raises(InvalidValue, match="already"):
        renewal.renew(folder / "north")
    (folder / "north" / "next" / "private.pem").replace(folder / "north" / "private.pem")  # a switch that was interrupted
    renewal.switch(folder / "north")
    ssl.create_default_context().load_cert_chain(folder / "north" / "certificate.pem", folder / "north" / "private.pem")
