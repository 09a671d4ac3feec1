"""The serialised evidence for an accelerator in native code, apart from its readers."""

from __future__ import annotations

from dataclasses import dataclass

from wheel_checks.facts.accelerator.signals import GPU

QUICK = 64 * 1024 * 1024  # bytes after which the search for an accelerator ends at depth quick
GLANCE = 256 * 1024  # bytes after which the search ends if the accelerator is not in question
REQUESTED = 160 * 1024 * 1024  # bytes after which the search ends if the accelerator was requested
ANY = "any"  # any accelerator
ALL = "all"  # all that is shown, of all members
CODE, NEEDS, NAMES, IS, FILES = "code", "needs", "names", "is", "files"


@dataclass(frozen=True, slots=True)
class Shown:
    """Evidence for an accelerator: ``how`` is "code", "needs", "is", or "files" for loose files of GPU code.

    "names" is for a library with GPU code which has the soname among its dynamic strings, while its needs are out of
    reach. ``what`` is a section, a soname, or the kind of files. ``version`` is the accelerator's version as far as a
    soname gives it ("13"), else "". ``own`` is True for a needed library that the wheel itself provides.
    """

    accelerator: str
    how: str
    what: str
    member: str
    version: str = ""
    own: bool = False

    def __str__(self) -> str:
        has = {CODE: "has", FILES: "has"}.get(self.how, self.how)
        return f"{self.member} {has} {self.what}"


@dataclass(frozen=True, slots=True)
class AcceleratorContent:
    """The accelerators found in the native code of a wheel.

    ``native`` counts the native members, copies included, ``read`` those whose section names and needs are all known.
    ``unread`` are the others that were tried, with the reason. ``bytes_read`` are compressed bytes of the archive.
    """

    shown: tuple[Shown, ...] = ()
    native: int = 0
    read: int = 0
    unread: tuple[tuple[str, str], ...] = ()
    bytes_read: int = 0

    @property
    def complete(self) -> bool:
        """True when all native members are known, so that absence is proven."""
        return self.read == self.native

    @property
    def accelerators(self) -> tuple[str, ...]:
        """The accelerators that are shown, in the order in which they are named."""
        return tuple(name for name in GPU if any(item.accelerator == name for item in self.shown))

    @property
    def has_files_alone(self) -> bool:
        """True when files of GPU code are the only evidence: no library needs a runtime that loads them."""
        return bool(self.shown) and all(item.how == FILES for item in self.shown)

    def versions(self, accelerator: str, *hows: str) -> tuple[str, ...]:
        """The versions of ``accelerator`` that are shown, the lowest first; only in one of ``hows`` if any is given."""
        found = {s.version for s in self.shown if s.accelerator == accelerator and (not hows or s.how in hows)}
        return tuple(sorted(found - {""}, key=int))

    def needs_from_outside(self, accelerator: str) -> tuple[Shown, ...]:
        """The needed libraries of known versions that the wheel does not provide."""
        return tuple(
            s for s in self.shown if s.accelerator == accelerator and s.how == NEEDS and s.version and not s.own
        )

    def is_bound_to(self, accelerator: str) -> bool:
        """True if it has code for it, needs its library, or is a library with a version in its name (not CUPTI)."""
        return any(s.accelerator == accelerator and (s.how != IS or s.version) for s in self.shown)

    @property
    def missing(self) -> str:
        """The members that were not read, as text; "" if all were."""
        if self.complete:
            return ""
        named = f", such as {self.unread[0][0]}: {self.unread[0][1]}" if self.unread else ""
        return f"{self.native - self.read} of {self.native} native members were not read completely{named}"
