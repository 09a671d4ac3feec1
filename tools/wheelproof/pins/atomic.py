"""Files that are replaced whole: written beside, made durable, renamed over. All through ``os``, one step at a time."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from wheel_checks.errors import SourceError


def write_beside(target: Path, temporary: Path, data: bytes) -> None:
    """Write ``data`` to ``temporary``, with the mode and owner of ``target`` if that exists, and make it durable.

    Raises SourceError when the folder cannot be written or is full.
    """
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            with contextlib.suppress(FileNotFoundError):
                _copy_rights(os.stat(target), descriptor)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise SourceError(f"{target} cannot be replaced: {error.strerror or error}", hint=_hint(error)) from error


def replace(temporary: Path, target: Path) -> None:
    """Rename ``temporary`` over ``target``, and make it durable. Raises SourceError."""
    try:
        os.replace(temporary, target)
    except OSError as error:
        raise SourceError(f"{target} cannot be replaced: {error.strerror or error}", hint=_hint(error)) from error
    sync_folder(target.parent)


def remove(path: Path) -> None:
    """Remove a file if it is there. Raises SourceError."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise SourceError(f"{path} cannot be removed: {error.strerror or error}") from error


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the file system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _copy_rights(status: os.stat_result, descriptor: int) -> None:
    """Owner first: changing it may clear bits of the mode. Who may not give a file away keeps his own."""
    if (status.st_uid, status.st_gid) != (os.getuid(), os.getgid()):
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, status.st_uid, status.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))


def _hint(error: OSError) -> str:
    return "its folder must be writable, since the file is replaced as a whole" if error.errno in (1, 13, 30) else ""
