"""The synopsis of a release as a file: named arrays of numbers in an uncompressed .npz, which numpy reads, and nothing else."""

from __future__ import annotations

import io
import zipfile
from dataclasses import MISSING, fields
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import npz
from kveil.canonical import digest
from kveil.release.place import attempt, damaged
from kveil.solve.denoise import Branch
from kveil.solve.synopsis import LARGEST, Distances, Kind, Projected, Step, Synopsis, UniverseSynopsis, is_finite

Arrays = dict[str, NDArray[Any]]

PARTS: dict[str, type[Any]] = {"total": Distances, "distances": Distances, "projected": Projected}
WORDS: dict[str, tuple[str, ...]] = {"kind": get_args(Kind), "branch": get_args(Branch)}  # saved as their place here
DTYPES = {np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.bool_)}
MOST_ENTRIES = 2000  # a step has 10, and no fit has more than a hundred steps


def write_synopsis(synopsis: Synopsis | UniverseSynopsis) -> bytes:
    """The file that holds `synopsis`; the same bytes for the same numbers."""
    arrays = dict[str, NDArray[Any]]()
    _flatten(synopsis, "", arrays)
    return npz(arrays)


def synopsis_digest(synopsis: Synopsis | UniverseSynopsis) -> str:
    """The digest of its numbers: the same for whichever program packs them into a file."""
    arrays = dict[str, NDArray[Any]]()
    _flatten(synopsis, "", arrays)
    return digest(*(part for name, array in sorted(arrays.items()) for part in (name.encode(), *of_array(array))))


def of_array(array: NDArray[Any]) -> tuple[bytes, bytes]:
    """What an array is, and its numbers, as bytes that every machine writes alike."""
    little = array.astype(array.dtype.newbyteorder("<"))
    return f"{array.dtype.kind}{array.dtype.itemsize} {array.shape}".encode(), little.tobytes()


def read_synopsis(data: bytes) -> Synopsis | UniverseSynopsis:
    """The synopsis in a file. Nothing is executed, and nothing is unpacked before its size is known."""
    found = attempt(lambda: _rebuilt(_arrays(data)), "synopsis.npz does not hold a synopsis")
    if not is_finite(found):
        raise damaged("synopsis.npz holds a number that is not finite")
    return found


def _flatten(part: Any, prefix: str, arrays: Arrays) -> None:
    for field in fields(part):
        name, value = prefix + field.name, getattr(part, field.name)
        if field.name == "steps":
            for place, step in enumerate(value):
                _flatten(step, f"{name}.{place}.", arrays)
        elif field.name in PARTS and value is not None:
            _flatten(value, f"{name}.", arrays)
        elif value is not None:
            arrays[name] = np.asarray(WORDS[field.name].index(value) if field.name in WORDS else value)


def _arrays(data: bytes) -> Arrays:
    """The arrays of the file, by name. Its directory is checked first: stored as they are, and not too large together."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        entries = file.infolist()
        are_stored = all(
            entry.compress_type == zipfile.ZIP_STORED and entry.compress_size == entry.file_size for entry in entries
        )
        if not are_stored or len(entries) > MOST_ENTRIES or sum(entry.file_size for entry in entries) > LARGEST:
            raise ValueError
        found = {entry.filename.removesuffix(".npy"): _array(file.read(entry)) for entry in entries}
    if len(found) < len(entries):  # a name twice
        raise ValueError
    return found


def _array(data: bytes) -> NDArray[Any]:
    """An .npy of numbers. Its header is believed only if it asks for exactly as many bytes as there are."""
    stream = io.BytesIO(data)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    start, size = stream.tell(), int(np.prod(shape, dtype=object))
    if dtype not in DTYPES or is_fortran or len(data) - start != size * dtype.itemsize:
        raise ValueError
    return np.frombuffer(data, dtype, size, start).reshape(shape)


def _rebuilt(arrays: Arrays) -> Synopsis | UniverseSynopsis:
    left = dict(arrays)
    found: Synopsis | UniverseSynopsis = _part(UniverseSynopsis if "branch" in left else Synopsis, "", left)
    if left:
        raise ValueError
    return found


def _part(kind: type[Any], prefix: str, left: Arrays) -> Any:
    """A part whose fields are named with this prefix; they are taken out of what is left."""
    values: dict[str, Any] = {}
    for field in fields(kind):
        name = prefix + field.name
        if field.name == "steps":
            values["steps"] = _steps(f"{name}.", left)
        elif field.name in PARTS:
            is_there = any(key.startswith(f"{name}.") for key in left)
            values[field.name] = _part(PARTS[field.name], f"{name}.", left) if is_there else None
        elif name in left:
            values[field.name] = _value(field.name, str(field.type), left.pop(name))
        elif field.default is MISSING:
            raise ValueError
    return kind(**values)


def _steps(prefix: str, left: Arrays) -> tuple[Step, ...]:
    numbers = {int(key.removeprefix(prefix).split(".")[0]) for key in left if key.startswith(prefix)}
    if numbers != set(range(len(numbers))):
        raise ValueError
    return tuple(_part(Step, f"{prefix}{number}.", left) for number in sorted(numbers))


def _value(field: str, kind: str, array: NDArray[Any]) -> Any:
    """A number, a word by its place, or an array; booleans where the type says so."""
    if field in WORDS:
        place = int(array[()])
        if array.dtype != np.int64 or not 0 <= place < len(WORDS[field]):
            raise ValueError
        return WORDS[field][place]
    if kind.startswith(("float", "bool")):
        if array.shape or array.dtype != (np.bool_ if kind == "bool" else np.float64):
            raise ValueError
        return array[()].item()
    return array
