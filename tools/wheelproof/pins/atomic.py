"""Files that are replaced whole: written under another name, made durable, renamed over.

A name is looked up in an open folder, and a link is refused instead of followed. So a folder or file that is swapped
for a link after it was inspected leads nowhere.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from wheel_checks.errors import NotFoundError, SourceError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # O_NONBLOCK: opening a pipe must not wait
_LOCK = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Folder:
    """An open folder; ``path`` is for messages. Every ``name`` is one of an entry, without a slash."""

    path: Path
    descriptor: int

    @contextlib.contextmanager
    def enter(self, name: str) -> Iterator[Folder]:
        """The folder ``name`` in this one. Raises NotFoundError when it is missing, SourceError for a link."""
        path = self.path / name
        try:
            descriptor = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=self.descriptor)
        except FileNotFoundError:
            raise NotFoundError(f"there is no folder {path}") from None
        except OSError as error:
            what = f"{path} is a link" if path.is_symlink() else f"the folder {path} cannot be opened: {_reason(error)}"
            raise SourceError(what, expected="a folder (links are not followed)") from error
        with _closing(path, descriptor) as folder:
            yield folder

    def make(self, name: str) -> None:
        """Make the folder ``name``, only for this user, durably, if it is not present. Raises SourceError."""
        try:
            os.mkdir(name, 0o700, dir_fd=self.descriptor)
        except FileExistsError:
            return
        except OSError as error:
            raise SourceError(f"the folder {self.path / name} cannot be made: {_reason(error)}") from error
        self.sync()

    @property
    def status(self) -> os.stat_result:
        """Owner and mode of the folder."""
        return os.fstat(self.descriptor)

    def names(self) -> list[str]:
        """The names of its entries, in order. Raises SourceError."""
        try:
            return sorted(os.listdir(self.descriptor))
        except OSError as error:
            raise SourceError(f"the folder {self.path} cannot be read: {_reason(error)}") from error

    def read(self, name: str, largest: int, check: Callable[[os.stat_result], None] | None = None) -> bytes | None:
        """The content of a regular file, ``largest`` bytes and one more at most; None when it is not present.

        ``check`` sees its status first, and may raise. Raises SourceError for a link, a pipe, a device or a folder.
        """
        path = self.path / name
        try:
            _refuse_all_but_files(os.stat(name, dir_fd=self.descriptor, follow_symlinks=False), path)
            descriptor = os.open(name, _READ, dir_fd=self.descriptor)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SourceError(f"{path} cannot be read: {_reason(error)}") from error
        try:
            status = os.fstat(descriptor)
            _refuse_all_but_files(status, path)
            if check is not None:
                check(status)
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return file.read(largest + 1)
        except OSError as error:
            raise SourceError(f"{path} cannot be read: {_reason(error)}") from error
        finally:
            os.close(descriptor)

    def open_lock(self, name: str) -> int:
        """An open descriptor of the file ``name``, which is made when it is not present. Raises SourceError."""
        try:
            return os.open(name, _LOCK, 0o600, dir_fd=self.descriptor)
        except OSError as error:
            raise SourceError(f"{self.path / name} cannot be opened: {_reason(error)}") from error

    def write(self, name: str, data: bytes, *, like: str = "") -> None:
        """Make the file ``name``, which is not there yet, durably.

        It gets the mode and owner of the regular file ``like``, if there is one, else it is this user's alone. Raises
        SourceError when the folder cannot be written or is full.
        """
        try:
            descriptor = os.open(name, _NEW, 0o600, dir_fd=self.descriptor)
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(descriptor, view) :]
                if like:
                    self._copy_rights(like, descriptor)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise self._failed(like or name, error) from error

    def replace(self, temporary: str, name: str) -> None:
        """Rename ``temporary`` over ``name``, and make it durable. Raises SourceError."""
        try:
            os.replace(temporary, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
        except OSError as error:
            raise self._failed(name, error) from error
        self.sync()

    def remove(self, name: str) -> None:
        """Remove a file if it is present. Raises SourceError."""
        try:
            os.unlink(name, dir_fd=self.descriptor)
        except FileNotFoundError:
            return
        except OSError as error:
            raise SourceError(f"{self.path / name} cannot be removed: {_reason(error)}") from error

    def sync(self) -> None:
        """Make the names in the folder durable, where the file system can."""
        with contextlib.suppress(OSError):
            os.fsync(self.descriptor)

    def _copy_rights(self, like: str, descriptor: int) -> None:
        """Owner first: changing it may clear bits of the mode. A file that may not be given away stays ours."""
        try:
            status = os.stat(like, dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return
        if not stat.S_ISREG(status.st_mode):
            return
        if (status.st_uid, status.st_gid) != (os.getuid(), os.getgid()):
            with contextlib.suppress(PermissionError):
                os.fchown(descriptor, status.st_uid, status.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode))

    def _failed(self, name: str, error: OSError) -> SourceError:
        hint = "its folder must be writable, since the file is replaced" if error.errno in (1, 13, 30) else ""
        return SourceError(f"{self.path / name} cannot be replaced: {_reason(error)}", hint=hint)


@contextlib.contextmanager
def open_folder(path: Path) -> Iterator[Folder]:
    """The folder at ``path``, links followed. Raises NotFoundError when it is not present, SourceError for a file."""
    try:
        descriptor = os.open(path, _FOLDER)
    except FileNotFoundError:
        raise NotFoundError(f"there is no folder {path}") from None
    except OSError as error:
        raise SourceError(f"the folder {path} cannot be opened: {_reason(error)}") from error
    with _closing(path, descriptor) as folder:
        yield folder


@contextlib.contextmanager
def _closing(path: Path, descriptor: int) -> Iterator[Folder]:
    try:
        yield Folder(path, descriptor)
    finally:
        os.close(descriptor)


def _refuse_all_but_files(status: os.stat_result, path: Path) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise SourceError(f"{path} is a link", expected="a regular file (links are not followed)")
    if not stat.S_ISREG(status.st_mode):
        raise SourceError(f"{path} is not a regular file", expected="a file, not a pipe, device or folder")


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
