"""Edits pip's configuration file by text: every line that is not ours stays as it is."""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Mapping

_SECTION = re.compile(r"\[(?P<name>[^\]]+)\]")
_TRUE = {"1", "true", "yes", "on", "y", "t"}


def value(text: str, section: str, key: str) -> str:
    """The value of a key, "" when it has none or when the text is malformed."""
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text)
    except configparser.Error:
        return ""
    return parser.get(section, key, fallback="").strip()


def with_value(text: str, section: str, key: str, new: str) -> str:
    """The text with a key set; its lines are replaced, or a line is put after the header of its section."""
    lines = text.splitlines(keepends=True)
    header = _header(lines, section)
    line = f"{key} = {new}\n"
    if header is None:
        start = text if not text or text.endswith("\n") else f"{text}\n"
        return f"{start}[{section}]\n{line}"
    if not lines[header].endswith("\n"):
        lines[header] += "\n"
    end = next((i for i in range(header + 1, len(lines)) if _SECTION.match(lines[i])), len(lines))
    for index in range(header + 1, end):
        if re.match(rf"{re.escape(key)}\s*[=:]", lines[index], re.IGNORECASE):
            last = index + 1
            while last < end and lines[last][:1] in " \t" and lines[last].strip():
                last += 1
            return "".join([*lines[:index], line, *lines[last:]])
    return "".join([*lines[: header + 1], line, *lines[header + 1 :]])


def _header(lines: list[str], section: str) -> int | None:
    found = (i for i, line in enumerate(lines) if (m := _SECTION.match(line)) and m["name"] == section)
    return next(found, None)


def places(prefix: str, variables: Mapping[str, str]) -> list[str]:
    """The configuration files of pip, the weakest first: of the system, the user, the environment."""
    if variables.get("PIP_CONFIG_FILE") == os.devnull:
        return []
    home = variables.get("HOME", "")
    shared = [folder for folder in variables.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":") if folder]
    user = variables.get("XDG_CONFIG_HOME") or f"{home}/.config"
    paths = [f"{folder}/pip/pip.conf" for folder in reversed(shared)]
    paths += ["/etc/pip.conf", f"{home}/.pip/pip.conf", f"{user}/pip/pip.conf", f"{prefix}/pip.conf"]
    return [*paths, *filter(None, [variables.get("PIP_CONFIG_FILE")])]


def configured(prefix: str, variables: Mapping[str, str], key: str) -> str:
    """The value of an option of ``pip install`` in pip's files."""
    found = ""
    for section in ("global", "install"):
        of_section = [value(read_text(path), section, key) for path in places(prefix, variables)]
        found = next((one for one in reversed(of_section) if one), found)
    return found


def is_isolation_off(prefix: str, variables: Mapping[str, str]) -> bool:
    """Whether variables or files switch build isolation off: pip takes a no for that, as the value of isolation."""
    flag = variables.get("PIP_NO_BUILD_ISOLATION") or configured(prefix, variables, "no-build-isolation")
    return bool(flag) and flag.lower() not in _TRUE


def read_text(path: str) -> str:
    """The text of a file, "" when it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            return file.read()
    except OSError:
        return ""
