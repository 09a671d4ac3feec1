"""What the start of Python changes, and which modules the import of torch looks for."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class VariableChange:
    """A variable that was ``before`` the start of Python and is ``after`` it; None where it is not set.

    ``origin`` is the file that names it: a sitecustomize, a usercustomize or a .pth file; "" when none does. ``owner``
    is the distribution whose RECORD lists that file, "" for a file that no distribution brought.
    """

    name: str
    before: str | None
    after: str | None
    origin: str = ""
    owner: str = ""


@dataclass(frozen=True, slots=True)
class StartUp:
    """``standard`` are the modules of the standard library that the import of torch looked for on sys.path; a file of
    such a name that comes first is imported in their place. ``extensions`` are torch's own _C modules by their file
    names, and ``suffixes`` those that this Python imports, both only where the import failed.
    """

    changes: tuple[VariableChange, ...] = ()
    standard: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()


NOTHING_SEEN = StartUp()
