"""A device's side of the wire: a collector that wants to tell devices apart gets no help."""

from datetime import UTC, datetime, timedelta

import httpx

from kveil.collect.campaign import Campaign
from kveil.collect.client import LocalClient
from kveil.collect.collector import Collector
from kveil.service.sender import Code, Sender
from kveil.signing import SigningKey


def test_a_sender_sends_no_cookie_back_and_nothing_of_its_machine():
    seen = []

    def collector(request):
        seen.append(request.headers)
        return httpx.Response(200, headers={"set-cookie": "device=7; Path=/; Max-Age=999"}, content=b'{"campaigns": []}')

    with Sender("http://127.0.0.1:1") as sender:
        sender._http._transport, sender._http._mounts = httpx.MockTransport(collector), {}
        sender.campaigns()
        sender.campaigns()
        sender.send("ab" * 32, bytes(22))
    assert len(seen) == 3
    assert [headers.get("cookie") for headers in seen] == [None] * 3
    assert {(headers["user-agent"], headers["accept-encoding"]) for headers in seen} == {("kveil", "identity")}
    assert {*seen[0]} == {"host", "accept", "accept-encoding", "connection", "user-agent"}


def test_a_code_goes_with_the_report_of_its_own_campaign_alone(tmp_path):
    seen, key, today = [], SigningKey.generate(), datetime.now(UTC).date()

    def collector(request):
        seen.append((request.url.path.split("/")[3], request.headers.get("authorization")))
        return httpx.Response(401)

    client = LocalClient(tmp_path / "device.db", n_features=2, key=key.public, is_first=True)
    with Collector(tmp_path / "collector.db", key=key) as place, Sender("http://127.0.0.1:1") as sender:
        sender._http._transport, sender._http._mounts = httpx.MockTransport(collector), {}
        for name in ("home", "work"):
            survey = Campaign(name, 5000, 2, 1, [0, 0], 1.0, "grid")
            client.answer([place.open(survey, today, today + timedelta(days=9))], [0.1, 0.2])
        home, work = client.pending()
        for code in (None, Code(work.campaign, "CODE"), Code("", "CODE")):
            assert [sender.deliver(client, spend, code) for spend in client.pending()] == ["not admitted", "not admitted"]
    assert [spend.state for spend in client.pending()] == ["sent", "sent"]
    codes = [(one.manifest_hash, None) for one in (home, work)]
    assert seen == [*codes, codes[0], (work.manifest_hash, "Bearer CODE"), *codes]
