"""Which format a lock file has, by its name and by its content."""

import re
from pathlib import Path

from wheel_checks.errors import FormatError
from wheel_checks.formats.lock.model import PDM, PIXI, POETRY, PYLOCK, UV, Lock
from wheel_checks.formats.lock.pdm import read_pdm
from wheel_checks.formats.lock.pixi import read_pixi
from wheel_checks.formats.lock.poetry import read_poetry
from wheel_checks.formats.lock.pylock import read_pylock
from wheel_checks.formats.lock.tables import MAX_SIZE
from wheel_checks.formats.lock.uv import read_uv

KNOWN = "uv.lock, pylock.toml, poetry.lock, pdm.lock or pixi.lock"

_NAMES = {
    r"uv\.lock|[^/]+\.py\.lock": UV,
    r"pylock(?:\.[^./]+)?\.toml": PYLOCK,
    r"poetry\.lock": POETRY,
    r"pdm(?:\.[^/]+)?\.lock": PDM,
    r"pixi\.lock": PIXI,
}
_BEGINNING = 1 << 16  # bytes; what distinguishes the formats is at the beginning, or at the end
_CONTENTS = {  # what each writes at the beginning of a line
    PYLOCK: rb"^lock-version *= *['\"]",
    PDM: rb"^lock_version *= *['\"]",
    POETRY: rb"^lock-version *=[\s\S]*^(?:content-hash|python-versions) *=",
    PIXI: rb"\A(?:#.*\n)*version: *\d+\n[\s\S]*?^environments:",
}


def format_by_name(name: str) -> str:
    """The format that a file of this name has, "" for what is named as no lock."""
    return next((form for pattern, form in _NAMES.items() if re.fullmatch(pattern, name)), "")


def is_lock_name(name: str) -> bool:
    """Whether a file is named as a lock."""
    return bool(format_by_name(name)) or name.endswith(".lock")


def format_by_content(data: bytes) -> str:
    """The format of a lock, "" for what looks like none."""
    parts = data[:_BEGINNING], data[-_BEGINNING:]
    sample = parts[0] if len(data) <= _BEGINNING else b"\n".join(parts)
    if re.search(_CONTENTS[PIXI], sample, re.MULTILINE):
        return PIXI
    if re.search(_CONTENTS[PDM], sample, re.MULTILINE):
        return PDM
    if re.search(rb"^\[metadata\]", sample, re.MULTILINE) and re.search(_CONTENTS[POETRY], sample, re.MULTILINE):
        return POETRY
    if re.search(_CONTENTS[PYLOCK], sample, re.MULTILINE):
        return PYLOCK
    return UV if re.search(rb"^version *= *\d", sample, re.MULTILINE) and b"[[package]]" in data else ""


def read_lock(data: bytes, path: Path) -> Lock:
    """The lock file of this content and name. Raises FormatError for anything else, with one sentence."""
    if len(data) > MAX_SIZE:
        raise FormatError(f"{path.name} has more than {MAX_SIZE:,} bytes", expected="a smaller lock file")
    form = format_by_name(path.name) or format_by_content(data)
    if form == PYLOCK:
        return read_pylock(data, path.parent)
    if form == UV:
        return read_uv(data, path.parent)
    if form == POETRY:
        return read_poetry(data)
    if form == PDM:
        return read_pdm(data)
    if form == PIXI:
        return read_pixi(data)
    raise FormatError(f"{path.name} is not a known lock file", expected=KNOWN)
