"""Tokens of another party: verified as RFC 9578 says, for one campaign, each once."""

import base64
import hashlib
import re
from struct import pack

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from serving import opened, problem, reports, serving, stored

from kveil.collect.collector import Collector
from kveil.errors import InvalidValue
from kveil.service.tokens import Tokens

PSS = bytes.fromhex(  # id-RSASSA-PSS with SHA-384, MGF1 by it, and a salt of 48 bytes
    "303d06092a864886f70d01010a3030a00d300b0609608648016503040202a11a301806092a864886f70d010108300b0609608648016503040202a203020130"
)
ISSUER = "issuer.example"


def der(tag, content):
    size = len(content)
    length = bytes([size]) if size < 128 else b"\x82" + pack(">H", size)
    return bytes([tag]) + length + content


@pytest.fixture(scope="module")
def secret():
    return rsa.generate_private_key(65537, 2048)


@pytest.fixture(scope="module")
def published(secret, tmp_path_factory):
    """The issuer's key as RFC 9578 has it published."""
    pkcs1 = secret.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.PKCS1)
    path = tmp_path_factory.mktemp("issuer") / "key.der"
    path.write_bytes(der(0x30, PSS + der(3, b"\0" + pkcs1)))
    return path


def challenge(campaign, origin=b""):
    """Written here anew, field by field."""
    name = ISSUER.encode()
    return b"\0\2" + pack(">H", len(name)) + name + b"\x20" + bytes.fromhex(campaign) + pack(">H", len(origin)) + origin


def token(secret, published, campaign, nonce):
    """What a client has after unblinding: a plain signature. Who blinds and who signs is the issuer's part."""
    named = hashlib.sha256(published.read_bytes()).digest()
    signed = b"\0\2" + nonce + hashlib.sha256(challenge(campaign)).digest() + named
    return signed + secret.sign(signed, padding.PSS(padding.MGF1(hashes.SHA384()), 48), hashes.SHA384())


def header(one):
    return {"authorization": f'PrivateToken token="{base64.urlsafe_b64encode(one).decode()}"'}


def test_a_token_is_taken_as_it_was_made_and_not_otherwise(secret, published):
    campaign, nonce = "ab" * 32, bytes(range(32))
    tokens, made = Tokens(str(published), ISSUER), token(secret, published, campaign, nonce)
    assert len(made) == 354
    assert tokens.challenge(campaign) == challenge(campaign)
    assert tokens.key(made, campaign) == hashlib.sha256(made[:98]).digest()
    assert tokens.key(made, "cd" * 32) is None, "another campaign's"
    assert Tokens(str(published), "other.example").key(made, campaign) is None
    assert Tokens(str(published), ISSUER, "collector.example").key(made, campaign) is None
    for place in (0, 1, 5, 40, 70, 98, 200, 353):
        altered = bytearray(made)
        altered[place] ^= 1
        assert tokens.key(bytes(altered), campaign) is None, place
    assert tokens.key(made[:-1], campaign) is None
    assert tokens.key(made + b"\0", campaign) is None
    assert tokens.key(b"", campaign) is None


@pytest.mark.parametrize("text", [b"", b"-----BEGIN PUBLIC KEY-----", b"no key", b"-----BEGIN PUBLIC KEY-----\n!\n-----END"])
def test_what_is_no_key_of_an_issuer_is_refused_in_words(tmp_path, text):
    (tmp_path / "key").write_bytes(text)
    with pytest.raises(InvalidValue, match="2048 bits"):
        Tokens(str(tmp_path / "key"), ISSUER)
    with pytest.raises(InvalidValue, match="2048 bits"):
        Tokens(str(tmp_path / "missing"), ISSUER)


def test_a_pem_file_has_the_same_name_and_an_issuer_needs_one(published, tmp_path):
    text = base64.encodebytes(published.read_bytes())
    (tmp_path / "key.pem").write_bytes(b"-----BEGIN PUBLIC KEY-----\n" + text + b"-----END PUBLIC KEY-----\n")
    same = [Tokens(str(path), ISSUER).asks("ab" * 32) for path in (published, tmp_path / "key.pem")]
    assert same[0] == same[1]
    with pytest.raises(InvalidValue, match="name of their issuer"):
        Tokens(str(published), "")


@pytest.mark.parametrize(
    "header", [b"", b"Bearer x", b"PrivateToken", b"PrivateToken token=!", b"PrivateToken token=A", b"x" * 9000]
)
def test_what_is_no_token_in_a_header_is_none(published, header):
    assert Tokens(str(published), ISSUER).proof(header) is None


@pytest.mark.journey
def test_tokens_admit_one_report_each_and_are_asked_for_by_a_challenge(place, secret, published):
    campaign, manifest = opened(place, min_reports=0)
    first, second = (token(secret, published, campaign, bytes([n]) * 32) for n in (1, 2))
    one, two, three = reports(3)
    with serving(place, admission="tokens", token_key=str(published), token_issuer=ISSUER) as service:
        told = service.send(manifest, one)
        assert problem(told) == "admission"
        asked = re.fullmatch('PrivateToken challenge="(.+)", token-key="(.+)"', told[1]["www-authenticate"])
        assert [base64.urlsafe_b64decode(part) for part in asked.groups()] == [challenge(campaign), published.read_bytes()]
        assert service.send(manifest, one, **header(token(secret, published, "ab" * 32, bytes(32))))[2] == one[4:20] + b"\4"
        assert service.send(manifest, one, **header(first))[::2] == (200, b"")
        assert service.send(manifest, one, **header(second[:-1] + b"\0"))[::2] == (200, b""), "a retry of stored bytes"
        assert service.send(manifest, two, **header(first))[2] == two[4:20] + b"\4"
        pairs = {"content-type": "application/vnd.kveil.collect;message=upload-req-admitted"}
        path = f"/v1/manifests/{manifest}/reports"
        told = service.request("POST", path, two + second + three + second, pairs)
        assert told[2] == three[4:20] + b"\4", "of two reports with one token the first is taken"
        assert problem(service.request("POST", path, bytes(376 * 1330), pairs)) == "too-large"
    assert stored(place) == {one, two}
    with Collector(place) as collector:
        assert collector._storage.admitted(campaign) == 2
