"""Reads the list of changes that ``uv pip install`` prints: its JSON is a preview, and younger."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name

from wheel_checks.errors import FormatError
from wheel_checks.formats.wheel.wheel_name import parse_wheel_name

_CHANGE = re.compile(r" ([-+~]) ([A-Za-z0-9._-]+)(?:==(\S+)| @ (\S+))?")  # " + torch==2.8.0", " + torch @ URL"
_DONE = re.compile(r"^(?:Would |Checked |Audited )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Changes:
    """Versions by normalized name. A package in both ``removed`` and ``installed`` is replaced; ``urls`` has what is
    taken from an address.
    """

    installed: Mapping[str, str]
    removed: Mapping[str, str]
    urls: Mapping[str, str]


def parse_changes(words: str) -> Changes:
    """The changes in what uv printed. Raises FormatError when the words hold no such list."""
    installed: dict[str, str] = {}
    removed: dict[str, str] = {}
    urls: dict[str, str] = {}
    for line in words.splitlines():
        matched = _CHANGE.match(line)
        if matched is None:
            continue
        sign, name, version, url = matched.groups()
        normalized = str(canonicalize_name(name))
        if url:
            urls[normalized] = url
        if sign in "-~":
            removed[normalized] = version or ""
        if sign in "+~":
            installed[normalized] = version or (_version_of(url) if url else "")
    if not installed and not removed and not _DONE.search(words):
        raise FormatError(
            "the output of uv cannot be parsed", expected='"Would install ..." or "Would make no changes"'
        )
    return Changes(installed, removed, urls)


def _version_of(url: str) -> str:
    try:
        return parse_wheel_name(unquote(urlsplit(url).path.rpartition("/")[2])).version
    except (FormatError, ValueError):
        return ""
