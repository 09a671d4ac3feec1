"""The guard that ``wheelproof pins guard --install`` put into an environment, as its receipt and its files say.

A receipt alone proves nothing: a wheel could bring one. So a file is recognised by what it is, not by the hash in
the receipt: a front program has the text that the guard writes for that name and environment, the modules of the
program have digests of the table ``guard_program``, lists hold pins, and settings hold settings.
"""

import configparser
import hashlib
import json
import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any

from wheel_checks.data import load
from wheel_checks.decode import DecodeError, Policy, decode
from wheel_checks.errors import FormatError, SourceError
from wheel_checks.formats.documents import parse_toml
from wheel_checks.model import Unavailable
from wheel_checks.sources.file_tree import FileTree

SCHEMA = "wheelproof.guard/1"
_LARGEST = 8 << 20  # bytes of one file of the guard
_PIN = re.compile(r"#.*|[a-z0-9][a-z0-9-]*(?:==[\w.+!-]+|<0)|")
_RECEIPT = Policy(longest=4096, most=10_000)


class FileState(StrEnum):
    """What a file that the receipt names is now."""

    INTACT = "intact"  # what a guard writes there
    CHANGED = "changed"  # something else: it was written over
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class _Entry:
    path: str
    role: str
    sha256: str
    kept: str = ""
    record: str = ""


@dataclass(frozen=True, slots=True)
class _Receipt:
    schema: str
    prefix: str
    python: str
    packages: Mapping[str, str]
    files: tuple[_Entry, ...]
    made: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GuardFile:
    """A file of the guard. ``role`` is "front", "hook", "program", "text", "pip.conf", "record" or "uv.toml"; ``kept``
    is the place of the file that was there before, "" when there wasn't one.
    """

    path: str
    role: str
    state: FileState
    kept: str = ""


@dataclass(frozen=True, slots=True)
class InstalledGuard:
    """A guard. ``folder`` holds its own files; ``packages`` are the held versions by normalized name."""

    prefix: str
    folder: str
    python: str
    packages: Mapping[str, str]
    files: tuple[GuardFile, ...]

    @property
    def recognised(self) -> frozenset[str]:
        """The paths of the files that are exactly what a guard writes there, and of what it keeps of those before."""
        intact = [file for file in self.files if file.state is FileState.INTACT]
        return frozenset([file.path for file in intact] + [file.kept for file in intact if file.kept])


def folder_of(prefix: str) -> str:
    """The folder of the guard of an environment; of a system's Python it is the administrator's, not the packages'."""
    return posixpath.join("/usr/local" if prefix == "/usr" else prefix, "share", "torch-guard")


def read_installed_guard(tree: FileTree, prefix: str) -> InstalledGuard | Unavailable | None:
    """The guard of the environment at ``prefix``; None without one, Unavailable for an unreadable receipt."""
    folder = folder_of(prefix)
    try:
        data = tree.read(f"{folder}/receipt.json", _LARGEST)
        if data is None:
            return None
        receipt = decode(_Receipt, json.loads(data), _RECEIPT, "the receipt of the guard")
    except (SourceError, DecodeError, ValueError, RecursionError) as error:
        return Unavailable(f"the receipt in {folder} cannot be read: {error}", hint="wheelproof pins guard --install")
    if receipt.schema != SCHEMA or tree.real(receipt.prefix) != tree.real(prefix):
        what = f"the receipt in {folder} belongs to {receipt.prefix}, or to another version of wheelproof"
        return Unavailable(what, hint="wheelproof pins guard --install")
    folder = folder_of(receipt.prefix)  # as its files name it: another spelling of the same folder
    judge = _Judge(tree, receipt, folder)
    files = tuple(GuardFile(one.path, one.role, judge.state(one), judge.kept(one)) for one in receipt.files)
    return InstalledGuard(prefix, folder, receipt.python, receipt.packages, files)


