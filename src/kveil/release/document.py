"""release.json: what it holds, and what is believed of one that was read. Nothing in it is executed."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import date
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from kveil._version import __version__
from kveil.canonical import RELEASE, digest
from kveil.errors import InvalidType, InvalidValue, ReleaseError
from kveil.kernel.loss import Guarantee, Mechanism, Relation, Trust
from kveil.release.place import attempt, damaged
from kveil.release.synopsis_file import of_array, synopsis_digest
from kveil.release.table import FILES, column_names

if TYPE_CHECKING:
    from kveil.release.release import Release

SCHEMA, CARD, SYNOPSIS = "kveil.release/1", "card.md", "synopsis.npz"
LARGEST_TABLE = 256 * 2**20  # bytes, on disk and in memory
DEEPEST = 32  # nesting of parameters and notes

KEYS: dict[str, tuple[type, ...]] = {
    "kveil": (str,), "created": (str,), "kind": (str,), "method": (dict,), "parameters": (dict,), "features": (list, NoneType),
    "centers": (dict,), "card": (dict,), "guarantee": (dict,), "receipt": (dict,), "notes": (list,),
}  # fmt: skip


def write_document(release: Release, table_file: str, table: bytes, card: bytes, synopsis: bytes | None = None) -> bytes:
    """The JSON that describes a release and the files beside it."""
    document = {
        "schema": SCHEMA,
        "kveil": __version__,
        "created": release.created,
        "purpose": release.purpose,
        "data_name": release.data_name,
        "kind": release.kind,
        "method": release.method,
        "parameters": release.parameters,
        "features": None if release.features is None else list(release.features),
        "centers": {
            "file": table_file,
            "sha256": digest(table),
            "shape": list(release.centers.shape),
            "columns": list(column_names(release)),
        },
        "errors": None if release.errors is None else release.errors.tolist(),
        "names": None if release.names is None else list(release.names),
        **({} if release.places is None else {"places": release.places.tolist()}),
        "card": {"file": CARD, "sha256": digest(card)},
        "synopsis": None if synopsis is None else {"file": SYNOPSIS, "sha256": digest(synopsis)},
        "guarantee": json.loads(release.guarantee.to_json()),
        "receipt": release.receipt,
        "notes": list(release.notes),
    }
    document["digest"] = digest(RELEASE.write(document))
    return (json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def fingerprint(release: Release) -> str:
    """The SHA-256 of what was released, whatever the format of its files and the day they were written."""
    said = {
        **{key: getattr(release, key) for key in ("kind", "method", "parameters", "features", "names", "receipt", "notes")},
        "guarantee": json.loads(release.guarantee.to_json()),
        "synopsis": None if release.synopsis is None else synopsis_digest(release.synopsis),
    }  # fmt: skip
    tables = (release.centers, release.weights, release.errors, *(() if release.places is None else (release.places,)))
    return digest(RELEASE.write(said), *(part for table in tables for part in ((b"",) if table is None else of_array(table))))


def read_document(data: bytes) -> dict[str, Any]:
    """A document whose digest, keys and types are right, with `guarantee` as a Guarantee. Unknown keys are left alone."""
    document: dict[str, Any] = parse(data)
    check_schema(document)
    stated = document.pop("digest", None)
    if stated != attempt(lambda: digest(RELEASE.write(document)), "release.json cannot be written in UTF-8"):
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
    """Errors, names, places, the synopsis and statements came later than the schema, so a release may have none."""
    for key in ("purpose", "data_name"):
        if type(document.setdefault(key, "")) is not str:
            raise damaged(f'"{key}" is no text')
    for key, kind, what in (("errors", float, "numbers"), ("names", str, "texts")):
        given = document.setdefault(key, None)
        if given is not None and not (isinstance(given, list) and all(type(entry) is kind for entry in given)):
            raise damaged(f'"{key}" is not a list of {what}')
    places = document.setdefault("places", None)
    if places is not None and not (isinstance(places, list) and all(_is_row(row) for row in places)):
        raise damaged('"places" is not a table of numbers')
    synopsis = document.setdefault("synopsis", None)
    if synopsis is not None and not (isinstance(synopsis, dict) and synopsis.get("file") == SYNOPSIS):
        raise damaged('"synopsis" does not name the file of a synopsis')


def _is_row(row: Any) -> bool:
    return isinstance(row, list) and all(type(number) is float for number in row)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else _refuse("")


def _refuse(_: str) -> Any:
    raise ValueError


FRACTION = re.compile(r"[0-9]{1,400}/[0-9]{1,400}")  # "1e999999999" would be a fraction too, of a billion digits
MOST_TIMES = 1_000  # no fit draws one thing so often: a larger count is forged or damaged

TYPES: dict[str, tuple[type, ...]] = {
    "mechanism": (str,), "label": (str,), "sensitivity": (int,), "norm": (str,), "times": (int,), "one_coordinate": (bool,),
    "reason": (str,),
}  # fmt: skip


def read_guarantee(data: Any) -> Guarantee:
    """The guarantee that `data`, the parsed JSON, describes."""
    guarantee: Guarantee | None = None
    if _is_plain(data):
        try:
            guarantee = Guarantee.from_json(json.dumps(data))
        except InvalidValue:
            guarantee = None
    if guarantee is None or RELEASE.write(json.loads(guarantee.to_json())) != RELEASE.write(data):
        raise ReleaseError(
            "the guarantee of this release is damaged, or its epsilon does not follow from its charges: it would promise what "
            "nobody paid for. Do not rely on it. Take a fresh copy from whoever saved it."
        )
    return guarantee


def _is_plain(data: Any) -> bool:
    """Whether the fields that arithmetic does not check are of the right kind."""
    if not isinstance(data, dict) or type(data.get("valid")) is not bool:
        return False
    known = data.get("relation") in get_args(Relation) and data.get("trust") in get_args(Trust)
    texts = [*_list(data, "assumptions"), *_list(data, "reasons")]
    charges, draws = _list(data, "charges"), _list(data, "draws") if "draws" in data else []  # draws came later
    known &= all(_is_plain_charge(charge) and charge["times"] <= MOST_TIMES for charge in charges)
    return known and all(type(text) is str for text in texts) and all(map(_is_plain_charge, draws))


def _is_plain_charge(charge: Any) -> bool:
    if not isinstance(charge, dict) or charge.get("mechanism") not in get_args(Mechanism):
        return False
    if not all(type(charge.get(key)) in types for key, types in TYPES.items()):
        return False
    losses = [charge.get(key) for key in ("epsilon", "rho", "delta")]
    return all(loss is None or (isinstance(loss, str) and FRACTION.fullmatch(loss)) for loss in losses)


def _list(data: dict[str, Any], key: str) -> list[Any]:
    found = data.get(key)
    return found if isinstance(found, list) else [None]


def plain(value: Any, depth: int = 0) -> Any:
    """A copy of `value` made of None, booleans, numbers, strings, lists and dicts; infinity becomes "inf".

    Arrays and tuples become lists. Anything else is refused, and so are paths, which tell about the machine.

    >>> plain({"bounds": (0, np.float64(120.0)), "epsilon": float("inf")})
    {'bounds': [0, 120.0], 'epsilon': 'inf'}
    """
    if depth > DEEPEST:
        raise ReleaseError("a release cannot hold lists or mappings nested this deep. Pass parameters that a person could read.")
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Mapping):
        return {_key(key): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [plain(item, depth + 1) for item in value]
    raise InvalidType(
        f"a release cannot hold a value of type {type(value).__name__}: it is saved as JSON and read anywhere. Use numbers, "
        "strings, None, and lists or mappings of them."
    )


def _number(value: float) -> float | str:
    if math.isnan(value):
        raise InvalidValue("a release cannot hold NaN as a parameter: JSON has no word for it. Leave the parameter out.")
    return value if math.isfinite(value) else str(value)


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise InvalidType("the keys of a mapping in a release must be strings.")
    return key
