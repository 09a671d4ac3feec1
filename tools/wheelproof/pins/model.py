"""The types shared by documents, policies and plans.

Offsets are characters of the decoded text, from 0; :class:`Edit` alone counts bytes of the file.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.requirements import Requirement

Span = tuple[int, int]  # start, and end, which is not part of it
KeyPath = tuple[str | int, ...]  # how to reach a value in a document of tables and lists

_NEWLINE = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Source:
    """A file: its ``data``, and its ``text`` without the byte order mark, which is ``mark``."""

    path: Path
    data: bytes
    text: str
    encoding: str = "utf-8"
    mark: bytes = b""
    _starts: list[int] = field(default_factory=list, repr=False, compare=False)

    def position(self, offset: int) -> tuple[int, int]:
        """The line and column, from 1, of an offset in the text."""
        if not self._starts:
            self._starts.extend([0, *(match.end() for match in _NEWLINE.finditer(self.text))])
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def byte_offsets(self, offsets: Iterable[int]) -> dict[int, int]:
        """Where offsets of the text are in the data."""
        if self.text.isascii() and self.encoding == "utf-8":
            return {offset: offset + len(self.mark) for offset in offsets}
        found: dict[int, int] = {}
        done, position = 0, len(self.mark)
        for offset in sorted(set(offsets)):
            position += len(self.text[done:offset].encode(self.encoding))
            found[offset] = position
            done = offset
        return found


class Role(StrEnum):
    """The purpose of a requirement, which decides its handling."""

    RUNTIME = "runtime"  # installed with the project or file
    BUILD = "build"  # installed into its build environment
    CONSTRAINT = "constraint"  # limits or overrides others, brings nothing itself
    GROUP = "group"  # a development or dependency group
    CONDA = "conda"  # conda's own packages
    MATCHED = "match-runtime"  # installed by uv into a build environment in the resolved version
    LOCK = "lock"  # the version in a lock file; another fork may have another
    COMMAND = "command"  # named by an install command: read, and never rewritten


class Form(StrEnum):
    """How a requirement is written; it decides how a version is put in its place."""

    PEP508 = "pep508"  # torch>=2.7; extra == "gpu"
    VERSION = "version"  # the value of a table by name: torch = "^2.7" (poetry, pixi); "*" is any
    OVERRIDE = "override"  # as VERSION, but senseless without a version (pdm's overrides)
    NAME = "name"  # a name that refers to a requirement elsewhere (poetry's extras)
    CONDA = "conda"  # pytorch>=2.5=*cuda*


@dataclass(frozen=True, slots=True)
class Place:
    """A place: the file, line and column (from 1), and the key or section for people."""

    path: Path
    line: int
    column: int
    section: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class ItemList:
    """A list with separators (TOML array, Python list): spans of items, and the separator's offset after each.

    ``opening`` and ``closing`` are the brackets' offsets. ``trailing`` says whether the format allows a separator after
    the last item, ``comma_alone`` that a single item needs one (a tuple of Python).
    """

    opening: int
    closing: int
    items: tuple[Span, ...]
    separators: tuple[int | None, ...]
    trailing: bool = True
    comma_alone: bool = False


@dataclass(frozen=True, slots=True)
class FoundRequirement:
    """One requirement of a document.

    ``name`` is normalised (PEP 503). ``text`` is the requirement, continuations joined, without the options after it.
    It goes by removing either ``spans`` (whole lines), or the item ``index`` of ``items``; and it is changed in place
    by replacing every span of ``values`` by one text. ``keys`` leads to it in a document of tables.
    """

    name: str
    text: str
    role: Role
    place: Place
    spans: tuple[Span, ...] = ()
    values: tuple[Span, ...] = ()
    form: Form = Form.PEP508
    items: ItemList | None = None
    index: int = 0
    keys: KeyPath = ()
    certain: bool = True  # False: only its name is known before it runs
    upgrade: bool = False  # the command takes the latest version that is allowed
    single_quoted: bool = False  # the text is between single quotes
    reinstall: bool = False  # the command reinstalls it, present or not

    @property
    def requirement(self) -> Requirement | None:
        """The requirement as PEP 508 has it; None where the form is another one, such as a path or poetry's."""
        from wheel_checks.parsing import requirement_or_none  # packaging takes 30 ms; names need none

        return requirement_or_none(self.text) if self.form is Form.PEP508 else None

    @property
    def is_guard(self) -> bool:
        """Whether its marker is never true (``sys_platform == 'never'``): it keeps torch away, and must stay."""
        return "never" in self.text and bool(_NEVER.search(self.text))


