"""Does every byte of the archive belong to something that all readers see alike? (PKWARE APPNOTE; uv's and pip's own)

Where readers of archives differ, a wheel is one thing for a scanner and another for an installer: these are errors even
if each installer accepts the wheel.
"""

from collections.abc import Callable, Iterable

from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.model import Audience, Finding, Fix, Location, Severity, Unavailable, need
from wheel_checks.phrases import plural
from wheel_checks.registry import rule
from wheel_checks.rules.shared.installers import installer_evidence

_REBUILD = Fix("Rebuild the wheel with a current build backend; do not edit the archive.")
_UNPROVEN = "{unread:,} of {members:,} local headers, and the bytes between members, were not read"


def archive_findings(wheel: WheelFacts, kind: str, fix: Fix = _REBUILD) -> Iterable[Finding]:
    """The faults of one kind, with what installers make of them."""
    for fault in need(wheel.archive).faults:
        if fault.kind == kind:
            place = Location(member=fault.member) if fault.member else None
            yield Finding(fault.message, installer_evidence(fault.case), fix, place)


def faults_of(kind: str, fix: Fix = _REBUILD) -> Callable[[WheelFacts, Expectations], Iterable[Finding]]:
    """The check of a rule that has one kind of fault."""

    def check(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
        """No fault of this kind, in the directory and in the local headers that were read."""
        return archive_findings(wheel, kind, fix)

    return check


@rule(
    "WHL009",
    "every byte of the archive belongs to a member or the directory",
    why="Readers that start at the front of an archive, as uv does while it downloads, find members that the directory "
    "does not list; readers that start at the end do not. The file checked by one is not the file installed by the "
    "other.",
    example="a second `torch/version.py` between two members, without a directory entry",
    fix="Rebuild the wheel.",
)
def gaps(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Members follow each other from the first byte to the directory; from afar proven at depth full alone."""
    archive = need(wheel.archive)
    found = list(archive_findings(wheel, "gap"))
    if not found and not archive.mapped:
        unread = len(archive.members) - archive.local_headers_read
        reason = _UNPROVEN.format(unread=unread, members=len(archive.members))
        need(Unavailable(reason, "--depth full proves every byte of the archive"))
    return found


rule(
    "WHL014",
    "data descriptors follow the members whose headers announce them, and match the directory",
    why="A member that was written to a pipe has its checksum and sizes after its data. Readers that start at the "
    "front use them: a wrong one aborts an install, a missing one makes the next member part of this one.",
    example="a descriptor with sizes of eight bytes after a member without a zip64 field",
    fix="Rebuild the wheel into a file, not a pipe.",
)(faults_of("descriptor"))


rule(
    "WHL015",
    "extra fields are complete, unique, and change neither sizes nor names",
    why="An extra field may replace the sizes (zip64) or the name (Info-ZIP Unicode path) of a member. Readers differ "
    "in which field they use, and uv rejects repeated, oversized and unnecessary ones.",
    example="two zip64 fields with different sizes; a Unicode path that renames `torch/a.py`",
    fix="Rebuild the wheel.",
)(faults_of("extra"))


rule(
    "WHL016",
    "no comment resembles a part of an archive",
    why="Readers search for the end record from the end of the file: for some, a comment that contains one is another "
    "archive. uv rejects comments with control characters, which every record of an archive has.",
    example="a whole zip archive in the comment of the wheel",
    fix="Write the archive without comments.",
)(faults_of("comment"))


@rule(
    "WHL019",
    "the index accepts the archive at upload",
    Severity.WARNING,
    audience=Audience.PUBLISHER,
    why="Since August 2025 the package index reads archives from both ends and rejects archives that pip and uv "
    "install: members with data descriptors or comments, and bytes after extra fields. Such wheels that it already has "
    "remain.",
    example="a wheel written into a pipe, all of whose members have data descriptors",
    fix="Write the archive into a file, without comments, as current build backends do.",
)
def accepted_by_the_index(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """No data descriptor, no comment of a member, and nothing behind extra fields."""
    described = [member.name for member in need(wheel.archive).members if member.flags & 0x8]
    if described:
        message = (
            f"the index rejects data descriptors, which {plural(len(described), 'member')} "
            f"{'has' if len(described) == 1 else 'have'}"
        )
        yield Finding(message, installer_evidence("descriptor-right"), _REBUILD, Location(described[0]))
    yield from archive_findings(wheel, "index")
