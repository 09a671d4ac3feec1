"""Which distributions matter to torch, read from the headers of their METADATA alone: an environment may hold hundreds.

The core is torch, its companions, Triton and NVIDIA's libraries; then what the core requires, without which ``import
torch`` fails too; then the users, which require torch, and the neighbours, which share NVIDIA's libraries with it.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from packaging.utils import canonicalize_name

from wheel_checks.errors import SourceError
from wheel_checks.facts.host.software import Package, ShadowModule
from wheel_checks.formats.secrets import redact_text
from wheel_checks.formats.wheel.record import MAX_SIZE as LARGEST_RECORD
from wheel_checks.sources.file_tree import FileTree

FOLDERS = ("torch", "triton", "nvidia")  # looked into even when no RECORD names them
SUFFIXES = (".dist-info", ".egg-info")
MOST = 5_000  # distributions; the largest images have some hundreds
_LARGEST_HEADER = 256 * 1024  # bytes of METADATA; the description follows the header
_SMALL = 64 * 1024

_CORE = re.compile(
    r"(?:torch|torchvision|torchaudio|functorch|triton|pytorch-triton(?:-\w+)?|triton-\w+|(?:nvidia|cuda)-.+)"
)
_MATTERS_TO_TORCH = re.compile(r"(?:torch\w*|pytorch-triton(?:-\w+)?|triton(?:-\w+)?|(?:nvidia|cuda)-.+)")
_FIELD = re.compile(rb"^(Name|Version|Requires-Dist):[ \t]*([^\r\n]*)", re.MULTILINE | re.IGNORECASE)
_FIRST_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_EXTRA = re.compile(r";.*\bextra\s*==")
_TOP = re.compile(rb"^\"?([^/,\"\r\n]+)", re.MULTILINE)
_BUILD = re.compile(r"cu\d{2,3}|cpu|rocm[\d.]+|xpu")


@dataclass(frozen=True)
class Found:
    """A distribution in ``entry``, a folder of imports; ``folder_name`` is that of its metadata."""

    tree: FileTree
    entry: str
    folder_name: str
    name: str
    version: str
    requires: tuple[str, ...]

    @property
    def folder(self) -> str:
        """The path of its metadata."""
        return f"{self.entry}/{self.folder_name}"

    @property
    def is_core(self) -> bool:
        """True for torch, its companions, Triton and NVIDIA's libraries."""
        return _CORE.fullmatch(self.name) is not None

    @cached_property
    def record(self) -> bytes:
        """RECORD, empty if none exists or it is too long."""
        content = _read(self.tree, f"{self.folder}/RECORD", LARGEST_RECORD)
        return content if len(content) <= LARGEST_RECORD else b""

    @property
    def tops(self) -> set[str]:
        """The first parts of the paths of its files; its name where there is no RECORD."""
        tops = {name.decode("utf-8", "replace") for name in _TOP.findall(self.record)}
        return (tops or {self.name.replace("-", "_")}) - {"..", "__pycache__", self.folder_name}

    def requirements(self) -> Iterator[tuple[str, str]]:
        """(normalized name, text) of what it requires, but for extras."""
        for text in self.requires:
            name = _FIRST_NAME.match(text)
            if name:
                yield canonicalize_name(name[0]), text

    def needs(self) -> set[str]:
        """The names of what it always requires."""
        return {name for name, text in self.requirements() if not _EXTRA.search(text)}

    def package(self, build: str = "") -> Package:
        """What the facts show of it; ``build`` is what its version.py says of it, when it has one."""
        return Package(
            name=self.name,
            version=self.version,
            folder=self.entry,
            installer=_text(self.tree, f"{self.folder}/INSTALLER").strip().lower(),
            requested=self.tree.is_file(f"{self.folder}/REQUESTED"),
            url=redact_text(_url(_text(self.tree, f"{self.folder}/direct_url.json"))),
            installed=_written(self.tree, self.folder),
            requires=tuple(text for name, text in self.requirements() if _MATTERS_TO_TORCH.fullmatch(name)),
            build=build or build_of(self.version),
        )


@dataclass(frozen=True)
class Chosen:
    """All distributions that were ``found``, and those that matter: the ``core`` with what it requires, its ``users``.

    ``neighbours`` use NVIDIA's libraries without torch; ``modules`` are those that imports find.
    """

    found: Sequence[Found]
    core: Sequence[Found]
    users: Sequence[Found]
    neighbours: Sequence[Found]
    modules: tuple[ShadowModule, ...]


def is_part_of_torch(name: str) -> bool:
    """Whether an entry of a folder of imports is a folder of torch's, or what an interrupted installation left."""
    return name in FOLDERS or name.startswith("~")


