"""A guarantee read from a file. Its numbers must follow from its charges, and every field must be what kveil writes."""

from __future__ import annotations

import json
import re
from typing import Any, get_args

from kveil.errors import InvalidValue, ReleaseError
from kveil.kernel.loss import Guarantee, Mechanism, Relation, Trust
from kveil.release.plain import canonical

FRACTION = re.compile(r"[0-9]{1,400}/[0-9]{1,400}")  # "1e999999999" would be a fraction too, of a billion digits
MOST_TIMES = 1_000  # a forged count must not make the numerical route fill the memory

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
    if guarantee is None or canonical(json.loads(guarantee.to_json())) != canonical(data):
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
