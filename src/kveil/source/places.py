"""Where a table lies: one file, several as one table, a pattern of names, or a URL that fsspec can open."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Protocol
from urllib.parse import urlsplit

from kveil.errors import InvalidValue, MissingExtra, SourceError
from kveil.source.guard import quietly

KINDS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".npy", ".npz", ".parquet", ".feather", ".arrow")
PASS = "Pass a .csv, .tsv, .parquet, .feather, .npy or .npz file (.csv and .tsv may end in .gz)"

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(::[A-Za-z][A-Za-z0-9+.-]*)*://")


class Place(Protocol):
    """A file that can be opened any number of times, by any thread. `str` of it may be shown."""

    @property
    def name(self) -> str: ...

    def open(self, mode: str = "rb") -> Any: ...

    def exists(self) -> bool: ...

    def is_dir(self) -> bool: ...


class Url:
    """A file that fsspec opens. A URL may hold a password or a token, so only its host and path are shown."""

    def __init__(self, url: str, files: Any, path: str) -> None:
        parts = urlsplit(url.rpartition("::")[2])
        self._shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        self.name = PurePosixPath(urlsplit(path).path or path).name
        self._files, self._path = files, path

    @property
    def local(self) -> str | None:
        """Its path, if it lies on this machine."""
        own = getattr(self._files, "protocol", ())
        return self._path if "file" in ((own,) if isinstance(own, str) else own) else None

    @property
    def identity(self) -> tuple[Any, str]:
        """Its store, and its path there without a query: one file has several URLs, such as s3:// and s3a://, or one slash more.
        A cache in between is none of its own."""
        store = self._files
        while (inner := getattr(store, "fs", None)) is not None:
            store = inner
        return store, self._path.partition("?")[0]  # stores are equal if they are opened alike: two hosts are two stores

    def __str__(self) -> str:
        return self._shown

    def __repr__(self) -> str:
        return f"Url({self._shown!r})"

    def open(self, mode: str = "rb") -> Any:
        return self._files.open(self._path, mode)

    def exists(self) -> bool:
        return bool(quietly(partial(self._files.exists, self._path), f"{self} cannot be reached."))

    def is_dir(self) -> bool:
        return bool(quietly(partial(self._files.isdir, self._path), f"{self} cannot be reached."))

    def inside(self) -> list[Url]:
        """The files directly in a folder, by name."""
        paths = quietly(lambda: sorted(self._files.ls(self._path, detail=False)), f"{self} cannot be listed.")
        return [Url(f"{self._shown.rstrip('/')}/{PurePosixPath(path).name}", self._files, path) for path in paths]


def called(place: Any) -> str:
    """A path or URL as it may be shown: a URL without its user, password and query."""
    text = str(place)
    return str(Url(text, None, text)) if _URL.match(text) else text


def is_place(data: Any) -> bool:
    """Whether `data` names files: a path, a pattern, a URL, or a list of these."""
    if isinstance(data, list | tuple) and data:
        return all(isinstance(each, str | os.PathLike) for each in data)
    return isinstance(data, str | os.PathLike)


def places(data: Any) -> list[Any]:
    """The files of a table: in the order they are named, those of a pattern by name.

    A file that would be read twice is refused, since its records would then count twice: one that is named twice, has two names
    (links), or lies in a folder that is named, too. A recursive pattern may match a folder `t.parquet` and what is in it.
    """
    named: Sequence[Any] = data if isinstance(data, list | tuple) else [data]
    found = [place for each in named for place in _of_one(each)]
    seen = _identities(found)
    if len(set(seen)) < len(seen):
        raise InvalidValue(
            "a file is named twice, or by two names, or beside its folder, so its rows would count twice. Name every file once."
        )
    return found


def files_in(place: Any) -> list[Any]:
    """The file itself; of a folder the Parquet files directly in it, by name."""
    if not place.is_dir():
        return [place]
    inside = place.inside() if isinstance(place, Url) else quietly(lambda: sorted(place.iterdir()), f"{place} cannot be listed.")
    files = [file for file in inside if kind_of(file) == ".parquet" and not file.name.startswith((".", "_"))]
    if not files:
        raise SourceError(f"the folder {place} holds no .parquet files. Pass a folder with the files directly in it.")
    return files


def have_one_in_common(one: Any, other: Any) -> bool:
    """Whether two tables share a file, whatever it is called in each."""
    return not set(_identities(places(one))).isdisjoint(_identities(places(other)))


def _identities(found: Sequence[Any]) -> list[Any]:
    return [_identity(file) for place in found for file in files_in(place)]


def _identity(file: Any) -> Any:
    """What two names of one file share: of a file on this machine its number on the disk, else where its store has it."""
    path = file.local if isinstance(file, Url) else file
    if path is None:
        return file.identity
    try:
        found = os.stat(path)
    except OSError:  # said by whoever opens it
        return os.path.realpath(path)
    return found.st_dev, found.st_ino


def kind_of(place: Any) -> str:
    """One of `KINDS`, by the end of its name; "" if it is none."""
    name = place.name.lower()
    return max((kind for kind in KINDS if name.endswith(kind)), key=len, default="")


def open_place(place: Any) -> Any:
    """The bytes of a file, to be read from any place in it."""
    return place.open("rb")


def _of_one(given: Any) -> list[Any]:
    text = os.fspath(given)
    if isinstance(text, str) and _URL.match(text):
        return _urls(text)
    path = Path(os.fsdecode(text))
    if glob.has_magic(str(path)) and not path.exists():
        matches = sorted(glob.glob(str(path), recursive=True))
        if not matches:
            raise SourceError(f"no file is called like {path}. Check the pattern, and the folder where the command is run.")
        return [Path(match) for match in matches]
    return [path]


def _urls(url: str) -> list[Any]:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        missing = MissingExtra("files at a URL need fsspec. Install it: pip install fsspec, and the package of that store.")
    else:
        files, path = quietly(lambda: url_to_fs(url), f"{_scheme(url)}:// cannot be opened. Install what fsspec needs for it.")
        if not glob.has_magic(path) or urlsplit(url).scheme in ("http", "https"):  # there `?` begins a query
            return [Url(url, files, path)]
        base = f"{_scheme(url)}://"
        matches = quietly(lambda: sorted(files.glob(path)), f"{base} cannot be listed.")
        if not matches:
            raise SourceError("no file is called like this URL. Check the pattern.")
        return [Url(f"{base}{match.lstrip('/') if _has_host(url) else match}", files, match) for match in matches]
    raise missing


def _scheme(url: str) -> str:
    return urlsplit(url.rpartition("::")[2]).scheme


def _has_host(url: str) -> bool:
    return bool(urlsplit(url.rpartition("::")[2]).netloc)
