"""What a requirement becomes when it keeps its name alone, or is pinned to what is installed."""

import re

from wheelproof.pins.documents.names import is_url
from wheelproof.pins.model import Form, FoundRequirement, Role
from wheelproof.pins.policy import Mode, Policy

_HEAD = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(\[[^\]]*\])?", re.ASCII)
_CONDA_HEAD = re.compile(r"(?:[\w.-]+(?:/[\w-]+)?::)?[A-Za-z0-9._-]+")


def replacement(found: FoundRequirement, policy: Policy) -> str | None:
    """The text for each span of ``found.values``; None when the requirement goes.

    A text equal to what is there means that nothing changes.
    """
    if policy.mode is Mode.DROP:
        return _guard(found) if is_override(found) else None
    version = policy.versions.get(found.name, "") if policy.mode is Mode.PIN_INSTALLED else ""
    if found.role is Role.CONDA:
        version = ""  # conda knows nothing of the wheel that is installed
    if found.form is Form.NAME:
        return found.text
    if found.form is Form.OVERRIDE:
        return version or None
    if found.form is Form.VERSION:
        return f"=={version}" if version else "*"
    if found.form is Form.CONDA:
        match = _CONDA_HEAD.match(found.text)
        return match[0] if match else found.text
    return _pep508(found, version)


def is_override(found: FoundRequirement) -> bool:
    """Whether a requirement overrides those of others in uv: without it these would count again."""
    return found.role is Role.CONSTRAINT and found.place.section.endswith("override-dependencies")


def _guard(found: FoundRequirement) -> str:
    """The override that takes a package out of every requirement, in quotes that the text around it has not."""
    quote = '"' if found.single_quoted else "'"
    return f"{found.name}; sys_platform == {quote}never{quote}"


def _pep508(found: FoundRequirement, version: str) -> str:
    """Name, extras, version and marker, as they are written."""
    match = _HEAD.match(found.text)
    if match is None or match[1].lower().endswith(".whl") or _is_bare_url(found.text):
        return f"{found.name}=={version}" if version else found.name
    return match[1] + (match[2] or "") + (f"=={version}" if version else "") + _marker(found.text, match.end())


def _marker(text: str, start: int) -> str:
    """The marker as it is written, with the white space in front of it. Behind a URL it needs a space before it."""
    at = text.find(";", start)
    while at > 0 and is_url(text[start:at]) and not text[at - 1].isspace():
        at = text.find(";", at + 1)
    if at < 0:
        return ""
    return text[len(text[:at].rstrip()) :]


def _is_bare_url(text: str) -> bool:
    """Whether a URL is without a name and an @ before it."""
    return is_url(text) and "@" not in text.partition("://")[0]
