"""The user's state folder, with the journals of rewritten trees: made by this user, and writable by no other."""

import contextlib
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

from wheel_checks.errors import NotFoundError, SourceError
from wheelproof.pins.atomic import Folder, open_folder

HINT = "set XDG_STATE_HOME to your own folder, or name a journal: --journal FILE"
_OWN = ("wheelproof", "pins")  # made only for this user


@contextlib.contextmanager
def open_state() -> Iterator[Folder]:
    """``$XDG_STATE_HOME/wheelproof/pins``, open, and made when it is not present.

    Raises SourceError when it cannot be made, and when another user owns it or may write it.
    """
    _make_folders(_state_home())
    with contextlib.ExitStack() as stack:
        folder = _enter_home(stack)
        for name in _OWN:
            folder.make(name)
            folder = _enter_own(stack, folder, name)
        yield folder


@contextlib.contextmanager
def existing_state() -> Iterator[Folder | None]:
    """As :func:`open_state`, but nothing is made: None when it is not present."""
    with contextlib.ExitStack() as stack:
        folder: Folder | None = None
        with contextlib.suppress(NotFoundError):
            found = _enter_home(stack)
            for name in _OWN:
                found = _enter_own(stack, found, name)
            folder = found
        yield folder


def _enter_home(stack: contextlib.ExitStack) -> Folder:
    folder = stack.enter_context(open_folder(_state_home()))
    _check_owner(folder.status, folder.path, others=(0,))  # a folder of the system may hold one for each user
    return folder


def _enter_own(stack: contextlib.ExitStack, folder: Folder, name: str) -> Folder:
    own = stack.enter_context(folder.enter(name))
    _check_owner(own.status, own.path)
    if stat.S_IMODE(own.status.st_mode) & 0o077:  # so it was not made here, but perhaps checked out with a repository
        raise SourceError(
            f"other users may read or write {own.path}, so what it says is not trusted",
            expected="a folder that only this user can access",
            hint="if its content is yours, take that right away with chmod 700",
        )
    return own


def check_own(status: os.stat_result, path: Path) -> None:
    """Raise SourceError when another user owns a file or folder, or may write it."""
    _check_owner(status, path)
    if stat.S_IMODE(status.st_mode) & 0o022:
        raise SourceError(
            f"other users may write {path}, so what it says is not trusted",
            expected="a file or folder that only this user may write",
            hint="if its content is yours, take that right away with chmod go-w",
        )


def _check_owner(status: os.stat_result, path: Path, *, others: tuple[int, ...] = ()) -> None:
    if status.st_uid not in (os.geteuid(), *others):
        raise SourceError(
            f"{path} belongs to {_name_of(status.st_uid)}, and this process runs as {_name_of(os.geteuid())}: "
            "it is not trusted",
            hint=HINT,
        )


def _state_home() -> Path:
    """``$XDG_STATE_HOME``, which by its specification is absolute or ignored, else ``.local/state`` in the home.

    The home is ``$HOME`` when this user owns it, else that of the list of users: under sudo, and in containers of CI
    systems, HOME is often another user's.
    """
    named = Path(os.environ.get("XDG_STATE_HOME", ""))
    if named.is_absolute():
        return named
    homes = [os.environ.get("HOME", "")]
    with contextlib.suppress(KeyError):  # a user of whom the list knows nothing
        homes.append(pwd.getpwuid(os.geteuid()).pw_dir)
    for home in filter(os.path.isabs, homes):
        with contextlib.suppress(OSError):
            if Path(home).stat().st_uid == os.geteuid():
                return Path(home) / ".local" / "state"
    raise SourceError(f"{_name_of(os.geteuid())} owns no home folder, in which the journal could be", hint=HINT)


def _make_folders(path: Path) -> None:
    """Make a folder and those above it, each only for this user, as the specification of XDG_STATE_HOME has it."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        for folder in reversed(missing):
            folder.mkdir(0o700, exist_ok=True)
    except OSError as error:
        raise SourceError(f"the state folder {path} cannot be made: {error.strerror}", hint=HINT) from error


def _name_of(user: int) -> str:
    try:
        return f"user {pwd.getpwuid(user).pw_name}"
    except KeyError:
        return f"user {user}"
