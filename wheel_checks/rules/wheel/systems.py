"""Are the native files of a wheel for the system, the machine and the macOS of its tags? By their first bytes."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.facts.wheel.native_heads import NativeHead
from wheel_checks.model import Audience, Evidence, Finding, Fix, Location, Severity, Unavailable, need
from wheel_checks.phrases import joined, plural, summarised
from wheel_checks.registry import rule

_SYSTEMS = {"ELF": "Linux", "PE": "Windows", "Mach-O": "macOS"}
_KINDS = {"linux": "ELF", "manylinux": "ELF", "musllinux": "ELF", "win": "PE", "macosx": "Mach-O"}
_PLATFORM = re.compile(
    r"(?P<system>(?:many|musl)?linux|macosx|win)(?:_?(?P<major>\d+)_(?P<minor>\d+))?_?(?P<machine>\w+)"
)
_WINDOWS_MACHINES = {"amd64": {"x86_64", "ARM64EC"}, "32": {"x86"}, "arm64": {"aarch64", "ARM64EC", "ARM64X"}}
_WINDOWS_RUNS = {"amd64": {"x86"}, "arm64": {"x86", "x86_64"}}  # programs of older machines (WOW64, emulation on Arm)
_MACOS_MACHINES = {"universal2": {"x86_64", "arm64"}, "intel": {"x86_64", "i386"}, "fat64": {"x86_64", "ppc64"}}
_NATIVE = {"ELF": r"\.so(?:\.[\w.]+)?$", "PE": r"\.(?:pyd|dll|exe|so)$", "Mach-O": r"\.(?:so|dylib)$"}
_MODULE = re.compile(r"\.(?:pyd|(?:cpython|pypy)[\w-]*\.so|abi3\.so)$")
_NAMES_ANOTHER = re.compile(
    r"linux|darwin|mac|osx|win|android|ios|arm|aarch|x86|amd64|i[3-6]86|x64|32|64|resources|templates", re.IGNORECASE
)
_SHOWN = 5


def _tagged(wheel: WheelFacts) -> list[re.Match[str]]:
    """The platforms of the tags. Skips the check for a wheel that is for any, or for one that is not known here."""
    platforms = {tag.platform for tag in need(wheel.name).tags}
    found = [match for platform in sorted(platforms) if (match := _PLATFORM.fullmatch(platform))]
    if len(found) < len(platforms):
        need(Unavailable("the tags contain no system whose native files are known"))
    return found


def _heads(wheel: WheelFacts) -> list[NativeHead]:
    """What is known; members that were not read leave nothing open that others decide."""
    return [head for head in need(wheel.heads).heads if head.kind]


def _is_meant(member: str) -> bool:
    """Whether a path names a system or a machine: data for another one (``agent/arm64/lib.so``), never a module."""
    return bool(_NAMES_ANOTHER.search(member)) and not _MODULE.search(member)


def _found(by: dict[str, list[str]]) -> Iterator[tuple[str, list[str], tuple[Evidence, ...], Location]]:
    for what, members in by.items():
        yield what, members, (Evidence("files", summarised(members, _SHOWN)),), Location(members[0])


@rule(
    "WHL540",
    "native files are for the system of the tags",
    why="A loader opens only files of its own system: an ELF file in a wheel for macOS causes an ImportError on every "
    "host that installs the wheel.",
    example="`demo/_C.so`, built on Linux, in a wheel tagged macosx_11_0_arm64",
    fix="Build the file on the system of the tag.",
)
def system(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """ELF for Linux, PE for Windows, Mach-O for macOS, by names that the loader of that system opens."""
    wanted = {_KINDS[match["system"]] for match in _tagged(wheel)}
    foreign: dict[str, list[str]] = defaultdict(list)
    for head in _heads(wheel):
        loads = any(re.search(_NATIVE[kind], head.member, re.IGNORECASE) for kind in wanted)
        if head.kind not in wanted and loads and not _is_meant(head.member):
            foreign[head.kind].append(head.member)
    for kind, members, evidence, place in _found(foreign):
        systems = joined(sorted(_SYSTEMS[own] for own in wanted))
        message = f"{plural(len(members), 'file')} for {_SYSTEMS[kind]} ({kind}) in a wheel for {systems}"
        yield Finding(message, evidence, Fix("Build these files on the system of the tag, or exclude them."), place)


@rule(
    "WHL541",
    "macOS and Windows files are for the machine of the tags",
    why="A library for another machine does not load: `mach-o file, but is an incompatible architecture`, `%1 is not "
    "a valid Win32 application`.",
    example="an x86_64-only library in a wheel tagged macosx_11_0_universal2",
    fix="Build for the machine of the tag, for universal2 for both machines.",
)
def machine(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Mach-O files have all machines of the tag, PE files its one, but for data that names another.

    A program for Windows may be for an older machine, which Windows runs, too: ninja.exe of x86 in a wheel for x64.
    A DLL or program that is no Python module is a warning next to others that fit: perhaps nothing loads it, as
    vcruntime140_1.dll of x64 in z3-solver for Arm.
    """
    tagged = [match for match in _tagged(wheel) if match["system"] in ("win", "macosx")]
    if not tagged:
        need(Unavailable("the wheel is not for macOS or Windows"))
    foreign: dict[str, list[str]] = defaultdict(list)
    fitting = False
    for head in _heads(wheel):
        own = [match for match in tagged if _KINDS[match["system"]] == head.kind]
        if not own or _is_meant(head.member):
            continue
        found = {part.machine for part in head.slices} or {head.machine}
        if any(_serves(match, head, found) for match in own):
            fitting = True
        else:
            foreign[joined(sorted(found))].append(head.member)
    for machines, members, evidence, place in _found(foreign):
        named = joined(sorted({match["machine"] for match in tagged}))
        message = f"{plural(len(members), 'file')} for {machines} in a wheel for {named}"
        fix = Fix("Build these files for the machine of the tag, or exclude them.")
        spare = fitting and not any(re.search(r"\.(?:pyd|so|dylib)$", member) for member in members)
        yield Finding(message, evidence, fix, place, Severity.WARNING if spare else None)


