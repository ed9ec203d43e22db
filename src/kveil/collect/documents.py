"""Queries as they stand in a round manifest: integers, strings, and arrays as base64 of little-endian numbers.

Reading is strict, because a device reads what a stranger wrote: every field is known and of its type, every number is finite and
within public limits, and nothing of it depends on a point, which is not loaded before all of this has passed.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from kveil.collect.queries import LARGEST, MOST_CELLS, MOST_CENTRES, MOST_KEYS, MOST_VALUES, Floats32, Fold, Keys, Query
from kveil.errors import InvalidValue
from kveil.partition.lsh import BallLattice, Buckets, RotatedGrid
from kveil.partition.public_map import DEEPEST, PublicMap

Document = dict[str, Any]
COMMON = ("M", "id", "kappa", "key_rule", "kind", "weight")
FO = ("olh", "grr", "hrr")
MOST_BYTES, MOST_WEIGHT = 2**24, 2**31


def query_document(query: Query) -> Document:
    """The query as JSON holds it; fields that it does not need are left out."""
    document: Document = {name: getattr(query, name) for name in COMMON}
    if query.fold is not None:
        document["fold"] = {"seed": query.fold.seed, "bins": query.fold.bins, "bit": query.fold.bit}
    if query.buckets is not None:
        return document | _bucket_document(query.buckets)
    if query.depth is not None:
        document["depth"] = query.depth
    if query.maps:
        maps = [_map_document(one) for one in query.maps]
        document["map"] = maps if query.key_rule == "product" else maps[0]
    if query.centres:
        centres = [encode(some) for some in query.centres]
        document["centres"] = centres if query.key_rule == "product" else centres[0]
    if query.lift is not None:
        document["lift"] = encode(query.lift)
    if query.rho is not None:
        document["rho"] = encode(np.array([query.rho], dtype=np.float32))
    return document


def read_query(document: Any, n_columns: int) -> Query:
    """The query that a document describes, for points of `n_columns`; anything else raises `InvalidValue`."""
    if not isinstance(document, Mapping) or not {"kind", "key_rule"} <= set(document):
        _refuse("a query", "is no object with kind and key_rule")
    kind, rule = document["kind"], document["key_rule"]
    if kind not in (*FO, "vec") or rule not in tuple(RULES):  # a list has no hash
        _refuse("kind or key_rule", "is unknown")
    if rule == "product" and kind != "vec":
        _refuse("key_rule", '"product" is for vectors')
    fields = RULES[rule](document, n_columns, kind)
    expected = {*COMMON, *fields.pop("_names")}
    if "fold" in document and kind in FO:
        expected.add("fold")
        fields["fold"] = _fold(document["fold"])
    if set(document) != expected:
        _refuse("a query", f"must have exactly the fields {', '.join(sorted(expected))}")
    numbers: Document = {
        "id": _integer(document, "id", 0, 2**16 - 1),
        "weight": _integer(document, "weight", 1, MOST_WEIGHT),
        "M": _integer(document, "M", 2, MOST_VALUES),
        "kappa": _integer(document, "kappa", 1, MOST_VALUES - 1),
    }
    query = Query(kind=kind, key_rule=rule, **numbers, **fields)
    _check_sizes(query)
    return query


def encode(array: NDArray[Any]) -> str:
    kind = "<u8" if array.dtype.kind == "u" else "<f4"
    return base64.b64encode(np.ascontiguousarray(array, dtype=kind).tobytes()).decode()


def decode_floats(text: Any, name: str, shape: tuple[int, ...], *, least: float = -LARGEST) -> Floats32:
    """Finite single-precision numbers of a shape, in which one -1 stands for "as many as there are"."""
    numbers = np.frombuffer(_bytes(text, name, 4), dtype="<f4").astype(np.float32)
    width = int(np.prod([length for length in shape if length >= 0]))
    if numbers.size % width or (-1 not in shape and numbers.size != width) or not numbers.size:
        _refuse(name, "has the wrong size")
    if not (np.isfinite(numbers).all() and numbers.min() >= least and np.abs(numbers).max() <= LARGEST):
        _refuse(name, "holds a number that is not finite or out of range")
    return numbers.reshape(shape)


def decode_keys(text: Any, name: str, most: int) -> Keys:
    """Ascending distinct keys below `most`."""
    keys = np.frombuffer(_bytes(text, name, 8), dtype="<u8").astype(np.uint64)
    if len(keys) > MOST_CELLS or (keys[1:] <= keys[:-1]).any() or (len(keys) and int(keys[-1]) >= most):
        _refuse(name, "must be ascending keys, not too many and not too large")
    return keys


def _cell(document: Any, n_columns: int, kind: str) -> Document:
    one = _read_map(document, n_columns)
    fields = {"maps": (one,), "depth": _integer(document, "depth", 1, DEEPEST), "_names": ["map", "depth"]}
    return fields if kind in FO else fields | {"rho": _rho(document), "_names": ["map", "depth", "rho"]}


def _nearest(document: Any, n_columns: int, kind: str) -> Document:
    maps = (_read_map(document, n_columns),) if "map" in document else ()
    width = maps[0].n_axes if maps else n_columns
    centres = decode_floats(document.get("centres"), "centres", (-1, width))
    names = ["centres", *["map"] * len(maps), *["rho"] * (kind == "vec")]
    return {"maps": maps, "centres": (centres,), "_names": names} | ({"rho": _rho(document)} if kind == "vec" else {})


def _product(document: Any, n_columns: int, kind: str) -> Document:
    maps, centres = document.get("map"), document.get("centres")
    if not (isinstance(maps, list) and isinstance(centres, list) and len(maps) == len(centres) == 2):
        _refuse("map and centres", "must be two each")
    both = tuple(_read_map({"map": one}, n_columns) for one in maps)
    some = tuple(decode_floats(text, "centres", (-1, one.n_axes)) for text, one in zip(centres, both, strict=True))
    lift = decode_floats(document.get("lift"), "lift", (sum(one.n_axes for one in both), n_columns))
    names = ["map", "centres", "lift", "rho"]
    return {"maps": both, "centres": some, "lift": lift, "rho": _rho(document), "_names": names}


def _bucket(document: Any, n_columns: int, kind: str) -> Document:
    one = _read_map(document, n_columns)
    level = _integer(document, "level", 1, DEEPEST // one.n_axes)
    heavy, lsh = document.get("heavy_cells"), document.get("lsh")
    if not (isinstance(heavy, list) and len(heavy) == 2 and isinstance(lsh, Mapping)):
        _refuse("heavy_cells and lsh", "must be two lists of keys, and an object")
    above, here = (
        decode_keys(text, "heavy_cells", 1 << (one.n_axes * up)) for text, up in zip(heavy, (level - 1, level), strict=True)
    )
    if not len(above):
        _refuse("heavy_cells", "must hold a cell of the level above")
    width = float(decode_floats(lsh.get("width"), "width", (1,), least=2.0**-40)[0])
    family: RotatedGrid | BallLattice
    if set(lsh) == {"rotation", "shift", "width"}:
        rotation = decode_floats(lsh["rotation"], "rotation", (one.n_axes, one.n_axes))
        family = RotatedGrid(rotation, decode_floats(lsh["shift"], "shift", (one.n_axes,)), width)
    elif set(lsh) == {"axes", "shifts", "width"}:
        axes = decode_floats(lsh["axes"], "axes", (one.n_axes, -1))
        shifts = decode_floats(lsh["shifts"], "shifts", (-1, axes.shape[1]))
        if len(shifts) > MOST_CENTRES or axes.shape[1] > DEEPEST:
            _refuse("shifts", "are too many, or have too many axes")
        family = BallLattice(axes, shifts, width)
    else:
        _refuse("lsh", "must be a rotated grid or a lattice of balls")
    up = _integer(document, "up", 1, DEEPEST)  # the large cell holds cells of the level above
    names = ["map", "level", "up", "heavy_cells", "lsh"]
    return {"buckets": Buckets(one, level, up, above, here, family), "_names": names}


RULES: dict[Any, Callable[[Any, int, str], Document]] = {
    "cell": _cell, "nearest": _nearest, "product": _product, "bucket": _bucket,
}  # fmt: skip


def _fold(given: Any) -> Fold:
    if not isinstance(given, Mapping) or set(given) != {"seed", "bins", "bit"}:
        _refuse("fold", "must have exactly seed, bins and bit")
    bins = _integer(given, "bins", 1, 2**20)
    if bins & (bins - 1):
        _refuse("bins", "must be a power of 2")
    return Fold(_integer(given, "seed", 0, 2**53 - 1), bins, _integer(given, "bit", 0, 63))


def _bucket_document(buckets: Buckets) -> Document:
    lsh = buckets.lsh
    family = (
        {"rotation": encode(lsh.rotation), "shift": encode(lsh.shift)}
        if isinstance(lsh, RotatedGrid)
        else {"axes": encode(lsh.axes), "shifts": encode(lsh.shifts)}
    )
    return {
        "map": _map_document(buckets.map),
        "level": buckets.level,
        "up": buckets.up,
        "heavy_cells": [encode(buckets.above), encode(buckets.here)],
        "lsh": family | {"width": encode(np.array([lsh.width], dtype=np.float32))},
    }


def _map_document(one: PublicMap) -> Document:
    return {"A": encode(one.axes), "d": one.n_axes, "gamma": encode(one.shift)}


def _read_map(document: Any, n_columns: int) -> PublicMap:
    given = document.get("map")
    if not isinstance(given, Mapping) or set(given) != {"A", "d", "gamma"}:
        _refuse("map", "must have exactly A, d and gamma")
    n_axes = _integer(given, "d", 1, DEEPEST)
    axes = decode_floats(given["A"], "A", (n_columns, n_axes))
    return PublicMap(axes, decode_floats(given["gamma"], "gamma", (n_axes,)))


def _check_sizes(query: Query) -> None:
    if not 1 <= query.kappa < query.M:
        _refuse("kappa", "must be at least 1 and below M")
    if query.kind in FO and query.kappa != 1:
        _refuse("kappa", "must be 1 for a report on a key")
    if sum(len(some) for some in query.centres) > MOST_CENTRES:
        _refuse("centres", f"are more than {MOST_CENTRES}")
    if not query.n_whole_keys <= MOST_KEYS or (query.kind == "hrr" and (query.M != 2 or query.key_bits > 30)):
        _refuse("the keys", "are too many, or M is not 2 for a Hadamard bit")
    if query.kind == "grr" and max(2, query.n_keys) != query.M:
        _refuse("M", "must be the number of keys")


def _rho(document: Any) -> float:
    return float(decode_floats(document.get("rho"), "rho", (1,), least=float(np.finfo(np.float32).tiny))[0])


def _integer(document: Any, name: str, least: int, most: int) -> int:
    value = document.get(name)
    if type(value) is not int or not least <= value <= most:
        _refuse(name, f"must be a whole number from {least} to {most}")
    return int(value)


def _bytes(text: Any, name: str, size: int) -> bytes:
    try:
        raw = base64.b64decode(text, validate=True) if isinstance(text, str) and len(text) <= 2 * MOST_BYTES else None
    except ValueError:
        raw = None
    if raw is None or len(raw) % size or base64.b64encode(raw).decode() != text:
        _refuse(name, "is no base64 of whole numbers")
    return raw


def _refuse(name: str, why: str) -> NoReturn:
    raise InvalidValue(f"this query cannot be answered: {name} {why}. Nothing was read and nothing was spent.")
