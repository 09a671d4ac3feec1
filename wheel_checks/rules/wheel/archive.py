"""Is the file a sound zip archive? (PKWARE APPNOTE; what pip and uv refuse or would read differently.)"""

from collections.abc import Iterable

from wheel_checks.errors import WheelproofError
from wheel_checks.facts.archive.inflation import absurd, absurd_together
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.formats.zip.directory import MOST_FAULTS
from wheel_checks.model import Evidence, Finding, Fix, Location, Unavailable, need
from wheel_checks.registry import rule
from wheel_checks.rules.wheel.archive_bytes import archive_findings, faults_of

_REBUILD = Fix("Rebuild the wheel with a current build backend, and compare its size and hash after the upload.")
_FETCH_AGAIN = Fix("Download or upload the file again, and compare its size and sha256 with the original.")
_METHODS = {0: "stored", 8: "deflate"}


@rule(
    "WHL000",
    "the file can be read",
    kind="reading",
    why="Without the file there is no verdict: the run ends with exit code 3 (could not check), never as a pass.",
    example="an index that returns 500, an unknown package, a file without read permission",
    fix="Follow the message: correct the name, the index or the credentials, or try again.",
)
def bytes_at_hand(error: WheelproofError, _: Expectations) -> Iterable[Finding]:
    """Raises the error that kept the wheel from being read: that is no finding, but an undecided check."""
    raise error


@rule(
    "WHL001",
    "the file is a zip archive with a readable central directory",
    why="An installer reads a wheel from its end. A truncated download, an HTML error page or a Git LFS pointer saved "
    "under a wheel's name fails only at install, with a misleading message.",
    example="torch-2.11.0-...whl of 131 bytes that begins with `version https://git-lfs.github.com/spec/v1`",
    fix="Download or upload the file again, and compare its size and sha256.",
)
def readable(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """The archive could be opened at all."""
    if wheel.broken:
        evidence = (Evidence("size", f"{wheel.size:,} bytes", wheel.location),)
        yield Finding(f"the file is not a readable wheel: {wheel.broken}", evidence, _FETCH_AGAIN)


rule(
    "WHL002",
    "the central directory is consistent",
    why="Tools read entries that contradict the end record differently: the file checked by one is not the file "
    "installed by another.",
    example="an end record that counts 12,680 entries for a directory with 12,681",
    fix="Rebuild the wheel; do not edit archives by hand.",
)(faults_of("directory", _REBUILD))


rule(
    "WHL003",
    "no two members share bytes of the archive",
    why="Overlapping members are typical of zip bombs and of archives that show different files to different readers.",
    example="two members with the same local header offset",
    fix="Rebuild the wheel.",
)(faults_of("overlap", _REBUILD))


rule(
    "WHL004",
    "the local headers that were read agree with the central directory",
    why="Streaming readers use the local header, others the directory. If they differ, a scanner and an installer see "
    "different files.",
    example="a local header that names `torch/version.py` for a member that the directory calls `torch/_C.so`",
    fix="Rebuild the wheel.",
)(faults_of("header", _REBUILD))


@rule(
    "WHL005",
    "members are unencrypted, stored or deflated, and in a supported zip version",
    why="Installers read methods 0 (stored) and 8 (deflate), no encryption, and version 6.3 of the format; others fail "
    "in the middle of an install.",
    example="a member compressed with zstd (method 93)",
    fix="Rebuild the wheel with deflate.",
)
def methods(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Every member can be inflated by an installer."""
    yield from archive_findings(wheel, "version")
    for member in need(wheel.archive).members:
        if member.is_patched:
            yield Finding(f"{member.name} contains patched data", fix=_REBUILD, location=Location(member=member.name))
        elif member.is_encrypted:
            yield Finding(f"{member.name} is encrypted", fix=_REBUILD, location=Location(member=member.name))
        elif member.method not in _METHODS:
            message = f"{member.name} uses compression method {member.method}; installers support only 0 and 8"
            yield Finding(message, fix=_REBUILD, location=Location(member=member.name))


rule(
    "WHL006",
    "the members that were read have the contents stated in the directory",
    why="A member that does not inflate, or whose size or checksum differs, was damaged after the build.",
    example="torch/version.py whose CRC-32 differs from the directory's",
    fix="Download or upload the file again.",
)(faults_of("content", _FETCH_AGAIN))


@rule(
    "WHL007",
    "no member, and no group of members, has an extreme compression ratio",
    why="A small download that fills the disk makes an install fail half-way, or is an attack. wheelproof does not "
    "unpack such members at any depth.",
    example="200 kB that inflate to 180 MB of zeros; 24 members of 60 kB that inflate to 63 MB each",
    fix="Find out what the members are before you install the wheel.",
)
def bombs(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """No ratio above 400 among members above 64 MiB; those above 100 have at most 256 MiB together."""
    members = need(wheel.archive).members
    alone, together = absurd(members), absurd_together(members)
    for member in alone[:MOST_FAULTS]:
        message = f"{member.name} inflates {member.compressed_size:,} bytes to {member.size:,}"
        yield Finding(message, location=Location(member=member.name))
    if len(together) > min(len(alone), MOST_FAULTS):
        packed, size = sum(m.compressed_size for m in together), sum(m.size for m in together)
        largest = max(together, key=lambda member: member.size)
        evidence = (Evidence("largest", f"{largest.compressed_size:,} bytes to {largest.size:,}", largest.name),)
        yield Finding(f"{len(together)} members inflate {packed:,} bytes to {size:,}", evidence)


@rule(
    "WHL008",
    "the file has the hash that the index lists",
    why="Installers reject a file whose hash differs from the index's: it was replaced or damaged.",
    example="an index page with sha256=9f3a... for a file with sha256=1c22...",
    fix="Upload the file again under a new build tag, or correct the index.",
)
def listed_hash(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """The sha256 of the whole file, where it was read whole, is the listed one."""
    listed = wheel.listing.hashes.get("sha256", "").lower() if wheel.listing else ""
    if wheel.listing is None or not listed:
        need(Unavailable("no index lists a sha256 of the file"))
    elif not wheel.content_sha256:
        need(Unavailable("not all of the file was read", "--depth full reads every byte"))
    elif listed != wheel.content_sha256:
        evidence = (
            Evidence("index", f"sha256={listed}", wheel.listing.index),
            Evidence("file", f"sha256={wheel.content_sha256}", wheel.location),
        )
        yield Finding("the file is not the one that the index lists", evidence, _FETCH_AGAIN)
