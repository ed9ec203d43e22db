"""Folders that are whole or absent, and files that are read with care."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from kveil.errors import NotVerified, ReleaseError


def put_folder(place: Path, files: Mapping[str, bytes], may_replace: Callable[[Path], None] | None) -> None:
    """Write a folder beside `place`, then rename it there. `may_replace` raises if what is there must stay.

    A crash before the rename leaves nothing at the place. While an old folder is replaced, a crash between two renames
    leaves it beside the place, under a name that ends in ".old".
    """
    if os.path.lexists(place):
        if may_replace is None:
            raise in_the_way(place)
        may_replace(place)
    try:
        _put(place, files, may_replace is not None)
        failed = None
    except OSError as error:
        taken = error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR) and os.path.lexists(place)
        failed = in_the_way(place) if taken else _unwritten(place, error)  # taken: by another process, meanwhile
    if failed is not None:
        raise failed


def read_file(path: Path, largest: int) -> bytes:
    """The bytes of an ordinary file; links, pipes and files of absurd size are refused."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    data: bytes | None = None
    try:
        if not path.is_symlink():
            with os.fdopen(os.open(path, flags), "rb") as file:
                found = os.fstat(file.fileno())
                if stat.S_ISREG(found.st_mode) and found.st_size <= largest:
                    data = file.read(largest + 1)
    except OSError:
        data = None
    if data is None or len(data) > largest:
        raise damaged(f"{path.name} is missing, is no ordinary file, or is larger than {largest // 2**20} MB")
    return data


def in_the_way(place: Path) -> ReleaseError:
    return ReleaseError(
        f'there is something at "{place}" already, and saving would destroy it. Choose another path, or pass overwrite=True '
        "if it is a release that may be replaced."
    )


def _put(place: Path, files: Mapping[str, bytes], replace: bool) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    tag = secrets.token_hex(6)
    fresh, old = place.parent / f".{place.name}.{tag}.new", place.parent / f".{place.name}.{tag}.old"
    fresh.mkdir()
    try:
        for name, data in files.items():
            _write(fresh / name, data)
        _sync_folder(fresh)
        if replace and os.path.lexists(place):
            os.rename(place, old)
        try:
            os.rename(fresh, place)
        except BaseException:
            if os.path.lexists(old):
                os.rename(old, place)
            raise
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    _sync_folder(place.parent)
    shutil.rmtree(old, ignore_errors=True)


def _write(path: Path, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems have no such call; the files themselves are safe
            os.fsync(handle)
    finally:
        os.close(handle)


def _unwritten(place: Path, error: OSError) -> ReleaseError:
    return ReleaseError(
        f'the release could not be written to "{place}": {error.strerror or type(error).__name__}. Nothing was left there, and '
        "what was fitted was charged. From Python, save the release again to a place with room; fitting again would cost again."
    )


T = TypeVar("T")


def damaged(what: str) -> NotVerified:
    """The error for a release whose files are not what was saved."""
    return NotVerified(
        f"this release is damaged: {what}. A centre or a promise read from it could be wrong without anyone noticing. "
        "Take a fresh copy from whoever saved it, or save the release again."
    )


def attempt(action: Callable[[], T], what: str) -> T:
    """What `action` returns, or `damaged(what)`; nothing of a library's own message travels along."""
    try:
        return action()
    except Exception:  # a parser fed with foreign bytes may raise anything
        failed = damaged(what)
    raise failed  # out here, so that the original is not kept as its context
