"""A device's side of the wire: a collector that wants to tell devices apart gets no help."""

import httpx

from kveil.service.sender import Sender


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
