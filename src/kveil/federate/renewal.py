"""New certificates for old ones, without a day on which peers do not know each other.

A role makes its next certificate beside the one in use (`renew`), its peers accept it beside the one they know (`accept`), and
then the role shows it (`switch`). Tokens stay as they are.
"""

from __future__ import annotations

import os
import ssl
from datetime import UTC, datetime
from pathlib import Path

from kveil.errors import InvalidValue, MissingExtra
from kveil.federate.keys import Keys, certificates, end_of, make_certificate, write

NEXT = "next"
FILES = ("private.pem", "certificate.pem")


def renew(folder: str | os.PathLike[str]) -> Path:
    """The next certificate of the role of this folder, for its peers to accept; it is not in use yet."""
    keys = Keys.at(folder)
    name, hosts = _described(keys.folder / "certificate.pem")
    place = keys.folder / NEXT
    try:
        place.mkdir(mode=0o700)
    except FileExistsError:
        raise InvalidValue(
            f"{os.fspath(place)!r} holds a next certificate already. Have the peers accept it and switch to it, or remove it."
        ) from None
    certificate, private = make_certificate(name, hosts)
    write(place / "private.pem", private, 0o600)
    write(place / "certificate.pem", certificate, 0o644)
    return place / "certificate.pem"


def switch(folder: str | os.PathLike[str]) -> None:
    """Show the next certificate from now on; programs that run do so when they are started anew."""
    place = Keys.at(folder).folder
    waiting = [name for name in FILES if (place / NEXT / name).is_file()]
    if not waiting:
        raise InvalidValue(f"{os.fspath(folder)!r} holds no next certificate. Make one with `kveil federate renew` first.")
    for name in waiting:  # both, or what an interrupted switch has left
        os.replace(place / NEXT / name, place / name)
    (place / NEXT).rmdir()


def accept(folder: str | os.PathLike[str], peer: str, certificate: str | os.PathLike[str]) -> None:
    """Believe another certificate of a known peer, beside those of it that have not ended."""
    keys = Keys.at(folder)
    if peer not in keys.peers:
        raise InvalidValue(f"the folder of keys knows no {peer!r}, but {', '.join(keys.peers) or 'nobody'}.")
    try:
        found = certificates(Path(certificate))
    except (OSError, ValueError):
        found = []
    word = f"kveil {peer}".encode()
    if len(found) != 1 or bytes([12, len(word)]) + word not in found[0]:
        raise InvalidValue(f"{os.fspath(certificate)!r} is no certificate of {peer!r}, as `kveil federate renew` makes it.")
    now = datetime.now(UTC)
    if end_of(found[0]) <= now:
        raise InvalidValue(f"the certificate at {os.fspath(certificate)!r} has ended on {end_of(found[0]):%Y-%m-%d}.")
    old = [known for known in certificates(keys.folder / f"{peer}.pem") if known != found[0] and end_of(known) > now]
    place = keys.folder / f"{peer}.new"
    place.unlink(missing_ok=True)
    write(place, "".join(map(ssl.DER_cert_to_PEM_cert, [*found, *old])).encode(), 0o644)
    os.replace(place, keys.folder / f"{peer}.pem")


def _described(path: Path) -> tuple[str, list[str]]:
    """Whose certificate this is, and for which hosts."""
    try:
        from cryptography import x509
    except ImportError:
        raise MissingExtra("making certificates needs the extra: pip install 'kveil[service]'.") from None
    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    (named,) = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    hosts = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return str(named.value).removeprefix("kveil "), [str(host.value) for host in hosts]
