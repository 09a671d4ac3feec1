"""The symbols that a wheel's files need, and that no library next to them defines.

glibc looks a symbol up in the global scope, then in the file that Python opens and all its needs, breadth first. A
library that another one of the wheel needs is therefore judged with its loader. If packages open libraries themselves
with RTLD_GLOBAL, nothing in the files shows it; hence a name is missing only when *no* library of the closure defines
it: then no order of loading helps.

Pure, but for ``Definitions``, which reads definitions of libraries as late as possible, and as few as possible.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

from wheel_checks.data import lines
from wheel_checks.facts.links.closure import Need, Status
from wheel_checks.facts.links.known_libraries import host_program_of
from wheel_checks.formats.elf.file import ElfFacts, Missing
from wheel_checks.formats.elf.linkage import Exports, Imports, hashes_of, symbol_hash
from wheel_checks.formats.elf.versions import SymbolVersions
from wheel_checks.model import Unavailable

_OF_PYTHON = re.compile(r"_?Py[A-Z_]")
# Names of torch: in its namespaces (their mangled names begin so), or C functions of its stable interface.
_OF_TORCH = re.compile(
    r"_Z(?:T[VISTh]|T[hv]n?\d+_n?\d*_?|GV|GR)?(?:N[KVRO]{0,3})?(?:3c10|2at|5torch|6caffe2)(?=\d|[A-Z]|[a-z]{2}[A-Z])"
    r"|_Z\d+THPC?[A-Z]|aoti_torch_|torch_\w|THP[A-Z]|THC?[A-Z]\w+_"
)
_STANDARD = re.compile(r"(?:libc|libm|libdl|librt|libpthread|libutil|libstdc\+\+|libgcc_s|ld-linux[\w-]*)\.so")
# Names of libstdc++: in std and __gnu_cxx, operators new and delete, and names required by the C++ ABI.
_OF_STANDARD = re.compile(
    r"_Z(?:T[VISTh])?(?:N[KVRO]{0,3})?(?:S[a-z]|9__gnu_cxx|10__cxxabiv)|_Z(?:na|nw|da|dl)"
    r"|_ZT[IS]P?K?[a-z]$|__cxa_|__gxx_"
)
_OF_DRIVER = re.compile(r"(?:cu|nvml|cuvid|NvEnc)[A-Z]")  # libcuda, libnvidia-ml and others of NVIDIA's driver
_FAR = "its table of symbols lies too far inside it"
_SHORTEST_STEM = 4  # characters of a library's name by which names of symbols may begin
_OF_TORCHS_FILES = ("libtorch", "libc10")
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class UnresolvedFile:
    """A file of the wheel with the names that nothing defines, as linkers write them.

    ``of_torch`` are those in the namespaces of torch. ``imported`` is False for a library that nothing is known to
    open, and for an alternative when others load.
    """

    path: str
    names: tuple[str, ...]
    of_torch: tuple[str, ...]
    imported: bool


@dataclass(frozen=True, slots=True)
class SymbolFacts:
    """The result of looking up every symbol.

    ``unresolved`` are files that cannot be loaded; ``unread`` are sentences, by file, about what could not be decided;
    ``judged`` counts the files whose symbols were looked up. ``torch`` is the torch version in the closure (or "") from
    the wheel ``torch_wheel``; ``fitting`` are the torch releases that define all of its missing symbols. ``of_torch``
    are the names of torch that each file needs and none of the wheel's files defines; ``far`` are files whose symbols
    are unknown.
    """

    unresolved: tuple[UnresolvedFile, ...] = ()
    unread: tuple[tuple[str, str], ...] = ()
    judged: int = 0
    torch: str = ""
    torch_wheel: str = ""
    fitting: tuple[str, ...] = ()
    of_torch: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    far: tuple[str, ...] = ()


NOT_LOOKED_UP = Unavailable("no symbol was looked up: the wheel links to no other wheel", "--with torch==2.11.0")


class Definitions(Protocol):
    """The definitions of other wheels' libraries; each is read when it is requested."""

    @property
    def torch(self) -> Collection[int] | None:
        """The hashes of all that the libraries of torch define; None without torch, or when they cannot be read."""

    @property
    def process(self) -> Collection[int] | None:
        """The hashes of all symbols that the interpreter has loaded when it starts; None if the interpreter is unknown.

        These are the names of the interpreter itself, and of the C library and others that it needs.
        """

    @property
    def most_libraries(self) -> int:
        """How many libraries may be read for a name that none of the needed ones defines."""

    def of(self, paths: Sequence[str]) -> Mapping[str, Collection[int] | None]:
        """The hashes of each file's definitions, None if it cannot be read. Raises SourceError."""

    def libraries(self) -> Sequence[str]:
        """The paths of all libraries that others may link to, the likely ones first."""


def is_of_python(name: str) -> bool:
    """True for a name that the interpreter of Python defines, or none does."""
    return bool(_OF_PYTHON.match(name))


