"""A release as a folder: centers.parquet (or .csv), synopsis.npz, card.md, and release.json, which vouches for all of them.

If it is signed, signature.json vouches for release.json.
"""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from kveil.canonical import digest
from kveil.errors import InvalidValue, KveilError, ReleaseError
from kveil.release.document import CARD, LARGEST_TABLE, SYNOPSIS, parse, read_document, schema_of, write_document
from kveil.release.place import damaged, put_folder, read_file
from kveil.release.release import Release
from kveil.release.signature import LARGEST_SIGNATURE, SIGNATURE, Signature, read_signature, write_signature
from kveil.release.synopsis_file import read_synopsis, write_synopsis
from kveil.release.table import FILES, column_names, read_table, write_table
from kveil.signing import SigningKey
from kveil.solve.synopsis import LARGEST

DOCUMENT = "release.json"
LARGEST_JSON = 16 * 2**20
SAID = (
    "features",
    "guarantee",
    "receipt",
    "kind",
    "method",
    "parameters",
    "notes",
    "errors",
    "names",
    "places",
    "purpose",
    "data_name",
    "created",
)


def save(
    release: Release, path: str | PathLike[str], *, format: str = "parquet", overwrite: bool = False,
    sign: SigningKey | str | PathLike[str] | None = None,
) -> Path:  # fmt: skip
    """Write `release` as a folder at `path`, whole or not at all; returns the path."""
    if format not in FILES:
        raise InvalidValue(f'format must be "parquet" or "csv", got {format!r}.')
    key = SigningKey.load(sign) if isinstance(sign, str | PathLike) else sign
    place, files = Path(os.path.abspath(path)), pack(release, format)
    if key is not None:
        files[SIGNATURE] = write_signature(files[DOCUMENT], key)
    put_folder(place, files, check_replaceable if overwrite else None)
    return Path(path)


def load(path: str | PathLike[str]) -> Release:
    """The release saved at `path`, after checking every file of it. Executes nothing that it reads.

    Parameters
    ----------
    path : path
        The folder that `Release.save` or `kveil fit -o` wrote.

    Returns
    -------
    Release
        The same as was saved.

    Raises
    ------
    ReleaseError
        If anything was changed since it was saved, or if a newer kveil wrote it. The checks find damage; they are no
        signature, so they do not tell who made the release.

    Examples
    --------
    >>> import tempfile
    >>> from kveil.kernel.loss import PrivacyUnit, no_guarantee
    >>> release = Release(
    ...     centers=[[0.0, 2.0]], weights=None, features=None, kind="PrivateKMeans",
    ...     guarantee=no_guarantee("add-remove", PrivacyUnit(), "curator"),
    ...     receipt={"token": None, "ledger": None, "charges": 0, "secure": False},
    ...     method={"asked": "auto", "used": "lloyd", "why": ""}, parameters={}, notes=(),
    ... )
    >>> with tempfile.TemporaryDirectory() as place:
    ...     load(release.save(place + "/out"))
    Release(PrivateKMeans, 1 centers, 2 features, no guarantee)
    """
    folder = Path(path)
    if not folder.is_dir():
        raise ReleaseError(f'there is no release at "{folder}". Pass the folder that Release.save or `kveil fit` wrote.')
    document = read_document(read_file(folder / DOCUMENT, LARGEST_JSON))
    table = _verified(folder, document["centers"], LARGEST_TABLE)
    _verified(folder, document["card"], LARGEST_JSON)
    entry = document["synopsis"]
    return _rebuilt(document, table, None if entry is None else _verified(folder, entry, LARGEST))


def pack(release: Release, format: str) -> dict[str, bytes]:
    """Every file of a release, by name."""
    files: dict[str, bytes] | None = None
    try:
        table, card = write_table(release, format), release.card().encode()
        synopsis = None if release.synopsis is None else write_synopsis(release.synopsis)
        files = {FILES[format]: table, CARD: card} | ({} if synopsis is None else {SYNOPSIS: synopsis})
        files[DOCUMENT] = write_document(release, FILES[format], table, card, synopsis)
    except UnicodeEncodeError:
        files = None
    if files is None:
        raise ReleaseError(
            "a name or a note of this release holds half a character, which UTF-8 cannot write, so no other program could read "
            "it. Rename the feature with dataclasses.replace(release, features=...) and save again; no need to fit again."
        )
    if len(files[DOCUMENT]) > LARGEST_JSON or len(files[FILES[format]]) > LARGEST_TABLE:
        raise ReleaseError(
            "this release is larger than kveil would read back: 16 MB of parameters and 256 MB of centres. Give fewer "
            "centres or features, or drop what is large from its parameters."
        )
    return files


def files_of(path: str | PathLike[str]) -> set[str]:
    """The names of the files that make up the release at `path`: those that release.json vouches for, itself, its signature."""
    document = read_document(read_file(Path(path) / DOCUMENT, LARGEST_JSON))
    own = {DOCUMENT} if signature_of(path) is None else {DOCUMENT, SIGNATURE}
    return own | {document[part]["file"] for part in ("centers", "card", "synopsis") if document[part] is not None}


def signature_of(path: str | PathLike[str]) -> Signature | None:
    """What the signature of the release at `path` says; None if there is none, or none of ours. It is not checked here."""
    place = Path(path) / SIGNATURE
    try:
        return read_signature(read_file(place, LARGEST_SIGNATURE)) if os.path.lexists(place) else None
    except ReleaseError:
        return None


def check_replaceable(place: Path) -> None:
    """Raise unless `place` is a folder that holds a release of ours and nothing else: only that may be deleted."""
    if place.is_symlink() or not place.is_dir() or not _is_release(place):
        raise ReleaseError(
            f'"{place}" is not a kveil release, so overwrite=True does not touch it: deleting it might destroy something else. '
            "Choose another path, or remove it yourself."
        )
    others = sorted(set(os.listdir(place)) - {*FILES.values(), CARD, SYNOPSIS, DOCUMENT, SIGNATURE})
    if others:
        raise ReleaseError(
            f'the release at "{place}" shares its folder with other files, such as "{others[0]}", and overwriting would delete '
            "them. Move them away, or choose another path."
        )


def _is_release(place: Path) -> bool:
    try:
        return schema_of(parse(read_file(place / DOCUMENT, LARGEST_JSON))) is not None
    except KveilError:
        return False


def _verified(folder: Path, entry: dict[str, Any], largest: int) -> bytes:
    data = read_file(folder / entry["file"], largest)
    if digest(data) != entry.get("sha256"):
        raise damaged(f"{entry['file']} is not the file that was saved with release.json")
    return data


def _rebuilt(document: dict[str, Any], table: bytes, synopsis: bytes | None) -> Release:
    centers = document["centers"]
    shape, names = tuple(centers["shape"]), tuple(centers["columns"])
    columns = read_table(table, centers["file"], names, shape)
    width = shape[1] if len(shape) == 2 else 1
    release = Release(
        centers=columns[0] if len(shape) == 1 else np.stack(columns[:width], axis=1),
        weights=columns[width] if len(columns) > width else None,
        synopsis=None if synopsis is None else read_synopsis(synopsis),
        **{key: document[key] for key in SAID},
    )
    if column_names(release) != names:
        raise damaged("the columns of the centres do not have the names that kveil gives them")
    if release.guarantee.valid and release.guarantee.route != "none" and not release.receipt["secure"]:
        raise damaged("its receipt says that the noise was scripted, and its guarantee says that it holds")
    return release
