"""Link closure: finds every DT_NEEDED as the loader would, in an installed tree or in wheels laid out as if installed.

Pure: given the facts of the files by path, and what is known of the machine. Rules of the search: ld.so(8), and glibc's
elf/dl-load.c (``_dl_map_object``), from which the order comes:

1. a library that is loaded already under this name counts, wherever it is;
2. DT_RPATH of the file, then of what loaded it, up to the program; not when the file has DT_RUNPATH, and not that of a
   loader which has one;
3. LD_LIBRARY_PATH;
4. DT_RUNPATH of the file;
5. ld.so.cache;
6. the default folders.

A file for another machine is passed over. The working directory (an empty entry) is not searched: no one knows it.
"""

import posixpath
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from wheel_checks.errors import FormatError
from wheel_checks.facts.links.known_libraries import DRIVER, SYSTEM, plugin_feature, provider_of
from wheel_checks.formats.elf.dynamic import DynamicFacts
from wheel_checks.formats.elf.file import ElfFacts, Missing, Part
from wheel_checks.formats.elf.search_path import expand_path

MAX_SEARCHES = 2_000_000  # of a soname, over all roots; a large environment takes ten thousand

_PRELOADED = "loaded by the package that is imported first"
_UNLOADED = "is in a wheel, where no search leads"
_OUTSIDE = "system: "  # how a file of the machine begins


class Status(StrEnum):
    """What becomes of one DT_NEEDED.

    RESOLVED by a file of the tree; DRIVER and SYSTEM: comes with NVIDIA's driver, the operating system; PRELOAD: only
    found because another package was imported first; UNLOADED: there is such a file, where no search leads, and nothing
    is known to load it; OPTIONAL: missing, but needed by a plugin that is opened on
    demand; WRONG_VERSION: found, but not the file that the requirement means (which only the installation shows).
    """

    RESOLVED = "resolved"
    DRIVER = "driver"
    SYSTEM = "system"
    PRELOAD = "preload"
    UNLOADED = "unloaded"
    OPTIONAL = "optional"
    MISSING = "missing"
    WRONG_VERSION = "wrong version"


@dataclass(frozen=True, slots=True)
class Need:
    """One DT_NEEDED of ``elf``. ``by`` is the path that satisfies it, "" if none is known; ``how`` says why there
    ("RPATH of torch/lib/libtorch_cuda.so"). ``searched`` are the paths tried in their order, those passed over with the
    reason. ``certain`` is False when the name itself rests on bytes that might be others.
    """

    elf: str
    soname: str
    status: Status
    by: str = ""
    how: str = ""
    searched: tuple[str, ...] = ()
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Closure:
    """Every need of every file, by file and in the file's order.

    ``orphans`` are libraries that no need leads to (some are opened by name); ``unread`` files whose dynamic section is
    not known, so that neither are their needs.
    """

    needs: tuple[Need, ...]
    orphans: tuple[str, ...]
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SystemLibraries:
    """What is known of the machine outside the tree: paths by soname as ld.so.cache lists them, the default folders in
    their order, and ``read``, which gives the facts of the file at an absolute path, None if none exists.
    """

    cache: Mapping[str, tuple[str, ...]]
    default_folders: tuple[str, ...]
    read: Callable[[str], ElfFacts | None]


@dataclass(frozen=True, slots=True)
class LoaderEnvironment:
    """Where the loader runs. ``machine`` is as wheel platform tags name it.

    ``library_path`` is LD_LIBRARY_PATH, split; ``program`` the path of the interpreter, whose DT_RPATH serves all;
    ``preloaded`` are paths of libraries that packages open themselves before anything needs them, ``unloaded`` those of
    which it is unknown whether anything does. Without ``system``
    (wheels remotely) the tables of driver and system libraries decide; ``glibc`` is then the manylinux policy.
    """

    machine: str
    library_path: tuple[str, ...] = ()
    program: str = ""
    preloaded: tuple[str, ...] = ()
    system: SystemLibraries | None = None
    glibc: tuple[int, int] | None = None
    unloaded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Found:
    """The outcome of one search: the path, "" if none, why there, and what was tried."""

    path: str
    how: str
    searched: tuple[str, ...]


