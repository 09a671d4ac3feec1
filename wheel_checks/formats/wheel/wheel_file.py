"""The WHEEL file in a wheel's dist-info folder (binary distribution format specification)."""

import re
from collections import defaultdict
from dataclasses import dataclass

from packaging.tags import Tag

from wheel_checks.errors import FormatError
from wheel_checks.formats.wheel.wheel_name import MAX_TAGS, count_tags, expand_tag

MAX_SIZE = 1024 * 1024
_MAX_FAULTS = 100
_SINGLE_FIELDS = ("Wheel-Version", "Generator", "Root-Is-Purelib", "Build")


@dataclass(frozen=True, slots=True)
class WheelFile:
    """The fields of WHEEL. ``tags`` are the expanded Tag lines.

    ``root_is_purelib`` is None when that is unknown; ``faults`` are sentences about what is missing or malformed.
    """

    wheel_version: str
    generator: str
    root_is_purelib: bool | None
    tags: frozenset[Tag]
    build: str
    faults: tuple[str, ...]


def parse_wheel_file(data: bytes) -> WheelFile:
    """The fields of WHEEL, whose lines are ``Key: value``. Raises FormatError only when it is too large."""
    if len(data) > MAX_SIZE:
        raise FormatError(f"WHEEL has {len(data)} bytes", expected=f"at most {MAX_SIZE}")
    faults: list[str] = []
    fields = _read_fields(data, faults)
    single = {field: (fields[field.lower()] or [""])[0] for field in _SINGLE_FIELDS}
    faults += [f"{field} is given more than once" for field in _SINGLE_FIELDS if len(fields[field.lower()]) > 1]
    faults += _version_faults(single["Wheel-Version"])
    purelib = {"true": True, "false": False}.get(single["Root-Is-Purelib"].lower())
    if purelib is None:
        faults.append(f"Root-Is-Purelib is {single['Root-Is-Purelib'][:200]!r}; expected true or false")
    if single["Build"] and not "0" <= single["Build"][0] <= "9":
        faults.append(f"Build is {single['Build'][:200]!r}; expected a build tag that starts with a digit")
    tags = _read_tags(fields["tag"], faults)
    if len(faults) > _MAX_FAULTS:
        faults[_MAX_FAULTS:] = [f"and {len(faults) - _MAX_FAULTS} more faults"]
    version, generator = single["Wheel-Version"], single["Generator"]
    return WheelFile(version, generator, purelib, tags, single["Build"], tuple(faults))


def _read_fields(data: bytes, faults: list[str]) -> defaultdict[str, list[str]]:
    """The values of each field by its name in lower case."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        faults.append("WHEEL is not UTF-8")
        text = data.decode("utf-8", "replace")
    fields: defaultdict[str, list[str]] = defaultdict(list)
    lines = re.split(r"\r\n|\r|\n", text)
    head = lines.index("") if "" in lines else len(lines)  # as in a message: what follows is not a field
    if any(line.strip() for line in lines[head:]):
        faults.append(f"line {head + 1} is empty, but more lines follow; installers do not read their fields")
    for number, line in enumerate(lines[:head], 1):
        key, colon, value = line.partition(":")
        if colon and key and not key[0].isspace():
            fields[key.strip().lower()].append(value.strip())
            if key.lower() == "wheel-version" and key != "Wheel-Version":
                faults.append(f"line {number} has the key {key}; uv supports only Wheel-Version")
        elif line.strip():
            faults.append(f"line {number} is {line[:200]!r}; expected Key: value")
    return fields


def _version_faults(version: str) -> list[str]:
    if not version:
        return ["Wheel-Version is missing"]
    match = re.fullmatch(r"(\d{1,9})\.\d{1,9}", version, re.ASCII)
    if not match:
        return [f"Wheel-Version is {version[:200]!r}; expected two numbers, such as 1.0"]
    if match[1] != "1" and version != "0.1":
        return [f"Wheel-Version is {version}; installers reject a major version other than 1"]
    return []


def _read_tags(lines: list[str], faults: list[str]) -> frozenset[Tag]:
    tags: set[Tag] = set()
    expanded = 0
    for line in lines:
        expanded += count_tags(line)
        if expanded > MAX_TAGS:
            faults.append(f"the Tag lines stand for more than {MAX_TAGS} tags; the rest was not read")
            break
        try:
            tags |= expand_tag(line)
        except FormatError as fault:
            faults.append(f"Tag is wrong: {fault}")
    if not lines:
        faults.append("Tag is missing")
    return frozenset(tags)
