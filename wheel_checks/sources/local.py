"""A local file as a source of bytes."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from wheel_checks.errors import ChangedFileError, NotFoundError, SourceError
from wheel_checks.sources.byte_source import Cost
from wheel_checks.sources.meter import Meter
from wheel_checks.sources.regular_file import descriptor_of

_CHUNK = 1 << 20  # bytes


class LocalFile:
    """A :class:`ByteSource` over a regular file, read with ``os.pread``, so safe for many threads.

    Raises NotFoundError when there is no such file and SourceError when it is a folder, a device, a pipe or a socket
    or may not be read. A file that is cut or rewritten while it is read raises ChangedFileError from the read.
    ``fd`` is an open regular file without a name, which this object closes; ``path`` then only names it in messages.
    """

    remote = False

    def __init__(self, path: str | os.PathLike[str], fd: int | None = None) -> None:
        self.location = os.fspath(path)
        self._meter = Meter()
        self._fd = _open(Path(self.location)) if fd is None else fd
        self._identity = self._stat()
        self._size = self._identity[0]

    @property
    def cost(self) -> Cost:
        """Bytes read from disk; requests are 0."""
        return self._meter.cost

    def read_tail(self, length: int) -> tuple[int, bytes]:
        """``(size of the file, its last min(length, size) bytes)``."""
        length = min(length, self._size)
        return self._size, self.read(self._size - length, length)

    def read(self, offset: int, length: int) -> bytes:
        """Exactly ``length`` bytes at ``offset``; raises SourceError when the file ends before."""
        check_range(self.location, offset, length, self._size)
        pieces = []
        while length:
            try:
                piece = os.pread(self._fd, length, offset)
            except OSError as error:
                raise SourceError(f"{self.location} cannot be read: {error.strerror}") from error
            if not piece:
                raise self._changed()
            pieces.append(piece)
            offset += len(piece)
            length -= len(piece)
            self._meter.add(bytes_read=len(piece))
        if self._stat() != self._identity:
            raise self._changed()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def read_many(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """The bytes of each ``(offset, length)``, in order."""
        return [self.read(offset, length) for offset, length in ranges]

    def stream(self, offset: int, length: int) -> Iterator[bytes]:
        """The bytes of one long range in chunks of at most 1 MiB."""
        check_range(self.location, offset, length, self._size)
        for start in range(offset, offset + length, _CHUNK):
            yield self.read(start, min(_CHUNK, offset + length - start))

    def fingerprint(self) -> str:
        """The sha256 of the content: times and sizes of files can be made to lie, and reading 400 MB takes 0.3 s."""
        digest = hashlib.sha256()
        for chunk in self.stream(0, self._size):
            digest.update(chunk)
        return f"sha256={digest.hexdigest()}"

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _stat(self) -> tuple[int, int]:
        status = os.fstat(self._fd)
        return status.st_size, status.st_mtime_ns

    def _changed(self) -> ChangedFileError:
        return ChangedFileError(
            f"{self.location} changed while it was read", hint="wait until it is complete, then try again"
        )


def check_range(location: str, offset: int, length: int, size: int) -> None:
    """Raise SourceError unless ``length`` bytes at ``offset`` are inside a file of ``size`` bytes."""
    if offset < 0 or length < 0 or offset + length > size:
        raise SourceError(f"{location} has {size} bytes and none at {offset} to {offset + length}")


def _open(path: Path) -> int:
    """An open file descriptor of a regular file."""
    try:
        return descriptor_of(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFoundError(f"there is no file {path}") from error
    except IsADirectoryError as error:
        raise SourceError(f"{path} is a folder", expected="a regular file") from error
    except OSError as error:
        raise SourceError(f"{str(path)!r} cannot be opened: {error.strerror}") from error
