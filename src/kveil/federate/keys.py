"""Who is who: a folder for each role with its own certificate, and what it needs to know its peers again.

    certificate.pem, private.pem    this role's own, self-signed; the second is for nobody else (mode 0600)
    known.json                      {peer: [SHA-256 of a token, ...]}: who may call in here; two while one is being replaced
    <peer>.pem                      the peer's certificate: the only one that is believed of it; two while one is being replaced
    <peer>.token                    what this role shows when it calls that peer (mode 0600)

Certificates end after VALID_DAYS; `renewal` replaces them. Folders are handed over out of band. Pinned certificates need no
authority: whoever is not in the folder is not believed. The privacy guarantee does not rest on any of this; keys decide who may
spend a party's budget and who is believed to answer.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import logging
import os
import re
import secrets
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kveil.errors import InvalidValue, MissingExtra

COORDINATOR = "coordinator"
VALID_DAYS = 825
WARN_DAYS = 60  # before a certificate ends

log = logging.getLogger("kveil.federate")


@dataclass(frozen=True)
class Keys:
    """The folder of one role."""

    folder: Path

    @classmethod
    def at(cls, folder: str | os.PathLike[str]) -> Keys:
        keys = cls(Path(folder))
        if not (keys.folder / "certificate.pem").is_file() or not (keys.folder / "private.pem").is_file():
            raise InvalidValue(f"{os.fspath(folder)!r} is no folder of keys. Make one with `kveil federate keys`.")
        return keys

    @property
    def peers(self) -> tuple[str, ...]:
        return tuple(sorted(path.stem for path in self.folder.glob("*.pem") if path.stem not in ("certificate", "private")))

    def token(self, peer: str) -> str:
        """What is shown to a peer; it never appears in a message of an error."""
        try:
            token = (self.folder / f"{peer}.token").read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            token = ""
        if not re.fullmatch(r"[!-~]+", token):  # a library that refuses to send a broken one would quote it
            raise InvalidValue(f"there is no token for {peer!r} in the folder of keys, or it is no single word.")
        return token

    def caller(self, token: str) -> str | None:
        """Whose token this is. All are compared, in time that does not tell which one matched."""
        shown, found = hashlib.sha256(token.encode()).hexdigest(), None
        for peer, digests in self._known().items():
            for digest in digests:
                if hmac.compare_digest(shown, digest):
                    found = peer
        return found

    def peer_of(self, certificate: bytes | None) -> str | None:
        """Whose certificate this is, by its bytes."""
        for peer in self.peers:
            for known in certificates(self.folder / f"{peer}.pem"):
                if certificate is not None and hmac.compare_digest(known, certificate):
                    return peer
        return None

    def ends(self) -> dict[str, datetime]:
        """When the certificate of each peer, and this role's own ("certificate"), ends; of two the later one counts."""
        names = ("certificate", *self.peers)
        return {name: max(map(end_of, certificates(self.folder / f"{name}.pem"))) for name in names}

    def has_ended(self) -> bool:
        """Whether this role's own certificate has."""
        return self.ends()["certificate"] <= datetime.now(UTC)

    def for_calling(self, *, mutual: bool = False) -> ssl.SSLContext:
        """Believes the peers of this folder and nobody else: not create_default_context, which adds the system's roots."""
        self._warn()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # host names are checked
        return self._with_peers(context, own=mutual)

    def for_listening(self, *, mutual: bool = False) -> ssl.SSLContext:
        """Shows this role's certificate; with `mutual` callers must show one of the known ones, and need no token."""
        self._warn()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if not mutual:
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.load_cert_chain(self.folder / "certificate.pem", self.folder / "private.pem")
            return context
        context.verify_mode = ssl.CERT_REQUIRED
        return self._with_peers(context, own=True)

    def _with_peers(self, context: ssl.SSLContext, *, own: bool) -> ssl.SSLContext:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # a pinned certificate is believed for itself, not as an authority
        for peer in self.peers:
            context.load_verify_locations(self.folder / f"{peer}.pem")
        if own:
            context.load_cert_chain(self.folder / "certificate.pem", self.folder / "private.pem")
        return context

    def _warn(self) -> None:
        """Tell the owner, while there is time, which certificates end."""
        now = datetime.now(UTC)
        for name, end in self.ends().items():
            if end - now < timedelta(days=WARN_DAYS):
                log.warning(
                    "keys at %s: the certificate of %s %s on %s. Renew it with `kveil federate renew`.",
                    self.folder, "this role" if name == "certificate" else name, "has ended" if end <= now else "ends",
                    f"{end:%Y-%m-%d}",
                )  # fmt: skip

    def _known(self) -> dict[str, list[str]]:
        try:
            known: Any = json.loads((self.folder / "known.json").read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            known = None
        if not isinstance(known, dict) or not all(isinstance(digests, list) for digests in known.values()):
            raise InvalidValue("known.json of the folder of keys cannot be read: it must be {peer: [SHA-256 of a token, ...]}.")
        return {str(peer): [str(digest) for digest in digests] for peer, digests in known.items()}


def make_keys(folder: str | os.PathLike[str], parties: Sequence[str], hosts: Sequence[str] = ("127.0.0.1", "localhost")) -> Path:
    """Folders for a coordinator and its parties under `folder`, which must not exist: hand each its own, and keep no copy.

    hosts: addresses and names that coordinator and listening parties are reached at.
    """
    names = (COORDINATOR, *parties)
    if len(set(names)) < len(names) or not all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", name) for name in names):
        raise InvalidValue('names of parties must differ, be 1 to 64 letters, digits, "_", "-" or ".", and not "coordinator".')
    if set(names) & {"certificate", "private", "known"}:
        raise InvalidValue('a party cannot be called "certificate", "private" or "known": files of the folder have these names.')
    root = Path(folder)
    try:
        root.mkdir(mode=0o700)
    except OSError as error:
        raise InvalidValue(f"{os.fspath(folder)!r} cannot be made: {error.strerror}. Choose another place.") from None
    made = {name: make_certificate(name, hosts) for name in names}
    for name, (certificate, private) in made.items():
        place = root / name
        place.mkdir(mode=0o700)
        write(place / "certificate.pem", certificate, 0o644)
        write(place / "private.pem", private, 0o600)
    known: dict[str, dict[str, list[str]]] = {name: {} for name in names}
    for party in parties:
        for caller, called in ((COORDINATOR, party), (party, COORDINATOR)):
            token = secrets.token_urlsafe(32)
            write(root / caller / f"{called}.pem", made[called][0], 0o644)
            write(root / caller / f"{called}.token", token.encode(), 0o600)
            known[called][caller] = [hashlib.sha256(token.encode()).hexdigest()]
    for name in names:
        write(root / name / "known.json", json.dumps(known[name], indent=1).encode(), 0o600)
    return root


def make_certificate(name: str, hosts: Sequence[str]) -> tuple[bytes, bytes]:
    """A self-signed certificate and its private key, as PEM."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError:
        raise MissingExtra("making certificates needs the extra: pip install 'kveil[service]'.") from None
    private = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"kveil {name}")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(private, hashes.SHA256())
    )
    key = private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(serialization.Encoding.PEM), key


def _host(host: str) -> Any:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def certificates(path: Path) -> list[bytes]:
    """The certificates of a file."""
    found = re.findall(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", path.read_text(encoding="ascii"), re.S)
    if not found:
        raise InvalidValue(f"{os.fspath(path)!r} holds no certificate. Use folders of `kveil federate keys` as they were made.")
    return [ssl.PEM_cert_to_DER_cert(text) for text in found]


def end_of(certificate: bytes) -> datetime:
    """When a certificate ends: read here, since the standard library tells it of a peer's alone, and only if it has not."""
    ((_, content),) = _parts(certificate)
    (_, signed), *_ = _parts(content)
    _, _, _, (_, validity), *_ = (part for part in _parts(signed) if part[0] != 0xA0)  # but for the version
    _, (kind, text) = _parts(validity)
    return datetime.strptime(text.decode("ascii"), "%y%m%d%H%M%SZ" if kind == 0x17 else "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def _parts(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The (tag, content) pairs of DER."""
    while data:
        size, start = data[1], 2
        if size & 0x80:
            start += size & 0x7F
            size = int.from_bytes(data[2:start], "big")
        yield data[0], data[start : start + size]
        data = data[start + size :]


def write(path: Path, data: bytes, mode: int) -> None:
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as file:
        file.write(data)
