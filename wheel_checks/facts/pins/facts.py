"""Everything that the rules may know about the requirements of one file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wheel_checks.model import Location

BUILD, CONDA = "build", "conda"  # roles that no installed torch takes part in
LOCK = "lock"  # the version in a lock file
COMMAND = "command"  # a package named by an install command


@dataclass(frozen=True, slots=True)
class PinnedRequirement:
    """A requirement on torch or one of its companions.

    ``role`` is "runtime", "build", "constraint", "group", "command", "lock" or "conda"; ``section`` the key under which
    it is, or the command. ``installed`` is the version that it is compared with, or ""; ``kept`` whether an install
    keeps that (without one: whether any version is accepted), and ``reason`` why. It is not ``certain`` if its version
    is only known at run time.
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
    """A further remark on ``names`` in a file; ``code`` is that of the notices of ``wheelproof pins``."""

    code: str
    message: str
    location: Location
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RequirementFile:
    """A file with requirements: those on torch and its companions, and remarks on them."""

    path: str
    requirements: tuple[PinnedRequirement, ...] = ()
    notices: tuple[PinNotice, ...] = ()

    def noticed(self, *codes: str) -> Iterator[PinNotice]:
        """The notices with one of these codes."""
        return (notice for notice in self.notices if notice.code in codes)
