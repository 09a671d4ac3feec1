"""Whose a file is: that of another user is ignored, as git ignores the repositories of others.

A file is the user's when it, the link that leads to it, and the folder that holds it belong to the user or to root, who
can do everything anyway. Under sudo the files of whoever called it count, too. Exceptions are the user's: the setting
``safe-directory``, which has git's meaning.
"""

import os
import pwd
import stat
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

ROOT = 0


def trusted_owners(environment: Mapping[str, str]) -> frozenset[int]:
    """The users whose files are applied: this one, root, and for root under sudo the one who called it."""
    user = os.geteuid()
    caller = environment.get("SUDO_UID", "") if user == ROOT else ""
    return frozenset({user, ROOT, *([int(caller)] if caller.isdecimal() else [])})


def is_shared(folder: os.stat_result) -> bool:
    """True for a folder in which anybody makes files and no one removes those of others, such as /tmp."""
    return bool(folder.st_mode & stat.S_ISVTX and folder.st_mode & stat.S_IWOTH)


def dubious(path: Path, found: Sequence[os.stat_result], trusted: Collection[int]) -> str:
    """Why the file at ``path`` is ignored, in the words of git; "" when its owners are trusted.

    ``found`` describes the file, the link that leads to it, and the folder that holds it.
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
