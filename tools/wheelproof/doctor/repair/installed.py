"""Everything that is installed in the environment under repair, with its requirements and its files."""

import json
import os
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from packaging.requirements import Requirement
from packaging.version import Version

from wheel_checks.facts.host.software import Interpreter
from wheel_checks.parsing import requirement_or_none, version_or_none
from wheel_checks.sources.file_tree import FileTree
from wheelproof.doctor.probes.installation.distributions import Found, find_distributions
from wheelproof.doctor.repair.wheel_record import rows_of

_LARGEST_JSON = 64 * 1024  # bytes of direct_url.json


@dataclass(frozen=True)
class Distribution:
    """An installed distribution. ``name`` is normalized, ``folder`` the path of its metadata, ``entry`` that of the
    folder in which it is. ``origin`` is the content of direct_url.json, {} for what came from an index.
    """

    name: str
    version: str
    entry: str
    folder: str
    installer: str
    requirements: tuple[Requirement, ...]
    origin: Mapping[str, Any]
    record: bytes

    @cached_property
    def parsed(self) -> Version | None:
        """The version; None for one that is not a version of PEP 440."""
        return version_or_none(self.version)

    @cached_property
    def digests(self) -> Mapping[str, str]:
        """What RECORD says of the content of its files ("sha256=..."; "" where it says nothing), by the path in it."""
        return rows_of(self.record)

    @cached_property
    def files(self) -> tuple[str, ...]:
        """The absolute paths of what RECORD lists."""
        return tuple(posixpath.normpath(posixpath.join(self.entry, path)) for path in self.digests)

    @property
    def label(self) -> str:
        """Such as ``torch 2.11.0+cpu``."""
        return f"{self.name} {self.version}"


@dataclass(frozen=True)
class Contents:
    """The distributions of an environment itself, by name: the first one that imports find.

    ``elsewhere`` are those that its Python also finds in other folders (PYTHONPATH, the user's, the system's).
    """

    python: str
    prefix: str
    folders: tuple[str, ...]
    own: Mapping[str, Distribution]
    elsewhere: Mapping[str, Distribution]


def read_contents(interpreter: Interpreter) -> Contents:
    """What is installed for this interpreter, only from the metadata."""
    tree, own, elsewhere = FileTree(), dict[str, Distribution](), dict[str, Distribution]()
    folders = tuple(dict.fromkeys(map(os.path.realpath, (interpreter.purelib, interpreter.platlib))))
    search = [entry for entry in interpreter.search_path if entry]
    for found in find_distributions(tree, dict.fromkeys((*folders, *map(os.path.realpath, search)))):
        if not _has_metadata(tree, found.folder):
            continue  # the rest of an uninstall: installers pass over it
        place = own if found.entry in folders else elsewhere
        place.setdefault(found.name, _distribution(tree, found))
    others = {name: one for name, one in elsewhere.items() if name not in own}
    return Contents(interpreter.path, os.path.realpath(interpreter.prefix), folders, own, others)


def _distribution(tree: FileTree, found: Found) -> Distribution:
    package = found.package()
    parsed: Sequence[Requirement | None] = [requirement_or_none(text) for text in found.requires]
    requirements = tuple(one for one in parsed if one is not None)
    return Distribution(
        found.name,
        found.version,
        found.entry,
        found.folder,
        package.installer,
        requirements,
        _origin(tree.read(f"{found.folder}/direct_url.json", _LARGEST_JSON)),
        found.record,
    )


def _has_metadata(tree: FileTree, folder: str) -> bool:
    return any(tree.is_file(file) for file in (folder, f"{folder}/METADATA", f"{folder}/PKG-INFO"))


def _origin(content: bytes | None) -> Mapping[str, Any]:
    try:
        document = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
