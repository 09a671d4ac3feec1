"""A file system to be inspected: this host's, or one that is below a folder, such as a container's."""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from hashlib import file_digest

from wheel_checks.errors import SourceError
from wheel_checks.sources.regular_file import open_regular, read_start

MAX_FILES = 1_000_000  # below one folder; a large environment has a hundred thousand
MAX_DEPTH = 100
MAX_LINKS = 40  # symbolic links on one path, as Linux has it


@dataclass(frozen=True, slots=True)
class FileTree:
    """The file system below ``root``. Paths are absolute and mean what they mean in there, symbolic links included."""

    root: str = "/"

    @property
    def is_this_machine(self) -> bool:
        """True when nothing is between these paths and those of this host."""
        return self.root == "/"

    def outside(self, path: str) -> str:
        """The path under which this host knows the file or folder, its symbolic links followed within the tree."""
        return path if self.is_this_machine else _resolve(self.root, path)

    def is_file(self, path: str) -> bool:
        """True for a regular file, also through symbolic links."""
        return self.size(path) is not None

    def is_folder(self, path: str) -> bool:
        """True for a folder, also through symbolic links."""
        return "\0" not in path and os.path.isdir(self.outside(path))

    def size(self, path: str) -> int | None:
        """The size of a regular file in bytes, None if none exists."""
        try:
            status = os.stat(self.outside(path))  # called for every file: a Path takes twice the time
        except (OSError, ValueError):
            return None
        return status.st_size if stat.S_ISREG(status.st_mode) else None

    def real(self, path: str) -> str:
        """The path without symbolic links, as the tree knows it."""
        if self.is_this_machine:
            return os.path.realpath(path)
        return "/" + os.path.relpath(_resolve(self.root, path), self.root)

    def read(self, path: str, limit: int) -> bytes | None:
        """The content of a regular file, its first ``limit`` + 1 bytes if it is longer; None if none exists.

        Raises SourceError when it is present and cannot be read.
        """
        if not self.is_file(path):
            return None
        try:
            return read_start(self.outside(path), limit + 1)
        except OSError as error:
            raise SourceError(f"{path} cannot be read: {error.strerror}") from error

    def names(self, folder: str) -> tuple[str, ...]:
        """What a folder holds, sorted; nothing when it does not exist. Raises SourceError when it cannot be read."""
        try:
            return tuple(sorted(os.listdir(self.outside(folder))))  # names alone are wanted
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return ()
        except OSError as error:
            raise SourceError(f"the folder {folder} cannot be read: {error.strerror}") from error

    def walk(self, folder: str) -> dict[str, int]:
        """The size in bytes of every regular file below ``folder``, by its path relative to it.

        Byte code caches are omitted, and folders that are symbolic links are not entered. Raises SourceError when a
        folder cannot be read, or there are more than MAX_FILES files.
        """
        files: dict[str, int] = {}
        for path, entry in _entries(self.outside(folder)):
            size = _size_of(entry) if self.is_this_machine or not entry.is_symlink() else self.size(f"{folder}/{path}")
            if size is not None:
                files[path] = size
            if len(files) > MAX_FILES:
                raise SourceError(f"the folder {folder} contains more than {MAX_FILES:,} files")
        return files

    def digests(
        self, files: Sequence[tuple[str, str]], advance: Callable[[int], None] = lambda _: None
    ) -> list[bytes | None]:
        """The digest of each ``(path, algorithm)``, None for one that cannot be read. Several are read at once.

        ``advance`` is called with the bytes of each file that is done, from any thread.
        """

        def digest(file: tuple[str, str]) -> bytes | None:
            path, algorithm = file
            try:
                with open_regular(self.outside(path)) as stream:
                    result = file_digest(stream, algorithm).digest()
                    advance(stream.tell())
                    return result
            except OSError:
                return None

        with ThreadPoolExecutor(min(8, os.cpu_count() or 1), "hash") as pool:
            try:
                return list(pool.map(digest, files))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _entries(top: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    waiting = [("", 0)]
    while waiting:
        inside, depth = waiting.pop()
        try:
            with os.scandir(os.path.join(top, inside) if inside else top) as entries:
                for entry in entries:
                    path = f"{inside}/{entry.name}" if inside else entry.name
                    if not entry.is_dir(follow_symlinks=False):
                        yield path, entry
                    elif entry.name != "__pycache__" and depth < MAX_DEPTH:
                        waiting.append((path, depth + 1))
        except OSError as error:
            raise SourceError(f"the folder {top}/{inside} cannot be read: {error.strerror}") from error


def _size_of(entry: os.DirEntry[str]) -> int | None:
    try:
        status = entry.stat()
    except OSError:  # a symbolic link to nowhere
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


@lru_cache(maxsize=65_536)
def _resolve(root: str, path: str) -> str:
    """``path`` below ``root`` with its links followed as if ``root`` were "/"; a link cannot lead out of it."""
    waiting = [part for part in reversed(path.split("/")) if part not in ("", ".")]
    done: list[str] = []
    links = 0
    while waiting:
        part = waiting.pop()
        if part == "..":
            del done[-1:]
            continue
        here = os.path.join(root, *done, part)
        try:
            target = os.readlink(here)
        except (OSError, ValueError):
            done.append(part)
            continue
        links += 1
        if links > MAX_LINKS:
            return here
        if target.startswith("/"):
            done.clear()
        waiting += [piece for piece in reversed(target.split("/")) if piece not in ("", ".")]
    return os.path.join(root, *done)