class _Judge:
    """Says of each file whether it is what a guard writes."""

    def __init__(self, tree: FileTree, receipt: _Receipt, folder: str) -> None:
        self._tree, self._receipt, self._folder = tree, receipt, folder
        self._programs: Sequence[Mapping[str, Any]] = load("guard_program")["program"]

    def state(self, entry: _Entry) -> FileState:
        try:
            data = self._tree.read(entry.path, _LARGEST)
        except SourceError:
            return FileState.CHANGED
        if data is None:
            return FileState.MISSING
        looks = {
            "front": self._is_front,
            "hook": self._is_front,
            "program": self._is_program,
            "text": self._is_text,
            "pip.conf": self._is_pip_conf,
            "record": self._is_record,
            "uv.toml": self._is_user_file,
        }
        look = looks.get(entry.role)
        return FileState.INTACT if look is not None and look(entry, data) else FileState.CHANGED

    def kept(self, entry: _Entry) -> str:
        """Where the former file is kept, if that is in the folder of the guard."""
        return entry.kept if entry.kept.startswith(f"{self._folder}/originals/") and ".." not in entry.kept else ""

    def _is_front(self, entry: _Entry, data: bytes) -> bool:
        name = posixpath.basename(entry.path)
        allowed = r"pip-python" if entry.role == "hook" else r"pip|pip3|pip3\.\d+|uv"
        folder = self._folder if entry.role == "hook" else self._bin
        if not re.fullmatch(allowed, name) or posixpath.dirname(entry.path) != folder:
            return False
        python, program = shlex.quote(self._receipt.python), shlex.quote(f"{self._folder}/program")
        texts = (row["front"].format(name=name, python=python, program=program) for row in self._programs)
        return any(data == text.encode() for text in texts) and self._is_own_python

    @property
    def _bin(self) -> str:
        return "/usr/local/bin" if self._receipt.prefix == "/usr" else f"{self._receipt.prefix}/bin"

    @property
    def _is_own_python(self) -> bool:
        """Whether the program would be run by the environment's own interpreter."""
        folder, name = posixpath.split(self._receipt.python)
        return folder == f"{self._receipt.prefix}/bin" and re.fullmatch(r"python(?:3(?:\.\d+t?)?)?", name) is not None

    def _is_program(self, entry: _Entry, data: bytes) -> bool:
        found = hashlib.sha256(data).hexdigest()
        if entry.path == f"{self._folder}/program/__main__.py":
            return any(found == row["main"] for row in self._programs)
        folder, name = posixpath.split(entry.path)
        is_there = folder == f"{self._folder}/program/torch_guard"
        return is_there and any(found == row["modules"].get(name) for row in self._programs)

    def _is_text(self, entry: _Entry, data: bytes) -> bool:
        folder, name = posixpath.split(entry.path)
        text = data.decode("utf-8", "replace")
        if folder != self._folder:
            return False
        if name in ("constraints.txt", "keep.txt"):
            return all(_PIN.fullmatch(line) for line in text.splitlines())
        try:
            return name == "settings.json" and isinstance(json.loads(text).get("families"), list)
        except (ValueError, AttributeError, RecursionError):
            return False

    def _is_pip_conf(self, entry: _Entry, data: bytes) -> bool:
        parser = configparser.RawConfigParser()
        try:
            parser.read_string(data.decode("utf-8", "replace"))
        except configparser.Error:
            return False
        python = parser.get("global", "python", fallback="")
        constraints = parser.get("install", "constraint", fallback="").split()
        path = f"{self._folder}/constraints.txt"
        names = any(word in (path, PurePosixPath(path).as_uri()) for word in constraints)
        own = any(one.role == "hook" for one in self._receipt.files)
        hooks = python == f"{self._folder}/pip-python" or (bool(python) and not own)
        return entry.path == f"{self._receipt.prefix}/pip.conf" and names and hooks

    def _is_record(self, entry: _Entry, data: bytes) -> bool:
        inside = entry.path.startswith(f"{self._receipt.prefix}/") and entry.path.endswith(".dist-info/RECORD")
        return inside and hashlib.sha256(data).hexdigest() == entry.sha256

    def _is_user_file(self, entry: _Entry, data: bytes) -> bool:
        try:
            pins = parse_toml(data, entry.path, _LARGEST)["constraint-dependencies"]
        except (FormatError, KeyError):
            return False
        listed = isinstance(pins, list) and all(isinstance(pin, str) and _PIN.fullmatch(pin) for pin in pins)
        return listed and entry.path.endswith("/uv/uv.toml")