_NEVER = re.compile(r""";\s*(?:\(\s*)?sys_platform\s*==\s*(['"])never\1\s*(?:\)\s*)?$""")


@dataclass(frozen=True, slots=True)
class Notice:
    """A warning about a document: ``code`` is stable ("index-kept", "hash-mode", "dynamic", "lock-file", ...).

    It applies if a name in ``about`` is requested (or it has none), and, with ``on_change``, if the document is
    changed.
    """

    code: str
    message: str
    place: Place | None = None
    about: tuple[str, ...] = ()
    on_change: bool = False


@dataclass(frozen=True, slots=True)
class IndexOption:
    """A line of a requirements file that names an index or a place to find links: its URL, its span, its place."""

    url: str
    span: Span
    place: Place

    @property
    def only_torch(self) -> bool:
        """Whether it is PyTorch's own index, with torch and its requirements."""
        return "pytorch" in self.url.lower()

    @property
    def for_torch(self) -> bool:
        """Whether its URL names torch, or is PyG's, whose files are each built for one torch."""
        return "torch" in self.url.lower() or "pyg.org" in self.url.lower()


@dataclass(frozen=True, slots=True)
class InstallCommand:
    """A command that installs something: where, by which tool, and the projects that it names for certain."""

    place: Place
    tool: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """The requirements of a file. ``includes`` are other files that it reads (``-r``), ``constraint_files`` its
    constraints (``-c``); ``indexes`` its package indexes.

    ``rewritable`` is False for documents that are only reported: lock files, and shell scripts, whose installations are
    ``commands``. ``blanked`` is the text, with blanks outside of the document if that is only a part (PEP 723).
    """

    kind: str
    source: Source
    requirements: tuple[FoundRequirement, ...] = ()
    notices: tuple[Notice, ...] = ()
    includes: tuple[Path, ...] = ()
    constraint_files: tuple[Path, ...] = ()
    indexes: tuple[IndexOption, ...] = ()
    rewritable: bool = True
    blanked: str = ""
    commands: tuple[InstallCommand, ...] = ()

    @property
    def layout(self) -> str:
        """The text by which white space, lines and comments are known."""
        return self.blanked or self.source.text


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the bytes ``start`` to ``end`` by ``replacement``; edits of one document never overlap."""

    start: int
    end: int
    replacement: bytes = b""


def apply(data: bytes, edits: Iterable[Edit]) -> bytes:
    """The bytes with the edits made, which are in order. Raises ValueError when two overlap."""
    parts: list[bytes] = []
    position = 0
    for edit in edits:
        if not position <= edit.start <= edit.end <= len(data):
            raise ValueError(f"the edit of bytes {edit.start} to {edit.end} overlaps another one, or is out of range")
        parts += (data[position : edit.start], edit.replacement)
        position = edit.end
    return b"".join([*parts, data[position:]])


@dataclass(frozen=True, slots=True)
class Change:
    """The change of a requirement: removed if ``replacement`` is None, else replaced by that text."""

    found: FoundRequirement
    replacement: str | None = None


@dataclass(frozen=True, slots=True)
class Addition:
    """Texts that an array of a TOML document gets: ``keys`` lead to it, and it is new if there wasn't one."""

    keys: KeyPath
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FilePlan:
    """The planned changes of a file. ``path`` is as it was named, ``target`` the file itself, links followed."""

    path: Path
    target: Path
    document: Document
    rewritten: bytes
    edits: tuple[Edit, ...] = ()
    changes: tuple[Change, ...] = ()
    notices: tuple[Notice, ...] = ()
    additions: tuple[Addition, ...] = ()

    @property
    def original(self) -> bytes:
        """The bytes as they were read."""
        return self.document.source.data

    @property
    def changed(self) -> bool:
        """Whether the file would be written."""
        return self.rewritten != self.original


@dataclass(frozen=True, slots=True)
class Plan:
    """The planned changes of a set of files. ``notices`` are those about no single file."""

    files: tuple[FilePlan, ...] = ()
    notices: tuple[Notice, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def changed(self) -> tuple[FilePlan, ...]:
        """The files that would be written."""
        return tuple(file for file in self.files if file.changed)
