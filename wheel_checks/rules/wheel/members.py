"""Are the names of the members safe to unpack, on every platform and by every installer?"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable

from packaging.utils import canonicalize_name

from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.formats.zip.directory import Member
from wheel_checks.model import Evidence, Finding, Fix, Location, Severity, Unavailable, need
from wheel_checks.parsing import version_or_none
from wheel_checks.registry import rule

_SHOWN = 5  # names shown by one finding
_REBUILD = Fix("Remove the member from the source tree or the build configuration, and rebuild the wheel.")


def _is_plain(member: Member) -> bool:
    """The quick look that nearly all of a wheel's 13,000 names pass."""
    name = member.name
    return (
        name[:1] not in "./"
        and name.isprintable()
        and ".." not in name
        and "//" not in name
        and "/./" not in name
        and not name.endswith("/.")
        and "\\" not in name
        and ":" not in name
        and b"\0" not in member.raw_name
    )


def _unsafe(member: Member) -> str:
    """Why a member's name is unsafe, "" when it is safe."""
    name = member.name
    faults = (
        (b"\0" in member.raw_name, "contains a NUL, at which some readers cut the name"),
        (name.startswith("/") or (name[1:2] == ":" and name[0].isalpha()), "is an absolute path"),
        (".." in name and ".." in re.split(r"[/\\]", name), "leads outside the install folder with '..'"),
        ("\\" in name, "contains a backslash, which Windows treats as a separator"),
        (not name.isprintable(), "contains invisible or control characters"),
        (not name or "//" in name or "." in name.split("/"), "is not a plain relative path"),
    )
    return next((reason for unsafe, reason in faults if unsafe), "")


@rule(
    "WHL010",
    "member names are plain relative paths",
    why="A name such as `../../bin/python` makes an unpacker write outside the environment.",
    example="a member named `../../../etc/ld.so.preload`",
    fix="Do not install the wheel; find out where it comes from.",
)
def safe_names(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """No absolute path, no `..`, no backslash, no control character."""
    for member in need(wheel.archive).members:
        if not _is_plain(member) and (reason := _unsafe(member)):
            evidence = (Evidence("name", ascii(member.name), "central directory"),)
            yield Finding(f"the member name {member.name!a} {reason}", evidence, _REBUILD, Location(member.name))


@rule(
    "WHL011",
    "every member name is unique",
    why="Of two members with one name some readers use the first, others the last; on case-insensitive file systems "
    "one of two members overwrites the other.",
    example="`torch/version.py` twice, or `Data/a.txt` next to `data/a.txt` (a warning)",
    fix="Rename or remove one of them, and rebuild the wheel.",
)
def collisions(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """No duplicates; names that differ only in case or Unicode form are a warning."""
    names_by_form: dict[str, list[str]] = defaultdict(list)
    for member in need(wheel.archive).members:
        names_by_form[unicodedata.normalize("NFC", member.name).casefold()].append(member.name)
    for names in names_by_form.values():
        if len(names) == 1:
            continue
        if len(set(names)) < len(names):
            message = f"{names[0]} occurs {len(names)} times in the archive"
            yield Finding(message, fix=_REBUILD, location=Location(names[0]))
        else:
            more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
            message = f"{' and '.join(names[:_SHOWN])}{more} collide on file systems that ignore case or Unicode form"
            yield Finding(message, fix=_REBUILD, location=Location(names[0]), severity=Severity.WARNING)


@rule(
    "WHL012",
    "no member is a symbolic link",
    why="The wheel format has no links: installers write the link's target as a text file, or follow it out of the "
    "install folder.",
    example="`nvidia/lib/libcudart.so`, a link to `libcudart.so.13`",
    fix="Include the file itself, or only the name that the loader uses.",
)
def links(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """No member has the Unix mode of a link."""
    for member in need(wheel.archive).members:
        if member.is_symlink:
            yield Finding(f"{member.name} is a symbolic link", fix=_REBUILD, location=Location(member.name))


@rule(
    "WHL013",
    "the wheel has one dist-info folder, with the wheel's name and version",
    why="Installers look for exactly `{name}-{version}.dist-info`; pip rejects a wheel with several or with another "
    "name.",
    example="torch-2.11.0-...whl that contains `torch-2.10.0.dist-info`",
    fix="Build from a clean folder: a second dist-info comes from an earlier build.",
)
def dist_info(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Exactly one, with the file name's distribution and version."""
    need(wheel.archive)
    fix = Fix("Delete build/ and *.egg-info, and rebuild the wheel.")
    evidence = tuple(Evidence("folder", folder, "central directory") for folder in wheel.dist_infos[:_SHOWN])
    if len(wheel.dist_infos) != 1:
        count = len(wheel.dist_infos) or "no"
        yield Finding(f"the wheel has {count} dist-info folders; expected one", evidence, fix)
        return
    name = need(wheel.name)
    distribution, _dash, version = wheel.dist_infos[0].removesuffix(".dist-info").partition("-")
    if canonicalize_name(distribution) != canonicalize_name(name.distribution) or not _same(version, name.version):
        message = f"the wheel is named {name.distribution} {name.version}, but its folder is {wheel.dist_infos[0]}"
        yield Finding(message, evidence, fix)


@rule(
    "WHL020",
    "no egg-info folder stops pip from reading the environment",
    why="After each install pip reads every egg-info of the environment. If one has no version or is not UTF-8, this "
    "and each later `pip install` and `pip list` fails with an error, although the files are installed.",
    example="`demo.egg-info/top_level.txt` without a PKG-INFO, left by setuptools",
    fix="Exclude egg-info folders from the wheel; the metadata of a second project belongs in a second wheel.",
)
def egg_info(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Each egg-info that ends up in site-packages has a PKG-INFO in UTF-8 with a version."""
    need(wheel.archive)
    fix = Fix("Delete build/ and *.egg-info, and rebuild the wheel.")
    for folder, fault in wheel.egg_infos:
        if isinstance(fault, Unavailable):
            what = f"not proven that pip can read {folder}: {fault.reason}"
            yield Finding(what, fix=fix, location=Location(member=folder), undecided=True, refused_by="pip")
        elif fault:
            evidence = (Evidence("pip 26.3", "fails once it is installed", "PKG-INFO"),)
            message = f"pip cannot read {folder}: {fault}"
            yield Finding(message, evidence, fix, Location(member=folder), refused_by="pip")


def _same(a: str, b: str) -> bool:
    """Equal as versions (an underscore stands for the dash of a local version in file names)."""
    one, other = version_or_none(a.replace("_", "-")), version_or_none(b.replace("_", "-"))
    return one == other if one and other else a == b
