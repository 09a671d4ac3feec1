"""Would the public index take the file? Its name, tags, version, size and entry points.

An index does not take back what it has: of a file that was uploaded before a rule began, a finding is a warning.
"""

import re
from collections.abc import Iterable, Iterator

from packaging.utils import canonicalize_name

from wheel_checks.data import load
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.release import FileInRelease
from wheel_checks.facts.release_expectation import UploadRules
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.formats.file_names import is_file_of
from wheel_checks.model import Audience, Evidence, Finding, Fix, Location, Severity, Unavailable, need
from wheel_checks.phrases import abbreviated
from wheel_checks.registry import rules_of

KIND = "upload"
rule = rules_of(KIND, Audience.PUBLISHER)
_SCRIPT_NAME = re.compile(r"[\w.-]+")  # entry points specification, data model
_SCRIPT_GROUPS = ("console_scripts", "gui_scripts")
_REBUILD = Fix("Rebuild the wheel with a current build backend instead of renaming it.")
CORRECT = Fix("Correct the project's metadata (pyproject.toml), and rebuild the wheel.")


def refused(
    wheel: WheelFacts, key: str, message: str, fix: Fix = CORRECT, *evidence: Evidence, member: str = ""
) -> Finding:
    """What the index refuses by the row ``key`` of its table; a warning where the file was uploaded before."""
    row = load("upload_rules")["since"][key]
    uploaded = _uploaded(wheel)
    severity = Severity.WARNING if uploaded and (not row["day"] or uploaded < row["day"]) else None
    began = Evidence(
        "refused since", row["day"] or "a standard requires it; the index does not check it", row["source"]
    )
    uploads = (Evidence("uploaded", uploaded, "index"),) if uploaded else ()
    place = Location(member) if member else None
    return Finding(message, (*evidence, began, *uploads), fix, place, severity)


def unproven(wheel: WheelFacts, reason: str, fix: Fix) -> Iterator[Finding]:
    """What leaves it open whether the index takes the file; it is skipped where the index has it."""
    if _uploaded(wheel):
        need(Unavailable(f"the index has the file; {reason}"))
    yield Finding(f"not proven that the index accepts the file: {reason}", fix=fix, undecided=True)


def _uploaded(wheel: WheelFacts) -> str:
    """The day of the upload, "" for what no index lists with one."""
    return wheel.listing.upload_time[:10] if wheel.listing else ""


