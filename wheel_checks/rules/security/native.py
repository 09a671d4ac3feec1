"""Does a wheel hide native code, or search for libraries in folders that everybody can write to?"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.fixes.commands import member as member_word
from wheel_checks.fixes.commands import run
from wheel_checks.formats.elf.dynamic import DynamicFacts
from wheel_checks.model import Evidence, Finding, Fix, Location, Severity, Unavailable, need
from wheel_checks.phrases import plural, summarised
from wheel_checks.registry import rules_of
from wheel_checks.rules.security.startup import WORLD_WRITABLE

rule = rules_of("wheel", decides=False)

_SHOWN = 5
_CLIMBING = re.compile(r"\$(?:ORIGIN|\{ORIGIN\})(?:/+\.\.){5,}(/.*)")  # to the root, from any site-packages


@rule(
    "SEC010",
    "no native code has the file name of data",
    why="A program or library named .txt, .png or .dat is not noticed by reviewers, scanners, and auditwheel, which go "
    "by file names. Python can still open it by its path.",
    example="`demo/data/logo.png`, which starts with an ELF header",
    fix="Name libraries .so, .pyd, .dll or .dylib, and programs .exe or without a suffix.",
)
def disguised(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Files that begin as ELF, PE or Mach-O for a processor have usual names; of a remote wheel only at depth full."""
    for name, kind in need(wheel.disguised):
        if not name:
            yield Finding(kind)
            continue
        if not kind:
            what = f"not proven that {name} is data: its first bytes are not enough; --depth full reads the whole file"
            yield Finding(what, location=Location(name), undecided=True)
            continue
        fix = Fix("Find out what opens the file; rename it after its real type.")
        article = "an" if kind == "ELF" else "a"
        yield Finding(f"{name} is {article} {kind} file with the name of data", fix=fix, location=Location(name))


@rule(
    "SEC011",
    "no library search path is writable by every user",
    Severity.WARNING,
    why="The loader uses the first library with the right name. If RPATH or RUNPATH contains /tmp, or a path relative "
    "to the working directory, any user of the host can decide what others load. A world-writable folder is an error "
    "for the wheel's publisher.",
    example="RUNPATH /tmp/build/lib in libdemo.so",
    fix="Remove it: patchelf --set-rpath '$ORIGIN' FILE",
)
def writable_search_paths(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """No entry is a world-writable folder, or relative to the working directory."""
    found: dict[str, list[str]] = defaultdict(list)
    for item in need(wheel.elfs):
        dynamic = None if isinstance(item.facts, Unavailable) else item.facts.dynamic
        if not isinstance(dynamic, DynamicFacts):
            continue
        for entry in dict.fromkeys((*dynamic.rpath, *dynamic.runpath)):
            relative = not entry.startswith(("/", "$", "@"))
            climbing = _CLIMBING.fullmatch(entry)
            if relative or WORLD_WRITABLE.match(climbing[1] if climbing else entry):
                found[entry].append(item.member.name)
    for entry, names in found.items():
        where = (
            entry if entry.startswith(("/", "$")) else f"{entry or 'an empty entry'}, relative to the working directory"
        )
        fix = Fix(
            "Make the search path relative to the library.",
            (run("patchelf", "--set-rpath", "$ORIGIN", member_word(names[0])),),
        )
        verb = "looks" if len(names) == 1 else "look"
        message = f"{plural(len(names), 'file')} {verb} for libraries in {where}"
        evidence = (Evidence("files", summarised(names, _SHOWN, grouping="")),)
        severity = Severity.ERROR if entry.startswith(("/", "$")) else None
        yield Finding(message, evidence, fix, Location(names[0]), severity)
