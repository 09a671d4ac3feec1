"""Which files of a package decide whether it runs on a GPU, by their names and places.

* Libraries that a package chooses among at run time, for an architecture or for a CUDA, are one: a group of
  alternatives, found by taking these tokens out of their paths.
* Copies of other projects' libraries do not decide for a package that is not theirs.
* The main library is that which the package imports or dispatches to, by its name; libraries that are named after an
  architecture are made for it, and missing on others by design.

The tokens, and whose a library is, are data: ``wheel_checks/data/deciding_files.toml``.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from wheel_checks.data import load

Role = Literal["main", "library", "special", "bundled", "source"]

_SUFFIX = re.compile(r"(?:\.cpython-[\w-]+|\.abi3|\.pypy[\w-]*)?\.so(?:\.[\w.]+)?$|\.(?:hsaco|co|cubin|fatbin)$")
_HASH = re.compile(r"-[0-9a-f]{8}(?=\.|$)|\.[0-9a-f]{8}(?=\.so)")  # of auditwheel
_LONGEST = 1_000  # characters of a path that patterns are searched in
_UNIVERSAL = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Alternative:
    """One library of a group. ``architectures`` are those in its name, as in sm_100 or as "gfx942"; ``cuda``
    is the CUDA in its name ("12.6", "13"), ``is_rocm`` says that it names ROCm instead; all are empty where it
    has none.
    """

    member: str
    architectures: tuple[int | str, ...] = ()
    cuda: str = ""
    is_rocm: bool = False


@dataclass(frozen=True, slots=True)
class DecidingGroup:
    """Libraries of which one is loaded, or a single one. ``name`` is their path without the parts in which they differ.

    ``role`` is "main" for what the package imports or dispatches to, "library" for another library of it, "special" for
    what is made for the architectures in its name, "bundled" for a copy of another project's library, "source" for what
    is among sources that are compiled at run time.
    """

    name: str
    role: Role
    alternatives: tuple[Alternative, ...]

    @property
    def members(self) -> tuple[str, ...]:
        """The paths of all alternatives."""
        return tuple(alternative.member for alternative in self.alternatives)

    @property
    def decides(self) -> bool:
        """True for the package's own code."""
        return self.role not in ("bundled", "source")


def deciding_groups(members: Iterable[str], project: str = "") -> tuple[DecidingGroup, ...]:
    """The native ``members`` of a package in groups of alternatives, in their order; ``project`` is its name.

    Which of them have GPU code is unknown here: give those that have, or all, for what else is to be decided.
    """
    found: dict[str, list[Alternative]] = {}
    for member in dict.fromkeys(members):
        key, alternative = _alternative(member, project)
        found.setdefault(key, []).append(alternative)
    return tuple(DecidingGroup(key, _role(key, given, project), tuple(given)) for key, given in found.items())


def _alternative(member: str, project: str) -> tuple[str, Alternative]:
    """The path without its tokens, and what these show. What the project's own name says is not a token."""
    key = member[:_LONGEST]
    own = _UNIVERSAL.sub("_", project.lower()).strip("_")
    architectures: list[int | str] = []
    cuda, is_rocm = "", False
    for row, pattern in _tokens("architecture"):
        for match in list(pattern.finditer(key)):
            if own and _UNIVERSAL.sub("_", match.group().lower()).strip("_") in own:
                continue
            numbers = match.groupdict()
            architectures += row.get("architectures") or [numbers.get("gfx") or int(numbers["sm"])]
            if not row.get("feature"):
                key = key.replace(match.group(), "", 1)
    for _, pattern in _tokens("toolkit"):
        if (token := pattern.search(key)) and token.group().lower() not in project.lower():
            digits = token.groupdict().get("cuda") or ""
            is_rocm = not digits
            cuda = f"{digits[:2]}.{digits[2:]}" if len(digits) > 2 else digits
            key = pattern.sub("", key)
    return key, Alternative(member, tuple(dict.fromkeys(architectures)), cuda, is_rocm)


def _role(key: str, alternatives: list[Alternative], project: str) -> Role:
    name = _HASH.sub("", key.rpartition("/")[2])
    if any(_is_copy(row, key, name) and not re.search(row["projects"], project, re.IGNORECASE) for row in _bundled()):
        return "bundled"
    if re.search(load("deciding_files")["sources"], key, re.IGNORECASE):
        return "source"
    if all(alternative.architectures for alternative in alternatives):
        return "special"
    stem = _SUFFIX.sub("", name).lower()
    return "main" if _main(_root_of(project)).fullmatch(stem.removeprefix("lib").strip("._-")) else "library"


def _root_of(project: str) -> str:
    """The name of a project without who publishes it and what it is built for: "onnxruntime" of onnxruntime-gpu."""
    table = load("deciding_files")
    root = re.sub(table["project_endings"], "", project.lower())
    return re.sub(table["project_beginnings"], "", root)


@cache
def _main(root: str) -> re.Pattern[str]:
    spelt = "[-_.]?".join(map(re.escape, re.split(r"[-_.]+", root))) or "(?!)"
    return re.compile(load("deciding_files")["main"].replace("{project}", spelt))


@cache
def _tokens(table: str) -> list[tuple[dict[str, Any], re.Pattern[str]]]:
    return [(row, re.compile(row["pattern"], re.IGNORECASE)) for row in load("deciding_files")[table]]


def _bundled() -> list[dict[str, Any]]:
    return load("deciding_files")["bundled"]  # type: ignore[no-any-return]  # as the table says


def _is_copy(row: dict[str, Any], path: str, name: str) -> bool:
    if "folder" in row:
        return re.search(row["folder"], path, re.IGNORECASE) is not None
    return re.match(row["soname"], name, re.IGNORECASE) is not None
