"""The changes made by the start of Python, and the modules that the import of torch looks for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class VariableChange:
    """A variable that was ``before`` the start of Python and is ``after`` it; None if unset.

    ``origin`` is the file that names it (a sitecustomize, a usercustomize or a .pth file), or "". ``owner`` is the
    distribution whose RECORD lists that file, or "".
    """

    name: str
    before: str | None
    after: str | None
    origin: str = ""
    owner: str = ""


@dataclass(frozen=True, slots=True)
class StartUp:
    """``standard`` are the modules of the standard library that the import of torch looked for on sys.path; an earlier
    file of such a name is imported in their place. ``extensions`` are torch's own _C modules by their file names, and
    ``suffixes`` those that this Python imports, both only if the import failed.
    """

    changes: tuple[VariableChange, ...] = ()
    standard: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()


NOTHING_SEEN = StartUp()
