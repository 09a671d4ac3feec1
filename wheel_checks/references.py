"""Where the sources of a rule are to be read: issues and pull requests of public repositories, as addresses."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files

_ISSUE = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*(?:/[\w.-]+)?)(?: PR|#)(?P<number>[0-9]+)")


def address_of(source: str) -> str:
    """The address of "pytorch#168065" or "NVIDIA/NV-Kernels PR591"; "" for what is no issue of a known place."""
    found = _ISSUE.fullmatch(source)
    if not found:
        return ""
    repository = found["name"] if "/" in found["name"] else _repositories().get(found["name"], "")
    return f"https://github.com/{repository}/issues/{found['number']}" if repository else ""


@cache
def _repositories() -> dict[str, str]:
    text = files("wheel_checks.data").joinpath("repositories.toml").read_text(encoding="utf-8")
    names: dict[str, str] = tomllib.loads(text)["repositories"]
    return names