def needs_of_torch(files: Mapping[str, ElfFacts]) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """The names of torch that files of one wheel need and none of them defines, by file; and the files not read."""
    own, _ = _own_definitions(files)
    needed = {}
    for path, elf in sorted(files.items()):
        names = (full.partition("@")[0] for full in (elf.imports.names if isinstance(elf.imports, Imports) else ()))
        needed[path] = tuple(name for name in names if _OF_TORCH.match(name) and symbol_hash(name) not in own)
    return needed, tuple(path for path, elf in sorted(files.items()) if isinstance(elf.imports, Missing))


def find_unresolved(
    files: Mapping[str, ElfFacts], needs: Iterable[Need], imported: Collection[str], definitions: Definitions
) -> tuple[tuple[UnresolvedFile, ...], tuple[tuple[str, str], ...], int]:
    """The files with unresolved names, sentences about undecided ones, and how many files were judged.

    ``files`` are those of the judged wheel; ``needs`` those of the whole closure. Raises SourceError.
    """
    needed: dict[str, list[Need]] = defaultdict(list)
    for need in needs:
        needed[need.elf].append(need)
    own, blind = _own_definitions(files)
    open_ = [(path, _FAR) for path, elf in sorted(files.items()) if isinstance(elf.imports, Missing)]
    known = {path: elf for path, elf in sorted(files.items()) if isinstance(elf.imports, Imports)}
    lookup = _Lookup(definitions, needed, blind)
    found: list[UnresolvedFile] = []
    for path, elf in known.items():
        wanted = _to_look_up(elf, needed[path], interpreter=definitions.process is not None)
        names = [name for name in wanted if symbol_hash(name) not in own]
        missing, reason = lookup.missing(path, names, files.keys()) if names else ([], "")
        if reason:
            open_.append((path, reason))
        missing = [*missing, *_of_lost_libraries(elf, needed[path])]
        if missing:
            of_torch = tuple(name for name in missing if _OF_TORCH.match(name))
            found.append(UnresolvedFile(path, tuple(missing), of_torch, path in imported))
    open_ = [(path, reason) for path, reason in open_ if path in imported]
    loading, open_ = _with_alternatives(found, open_, files)
    return loading, tuple(open_), len(known)


def _own_definitions(files: Mapping[str, ElfFacts]) -> tuple[set[int], list[str]]:
    """The definitions of the wheel's files, and the files whose definitions are unknown."""
    own: set[int] = set()
    for elf in files.values():
        if isinstance(elf.exports, Exports):
            own |= hashes_of(elf.exports)
    return own, [path for path, elf in files.items() if isinstance(elf.exports, Missing)]


def _to_look_up(elf: ElfFacts, needs: Sequence[Need], *, interpreter: bool) -> list[str]:
    """The unversioned names to look up, but those of missing providers; Python's only with ``interpreter``."""
    libraries: dict[str, set[str]] = defaultdict(set)
    if isinstance(elf.versions, SymbolVersions):
        for record in elf.versions.needs:
            for each in record.versions:
                libraries[each.name].add(record.library)
    statuses = {need.soname: need for need in needs}
    names = []
    for full in elf.imports.names if isinstance(elf.imports, Imports) else ():
        name, _, version = full.partition("@")
        if not interpreter and is_of_python(name):
            continue
        brought = [statuses[soname].by for soname in libraries[version] if soname in statuses] if version else []
        if version and not any(brought):
            continue  # of a library of the system, or of a missing one: other rules judge its version, or its absence
        names.append(name)
    return names


def _of_lost_libraries(elf: ElfFacts, needs: Sequence[Need]) -> list[str]:
    """The names with versions of libraries that nothing provides, as ``name@library``.

    Only if the need itself is inferred from strings: the version proves it. WHL521 reports certain needs, and libraries
    that the host may have.
    """
    uncertain = (need.soname for need in needs if need.status is Status.MISSING and not need.certain)
    lost = {soname for soname in uncertain if not host_program_of(soname)}
    if not lost or not isinstance(elf.versions, SymbolVersions) or not isinstance(elf.imports, Imports):
        return []
    libraries = {v.name: record.library for record in elf.versions.needs for v in record.versions}
    pairs = [full.partition("@")[::2] for full in elf.imports.names]
    return [f"{name}@{libraries[version]}" for name, version in pairs if libraries.get(version) in lost]


