"""Everything that the rules may know about the requirements of one file."""

from collections.abc import Iterator
from dataclasses import dataclass

from wheel_checks.model import Location

BUILD, CONDA = "build", "conda"  # roles that no installed torch takes part in
LOCK = "lock"  # the version that a lock file holds
COMMAND = "command"  # what an install command names


@dataclass(frozen=True, slots=True)
class PinnedRequirement:
    """A requirement on torch or one of its companions.

    ``role`` is "runtime", "build", "constraint", "group", "command", "lock" or "conda"; ``section`` the key under which
    it is, or the command. ``installed`` is the version that it is held against, "" if none is known; ``kept``
    whether an install keeps that (with none: whether any version will do), and ``reason`` why. It is not ``certain``
    where its version is only known at run time.
    """

    name: str
    text: str
    role: str
    location: Location
    section: str = ""
    installed: str = ""
    kept: bool = False
    reason: str = ""
    certain: bool = True


@dataclass(frozen=True, slots=True)
class PinNotice:
    """What else a file says of torch; ``code`` is that of the notices of ``wheelproof pins``.

    ``names`` are the packages that it is about.
    """

    code: str
    message: str
    location: Location
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RequirementFile:
    """A file that holds requirements: those on torch and its companions, and what else it says of them."""

    path: str
    requirements: tuple[PinnedRequirement, ...] = ()
    notices: tuple[PinNotice, ...] = ()

    def noticed(self, *codes: str) -> Iterator[PinNotice]:
        """The notices with one of these codes."""
        return (notice for notice in self.notices if notice.code in codes)
