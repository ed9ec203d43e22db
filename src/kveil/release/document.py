"""release.json: what it holds, and what is believed of one that was read. Nothing in it is executed."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, date, datetime
from types import NoneType
from typing import TYPE_CHECKING, Any

from kveil._version import __version__
from kveil.errors import ReleaseError
from kveil.release.plain import canonical
from kveil.release.promise import read_guarantee
from kveil.release.table import FILES, column_names
from kveil.release.trouble import attempt, damaged

if TYPE_CHECKING:
    from kveil.release.release import Release

SCHEMA, CARD = "kveil.release/1", "card.md"
LARGEST_TABLE = 256 * 2**20  # bytes, on disk and in memory

KEYS: dict[str, tuple[type, ...]] = {
    "kveil": (str,), "created": (str,), "kind": (str,), "method": (dict,), "parameters": (dict,), "features": (list, NoneType),
    "centers": (dict,), "card": (dict,), "guarantee": (dict,), "receipt": (dict,), "notes": (list,),
}  # fmt: skip


def write_document(release: Release, table_file: str, table: bytes, card: bytes) -> bytes:
    """The JSON that describes a release and the files beside it."""
    document = {
        "schema": SCHEMA,
        "kveil": __version__,
        "created": datetime.now(UTC).date().isoformat(),
        "kind": release.kind,
        "method": release.method,
        "parameters": release.parameters,
        "features": None if release.features is None else list(release.features),
        "centers": {
            "file": table_file,
            "sha256": sha256(table),
            "shape": list(release.centers.shape),
            "columns": list(column_names(release)),
        },
        "errors": None if release.errors is None else release.errors.tolist(),
        "names": None if release.names is None else list(release.names),
        "card": {"file": CARD, "sha256": sha256(card)},
        "guarantee": json.loads(release.guarantee.to_json()),
        "receipt": release.receipt,
        "notes": list(release.notes),
    }
    document["digest"] = sha256(canonical(document))
    return (json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def read_document(data: bytes) -> dict[str, Any]:
    """A document whose digest, keys and types are right, with `guarantee` as a Guarantee. Unknown keys are left alone."""
    document: dict[str, Any] = parse(data)
    check_schema(document)
    told = document.pop("digest", None)
    if told != attempt(lambda: sha256(canonical(document)), "release.json cannot be written in UTF-8"):
        raise damaged("release.json does not match its own digest, so it was changed after it was saved")
    for key, types in KEYS.items():
        if type(document.get(key)) not in types or key not in document:
            raise damaged(f'"{key}" is missing from release.json or of the wrong type')
    _check_later_keys(document)
    _check_files(document)
    attempt(lambda: date.fromisoformat(document["created"]), '"created" is no date')
    document["guarantee"] = read_guarantee(document["guarantee"])
    return document


def parse(data: bytes) -> Any:
    """JSON by the letter: no NaN, no key twice."""
    return attempt(
        lambda: json.loads(data.decode(), parse_constant=_refuse, object_pairs_hook=_distinct), "release.json is no JSON"
    )


def schema_of(document: Any) -> str | None:
    """The schema a parsed file claims, if it claims to be a release of any version."""
    schema = document.get("schema") if isinstance(document, dict) else None
    return schema if isinstance(schema, str) and re.fullmatch(r"kveil\.release/[0-9.]{1,20}", schema) else None


def check_schema(document: Any) -> None:
    schema = schema_of(document)
    if schema is None:
        raise ReleaseError(
            "release.json does not say that it is a kveil release, so what it means is not known. Pass the folder that "
            "Release.save or `kveil fit` wrote."
        )
    if schema != SCHEMA:
        raise ReleaseError(
            f'this release has schema "{schema}" and this kveil reads "{SCHEMA}": guessing at its meaning could misstate a '
            "privacy guarantee. Install a kveil that knows it: pip install --upgrade kveil."
        )


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _check_files(document: dict[str, Any]) -> None:
    centers, features = document["centers"], document["features"]
    if centers.get("file") not in FILES.values() or document["card"].get("file") != CARD:  # a name of ours, never a path
        raise damaged("release.json names a file that is no part of a release")
    shape, columns = centers.get("shape"), centers.get("columns")
    if not isinstance(shape, list) or len(shape) not in (1, 2) or not all(type(size) is int and size > 0 for size in shape):
        raise damaged("the shape of the centres is not one or two whole numbers")
    width = shape[1] if len(shape) == 2 else 1
    if shape[0] * width * 8 > LARGEST_TABLE:
        raise damaged("the shape of the centres is larger than any release of kveil")
    if not isinstance(columns, list) or len(columns) not in (width, width + 1) or not all(type(name) is str for name in columns):
        raise damaged("the names of the columns do not fit the shape of the centres")
    if features is not None and (len(shape) == 1 or features != columns[:width]):
        raise damaged("the features are not the columns of the centres")


def _check_later_keys(document: dict[str, Any]) -> None:
    """Errors and names came later than the schema, so a release may have none."""
    for key, kind, what in (("errors", float, "numbers"), ("names", str, "texts")):
        given = document.setdefault(key, None)
        if given is not None and not (isinstance(given, list) and all(type(entry) is kind for entry in given)):
            raise damaged(f'"{key}" is not a list of {what}')


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else _refuse("")


def _refuse(_: str) -> Any:
    raise ValueError
