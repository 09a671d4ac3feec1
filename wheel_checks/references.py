"""Where the sources of a rule are to be read: issues and pull requests of public repositories, as addresses."""

import re

from wheel_checks.data import load

_ISSUE = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*(?:/[\w.-]+)?)(?: PR|#)(?P<number>[0-9]+)")


def address_of(source: str) -> str:
    """The address of "pytorch#168065" or "NVIDIA/NV-Kernels PR591"; "" for what is not an issue of a known place."""
    found = _ISSUE.fullmatch(source)
    if not found:
        return ""
    repository = found["name"] if "/" in found["name"] else load("repositories")["repositories"].get(found["name"], "")
    return f"https://github.com/{repository}/issues/{found['number']}" if repository else ""