def build_of(version: str) -> str:
    """The accelerator that a version names: "cu130" of 2.11.0+cu130, "cu12" of 2.8.3+cu12torch2.8, "" of 2.11.0."""
    named = _BUILD.search(version.partition("+")[2])
    return named[0] if named else ""


def find_distributions(tree: FileTree, entries: Iterable[str]) -> list[Found]:
    """All distributions in the folders of imports, in the order in which imports search them."""
    found = []
    for entry in entries:
        names = [name for name in folder_names(tree, entry) if name.endswith(SUFFIXES) and name[0] != "~"]
        found += [_found(tree, entry, name) for name in names[:MOST]]
    return found


def required_by_core(found: Sequence[Found]) -> list[Found]:
    """The core and all that it requires, directly and through others."""
    by_name: dict[str, list[Found]] = {}
    for one in found:
        by_name.setdefault(one.name, []).append(one)
    reached = dict.fromkeys(one.name for one in found if one.is_core)
    queue = list(reached)
    for name in queue:
        for one in by_name[name]:
            new = one.needs().intersection(by_name).difference(reached)
            reached.update(dict.fromkeys(sorted(new)))
            queue += sorted(new)
    return [one for one in found if one.name in reached]


def users_of_torch(found: Iterable[Found]) -> list[Found]:
    """What requires torch, and is not part of the core."""
    return [one for one in found if not one.is_core and "torch" in one.needs()]


def neighbours_of_torch(found: Iterable[Found]) -> list[Found]:
    """What requires NVIDIA's libraries, be it by an extra, and not torch: CuPy, JAX. The libraries are no orphans."""
    return [
        one
        for one in found
        if not one.is_core
        and "torch" not in one.needs()
        and any(name.startswith("nvidia-") for name, _ in one.requirements())
    ]


def folder_names(tree: FileTree, folder: str) -> tuple[str, ...]:
    """What a folder holds; nothing when it may not be read: imports pass over it, too."""
    with suppress(SourceError):
        return tree.names(folder)
    return ()


def conda_builds(tree: FileTree, prefix: str) -> Mapping[str, str] | None:
    """The build strings of conda's packages of torch and CUDA, by the names of their files; None without conda."""
    names = [
        name.removesuffix(".json") for name in folder_names(tree, f"{prefix}/conda-meta") if name.endswith(".json")
    ]
    parts = [name.rsplit("-", 2) for name in names]
    matching = re.compile(r"(?:pytorch|libtorch|torch|triton|cuda-version|cudnn|nccl)[\w-]*")
    builds = {part[0]: part[2] for part in parts if len(part) == 3 and matching.fullmatch(part[0])}
    return builds if names else None


def _found(tree: FileTree, entry: str, folder_name: str) -> Found:
    name, _, version = folder_name.rpartition(".")[0].partition("-")
    folder = f"{entry}/{folder_name}"
    files = (folder,) if tree.is_file(folder) else (f"{folder}/METADATA", f"{folder}/PKG-INFO")
    content = next((text for file in files if (text := _read(tree, file, _LARGEST_HEADER))), b"")
    header = re.split(rb"\r?\n\r?\n", content, maxsplit=1)[0]
    fields: dict[bytes, list[str]] = {}
    for field, value in _FIELD.findall(header):
        fields.setdefault(field.lower(), []).append(value.decode("utf-8", "replace").strip())
    named = fields.get(b"name", [name])[0]
    return Found(
        tree,
        entry,
        folder_name,
        canonicalize_name(named),
        fields.get(b"version", [version])[0],
        tuple(fields.get(b"requires-dist", ())),
    )


def _read(tree: FileTree, path: str, limit: int) -> bytes:
    with suppress(SourceError):  # there, and not readable: as if it were not present
        return tree.read(path, limit) or b""
    return b""


def _text(tree: FileTree, path: str) -> str:
    return _read(tree, path, _SMALL).decode("utf-8", "replace")


def _url(text: str) -> str:
    """The URL of direct_url.json."""
    with suppress(ValueError, RecursionError):
        content = json.loads(text or "{}")
        return str(content.get("url", "")) if isinstance(content, dict) else ""
    return ""


def _written(tree: FileTree, folder: str) -> float:
    """When the metadata was written. pip and uv write RECORD themselves; METADATA may be as old as a cache."""
    for path in (f"{folder}/RECORD", folder):
        with suppress(OSError, ValueError):
            return os.stat(tree.outside(path)).st_mtime  # noqa: PTH116  # a path of the tree
    return 0.0
