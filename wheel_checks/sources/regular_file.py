"""Opening and reading files by name without waiting: what is not a regular file is rejected with a message.

Opening a named pipe waits for its writer, and a device such as /dev/zero has no end. Every file that is read by a name
is opened here, whoever chose the name: a test over the syntax tree holds this, with the exceptions that it lists.
"""

import errno
import io
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

_PIECE = 1 << 20  # bytes
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_OPEN_ALREADY = re.compile(r"/dev/fd/(\d{1,9})|/proc/self/fd/(\d{1,9})|/dev/stdin")


def open_regular(path: str | os.PathLike[str], *, given: bool = False) -> io.FileIO:
    """The regular file ``path``, open for reading in binary and without a buffer.

    ``given`` is for a path from the command line: there /dev/stdin and /dev/fd/63, as ``<(command)`` gives, stand for
    what the caller opened already, a pipe included.

    Raises OSError, whose ``strerror`` says why: also for a folder, a named pipe, a socket or a device, and for a name
    with a null character.
    """
    return io.FileIO(descriptor_of(path, given=given))


def names_file(text: str) -> bool:
    """Whether ``text`` is the path of a file that exists, be it a pipe; a text that can be no path does not."""
    return os.path.exists(text) and not os.path.isdir(text)


def read_start(path: str | os.PathLike[str], limit: int, *, given: bool = False) -> bytes:
    """The content of a regular file, its first ``limit`` bytes if it is longer; /dev/null is an empty one.

    Raises OSError as ``open_regular``.
    """
    if os.fspath(path) == os.devnull:  # what users give for "no configuration", "no requirements"
        return b""
    descriptor = descriptor_of(path, given=given)
    try:
        pieces = []
        while limit > 0 and (piece := os.read(descriptor, min(limit, _PIECE))):
            pieces.append(piece)
            limit -= len(piece)
    finally:
        os.close(descriptor)
    return b"".join(pieces)


def read_whole(path: str | os.PathLike[str], limit: int, *, given: bool = False) -> bytes:
    """The content of a regular file. Raises OSError as ``open_regular``, and for more than ``limit`` bytes."""
    content = read_start(path, limit + 1, given=given)
    if len(content) > limit:
        raise OSError(errno.EFBIG, f"it has more than {limit:,} bytes", os.fspath(path))
    return content


def read_end(path: str | os.PathLike[str], length: int) -> bytes:
    """The last ``length`` bytes of a regular file, or all of it. Raises OSError as ``open_regular``."""
    with open_regular(path) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - length))
        return file.read(length)


def real_path(path: Path) -> Path:
    """The path with every link resolved, as far as that goes: a link in a loop stays as it is.

    Never raises, other than ``Path.resolve``, which a link in a tree can make raise: reading the path gives the reason.
    """
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):  # a link that is replaced right now; a null character in a name
        return path.absolute()


def expand_home(path: str) -> Path:
    """The path with ``~`` expanded; other than with ``Path.expanduser``, one of an unknown user stays as it is."""
    return Path(os.path.expanduser(path))


def home_folder(environ: Mapping[str, str]) -> Path:
    """The user's home folder; for a user without one, such as any number in a container, one that cannot exist."""
    home = Path(environ.get("HOME") or expand_home("~"))
    return home if home.is_absolute() else Path(os.devnull)


def descriptor_of(path: str | os.PathLike[str], *, given: bool = False) -> int:
    """An open descriptor of the regular file ``path``, which the caller closes; else as ``open_regular``."""
    name = os.fspath(path)
    if given and (match := _OPEN_ALREADY.fullmatch(name)):
        return os.dup(int(match[1] or match[2] or 0))
    try:
        _refuse_what_is_not_regular(os.stat(name), name)  # noqa: PTH116  # opening a device may already change it
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except ValueError:
        raise OSError(errno.EINVAL, "its name contains a null character", name) from None
    try:
        _refuse_what_is_not_regular(os.fstat(descriptor), name)  # another file may have taken the name meanwhile
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _refuse_what_is_not_regular(status: os.stat_result, name: str) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if kind != stat.S_IFREG:
        raise OSError(errno.EINVAL, f"it is {_KINDS.get(kind, 'something else')}, not a regular file", name)
