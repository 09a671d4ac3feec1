"""``wheelproof verify`` commands that list the files on an index."""

from __future__ import annotations

from collections import defaultdict

from packaging.utils import canonicalize_name
from packaging.version import Version

from wheel_checks.fixes.commands import Command, NoCommand, Word, option, package, requirement, run
from wheel_checks.formats.wheel.wheel_name import WheelName, wheel_name_or_none
from wheel_checks.model import Fix, Unavailable
from wheel_checks.phrases import summarised
from wheel_checks.targets.of_wheel import target_of_tags
from wheel_checks.targets.selection import Choice, Reason
from wheel_checks.targets.target import Target

_SHOWN = 6


def look_at_index(name: str, machine: str) -> Command | NoCommand:
    """The command that lists every wheel of a project that the index has for a machine; it must have one."""
    return run("wheelproof", "verify", requirement(f"{name}>=0"), option("--platform", machine), "--all-files")


def other_files(choice: Choice) -> Fix:
    """How to find a wheel when none fits the target: the newest release that has some for its machine.

    If no release has one, how to build it, if there is a source archive; else that there isn't one.
    """
    machine, name = choice.target.machine, canonicalize_name(choice.requirement.name)
    releases: defaultdict[Version, set[str]] = defaultdict(set)
    for rejected in choice.rejected:
        wheel = wheel_name_or_none(rejected.file.file_name)
        if wheel is not None and rejected.reason is not Reason.YANKED and _serves(wheel, machine):
            releases[wheel.parsed_version].update(f"{tag.interpreter}-{tag.abi}" for tag in wheel.tags)
    stable = [version for version in releases if not version.is_prerelease]
    if releases:
        newest = max(stable or releases)
        pythons = summarised(sorted(releases[newest]), _SHOWN)
        shown = run("wheelproof", "verify", package(name, str(newest)), option("--platform", machine), "--all-files")
        return Fix(f"{newest} has wheels for {machine} ({pythons}): use that release, or such a Python:", (shown,))
    if choice.sdist is None:
        return Fix(f"No release has a wheel for {machine}. Exclude it there with a marker, or add another index.")
    built = package(name, str(choice.version)) if choice.version else requirement(name)
    build = run("pip", "wheel", "--no-deps", "--wheel-dir", "wheels", built)
    return Fix(
        f"No release has a wheel for {machine}. Build one on such a machine, and pass its folder with --find-links:",
        (build,),
    )


def _serves(wheel: WheelName, machine: str) -> bool:
    of_file = target_of_tags(wheel.tags)
    return of_file.machine == machine if of_file else all(tag.platform == "any" for tag in wheel.tags)


def target_options(target: Target | Unavailable | None) -> tuple[Word, ...]:
    """The options that name ``verify``'s target, such as ``--platform aarch64 --python 3.12``; none when unknown."""
    if target is None or isinstance(target, Unavailable):
        return ()
    return option("--platform", target.machine), option("--python", target.interpreter)