@dataclass(slots=True)
class _Load:
    """One dlopen, as the loader carries it out breadth first: what is loaded by name, who loaded it, what was found."""

    names: dict[str, str] = field(default_factory=dict)
    loaders: dict[str, str] = field(default_factory=dict)
    found: dict[tuple[str, str], _Found] = field(default_factory=dict)


def close(files: Mapping[str, ElfFacts], roots: Collection[str], environment: LoaderEnvironment) -> Closure:
    """Find what every file needs.

    ``files`` are the ELF files by path: relative to site-packages for wheels laid out as if installed, absolute for an
    installed tree. ``roots`` are those that Python opens (extension modules): what they lead to is searched as in one
    process each. A file that no root leads to is opened on its own. Raises FormatError when it takes too many searches.
    """
    search = _Search(files, environment)
    loads = [search.load(root) for root in roots if root in files]
    reached = {path for load in loads for path in load.loaders}
    imported = {name: path for load in reversed(loads) for name, path in load.names.items()}
    loads += [search.load(path, follow=False) for path in sorted(files) if path not in reached]
    for path in environment.preloaded:
        if path in files:
            imported = search.load(path).names | imported  # with all that it brings into the process
    idle = {name: path for path in environment.unloaded if path in files for name in _names(path, files[path])}
    needs: list[Need] = []
    for path, elf in sorted(files.items()):
        certain = Part.DYNAMIC not in elf.possible
        own = []
        for soname in _needed(elf):
            outcomes = [load.found[path, soname] for load in loads if (path, soname) in load.found]
            status, found = _judge(path, soname, outcomes, imported, idle, environment)
            own.append(Need(path, soname, status, found.path, found.how, found.searched, certain))
        needs += _as_imported_second(own, imported)
    used = {need.by for need in needs}
    orphans = tuple(p for p in sorted(files) if p not in used and p not in roots and _is_library(p))
    unread = tuple(sorted(path for path, elf in files.items() if isinstance(elf.dynamic, Missing)))
    return Closure(tuple(needs), orphans, unread)


def _judge(
    path: str,
    soname: str,
    outcomes: Iterable[_Found],
    imported: Mapping[str, str],
    idle: Mapping[str, str],
    environment: LoaderEnvironment,
) -> tuple[Status, _Found]:
    """The status of one need, from what each process that loads the file finds."""
    outcomes = list(outcomes)
    hits = [found for found in outcomes if found.path]
    misses = [found for found in outcomes if not found.path]
    provider = provider_of(soname, environment.glibc)
    if hits and not misses:
        outside = hits[0].how.startswith(_OUTSIDE)
        return (Status.DRIVER if provider == DRIVER else Status.SYSTEM if outside else Status.RESOLVED), hits[0]
    searched = misses[0].searched
    if hits:
        return Status.PRELOAD, _Found(hits[0].path, _PRELOADED, searched)
    if provider == DRIVER or (provider == SYSTEM and environment.system is None):
        return Status(provider), _Found("", f"a {provider} library", searched)
    for known, status, how in ((imported, Status.PRELOAD, _PRELOADED), (idle, Status.UNLOADED, _UNLOADED)):
        if soname in known:
            return status, _Found(known[soname], how, searched)
    if feature := plugin_feature(path):
        return Status.OPTIONAL, _Found("", f"a plugin for {feature}", searched)
    return Status.MISSING, misses[0]


def _as_imported_second(needs: Sequence[Need], imported: Mapping[str, str]) -> Iterator[Need]:
    """The needs of one file, when another package must be imported before it: what that one has loaded, it gets, too.

    torchvision finds libtorch.so nowhere, so torch is imported first; then torch's libcudart.so.13 is loaded, and the
    one of a CUDA toolkit, which the loader would find only for torchvision, is not searched for.
    """
    second = any(need.status is Status.PRELOAD for need in needs)
    for need in needs:
        if second and need.how.startswith(_OUTSIDE) and need.status is Status.SYSTEM and need.soname in imported:
            yield replace(need, status=Status.PRELOAD, by=imported[need.soname], how=_PRELOADED)
        else:
            yield need


