"""Wheels laid out as if they were installed together, and the loader's search in them. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from packaging.utils import canonicalize_name

from wheel_checks.facts.elf.member_elf import MemberElf
from wheel_checks.facts.links.closure import Closure, LoaderEnvironment, close
from wheel_checks.facts.links.decisive import Decisive, decisive_files
from wheel_checks.facts.links.failing import Loaded, cuda_major, what_is_loaded
from wheel_checks.facts.links.known_libraries import is_imported_by, preloader_of
from wheel_checks.facts.links.opened_first import (
    by_module,
    certainly_opened,
    opened_libraries,
    opens_unknown,
    what_users_may_open,
)
from wheel_checks.facts.links.possible_needs import supposed_dynamic
from wheel_checks.facts.links.unresolved import NOT_LOOKED_UP, SymbolFacts
from wheel_checks.formats.elf.dynamic import DynamicFacts
from wheel_checks.formats.elf.file import ElfFacts, Missing, Part
from wheel_checks.formats.index.digests import WrongHash
from wheel_checks.formats.wheel.python_source import ActionKind, ModuleSources, imported_modules
from wheel_checks.model import Unavailable
from wheel_checks.targets.target import Target

_DATA = re.compile(r"^[^/]+\.data/(?P<scheme>[^/]+)/(?P<rest>.+)$")
_TORCH, _NVIDIA = "torch", "nvidia-"
_LIBRARY = re.compile(r"\.so(?:\.[\w.]+)?$")
# The last: a package's folder of compiled modules, whose names may be those of libraries (triton/_C/libtriton.so).
_EXTENSION_MODULE = re.compile(r"(?:\.cpython-[\w-]+|\.abi3)\.so$|(?:^|/)_[^/]*\.so$|(?:^|/)_C/[^/]+\.so$")


@dataclass(frozen=True, slots=True)
class LaidOutWheel:
    """A wheel's ELF files by the path that they get in site-packages, and the bytes read for them.

    ``unread`` are the paths with unknown needs: their dynamic section here is empty. ``packages`` are the names of its
    Python packages, ``sources`` its modules that were read.
    """

    file_name: str
    files: Mapping[str, ElfFacts]
    unread: frozenset[str] = field(default=frozenset())
    bytes_read: int = 0
    requests: int = 0
    packages: frozenset[str] = frozenset()
    sources: ModuleSources = field(default_factory=ModuleSources)

    @property
    def project(self) -> str:
        """The normalised name of the project."""
        return canonicalize_name(self.file_name.partition("-")[0])

    @property
    def version(self) -> str:
        """The version in the file name."""
        return self.file_name.partition("-")[2].partition("-")[0]


@dataclass(frozen=True, slots=True)
class AbsentPackage:
    """A required package without a wheel for the target: a sentence why, and who requires it ("" for the wheel)."""

    name: str
    version: str
    why: str
    required_by: tuple[str, ...]
    sdist_only: bool


@dataclass(frozen=True, slots=True)
class LinkFacts:
    """The link closure of a wheel with the wheels that it requires on its target."""

    closure: Closure  # libraries and their needs
    files: Mapping[str, ElfFacts]  # ELF facts by path
    owners: Mapping[str, str]  # file name of the wheel by path
    wheels: tuple[str, ...]  # file names, the judged wheel first
    absent: tuple[AbsentPackage, ...] | Unavailable  # requirements without a wheel; unknown if none was searched for
    how: str  # how requirements were resolved ("exact pins of METADATA", "uv", "the stack")
    roles: Mapping[str, Decisive]  # of the wheel's own files: which of them its import loads
    opened: tuple[str, ...] = ()  # files of others that it opens for certain
    cuda: str = ""  # CUDA of the closure ("13")
    not_followed: tuple[str, ...] = ()  # requirements whose wheels were not read
    bytes_read: int = 0  # of required wheels
    requests: int = 0  # for required wheels
    wrong_metadata: tuple[WrongHash, ...] = ()  # METADATA that was served with another hash than stated
    symbols: SymbolFacts | Unavailable = NOT_LOOKED_UP  # symbols that nothing in the closure defines
    without_init: frozenset[str] = frozenset()  # Python modules without the function that Python calls
    opens_unknown: str = ""  # line that opens a library by an unknown path
    # requirements of extras that were requested with a wheel without libraries: not read
    not_judged: tuple[str, ...] = ()

    def loaded(self, sms: Sequence[int] = ()) -> Loaded:
        """The files that the import of the wheel loads on GPUs of these architectures."""
        return what_is_loaded(self.closure, self.roles, self.opened, cuda=self.cuda, sms=sms)

    def is_spare(self, path: str, loaded: Loaded) -> bool:
        """Whether the file is an alternative to another file that the import loads, or for another torch."""
        if path in self.roles and self.roles[path].is_for_another:
            return True
        group = self.roles[path].group if path in self.roles else ""
        alike = (other for other, one in self.roles.items() if group and one.group == group)
        return path not in loaded.files and any(other in loaded.files for other in alike)


def installed_path(member: str) -> str:
    """The installed path of a wheel's member, relative to site-packages (binary distribution format, ".data" folders).

    Scripts, headers and data are outside of it: ``../../../bin/x`` as in a virtual environment on Linux.
    """
    match = _DATA.match(member)
    if match is None:
        return member
    if match["scheme"] in ("purelib", "platlib"):
        return match["rest"]
    folder = {"scripts": "bin", "headers": "include", "data": "."}.get(match["scheme"], match["scheme"])
    return f"../../../{folder}/{match['rest']}".replace("/./", "/")


def lay_out(
    file_name: str,
    elfs: Sequence[MemberElf],
    bytes_read: int = 0,
    requests: int = 0,
    *,
    packages: frozenset[str] = frozenset(),
    sources: ModuleSources | Unavailable | None = None,
) -> LaidOutWheel:
    """The readable ELF files of one wheel at their installed paths.

    If head and tail do not include the dynamic section, it is inferred from the strings of .dynstr, and marked as
    possible; without these, only the soname is assumed to be the file name.
    """
    files: dict[str, ElfFacts] = {}
    unread = set()
    for elf in elfs:
        if isinstance(elf.facts, Unavailable):
            continue
        path = installed_path(elf.member.name)
        files[path] = elf.facts
        if isinstance(elf.facts.dynamic, Missing):
            names = () if isinstance(elf.possible_names, Unavailable) else elf.possible_names
            if not names:
                unread.add(path)
            dynamic = supposed_dynamic(path, names)
            files[path] = replace(elf.facts, dynamic=dynamic, possible=elf.facts.possible | {Part.DYNAMIC})
    read = sources if isinstance(sources, ModuleSources) else ModuleSources()
    return LaidOutWheel(file_name, files, frozenset(unread), bytes_read, requests, packages, read)


def link(
    wheel: LaidOutWheel,
    dependencies: Sequence[LaidOutWheel],
    target: Target,
    *,
    absent: Sequence[AbsentPackage] | Unavailable = (),
    how: str = "",
    not_followed: Sequence[str] = (),
    outlined: bool = False,
) -> LinkFacts:
    """Find every DT_NEEDED of the wheel and of its dependencies. If two wheels have one path, the judged one wins.

    ``outlined``: only the names of the dependencies' libraries are known, and any of them may have been loaded before,
    except NVIDIA's libraries that the import of torch, if present, does not load.

    Raises FormatError when finding the libraries takes too many searches.
    """
    files: dict[str, ElfFacts] = {}
    owners: dict[str, str] = {}
    unread: set[str] = set()
    for one in (*reversed(dependencies), wheel):
        files |= one.files
        owners |= dict.fromkeys(one.files, one.file_name)
        unread = unread - one.files.keys() | one.unread
    files = {path: elf for path, elf in files.items() if elf.header.machine == target.machine}
    modules = [path for path in sorted(files) if _EXTENSION_MODULE.search(path)]
    programs = [path for path in sorted(files) if not _LIBRARY.search(path)]
    unread_folders = {posixpath.dirname(path) for path in unread}  # an unread library may load them
    projects = {one.project for one in (wheel, *dependencies)}
    sources = by_module(source for one in (wheel, *dependencies) for source in one.sources.modules)
    opened = opened_libraries(wheel.sources.roots, sources, files)
    idle = _not_imported(wheel, dependencies) - set(opened) if outlined else set()
    preloaded = [p for p in sorted(files) if preloader_of(p) in projects or posixpath.dirname(p) in unread_folders]
    preloaded += sorted(files) if outlined else ()
    preloaded = [*(path for path in preloaded if path not in idle), *opened]
    preloaded += [path for path in _next_to_supposed(files, owners) if path not in idle]
    loader = LoaderEnvironment(
        target.machine, preloaded=tuple(preloaded), unloaded=tuple(sorted(idle)), glibc=target.glibc
    )
    closure = close(files, [*modules, *programs], loader)
    closure = replace(closure, unread=tuple(sorted(unread & files.keys())))
    # A wheel without native files is included for the libraries that it opens.
    needed = {need.by for need in closure.needs if need.elf in wheel.files} if wheel.files else set(files)
    return LinkFacts(
        closure,
        files,
        owners,
        tuple(one.file_name for one in (wheel, *dependencies)),
        absent if isinstance(absent, Unavailable) else tuple(absent),
        how,
        decisive_files(
            [path for path in wheel.files if _LIBRARY.search(path)],
            wheel.sources,
            wheel.project,
            target.interpreter,
            next((one.version for one in dependencies if one.project == _TORCH), ""),
        ),
        tuple(certainly_opened(wheel.sources.roots, sources, files, needed)),
        cuda_major(_sonames(files)),
        tuple(not_followed),
        sum(one.bytes_read for one in dependencies),
        sum(one.requests for one in dependencies),
        opens_unknown=opens_unknown(wheel.sources.modules, wheel.sources.roots, sources),
    )


def _not_imported(wheel: LaidOutWheel, others: Sequence[LaidOutWheel]) -> set[str]:
    """The libraries of NVIDIA's wheels that the import of torch does not load, for a wheel that is built for torch.

    Empty without torch; torch and NVIDIA's wheels find each other's libraries by their RPATH.
    """
    if wheel.project.startswith(_NVIDIA) or all(one.project != _TORCH for one in others):
        return set()
    theirs = (path for one in others if one.project.startswith(_NVIDIA) for path in one.files)
    return {path for path in theirs if not is_imported_by(_TORCH, posixpath.basename(path))}


def _next_to_supposed(files: Mapping[str, ElfFacts], owners: Mapping[str, str]) -> list[str]:
    """Files next to one of the same wheel whose dynamic section is only supposed: its search path is unknown."""
    supposed = {(posixpath.dirname(p), owners[p]) for p, elf in files.items() if Part.DYNAMIC in elf.possible}
    return [path for path in sorted(files) if (posixpath.dirname(path), owners[path]) in supposed]


def _sonames(files: Mapping[str, ElfFacts]) -> list[str]:
    dynamic = (elf.dynamic for elf in files.values())
    return [one.soname for one in dynamic if isinstance(one, DynamicFacts) and one.soname]


def modules_to_read(
    own: LaidOutWheel, others: Sequence[LaidOutWheel], missing: Set[str]
) -> list[tuple[LaidOutWheel, tuple[str, ...]]]:
    """The unread packages of other wheels whose source shows the libraries that the import of ``own`` opens in them.

    Those that provide a missing library, and those whose functions the import calls (``libraft.load_library()``).
    """
    sources = by_module(source for one in (own, *others) for source in one.sources.modules)
    opened = what_users_may_open(own.sources.roots, sources)
    imported = {n for one in opened if one.action.kind is ActionKind.IMPORT for n in imported_modules(one.action)}
    called = {one.action.target.rpartition(".")[0] for one in opened if one.action.kind is ActionKind.CALL}
    found = []
    for wheel in others:
        brings = bool(missing & {posixpath.basename(path) for path in wheel.files})
        wanted = wheel.packages & ((imported if brings else frozenset()) | (called & imported))
        roots = tuple(sorted(wanted - set(wheel.sources.roots)))
        if roots:
            found.append((wheel, roots))
    return found
