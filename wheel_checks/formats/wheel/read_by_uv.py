"""Requirements and Requires-Python that uv reads differently from packaging and pip.

Found by running uv 0.13.8 on about two hundred lines (November 2026; the tests have them): it corrects common mistakes
in Requires-Python, which pip ignores as a whole, and in Requires-Dist, for which pip refuses the wheel; and it refuses
some lines that packaging accepts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet

from wheel_checks.parsing import specifiers_or_none, version_or_none

_SLIPS = tuple(
    (re.compile(pattern), correction)
    for pattern, correction in (
        (r"(\d)(?=[<>=~^!])", r"\1,"),  # >=3.8<4
        (r"!=~((?:\d\.)*\d)", r"!=\1.*"),  # !=~3.0
        (r"([<>]=?)(\d+(?:\.\d+)*)\.\*", r"\1\2"),  # >=3.8.*
        (r"(\d\.\d)\*", r"\1.*"),  # !=3.0*
        (r",\s*$", ""),  # >=3.8,
        (r">dev", ">0.0.0dev"),  # >dev
        (r"(\d+(?:\.\d)*(?:a|b|rc|post|dev)\d+)\.0", r"\1"),  # >=3.8b1.0
        (r"['\"]", ""),  # >='3.8'
    )
)
_LARGEST = 2**64 - 2  # of a number in a version
_LONGEST = 80  # characters that a reason shows
_EMPTY_BRACKETS = re.compile(r"[^@;'\"]*\(\s*\)")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_GIT = ("git+https", "git+http", "git+ssh", "git+file")
_ARCHIVES = (".whl", ".zip", ".tar", ".tgz", ".tbz", ".tlz", ".txz")
_PACKED = (".tar.gz", ".tar.bz2", ".tar.xz", ".tar.lz", ".tar.lzma", ".tar.zst")


def corrected(text: str) -> str:
    """The Requires-Python that uv reads from a malformed one, "" if it refuses it."""
    text = next((text for text in _corrections(text) if specifiers_or_none(text) is not None), "")
    return "" if requires_python_fault(text) else text


def corrected_requirement(line: str) -> str:
    """The Requires-Dist line that uv reads from a malformed one, "" if it refuses it."""
    plain, semicolon, marker = line.partition(";")
    for text in _corrections(plain):
        with suppress(InvalidRequirement, ValueError):
            whole = f"{text}{semicolon}{marker}"
            return "" if requirement_fault(whole, Requirement(whole)) else whole
    return ""


def _corrections(text: str) -> Iterator[str]:
    for slip, correction in _SLIPS:
        text = slip.sub(correction, text)
        yield text


def requires_python_fault(text: str) -> str:
    """Why uv refuses a Requires-Python that packaging accepts, "" if it accepts it."""
    if any(not clause.strip() for clause in re.sub(r",\s*$", "", text).split(",")[1:]) or re.match(r"\s*,.", text):
        return "a clause is empty"
    return _specifiers_fault(SpecifierSet(text))


def requirement_fault(line: str, requirement: Requirement) -> str:
    """Why uv refuses a Requires-Dist line that packaging reads as ``requirement``, "" if it accepts it."""
    for name in (requirement.name, *requirement.extras):
        if not re.search(r"[A-Za-z0-9]$", name):
            return f"the name {name[:_LONGEST]} ends with a special character"
    if "===" in _QUOTED.sub("", str(requirement.marker or "")):
        return "its marker compares with ==="
    if requirement.url:
        return _url_fault(requirement.url)
    if _EMPTY_BRACKETS.match(line):
        return "the brackets of its versions are empty"
    return _specifiers_fault(requirement.specifier)


def _specifiers_fault(specifiers: SpecifierSet) -> str:
    for specifier in specifiers:
        version = specifier.version.removesuffix(".*") if specifier.operator != "===" else specifier.version
        if any(_is_too_large(number) for number in re.findall(r"\d{20,}", version.partition("+")[0])):
            return "a number of its version is too large"
        if version_or_none(version) is None:
            return f"{version[:_LONGEST]} is not a version"
    return ""


def _is_too_large(number: str) -> bool:
    digits = number.lstrip("0")  # more than 4,300 of them are no integer to Python
    return len(digits) > len(str(_LARGEST)) or (bool(digits) and int(digits) > _LARGEST)


def _url_fault(url: str) -> str:
    """Why uv refuses a URL: it takes archives by http and https, git, and absolute paths to archives and folders."""
    scheme, _, rest = url.partition(":")
    try:
        path = urlsplit(url).path
        host = urlsplit(url).netloc
    except ValueError:
        return "its URL is malformed"
    if scheme in _GIT:
        return ""
    name = path.rstrip("/").rpartition("/")[2]
    is_archive = path.endswith((*_ARCHIVES, *_PACKED))
    if scheme in ("http", "https"):
        return "" if is_archive and host else "its URL does not end with an archive's suffix"
    if scheme == "file" and not rest.startswith("///"):
        return "its path is not absolute"
    if scheme == "file" or url.startswith("/"):
        return "" if is_archive or "." not in name else "its path does not end with an archive's suffix"
    return "its URL has a scheme that uv does not support"