def _serves(tag: re.Match[str], head: NativeHead, machines: set[str]) -> bool:
    if head.kind == "PE":
        own = _WINDOWS_MACHINES.get(tag["machine"], {tag["machine"]})
        emulated = _WINDOWS_RUNS.get(tag["machine"], set()) if head.member.lower().endswith(".exe") else set()
        return bool(machines & (own | emulated))
    return machines >= _MACOS_MACHINES.get(tag["machine"], {tag["machine"]})


@rule(
    "WHL542",
    "macOS files run on the macOS version of the tag",
    audience=Audience.PUBLISHER,
    why="The tag states the oldest supported macOS. A library built for a newer one needs symbols that are missing "
    "there: `Symbol not found`, at import, on the hosts of users who did not update.",
    example="a library with LC_BUILD_VERSION 15.0 in a wheel tagged macosx_11_0_arm64",
    fix="Build with MACOSX_DEPLOYMENT_TARGET, or have delocate write the tag.",
)
def oldest_macos(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """From macOS 11 on major versions are compared, since tags have no other; arm64 begins with 11.

    Of a wheel that is published it is a warning: it loads where all symbols are, which the version does not say.
    """
    tagged = [match for match in _tagged(wheel) if match["system"] == "macosx" and match["major"]]
    if not tagged:
        need(Unavailable("the wheel is not for macOS"))
    oldest = min((int(match["major"]), int(match["minor"])) for match in tagged)
    newer: dict[str, list[str]] = defaultdict(list)
    for head in _heads(wheel):
        for part in head.slices:
            promised = max(oldest, (11, 0)) if part.machine == "arm64" else oldest
            if part.macos is not None and _comparable(part.macos) > _comparable(promised):
                newer[f"{part.macos[0]}.{part.macos[1]} on {part.machine}"].append(head.member)
    for version, members, evidence, place in _found(newer):
        tag = f"macosx_{oldest[0]}_{oldest[1]}"
        verb = "needs" if len(members) == 1 else "need"
        message = (
            f"{plural(len(members), 'file')} {verb} macOS {version}, but the tag {tag} allows {oldest[0]}.{oldest[1]}"
        )
        fix = Fix("Build with MACOSX_DEPLOYMENT_TARGET as in the tag, or tag the wheel with the newer version.")
        yield Finding(message, evidence, fix, place, Severity.WARNING if wheel.listing else None)


def _comparable(version: tuple[int, int]) -> tuple[int, int]:
    """10.16 is how macOS 11 called itself to old programs."""
    version = (11, 0) if version == (10, 16) else version
    return (version[0], 0) if version[0] >= 11 else version