class _Search:
    """Searches as one loader environment does, within a budget."""

    def __init__(self, files: Mapping[str, ElfFacts], environment: LoaderEnvironment) -> None:
        self._files = files
        self._environment = environment
        self._system = environment.system
        self._budget = MAX_SEARCHES

    def load(self, root: str, *, follow: bool = True) -> _Load:
        """Open ``root``, and what it needs breadth first; without ``follow`` only find what it needs itself."""
        load = _Load(names=dict.fromkeys(_names(root, self._files[root]), root), loaders={root: ""})
        queue = deque([root])
        while queue:
            path = queue.popleft()
            for soname in _needed(self._files[path]):
                found = load.found[path, soname] = self._find(soname, path, load)
                if not found.path:
                    continue
                load.names.setdefault(soname, found.path)
                if found.path in self._files and found.path not in load.loaders:
                    load.loaders[found.path] = path
                    for name in _names(found.path, self._files[found.path]):
                        load.names.setdefault(name, found.path)
                    if follow:
                        queue.append(found.path)
        return load

    def _find(self, soname: str, path: str, load: _Load) -> _Found:
        self._budget -= 1
        if self._budget < 0:
            raise FormatError(f"resolving the libraries takes more than {MAX_SEARCHES:,} searches")
        if soname in load.names:
            return _Found(load.names[soname], "loaded already", ())
        searched: dict[str, str] = {}
        for candidate, how in self._candidates(soname, path, load):
            if candidate in searched:
                continue
            elf = self._files.get(candidate)
            inside = elf is not None
            if elf is None and self._system is not None and candidate.startswith("/"):
                elf = self._system.read(candidate)
            if elf is not None and elf.header.machine == self._environment.machine:
                searched[candidate] = candidate
                return _Found(candidate, how if inside else _OUTSIDE + how, tuple(searched.values()))
            searched[candidate] = candidate if elf is None else f"{candidate} (for {elf.header.machine})"
        return _Found("", "", tuple(searched.values()))

    def _candidates(self, soname: str, path: str, load: _Load) -> Iterator[tuple[str, str]]:
        """The paths at which the loader looks, each with the reason, in its order."""
        if "/" in soname:
            yield self._expand(soname, path), "a path"
            return
        for folder, how in self._folders(path, load):
            yield posixpath.join(folder, soname), how
        if self._system is not None:
            yield from ((candidate, "ld.so.cache") for candidate in self._system.cache.get(soname, ()))
            for folder in self._system.default_folders:
                yield posixpath.join(folder, soname), "default folder"

    def _folders(self, path: str, load: _Load) -> Iterator[tuple[str, str]]:
        dynamic = _dynamic(self._files[path])
        if dynamic is None:
            return
        if not dynamic.runpath:
            loader = path
            while loader:
                yield from self._rpath(loader, self._files[loader])
                loader = load.loaders.get(loader, "")
            yield from self._program_rpath()
        yield from ((folder, "LD_LIBRARY_PATH") for folder in self._environment.library_path if folder)
        for folder in filter(None, dynamic.runpath):
            yield self._expand(folder, path), f"RUNPATH of {path}"

    def _rpath(self, path: str, elf: ElfFacts) -> Iterator[tuple[str, str]]:
        dynamic = _dynamic(elf)
        if dynamic is not None and not dynamic.runpath:
            for folder in filter(None, dynamic.rpath):
                yield self._expand(folder, path), f"RPATH of {path}"

    def _program_rpath(self) -> Iterator[tuple[str, str]]:
        program = self._environment.program
        if program and self._system is not None and (elf := self._system.read(program)) is not None:
            yield from self._rpath(program, elf)

    def _expand(self, folder: str, path: str) -> str:
        return expand_path(folder, posixpath.dirname(path) or ".", platform=self._environment.machine)


def _dynamic(elf: ElfFacts) -> DynamicFacts | None:
    """The dynamic section, None when the file has none or it is unknown."""
    return None if isinstance(elf.dynamic, Missing) else elf.dynamic


def _needed(elf: ElfFacts) -> tuple[str, ...]:
    dynamic = _dynamic(elf)
    return tuple(dict.fromkeys(dynamic.needed)) if dynamic else ()


def _names(path: str, elf: ElfFacts) -> list[str]:
    """The names under which a loaded file satisfies a need: its soname, else none but its own path."""
    dynamic = _dynamic(elf)
    return [dynamic.soname] if dynamic and dynamic.soname else [path]


def _is_library(path: str) -> bool:
    name = posixpath.basename(path)
    return name.startswith("lib") and ".so" in name
