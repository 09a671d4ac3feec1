"""Does each file of a release belong there, and is it the file that was meant? By what the expectation file says."""

from collections.abc import Iterable

from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.release import FileInRelease, Told
from wheel_checks.facts.release_expectation import ExpectedPlatform
from wheel_checks.formats.file_names import is_file_of
from wheel_checks.model import Audience, Evidence, Finding, Fix, Severity, Unavailable, need
from wheel_checks.registry import rules_of
from wheel_checks.rules.shared.accelerator import unmet

KIND = "release-file"
rule = rules_of(KIND, Audience.PUBLISHER)


def _platforms(subject: FileInRelease) -> list[ExpectedPlatform]:
    """The expected platforms of which the file fills a cell."""
    names = {cell.platform for cell in subject.file.cells}
    return [platform for platform in subject.release.expectation.platforms if platform.name in names]


@rule(
    "REL102",
    "the expectation includes the file",
    why="A file uploaded by mistake cannot be replaced: an index never accepts the same file name twice. A file for an "
    "untested Python or platform is installed all the same.",
    example="a `linux_x86_64` wheel that was not repaired, among the `manylinux` ones",
    fix="Remove the file from the release, or add its platform, Python or build tag to the expectation.",
)
def unexpected(subject: FileInRelease, _: Expectations) -> Iterable[Finding]:
    """It is of the project, and fills a cell with an allowed build tag, or is the expected source archive."""
    if reason := _misfit(subject):
        fix = Fix("Remove the file from the release, or change the expectation.")
        yield Finding(f"the file is not expected: {reason}", (Evidence("file", subject.file.file_name),), fix)


def _misfit(subject: FileInRelease) -> str:
    file, expected = subject.file, subject.release.expectation
    if not is_file_of(file.file_name, expected.project):
        return f"it is not a file of {expected.project}"
    if file.version is not None and not file.own:
        return ""  # of another version, about which REL109 has its say
    if not file.is_wheel:
        return "" if expected.sdist else "no source archive is expected"
    return _misplaced(subject)


def _misplaced(subject: FileInRelease) -> str:
    """Why a wheel of the project has no place in the matrix."""
    file = subject.file
    if file.name is None:
        return "its name has no tags that an installer reads"
    if not file.platforms:
        tags = ", ".join(sorted({tag.platform for tag in file.name.tags}))
        label = f" and the variant {file.name.variant}" if file.name.variant else ""
        return f"no platform with the tag {tags}{label} is"
    if not file.cells:
        pythons = ", ".join(sorted({f"{tag.interpreter}-{tag.abi}" for tag in file.name.tags}))
        return f"{pythons} is not on {' or '.join(file.platforms)}"
    platforms = _platforms(subject)
    if not any(file.name.build in platform.build_tags for platform in platforms):
        allowed = ", ".join(sorted({tag or "none" for p in platforms for tag in p.build_tags}))
        return f"its build tag is {file.name.build or 'none'}, allowed on {platforms[0].name}: {allowed}"
    return ""


@rule(
    "REL103",
    "the wheel has the accelerator expected for its platform",
    why="A CPU build among CUDA builds has the same name and the same METADATA, and differs only in size: it is not "
    "noticed until users find no GPU.",
    example="torch 2.10.0, whose seven aarch64 wheels are CPU only, where CUDA is expected on both architectures",
    fix="Build the wheels of that platform with the accelerator, or change the expectation.",
)
def accelerator(subject: FileInRelease, _: Expectations) -> Iterable[Finding]:
    """What the wheel shows is what every platform that it serves expects."""
    demands = {p.accelerator: p.name for p in reversed(_platforms(subject)) if p.accelerator is not None}
    if not demands:
        need(Unavailable("the expectation states no accelerator for it"))
    found = need(subject.file.accelerator)
    for demand, platform in demands.items():
        fix = Fix(f"Build it for {demand.accelerator}, or change the expectation for {platform}.")
        yield from unmet(found, demand, fix)