@rule(
    "REL301",
    "the index accepts the platform tags",
    why="An index accepts only tags that a specification defines: linux_x86_64 says nothing about the C library, and "
    "such a wheel runs only on systems like the one that built it.",
    example="`demo-1.0-cp312-cp312-linux_x86_64.whl`, which auditwheel did not repair",
    fix="Repair the wheel, which writes the tag: auditwheel for Linux, delocate for macOS.",
)
def platform_tags(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Each platform of the file name's tags is in the table."""
    table = load("upload_rules")
    for platform in sorted({tag.platform for tag in need(wheel.name).tags}):
        if any(re.fullmatch(row["pattern"], platform) for row in table["platform"]):
            continue
        fix = Fix("Repair the wheel (auditwheel, delocate, delvewheel), which writes a tag for what it needs.")
        if any(re.fullmatch(row["pattern"], platform) for row in table["later"]):
            yield from unproven(wheel, f"{platform} is newer than the table of {table['collected']}", fix)
        else:
            message = f"the index rejects the platform tag {platform}"
            yield refused(wheel, "platform-tag", message, fix, Evidence("file name", wheel.file_name))


@rule(
    "REL302",
    "the file and its dist-info folder have the normalized name",
    why="The index compares the file name with the normalized name of the project, and reads WHEEL and METADATA from "
    "the folder that follows from the file name.",
    example="`Demo.Pkg-1.0-py3-none-any.whl`; `demo_pkg-1.0-py3-none-any.whl` is right",
    fix="Build with a current build backend, which writes the normalized name.",
)
def normalised(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """The name as PEP 427 and PEP 503 write it; a version that is not normalised, or a variant, is a warning."""
    name = need(wheel.name)
    project = canonicalize_name(name.distribution)
    wanted = project.replace("-", "_")
    evidence = (Evidence("file name", wheel.file_name),)
    if name.distribution != wanted:
        message = f"the file name starts with {name.distribution}; the index expects {wanted}"
        yield refused(wheel, "file-name", message, _REBUILD, *evidence)
    folder = f"{name.distribution}-{name.version}.dist-info"
    if wheel.dist_infos and folder not in wheel.dist_infos:
        found = Evidence("dist-info", ", ".join(wheel.dist_infos[:3]))
        yield refused(wheel, "dist-info", f"the wheel has no folder {folder}", _REBUILD, found)
    if name.version != str(name.parsed_version):
        message = f"the version {name.version} in the file name is not normalized; expected {name.parsed_version}"
        yield Finding(message, evidence, _REBUILD, severity=Severity.WARNING)
    if name.variant:
        fix = Fix("Ask the index's maintainers; variants are a proposal (PEP 825).")
        message = f"the public index accepted no wheel variants in {load('upload_rules')['collected']}"
        yield Finding(message, evidence, fix, severity=Severity.WARNING)


@rule(
    "REL303",
    "the version has no local part",
    why="Local versions are for builds of another project's release; a public index rejects them.",
    example="`torch-2.11.0+cu130-cp312-cp312-manylinux_2_28_x86_64.whl`",
    fix='Publish the public version, or use an index that accepts local versions and set `upload-rules = "none"`.',
)
def local_version(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Neither the file name nor METADATA has one."""
    name = need(wheel.name)
    stated = "" if isinstance(wheel.metadata, Unavailable) else wheel.metadata.version
    if name.parsed_version.local or "+" in stated:
        fix = Fix(
            'Publish the public version, or set `upload-rules = "none"` for an index that accepts local versions.'
        )
        message = f"the index rejects the local version {stated or name.parsed_version}"
        yield refused(wheel, "local-version", message, fix, Evidence("file name", wheel.file_name))


@rule(
    "REL311",
    "the file is within the size limits of the index",
    why="A file that is too large is rejected at the very end of its upload, when the other files of the release are "
    "already public.",
    example="a wheel of 400 MB, and no `max-size` that states the project's limit",
    fix="Request a larger limit before the release, and state it as `max-size`.",
)
def size(wheel: WheelFacts, expectations: Expectations) -> Iterable[Finding]:
    """At most the granted size, which `max-size` states above the default; no absurd compression ratio."""
    limits = load("upload_rules")["limits"]
    usual, granted, unpacked = limits["file"]["bytes"], limits["granted"]["bytes"], limits["unpacked"]
    has = Evidence("size", f"{wheel.size:,} bytes")
    if wheel.size > granted:
        message = f"the file is larger than {granted:,} bytes, the highest limit that the index grants a project"
        fix = Fix("Drop old GPU architectures, compress the fat binaries, or move libraries to separate packages.")
        yield refused(wheel, "size", message, fix, has)
    elif wheel.size > usual and expectations.max_size is None:
        reason = f"it has {wheel.size:,} bytes; the usual limit is {usual:,}, and max-size is not set"
        yield from unproven(wheel, reason, Fix("Set max-size to the limit that the project was granted."))
    total = sum(member.size for member in need(wheel.archive).members)
    if total > unpacked["bytes"] and total > unpacked["ratio"] * wheel.size:
        message = f"the unpacked contents are more than {unpacked['ratio']} times as large as the file"
        fix = Fix("Remove empty or repeated contents.")
        yield refused(wheel, "compression", message, fix, has, Evidence("content", f"{total:,} bytes"))


@rule(
    "REL312",
    "the index accepts the names of the scripts",
    why="The index rejects names of scripts that are paths, or have other characters than those of file names.",
    example="`../demo = demo:main` in console_scripts",
    fix="Name the scripts with letters, digits, dots, underscores and dashes.",
)
def scripts(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Names of scripts are plain; that the file can be read, and no name occurs twice in a group, is WHL125."""
    for point in need(need(wheel.startup).entry_points).entries:
        if point.group in _SCRIPT_GROUPS and not _SCRIPT_NAME.fullmatch(point.name):
            message = f"the index rejects the script name {abbreviated(point.name)!r}"
            yield refused(wheel, "entry-points", message, member="entry_points.txt")


@rules_of("release-file", Audience.PUBLISHER)(
    "REL314",
    "the source archive has the name that the index accepts",
    why="PEP 625: the index accepts one name for a release's source archive, and only the format .tar.gz.",
    example="`Demo.Pkg-1.0.tar.gz` or `demo_pkg-1.0.zip`; `demo_pkg-1.0.tar.gz` is right",
    fix="Build it with a current build backend.",
)
def source_archive(subject: FileInRelease, _: Expectations) -> Iterable[Finding]:
    """The normalised name and version, and .tar.gz."""
    file, expected = subject.file, subject.release.expectation
    if file.is_wheel or file.version is None or not is_file_of(file.file_name, expected.project):
        need(Unavailable("the file is not a source archive of the project"))
    if expected.upload_rules is UploadRules.NONE:
        need(Unavailable('the expectation has upload-rules = "none"'))
    wanted = f"{canonicalize_name(expected.project).replace('-', '_')}-{file.version}.tar.gz"
    if file.file_name != wanted:
        row = load("upload_rules")["since"]["file-name"]
        evidence = (Evidence("expected", wanted), Evidence("refused since", row["day"], row["source"]))
        message = f"the index rejects the name {file.file_name}"
        severity = Severity.WARNING if file.listed else None
        yield Finding(message, evidence, Fix("Build it with a current build backend."), severity=severity)
