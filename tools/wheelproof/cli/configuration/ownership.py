"""Check who owns a configuration file: files of other users are ignored, as git ignores repositories of other users.

A file is the user's if the user or root owns the file, any link to it, and its folder. Under sudo files of the user who
called it count, too. Exceptions are the user's: the setting ``safe-directory``, which has git's meaning.
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

ROOT = 0


def trusted_owners(environment: Mapping[str, str]) -> frozenset[int]:
    """The users whose files are applied: this one, root, and for root under sudo the calling user."""
    user = os.geteuid()
    caller = environment.get("SUDO_UID", "") if user == ROOT else ""
    return frozenset({user, ROOT, *([int(caller)] if caller.isdecimal() else [])})


def is_shared(folder: os.stat_result) -> bool:
    """True for a folder such as /tmp, where every user may create files and none may remove those of another."""
    return bool(folder.st_mode & stat.S_ISVTX and folder.st_mode & stat.S_IWOTH)


def dubious(path: Path, found: Sequence[os.stat_result], trusted: Collection[int]) -> str:
    """Why the file at ``path`` is ignored, in the words of git; "" when its owners are trusted.

    ``found`` has the status of the file, of the link to it, and of its folder.
    """
    stranger = next((entry.st_uid for entry in found if entry.st_uid not in trusted), None)
    if stranger is None:
        return ""
    return (
        f"detected dubious ownership in the configuration at {path}: it is owned by {_name(stranger)}, "
        f"and the current user is {_name(os.geteuid())}"
    )


def is_safe(folders: Collection[Path], exceptions: Collection[str]) -> bool:
    """Whether one of ``folders`` is an exception: by its name, by ``FOLDER/*`` above it, or by ``*``."""
    for text in exceptions:
        if text == "*":
            return True
        named = Path(text.removesuffix("/*"))
        if named.is_absolute():
            real = named.resolve()
            if any(folder.is_relative_to(real) if text.endswith("/*") else folder == real for folder in folders):
                return True
    return False


def _name(user: int) -> str:
    try:
        return f"{pwd.getpwuid(user).pw_name} ({user})"
    except KeyError:
        return str(user)
