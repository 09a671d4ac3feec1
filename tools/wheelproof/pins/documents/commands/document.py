"""Installs of scripts as a document: requirements that are read and judged, and never rewritten."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from wheel_checks.phrases import abbreviated
from wheel_checks.sources.repository import repository_of
from wheelproof.pins.documents.commands.installs import Install, installs
from wheelproof.pins.documents.commands.lexer import UNKNOWN
from wheelproof.pins.documents.commands.piece import Piece
from wheelproof.pins.documents.commands.shell import Word, commands
from wheelproof.pins.documents.names import normalized, project_of
from wheelproof.pins.documents.notices import of_requirement
from wheelproof.pins.model import Document, Form, FoundRequirement, InstallCommand, Notice, Place, Role, Source

_CONDA_NAME = re.compile(r"(?:[\w.-]+(?:/[\w-]+)?::)?([A-Za-z0-9][A-Za-z0-9._-]*)")
_POETRY_NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?(?=$|[@:=<>~^!])")
_UNFINISHED = re.compile(r"(?:[=<>~!]=?|@)\s*$")  # README: torch==<version>
_GLOBBED_WHEEL = re.compile(r"(?:.*/)?([A-Za-z0-9][A-Za-z0-9._]*?)-?[*\0].*(?:\.whl|\*)$", re.DOTALL)
_TORCH = re.compile(r"torch", re.IGNORECASE)
_MOST_UP = 12  # number of parent folders that are searched for a file


@dataclass(frozen=True, slots=True)
class Found:
    """An installation, and the piece of the file that it is in."""

    install: Install
    piece: Piece


def of_scripts(scripts: Iterable[Piece]) -> list[Found]:
    """The installations of pieces."""
    return [
        Found(install, piece)
        for piece in scripts
        for command in commands(piece.text, piece.variables, piece.dialect)
        for install in installs(command, piece.dialect, piece.variables)
    ]


def document(source: Source, kind: str, found: Iterable[Found], more: Iterable[Notice] = ()) -> Document:
    """The requirements of the installations."""
    gathered = _Gathered(source, notices=list(more))
    named: dict[tuple[int, str], dict[str, None]] = {}
    for one in found:
        at = min(one.piece.place(one.install.at), len(source.text))
        names = named.setdefault((at, one.install.tool), {})
        for word in one.install.requirements:
            name = gathered.requirement(one, word)
            names.update({name: None} if name else {})
        for word in one.install.files:
            gathered.file(one, word, constraint=False)
        for word in one.install.constraints:
            gathered.file(one, word, constraint=True)
    return Document(
        kind,
        source,
        tuple(gathered.requirements),
        tuple(dict.fromkeys(gathered.notices)),
        includes=tuple(dict.fromkeys(gathered.files[False])),
        constraint_files=tuple(dict.fromkeys(gathered.files[True])),
        rewritable=False,
        commands=tuple(
            InstallCommand(Place(source.path, *source.position(at)), tool, tuple(names))
            for (at, tool), names in named.items()
        ),
    )


@dataclass(slots=True)
class _Gathered:
    source: Source
    requirements: list[FoundRequirement] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    files: dict[bool, list[Path]] = field(default_factory=lambda: {False: [], True: []})
    seen: set[tuple[str, int, str]] = field(default_factory=set)

    def requirement(self, one: Found, word: Word) -> str:
        """Add the requirement of a word, or note that it is unknown, once for each place. The name, if known."""
        requirement, notice = _requirement(self.source, one, word)
        self.notices += [notice] if notice else []
        key = (requirement.name, one.piece.place(word.at), requirement.text) if requirement else None
        if requirement and key and key not in self.seen:
            self.seen.add(key)
            self.requirements.append(requirement)
            self.notices += of_requirement(requirement)
        return requirement.name if requirement else ""

    def file(self, one: Found, word: Word, *, constraint: bool) -> None:
        """Add a file that a command reads, or that it is not present. Those of conda are known by their names."""
        if one.install.form == "conda":
            return
        named = _file(self.source.path, word.text)
        if named is not None:
            self.files[constraint].append(named)
        elif not one.piece.documentation and "://" not in word.text and word.text not in ("/dev/stdin", "-"):
            shown = abbreviated(word.raw.strip("\"'"))
            message = f"{one.install.tool} reads {shown}, which is not in the tree: its requirements are unknown"
            place = Place(self.source.path, *self.source.position(min(one.piece.place(word.at), len(self.source.text))))
            self.notices.append(Notice("install-file", message, place))


def _requirement(source: Source, one: Found, word: Word) -> tuple[FoundRequirement | None, Notice | None]:
    """The requirement of a word; else a notice; neither for a project by its path."""
    install, text = one.install, word.text.strip().rstrip(",")
    offset = min(one.piece.place(word.at), len(source.text))
    place = Place(source.path, *source.position(offset), install.tool)
    known = UNKNOWN not in text
    name = _name(text, install.form)
    if name and text:
        shown = text if known else text.replace(UNKNOWN, "…")
        conda = install.form == "conda"
        certain = "://" in text or (known and not _UNFINISHED.search(text))
        return (
            FoundRequirement(
                name,
                shown,
                Role.CONDA if conda else Role.COMMAND,
                place,
                form=Form.CONDA if conda else Form.PEP508,
                certain=certain,
                upgrade=install.upgrades,
                reinstall=install.reinstalls,
            ),
            None,
        )
    address = "://" in text and (not text.startswith("git+") or bool(_TORCH.search(text)))
    if one.piece.documentation or not text or (known and "*" not in text and not address):
        return None, None
    if "/" in text and "://" not in text and not re.search(r"\.whl$|\*$|\0$|^\0$", text):
        return None, None  # a folder: a project of the tree, whose own files have its requirements
    shown = abbreviated(word.raw.strip("\"'"))
    message = f"`{install.tool} {shown}` is only known at run time: not read"
    return None, Notice("dynamic", message, place)


def _name(text: str, form: str) -> str:
    """The project or package that a word names for certain; "" when it does not say."""
    if form == "conda":
        match = _CONDA_NAME.match(text)
        rest = text[match.end() :] if match else ""
        return normalized(match[1]) if match and not rest.startswith((UNKNOWN, "/")) else ""
    if form == "poetry" and (match := _POETRY_NAME.match(text)):
        return normalized(match[1])
    if text.startswith((".", "/", "~")) and not text.endswith((".whl", ".gz", ".zip")):
        return ""
    if match := _GLOBBED_WHEEL.match(text):
        return normalized(match[1].rstrip("-._"))
    return project_of(text.replace(UNKNOWN, "\u2026") if "==" in text or "://" not in text else text)


def _file(path: Path, text: str) -> Path | None:
    """The file of the tree that a command names: by its whole path, or its end in an image or a checkout."""
    if UNKNOWN in text:
        text = text[text.rfind(UNKNOWN) + 1 :]
        if not text.startswith("/"):
            return None
    parts = [part for part in text.replace("\\", "/").split("/") if part not in ("", ".")]
    if not parts or "://" in text or ".." in parts[1:]:
        return None
    root = repository_of(path.parent) or _project(path)
    folders = [path.parent]
    while folders[-1] != root and len(folders) < _MOST_UP and folders[-1].parent != folders[-1]:
        folders.append(folders[-1].parent)
    for start in range(len(parts)):
        for folder in folders:
            candidate = folder.joinpath(*parts[start:])
            if candidate.is_file():
                return candidate
    return None


def _project(path: Path) -> Path:
    """The nearest folder above a file that looks like the root of a project: it may be no checkout."""
    marks = ("pyproject.toml", "setup.py", ".github", ".gitlab-ci.yml")
    above = [folder for folder in path.parents if folder.name != ".github"][:_MOST_UP]
    return next((folder for folder in above if any((folder / mark).exists() for mark in marks)), path.parent)
