"""What native code shows of an accelerator, as it is kept: the facts, without what reads them."""

from dataclasses import dataclass

from wheel_checks.facts.accelerator.signals import GPU

QUICK = 64 * 1024 * 1024  # bytes after which the search for an accelerator ends at depth quick
GLANCE = 256 * 1024  # bytes after which it ends where the accelerator is not in question
ASKED = 160 * 1024 * 1024  # bytes after which it ends where someone asked
ANY = "any"  # any accelerator
ALL = "all"  # all that is shown, of all members
CODE, NEEDS, NAMES, IS, FILES = "code", "needs", "names", "is", "files"


@dataclass(frozen=True, slots=True)
class Shown:
    """One thing that shows an accelerator: ``how`` is "code", "needs", "is", or "files" for loose files of GPU code.

    "names" is for a library with GPU code which has the soname among its dynamic strings, and what it needs is out of
    reach. ``what`` is a section, a soname, or what files.
    ``version`` is the accelerator's version as far as a soname gives it ("13"), else "". ``own`` is True for a needed
    library that the wheel itself carries.
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
    """What was found in the native code of a wheel.

    ``native`` counts the native members, copies included, ``read`` those of them that are known completely: the names
    of their sections, and what they need. ``unread`` are the others that were tried, with the reason. ``bytes_read``
    are compressed bytes of the archive.
    """

    shown: tuple[Shown, ...] = ()
    native: int = 0
    read: int = 0
    unread: tuple[tuple[str, str], ...] = ()
    bytes_read: int = 0

    @property
    def complete(self) -> bool:
        """True when all native members are known: what is not shown is not there."""
        return self.read == self.native

    @property
    def accelerators(self) -> tuple[str, ...]:
        """The accelerators that are shown, in the order in which they are named."""
        return tuple(name for name in GPU if any(item.accelerator == name for item in self.shown))

    @property
    def has_files_alone(self) -> bool:
        """True when nothing but files of GPU code shows anything: no library needs what loads them."""
        return bool(self.shown) and all(item.how == FILES for item in self.shown)

    def versions(self, accelerator: str, *hows: str) -> tuple[str, ...]:
        """The versions of ``accelerator`` that are shown, the lowest first; only in one of ``hows`` if any is given."""
        found = {s.version for s in self.shown if s.accelerator == accelerator and (not hows or s.how in hows)}
        return tuple(sorted(found - {""}, key=int))

    def needs_from_outside(self, accelerator: str) -> tuple[Shown, ...]:
        """The needed libraries of known versions that the wheel does not carry."""
        return tuple(
            s for s in self.shown if s.accelerator == accelerator and s.how == NEEDS and s.version and not s.own
        )

    def is_bound_to(self, accelerator: str) -> bool:
        """True when the wheel has code for it, needs a library of it, or is one whose name gives a version.

        A copy of CUPTI binds to nothing, the CUDA runtime does.
        """
        return any(s.accelerator == accelerator and (s.how != IS or s.version) for s in self.shown)

    @property
    def missing(self) -> str:
        """For people: what was not read, "" when everything was."""
        if self.complete:
            return ""
        named = f", such as {self.unread[0][0]}: {self.unread[0][1]}" if self.unread else ""
        return f"{self.native - self.read} of {self.native} native members were not read completely{named}"
