"""Where the members of a wheel land in an environment (binary distribution format, ``.data`` folders)."""

import posixpath
import re
from typing import NamedTuple

_DATA = re.compile(r"[^/]+\.data/([^/]+)/(.+)", re.DOTALL)
_SITE = re.compile(r"(?:lib(?:64)?/python\d[^/]*/(?:site|dist)-packages|Lib/site-packages)/(.+)", re.DOTALL)
_SCRIPTS = re.compile(r"(?:bin|sbin|Scripts)/([^/]+)")


class Place(NamedTuple):
    """``area`` is "site" (site-packages), "scripts", "headers" or "data" (the root of the environment).

    ``path`` is relative to it. ``by_data``: the file takes the way over the folder of the environment, past the areas.
    """

    area: str
    path: str
    by_data: bool = False


def place_of(member: str) -> Place:
    """Where an installer puts a member. Of a scheme that is unknown, the area has its name."""
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
