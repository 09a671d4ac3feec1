"""The install paths of a wheel's members (binary distribution format, ``.data`` folders)."""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple

_DATA = re.compile(r"[^/]+\.data/([^/]+)/(.+)", re.DOTALL)
_SITE = re.compile(r"(?:lib(?:64)?/python\d[^/]*/(?:site|dist)-packages|Lib/site-packages)/(.+)", re.DOTALL)
_MODULE = re.compile(r"(\w+)(?:\.pyi?|\.pyc|(?:\.[\w-]+)*\.(?:so|pyd))")
_SCRIPTS = re.compile(r"(?:bin|sbin|Scripts)/([^/]+)")


class Place(NamedTuple):
    """``area`` is "site" (site-packages), "scripts", "headers" or "data" (the root of the environment).

    ``path`` is relative to it. ``by_data``: the file takes the way over the folder of the environment, past the areas.
    """

    area: str
    path: str
    by_data: bool = False


def place_of(member: str) -> Place:
    """The install path of a member. Of a scheme that is unknown, the area has its name."""
    match = _DATA.fullmatch(member)
    if match is None:
        return Place("site", member)
    scheme, path = match[1].lower(), match[2]
    if scheme in ("purelib", "platlib"):
        return Place("site", path)
    if scheme != "data":
        return Place(scheme, path)
    path = posixpath.normpath(path)
    if site := _SITE.fullmatch(path):
        return Place("site", site[1], by_data=True)
    if script := _SCRIPTS.fullmatch(path):
        return Place("scripts", script[1], by_data=True)
    return Place("data", path, by_data=True)


def package_of(member: str) -> str:
    """The import package ("torch/") or module ("six") of a member; "" for a file that no import finds."""
    area, path, _ = place_of(member)
    top, slash, _rest = path.partition("/")
    if area != "site":
        return ""
    match = _MODULE.fullmatch(top)
    return f"{top}/" if slash else match[1] if match else ""
