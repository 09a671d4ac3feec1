"""Read the requirement files of a tree as data: uv and pip get files that we write, never those of the tree.

An installer that reads the file contacts its addresses (indexes, direct URLs, repositories), expands ``${TOKEN}`` in
it, and builds its projects, which runs their code.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from wheel_checks.errors import FormatError, SourceError, UsageError, WheelproofError
from wheel_checks.formats.requirements_lines import logical_lines, setting, split_options
from wheel_checks.formats.wheel.wheel_name import parse_wheel_name
from wheel_checks.model import NotUnderstood
from wheel_checks.sources.file_urls import is_file_url, path_of
from wheel_checks.sources.regular_file import expand_home, real_path
from wheel_checks.sources.requirement_files import MOST, read_requirements_file
from wheel_checks.sources.trust import REPOSITORY, Address, UntrustedAddressError, is_inside, tree_of
from wheel_checks.targets.extras_and_groups import NO_EXTRAS, ExtrasAndGroups
from wheelproof.wheels.declared_model import Declared, Line, Project, Typed, TypedKind
from wheelproof.wheels.declared_project import read_groups, read_project

_HASH = re.compile(r"--hash[=\s]\s*(\S+)")
_STATED = re.compile(r"(?:md5|sha1|sha224|sha256|sha384|sha512)=[0-9a-fA-F]{32,128}")
_LOCAL = re.compile(r"(?P<path>[^\[\]]+)(?:\[(?P<extras>[^\]]*)\])?")
_REPOSITORY = re.compile(r"(?:git|hg|svn|bzr)\+|git:|ssh:|[\w.-]+@[\w.-]+:(?!//)", re.IGNORECASE)
_NONE = Requirement("none")  # of a line that is a path
_SWITCHES = {"--no-index", "--pre", "--require-hashes"}
_OF_WHEELS = {"--no-binary", "--only-binary", "--prefer-binary"}
_IGNORED = {
    "--trusted-host",
    "--use-feature",
    "--no-use-feature",
}


def read_declared(
    paths: Sequence[Path], chosen: ExtrasAndGroups = NO_EXTRAS, typed: Sequence[Typed] = (), folder: Path = Path()
) -> Declared:
    """The requirements of ``paths`` (requirements files, pyproject.toml) and of the files that they include.

    ``chosen`` are extras and groups of the projects among ``paths``. ``typed`` are other arguments of an installer that
    runs in ``folder``. Included files, local wheels and projects count only inside the tree of the file that the user
    named. Raises UsageError when one of ``paths`` cannot be read, and for an unknown extra or group.
    """
    reading = _Reading(chosen)
    front: list[Callable[[], None]] = [partial(reading.named, path, constraint=False) for path in paths]
    front += [partial(reading.typed, one, folder) for one in typed]
    for read in front:
        read()
        while reading.front:
            reading.front.pop(0)()
    return reading.found


@dataclass(frozen=True, slots=True)
class _Text:
    """A requirement of a file; ``is_path`` after -e, for which a bare name is a folder."""

    bare: str
    where: str
    constraint: bool
    hashes: tuple[str, ...]
    is_path: bool
    file: str
    number: int


@dataclass(slots=True)
class _Reading:
    """``front`` are the files and projects that are still to be read, however deep they are nested."""

    chosen: ExtrasAndGroups
    found: Declared = field(default_factory=Declared)
    seen: set[tuple[Path, object]] = field(default_factory=set)
    front: list[Callable[[], None]] = field(default_factory=list)

    def take(self, path: Path, data: bytes, tree: Path, *, constraint: bool) -> None:
        """Read one file, once as requirements and once as constraints."""
        if self._is_done(path, constraint):
            return
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            self.found.faults.append(f"{path.name} is not valid UTF-8 ({error.reason})")
            return
        if path.suffix == ".lock" or (path.name.startswith("pylock") and path.suffix == ".toml"):
            what = f"{path.name} is a lock, and its URLs are not contacted"
            hint = "name its requirements: uv export --format requirements.txt writes them, with hashes"
            self.found.open_ends.append(SourceError(what, hint=hint))
        elif path.suffix == ".toml":
            self._project(path, text, tree, self.chosen)
        elif path.name in ("setup.cfg", "setup.py"):
            self._built(path.name)
        else:
            for line in logical_lines(text):
                self._line(path, tree, line.text, line.number, constraint=constraint)

    def named(self, path: Path, *, constraint: bool) -> None:
        """Read a file that the user names. Raises UsageError when it cannot be read."""
        self.take(path, read_requirements_file(path), tree_of(path.parent), constraint=constraint)

    def typed(self, one: Typed, folder: Path) -> None:
        """Read an argument. Raises UsageError for a file that cannot be read, and for an unknown group."""
        where = one.text
        if one.kind in (TypedKind.FILE, TypedKind.CONSTRAINTS):
            self.named(folder / one.text, constraint=one.kind is TypedKind.CONSTRAINTS)
        elif one.kind is TypedKind.GROUP:
            file, colon, name = one.text.rpartition(":")
            path = folder / (file if colon else "pyproject.toml")
            text = read_requirements_file(path).decode("utf-8-sig", "replace")
            found = read_groups(path, text, (name,))
            self.found.faults += found.faults
            for line, local in found.lines:
                self._add(path.parent, tree_of(path.parent), line, local)
        else:
            matched = _LOCAL.fullmatch(one.text.partition("#")[0].strip())
            named = matched["path"] if matched else one.text
            place = path_of(named) if is_file_url(named) else folder / expand_home(named)
            if not place.exists():
                raise UsageError(f"there is no {place}", expected="a folder with a project, or a wheel")
            line = Line(_NONE, where, file=where)
            try:
                self._local(folder, tree_of(place if place.is_dir() else place.parent), one.text, "", line)
            except (InvalidRequirement, FormatError, ValueError) as error:
                self.found.faults.append(f"{where} is not a project and no wheel: {error}")

    def _is_done(self, path: Path, how: object) -> bool:
        """Whether a file was read in this way, or is one too many; if not, it counts as read from now on."""
        key = (real_path(path), how)
        if key not in self.seen and len(self.seen) >= MOST:
            self.found.open_ends.append(SourceError(f"{path} exceeds the limit of {MOST} files"))
            return True
        done = key in self.seen
        self.seen.add(key)
        return done

    def _line(self, path: Path, tree: Path, text: str, number: int, *, constraint: bool) -> None:
        found, where = self.found, f"{path.name}:{number}"
        option, value = setting(text) if text.startswith("-") else ("", "")
        if option in ("", "-e", "--editable"):
            bare, options = split_options(value if option else text)
            if _HASH.sub("", options).strip():
                found.faults.append(f"{where} has options that are no hashes: {options.strip()[:200]!r}")
            hashes = tuple(_HASH.findall(options))
            line = _Text(bare, where, constraint, hashes, bool(option), os.path.normpath(path), number)
            self._requirement(path.parent, tree, line)
        elif option in ("-r", "--requirement", "-c", "--constraint"):
            self._include(path, tree, value, where, constraint=constraint or option in ("-c", "--constraint"))
        elif option in ("-i", "--index-url"):
            found.index = Address(value, where)
        elif option == "--extra-index-url":
            found.extra.append(Address(value, where))
        elif option in ("-f", "--find-links"):
            self._find_links(path.parent, tree, value, where)
        elif option in _SWITCHES and not value:
            found.without_index |= option == "--no-index"
            found.pre |= option == "--pre"
            found.require_hashes |= option == "--require-hashes"
        elif option in _OF_WHEELS and bool(value) is (option != "--prefer-binary"):
            self._about_wheels(option, value, where)
        elif option not in _IGNORED:
            found.faults.append(f"{where} is not a valid requirements line: {text[:200]!r}")

    def _about_wheels(self, option: str, value: str, where: str) -> None:
        if option != "--no-binary":
            self.found.wheel_options.append(NotUnderstood(f"{option} {value}".strip(), where))
            return
        names = (name.strip() for name in value.split(","))
        self.found.not_built |= {name and str(canonicalize_name(name)): where for name in names if name != ":none:"}

    def _include(self, path: Path, tree: Path, value: str, where: str, *, constraint: bool) -> None:
        included = path.parent / value
        if "://" in value:
            self.found.open_ends.append(UntrustedAddressError(where, [Address(value, where, REPOSITORY)]))
        elif not is_inside(included, tree):
            self._outside(where, value, tree, "to use that file, name it yourself: -r FILE")
        else:
            try:
                data = read_requirements_file(included)
            except WheelproofError as error:
                self.found.faults.append(f"{where} includes a file: {error.what}")
            else:
                self.front.append(lambda: self.take(included, data, tree, constraint=constraint))

    def _requirement(self, folder: Path, tree: Path, line: _Text) -> None:
        local, _, marker = line.bare.partition(" ;")
        is_path = line.is_path or local.startswith((".", "/", "~", "file:")) or local.endswith(".whl") or "/" in local
        try:
            if is_path and "@" not in local and (is_file_url(local) or "://" not in local):
                place = Line(_NONE, line.where, False, line.hashes, (), line.file, line.number)
                self._local(folder, tree, local, marker, place)
                return
            if _REPOSITORY.match(line.bare) or "://" in line.bare.partition("@")[0]:
                requirement = _named_by_url(line.bare)
                if requirement is None:
                    address = Address(line.bare, line.where, REPOSITORY)
                    self.found.open_ends.append(UntrustedAddressError(line.where, [address]))
                    return
            else:
                requirement = Requirement(line.bare)
            read = Line(requirement, line.where, line.constraint, line.hashes, (), line.file, line.number)
            self._add(folder, tree, read)
        except (InvalidRequirement, FormatError, SourceError, ValueError):
            self.found.faults.append(f"{line.where} is not a requirement: {line.bare[:200]!r}")

    def _local(self, folder: Path, tree: Path, text: str, marker: str, line: Line) -> None:
        """A wheel of the tree, or a project: a project's pyproject.toml is read. Raises FormatError, ValueError."""
        where = line.where
        match = _LOCAL.fullmatch(text.strip())
        path = match["path"] if match else text.strip()
        place = path_of(path.partition("#")[0]) if is_file_url(path) else folder / path
        extras = [part.strip() for part in (match["extras"] or "").split(",")] if match else []
        if not is_inside(place, tree):
            self._outside(where, text, tree, "name the wheel itself, or a folder of wheels with --find-links")
        elif place.suffix == ".whl":
            name = parse_wheel_name(place.name).distribution
            condition = f" ; {marker}" if marker.strip() else ""
            stated = f"#{hashed[0]}" if (hashed := _STATED.search(path.partition("#")[2])) else ""
            requirement = Requirement(f"{name} @ {real_path(place).as_uri()}{stated}{condition}")
            self.found.lines.append(replace(line, requirement=requirement, constraint=False, sources=()))
        else:
            if not (place / "pyproject.toml").exists():
                self._built(where)
                return
            try:
                text = read_requirements_file(place / "pyproject.toml").decode("utf-8-sig")
            except (WheelproofError, UnicodeDecodeError) as error:
                self.found.faults.append(f"{where} names a project: {error}")
            else:
                wanted = ExtrasAndGroups(tuple(filter(None, extras)))
                self.front.append(lambda: self._project(place / "pyproject.toml", text, tree, wanted, where))

    def _add(self, folder: Path, tree: Path, line: Line, local: str = "") -> None:
        """Add a requirement, or the wheel or project at its local path. Raises FormatError, SourceError, ValueError."""
        url = local or line.requirement.url or ""
        if url and (is_file_url(url) or not ("://" in url or _REPOSITORY.match(url))):
            self._local(folder, tree, url, str(line.requirement.marker or ""), line)
        else:
            self.found.lines.append(line)

    def _find_links(self, folder: Path, tree: Path, value: str, where: str) -> None:
        """A page, or a folder of the tree: relative to the file that names it, else to the current folder."""
        if "://" in value and not is_file_url(value):
            self.found.find_links.append(Address(value, where, "find-links page"))
            return
        relative = path_of(value) if is_file_url(value) else folder / value
        place = relative if relative.exists() else Path.cwd() / value
        if is_inside(place, tree):
            self.found.find_links.append(Address(real_path(place).as_uri(), where, "find-links folder"))
        else:
            self._outside(where, value, tree, "to use that folder, name it yourself: --find-links FOLDER")

    def _project(self, path: Path, text: str, tree: Path, chosen: ExtrasAndGroups, requested_at: str = "") -> None:
        """The requirements of a project, and with ``requested_at``, if it is requested, the project itself."""
        if self._is_done(path, (chosen, bool(requested_at))):
            return
        project = read_project(path, text, chosen, strict=not requested_at)
        self.found.faults += project.faults
        if project.is_open:
            self._built(requested_at or path.name)
        for name in project.files:
            self._include(path, tree, name, f"{path.name}, tool.setuptools.dynamic", constraint=False)
        for line, local in project.lines:
            try:
                self._add(path.parent, tree, line, local)
            except (FormatError, SourceError, ValueError) as error:
                self.found.faults.append(f"{line.where} cannot be read: {error}")
        if requested_at and project.name and project.name not in {known.name for known in self.found.projects}:
            self.found.projects.append(Project(project.name, project.version))

    def _outside(self, where: str, value: str, tree: Path, hint: str) -> None:
        what = f"{where} names {value[:200]!r}, which leads out of the tree {tree}: not read"
        self.found.open_ends.append(SourceError(what, hint=hint))

    def _built(self, where: str) -> None:
        what = f"{where}: the requirements are known only by building the project, which is not done"
        hint = "list its requirements in a file (-r FILE), or write them into project.dependencies"
        self.found.open_ends.append(SourceError(what, hint=hint))


def _named_by_url(text: str) -> Requirement | None:
    """The requirement of a bare URL: by its ``#egg=``, or its wheel; None when neither names a package."""
    url, _, marker = text.partition(" ;")
    parts = urlsplit(url.strip())
    egg = parse_qs(parts.fragment).get("egg", [""])[0]
    file_name = unquote(parts.path.rpartition("/")[2])
    name = egg or (parse_wheel_name(file_name).distribution if file_name.endswith(".whl") else "")
    return Requirement(f"{name} @ {url.strip()}{f' ; {marker}' if marker.strip() else ''}") if name else None
