"""Do the symbol versions (GLIBC, GLIBCXX, CXXABI) of a wheel's ELF files exist on the platforms of its tags?"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from packaging.version import Version

from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.fixes.commands import Options
from wheel_checks.formats.elf.file import Missing
from wheel_checks.formats.elf.versions import SymbolVersions
from wheel_checks.model import Audience, Evidence, Finding, Fix, Location, Severity, Unavailable, need
from wheel_checks.phrases import joined
from wheel_checks.registry import rule
from wheel_checks.rules.shared.policies import fitting_policy, oldest_policy, policy_of_target
from wheel_checks.rules.wheel.elf import Elf, dynamic_of, elfs_of, files_of, listed, summary_of
from wheel_checks.targets.target import DEFAULT_GLIBC

_VERSIONED = re.compile(r"(GLIBC|GLIBCXX|CXXABI)_([\d.]+)")
_ENDS_VERSIONED = re.compile(r"(GLIBC|GLIBCXX|CXXABI)_(\d{1,3}(?:\.\d{1,3}){1,3})$")
_ALIASES = {"GLIBC_ABI_DT_RELR": "GLIBC_2.36"}  # the first glibc that packs relative relocations (its NEWS)
_POLICIES = "wheel_checks/data/manylinux.toml"


@rule(
    "WHL503",
    "symbol versions are within the limits of the manylinux tag",
    why="The tag states which glibc and libstdc++ the wheel needs. A library that needs newer ones installs on an "
    "older system and fails at import with `version GLIBCXX_3.4.29 not found`. For a target whose glibc is newer than "
    "the tag, the manylinux policy of that glibc determines which versions exist: libraries within it load, and the "
    "tag is the publisher's to fix.",
    example="GLIBC_2.34 needed in a wheel tagged manylinux_2_28",
    fix="Build in the tag's manylinux image, or retag the wheel with the policy that the finding names.",
)
def symbol_versions(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """GLIBC, GLIBCXX and CXXABI needs are at most those of the oldest tagged policy, but for libraries in the wheel.

    If the target's glibc is newer than the wheel's tag, and its policy has the version, it loads there: a warning for
    the publisher. If the needs of a library were not read, a version among its strings that the target lacks is
    undecided.
    """
    policy = oldest_policy(wheel)
    if policy is None:
        need(Unavailable("the tags contain no known manylinux policy"))
        return
    elfs = list(elfs_of(wheel))
    own = {elf.member.rpartition("/")[2] for elf in elfs} | {d.soname for elf in elfs if (d := dynamic_of(elf))}
    above: dict[str, list[str]] = defaultdict(list)
    yield from _may_need(elfs, own, policy_of_target(wheel) or policy)
    for elf in elfs:
        if not isinstance(elf.facts.versions, SymbolVersions):
            continue
        for library in elf.facts.versions.needs:
            for version in library.versions if library.library not in own else ():
                match = _VERSIONED.fullmatch(_ALIASES.get(version.name, version.name))
                promised = policy.get(match[1], "") if match and not version.weak else ""
                if match and promised and Version(match[2]) > Version(promised):
                    above[version.name].append(elf.member)
    if above:
        yield _broken_promise(wheel, policy, above)


def _may_need(elfs: Iterable[Elf], own: Iterable[str | None], there: dict[str, str]) -> Iterator[Finding]:
    """The undecided finding about versions that the target lacks, among the strings of libraries read in part."""
    is_bundled = any(name and "libstdc++" in name for name in own)
    found: dict[str, list[str]] = defaultdict(list)
    for elf in elfs:
        if not isinstance(elf.facts.versions, Missing) or isinstance(elf.possible_names, Unavailable):
            continue
        for name in elf.possible_names:
            match = _ENDS_VERSIONED.search(_ALIASES.get(name, name))
            promised = there.get(match[1], "") if match and (match[1] == "GLIBC" or not is_bundled) else ""
            if match and promised and Version(match[2]) > Version(promised):
                found[match[0]].append(elf.member)
    if found:
        members = list(dict.fromkeys(member for users in found.values() for member in users))
        verb = "needs" if len(members) == 1 else "need"
        names = joined(sorted(found, key=_number))
        message = (
            f"not proven that {files_of(members)} {verb} no {names}, newer than glibc 2.{there['glibc_minor']} has"
        )
        evidence = tuple(Evidence(name, summary_of(users)) for name, users in found.items())
        yield Finding(message, evidence, _read_whole(), Location(members[0]), undecided=True)


def _read_whole() -> Fix:
    return Fix("Read them completely.", (Options(("wheelproof", "verify"), ("--depth", "gpu")),))


def _broken_promise(wheel: WheelFacts, policy: dict[str, str], above: dict[str, list[str]]) -> Finding:
    """One finding for all versions above the ``policy`` of the tag, which names the one tag that has them all."""
    needs = {name: _number(name) for name in sorted(above, key=_number)}
    members = list(dict.fromkeys(member for name in needs for member in above[name]))
    tag = f"manylinux_2_{policy['glibc_minor']}"
    fitting = fitting_policy(wheel, needs.values())
    fits = f"manylinux_2_{fitting['glibc_minor']}_{fitting['machine']} is the matching tag" if fitting else ""
    prefixes = dict.fromkeys(prefix for prefix, _ in needs.values())
    evidence = [Evidence(name, summary_of(above[name])) for name in needs]
    evidence += [Evidence(tag, f"{prefix}_{policy[prefix]}", _POLICIES) for prefix in prefixes]
    there = policy_of_target(wheel) or policy
    if there is not policy:
        has = ", ".join(f"{prefix}_{there[prefix]}" for prefix in prefixes)
        evidence.append(Evidence(f"target, glibc 2.{there['glibc_minor']}", has, _POLICIES))
    loads = all(version <= Version(there[prefix]) for prefix, version in needs.values())
    verb = "needs" if len(members) == 1 else "need"
    message = f"{files_of(members)} {verb} {joined(list(needs))}, which {tag} does not allow"
    severity, audience = (Severity.WARNING, Audience.PUBLISHER) if loads else (None, None)
    fix = Fix("Build in the tag's manylinux image, or retag the wheel.")
    message += f"; {fits or 'no known policy does'}"
    return Finding(message, tuple(evidence), fix, Location(members[0]), severity, audience=audience)


def _number(name: str) -> tuple[str, Version]:
    """``("GLIBC", 2.34)`` of ``GLIBC_2.34``, and of the names for a version of glibc."""
    prefix, number = _ALIASES.get(name, name).split("_", 1)
    return prefix, Version(number)


@rule(
    "WHL511",
    "the linking data of every library was read",
    Severity.NOTE,
    why="Of a big remote library only its start and end are read. What was not found there is not checked; if the "
    "library may need a newer glibc than the target's, that is undecided.",
    example="a library of 400 MB whose dynamic section is in the middle",
    fix="Use --depth gpu, which reads such libraries completely.",
)
def completely_read(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """No part of the loader's facts is missing. Undecided if symbol versions are unknown for an older glibc."""
    unread = [
        elf
        for elf in elfs_of(wheel)
        if any(isinstance(part, Missing) for part in (elf.facts.dynamic, elf.facts.segments, elf.facts.versions))
    ]
    unknown = [e for e in unread if isinstance(e.facts.versions, Missing) and isinstance(e.possible_names, Unavailable)]
    if unknown and wheel.target and (0, 0) < wheel.target.glibc < DEFAULT_GLIBC:
        glibc = ".".join(map(str, wheel.target.glibc))
        message = f"not proven that the symbol versions of {files_of(unknown)} are in glibc {glibc}"
        yield Finding(f"{message}: not read", _missing_in(unknown), _read_whole(), undecided=True)
        unread = [elf for elf in unread if elf not in unknown]
    if unread:
        yield Finding(f"{files_of(unread)} not read far enough to check", _missing_in(unread), _read_whole())


def _missing_in(elfs: Iterable[Elf]) -> tuple[Evidence, ...]:
    return listed("files", [f"{elf.member} ({', '.join(sorted(elf.facts.missing))})" for elf in elfs])