class _Lookup:
    """Looks names up, first in known definitions, then in those that must be read."""

    def __init__(self, definitions: Definitions, needed: Mapping[str, Sequence[Need]], blind: Sequence[str]) -> None:
        self._others = definitions
        self._needed = needed
        self._blind = blind
        self._everything: set[int] | None = None
        self._unread_libraries = 0

    def missing(self, path: str, names: Sequence[str], own: Collection[str]) -> tuple[list[str], str]:
        """The names that nothing defines; and why it is unknown of others, "" when it is."""
        torch, process = self._others.torch, self._others.process
        at_hand = [known for known in (process, torch) if known is not None]
        left = [name for name in names if not any(symbol_hash(name) in known for known in at_hand)]
        if not left:
            return [], ""
        scope = self._scope(path)
        providers = sorted({need.by for need in scope if need.by and need.by not in own})
        read = self._others.of(providers)
        unknown = [provider for provider in providers if read.get(provider) is None]
        for exports in read.values():
            left = [name for name in left if exports is None or symbol_hash(name) not in exports]
        certain = [name for name in left if torch is not None and _OF_TORCH.match(name)]
        others = [name for name in left if name not in set(certain)]
        if others:
            hosts = [need for need in scope if need.status in (Status.DRIVER, Status.SYSTEM)]
            outside = {need.soname for need in hosts if read.get(need.by) is None}
            others = [n for n in others if not _may_be_of_the_system(n, outside, is_known=process is not None)]
        if others:
            others = self._left_of_named_alike(others)
        if others:
            others = [name for name in others if symbol_hash(name) not in self._all()]
        if self._blind:
            shown = f"the symbols defined by {self._blind[0]} of the same wheel are unknown"
            return ([], shown) if certain or others else ([], "")
        lost = [need.soname for need in scope if need.status in (Status.MISSING, Status.OPTIONAL)]
        if lost:  # they have their own finding, and may have these
            return ([] if any(soname.startswith(_OF_TORCHS_FILES) for soname in lost) else certain), ""
        if others and (unknown or self._unread_libraries):
            name = posixpath.basename(unknown[0]) if unknown else "a library next to it"
            return certain, f"it needs {others[0]}, and what {name} defines could not be read"
        return certain + others, ""

    def _scope(self, path: str) -> list[Need]:
        """The closure of the file, breadth first."""
        found: dict[tuple[str, str], Need] = {}
        queue, seen = [path], {path}
        for one in queue:
            for need in self._needed.get(one, ()):
                found.setdefault((need.soname, need.by), need)
                if need.by and need.by not in seen:
                    seen.add(need.by)
                    queue.append(need.by)
        return list(found.values())

    def _left_of_named_alike(self, names: Sequence[str]) -> list[str]:
        """The names that no library defines which is named as they begin: cublasHgemm is looked up in libcublas."""
        stems = {path: posixpath.basename(path).removeprefix("lib").partition(".so")[0].lower() for path in self._paths}
        alike = [
            path
            for path, stem in stems.items()
            if len(stem) >= _SHORTEST_STEM and any(name.lower().startswith(stem) for name in names)
        ]
        defined = set[int]().union(*filter(None, self._others.of(alike[: self._others.most_libraries]).values()))
        return [name for name in names if symbol_hash(name) not in defined]

    @cached_property
    def _paths(self) -> Sequence[str]:
        return self._others.libraries()

    def _all(self) -> set[int]:
        """The definitions of all libraries of all other wheels."""
        if self._everything is None:
            self._everything = set()
            most = self._others.most_libraries
            self._unread_libraries = len(self._paths[most:])
            for exports in self._others.of(self._paths[:most]).values():
                if exports is None:
                    self._unread_libraries += 1
                else:
                    self._everything.update(exports)
        return self._everything


def _may_be_of_the_system(name: str, outside: Collection[str], *, is_known: bool) -> bool:
    """Whether a name can come from an unread library of the driver or of the system.

    The C library is in every process; ``is_known`` says that its names were looked up. Some linkers omit the versions
    of its names, and of those of libstdc++. Other libraries of the system and of the driver are libraries of C.
    """
    if _OF_DRIVER.match(name) or (not is_known and name in lines("glibc_symbols")):
        return True
    if _OF_STANDARD.match(name):
        return any(soname.startswith("libstdc++.so") for soname in outside)
    others = [soname for soname in outside if not _STANDARD.match(soname)]
    return bool(others) and not name.startswith("_Z")


def without_numbers(path: str) -> str:
    """The path with a mark for each number: the same for files that are one for each CUDA, GPU or torch."""
    return _DIGITS.sub("#", path)


def _with_alternatives(
    found: Sequence[UnresolvedFile], open_: Sequence[tuple[str, str]], files: Mapping[str, ElfFacts]
) -> tuple[tuple[UnresolvedFile, ...], list[tuple[str, str]]]:
    """Alternatives, whose paths differ in numbers alone: one that loads is enough, else undecided ones decide."""
    groups: dict[str, list[str]] = defaultdict(list)
    for path in files:
        groups[without_numbers(path)].append(path)
    failing = {item.path for item in found}
    undecided = {path for path, _ in open_} - failing
    loads = {name for name, group in groups.items() if not (failing | undecided).issuperset(group)}
    waits = {name for name, group in groups.items() if undecided.intersection(group)}

    def is_left(path: str, *, decides: bool) -> bool:
        name = without_numbers(path)
        return len(groups[name]) > 1 and (name in loads or (decides and name in waits))

    kept = [replace(item, imported=False) if is_left(item.path, decides=True) else item for item in found]
    return tuple(kept), [pair for pair in open_ if not is_left(pair[0], decides=False)]
