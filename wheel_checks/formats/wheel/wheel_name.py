"""The file name of a wheel (binary distribution format specification, "File name convention")."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

from packaging.tags import Tag, parse_tag
from packaging.utils import BuildTag, InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from wheel_checks.errors import FormatError
from wheel_checks.formats.wheel.variant_label import split_label

MAX_TAGS = 10_000
_MAX_LENGTH = 1_000
_PATTERN = "name-version[-build]-python-abi-platform[-variant].whl"
_BUILD = re.compile(r"(\d+)(.*)", re.ASCII)
_TAG = re.compile(r"[a-z_]\w*(\.[a-z_]\w*)*-\w+(\.\w+)*-\w+(\.\w+)*", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WheelName:
    """The parts of ``{distribution}-{version}(-{build})?-{python}-{abi}-{platform}(-{variant})?.whl``.

    ``distribution``, ``version``, ``build`` and ``variant`` are the texts as written ("" for no build tag, and for a
    wheel that is not a variant); ``parsed_version`` is the version as packaging understands it; ``tags`` is the
    expanded set of compressed tags.
    """

    file_name: str
    distribution: str
    version: str
    build: str
    tags: frozenset[Tag]
    parsed_version: Version
    variant: str = ""

    @property
    def build_number(self) -> BuildTag:
        """The build tag as a key to sort by: ``()`` for none, below ``(3, "")`` and ``(3, "post")``."""
        match = _BUILD.fullmatch(self.build)
        return (int(match[1]), match[2]) if match else ()


def parse_wheel_name(file_name: str) -> WheelName:
    """The parts of a wheel's file name.

    Names and versions that are not normalized pass, as installers take them. Raises FormatError saying which part is
    wrong.
    """
    if not file_name.endswith(".whl"):
        raise FormatError(f"{file_name[:200]!r} is not a wheel's file name", expected=_PATTERN)
    if len(file_name) > _MAX_LENGTH:
        raise FormatError(f"the file name has {len(file_name)} characters", expected=f"at most {_MAX_LENGTH}")
    stem, variant = split_label(file_name.removesuffix(".whl"))
    parts = stem.split("-")
    if len(parts) not in (5, 6):
        raise FormatError(f"the file name {file_name!r} has {len(parts)} parts between dashes", expected=_PATTERN)
    distribution, version, build = parts[0], parts[1], parts[2] if len(parts) == 6 else ""
    if len(parts) == 6 and not _BUILD.fullmatch(build):
        raise FormatError(
            f"the file name {file_name!r} has the build tag {build!r}", expected="a build tag that starts with a digit"
        )
    try:
        tags = expand_tag("-".join(parts[-3:]))
    except FormatError as fault:
        raise FormatError(f"the file name {file_name!r} is wrong: {fault.what}", expected=fault.expected) from None
    try:
        parsed_version = Version(version)
    except ValueError:
        what = f"the file name {file_name!r} has the version {version!r}"
        raise FormatError(what, expected="one like 1.2.3+local (PEP 440)") from None
    try:
        parse_wheel_filename(f"{stem}.whl")
    except InvalidWheelFilename:
        raise FormatError(
            f"the file name {file_name!r} has the name {distribution!r}",
            expected="letters, digits, dots and single underscores",
        ) from None
    return WheelName(file_name, distribution, version, build, tags, parsed_version, variant)


def wheel_name_or_none(file_name: str) -> WheelName | None:
    """The parts of a wheel's file name, None for any other name."""
    try:
        return parse_wheel_name(file_name)
    except FormatError:
        return None


def expand_tag(text: str) -> frozenset[Tag]:
    """The single tags of a compressed tag set (PEP 425): "py2.py3-none-any" gives two.

    Raises FormatError when ``text`` is not a tag or has more than ``MAX_TAGS``.
    """
    if not _TAG.fullmatch(text):
        raise FormatError(f"{text[:200]!r} is not a wheel tag", expected="python-abi-platform, as py3-none-any")
    if count_tags(text) > MAX_TAGS:
        raise FormatError(f"{text[:200]!r} expands to too many tags", expected=f"at most {MAX_TAGS}")
    return parse_tag(text)


def count_tags(text: str) -> int:
    """The number of single tags in a compressed tag set, repeated ones included, without expanding it."""
    return prod(part.count(".") + 1 for part in text.split("-"))