@rule(
    "REL104",
    "the file is within its platform's size limit, and similar in size to its siblings",
    why="An index rejects a file above the project's limit at the very end of an upload, when the rest of the release "
    "is already public. A file much smaller than its siblings lacks a library, a much larger one contains debug "
    "symbols.",
    example="a wheel of 1.2 GB where `max-size` is 1GB",
    fix="Compress the fat binaries or drop old architectures; rebuild an outlier, and compare with `wheelproof diff`.",
)
def size(subject: FileInRelease, _: Expectations) -> Iterable[Finding]:
    """At most ``max-size`` of its platform, and (a warning) within ``size-outlier`` of the platform's median."""
    actual, platforms = subject.file.size, _platforms(subject)
    bound = subject.release.expectation.size_outlier
    if actual is None:
        need(Unavailable("the size of the file is unknown"))
        return
    if bound is None and all(platform.max_size is None for platform in platforms):
        need(Unavailable("the expectation has neither max-size nor size-outlier for it"))
    for platform in platforms:
        if platform.max_size is not None and actual > platform.max_size:
            evidence = (
                Evidence("size", f"{actual:,} bytes"),
                Evidence("max-size", f"{platform.max_size:,} bytes", platform.name),
            )
            fix = Fix("Drop old GPU architectures, compress the fat binaries, or move libraries to separate packages.")
            yield Finding(f"the file is larger than {platform.name} allows", evidence, fix)
        usual = subject.release.median_sizes.get(platform.name)
        if bound is None or not usual:
            continue
        ratio = max(actual, usual) / max(1, min(actual, usual))
        if ratio > bound:
            evidence = (Evidence("size", f"{actual:,} bytes"), Evidence("median", f"{usual:,.0f} bytes", platform.name))
            relation = "larger" if actual > usual else "smaller"
            message = f"the file is {ratio:.2f} times {relation} than the median of {platform.name}"
            yield Finding(
                message, evidence, Fix("Compare it with a sibling: `wheelproof diff`."), None, Severity.WARNING
            )


@rule(
    "REL105",
    "all sources state the same hash and size of the file",
    why="If the index's file is not the one that was tested, it was replaced, truncated or mixed up on the way.",
    example="a sha256 on the staging index that differs from that of the file in `dist`",
    fix="Upload the file that was tested. On most indexes a file name cannot be reused: increase the build tag or the "
    "version.",
)
def hashes(subject: FileInRelease, _: Expectations) -> Iterable[Finding]:
    """Disk, indexes and the list of hashes agree, as far as they state them; with a list, the file is in it."""
    file, listed = subject.file, subject.release.expectation.hashes
    fix = Fix("Find out which one was tested, and publish that one.")
    if listed and file.own and file.file_name not in listed:
        yield Finding("the file is not in the list of hashes", (Evidence("listed", f"{len(listed)} files"),), fix)
    elif len(file.digests) < 2 and len(file.sizes) < 2:
        need(Unavailable("only one source states hash and size", "give the folder and the index, or [hashes]"))
    for word, stated, unit in (("sha256", file.digests, ""), ("size", file.sizes, " bytes")):
        if len({value for _, value in stated}) > 1:
            places = " and ".join(item.who for item in _first_two(stated))
            yield Finding(
                f"the {word} differs between {places}",
                tuple(Evidence(who, f"{value}{unit}") for who, value in stated),
                fix,
            )


def _first_two(stated: Iterable[Told]) -> tuple[Told, Told]:
    """The first, and the first that differs from it."""
    items = list(stated)
    return items[0], next(item for item in items if item.value != items[0].value)


@rule(
    "REL106",
    "no file of the release is yanked",
    why="Installers skip a yanked file: users without an exact pin find no file for its platform and Python.",
    example="one wheel of a staged release with `data-yanked`",
    fix="Restore the file on the index, or publish another build; `yanked = true` allows it.",
)
def yanked(subject: FileInRelease, _: Expectations) -> Iterable[Finding]:
    """No index marks it (PEP 592), unless the expectation allows that."""
    if not subject.file.listed:
        need(Unavailable("the file is not on an index"))
    if subject.file.yanked is not None and not subject.release.expectation.yanked:
        yield Finding("the file is yanked", (Evidence("reason", subject.file.yanked or "none given"),))
