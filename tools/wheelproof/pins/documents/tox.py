"""tox.ini and tox.toml: the ``deps`` of environments; installs of their commands are not read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from wheel_checks.formats.requirements_lines import setting
from wheelproof.pins.documents.commands.unread import unread_commands
from wheelproof.pins.documents.names import project_of
from wheelproof.pins.documents.notices import of_requirement
from wheelproof.pins.documents.setup_cfg import Line, option_lines, parse
from wheelproof.pins.documents.toml.requirements import Where, read_toml
from wheelproof.pins.model import Document, FoundRequirement, Notice, Place, Role, Source

PLACES = (
    Where("env_run_base.deps", Role.GROUP),
    Where("env_pkg_base.deps", Role.GROUP),
    Where("env.*.deps", Role.GROUP),
)
_FACTORS = re.compile(r"[!\w.,{}-]+:[ \t]+", re.ASCII)
_REFERENCES = re.compile(r"\{\[([^\]{}]*)\](\w+)\}")  # {[base]deps}
_REFERENCE = re.compile(r"(?:[!\w.,{}-]+:\s+)?\{\[[^\]{}]*\]\w+\}", re.ASCII)
_FILES = {"-r": False, "--requirement": False, "-c": True, "--constraint": True}


def read(source: Source) -> Document:
    """The requirements of a tox.ini or tox.toml. Raises FormatError, with the line, when it is not valid."""
    notes = list(unread_commands(source))
    if source.path.suffix == ".toml":
        whole = read_toml(source, PLACES, "tox")
        return replace(whole, notices=(*whole.notices, *notes))
    parse(source, source.text)
    requirements: list[FoundRequirement] = []
    files: dict[bool, list[Path]] = {False: [], True: []}
    lines = list(option_lines(source))
    referred = _referred(lines)
    for line in lines:
        own = line.option == "deps" and (line.section == "tox" or line.section.startswith("testenv"))
        if own or (line.section, line.option) in referred:
            notes += _dependency(source, line, requirements, files)
    notices = (*(notice for found in requirements for notice in of_requirement(found)), *notes)
    return Document(
        "tox",
        source,
        tuple(requirements),
        notices,
        includes=tuple(files[False]),
        constraint_files=tuple(files[True]),
    )


def _dependency(
    source: Source, line: Line, requirements: list[FoundRequirement], files: dict[bool, list[Path]]
) -> Iterator[Notice]:
    """A line of deps: a requirement, after the factors that it applies to, a file of requirements, or unread."""
    factors = _FACTORS.match(line.text)
    lead = factors.end() if factors else 0
    text = line.text[lead:].strip()
    if text.startswith("-"):
        option, value = setting(text)
        if option in _FILES and value and "{" not in value.removeprefix("{toxinidir}/"):
            files[_FILES[option]].append(source.path.parent / value.removeprefix("{toxinidir}/"))
            return
    name = project_of(text)
    at = line.at + lead
    place = Place(source.path, *source.position(at), f"{line.section}.{line.option}")
    if not name:
        if "{" in text and not _REFERENCE.fullmatch(text):
            yield Notice("dynamic", f"{text} is only known at run time: not read", place)
        return
    certain = "{" not in text
    spans = (line.whole,) if line.alone else ((line.at, line.at + len(line.text)),)
    values = ((at, at + len(text)),)
    requirements.append(FoundRequirement(name, text, Role.GROUP, place, spans=spans, values=values, certain=certain))


def _referred(lines: list[Line]) -> set[tuple[str, str]]:
    """The options of other sections that deps take over: ``{[base]deps}``, and theirs in turn."""
    found: set[tuple[str, str]] = set()
    while True:
        inside = [
            line
            for line in lines
            if (line.section, line.option) in found
            or (line.option == "deps" and (line.section == "tox" or line.section.startswith("testenv")))
        ]
        named = {(match[1] or line.section, match[2]) for line in inside for match in _REFERENCES.finditer(line.text)}
        if named <= found:
            return found
        found |= named
