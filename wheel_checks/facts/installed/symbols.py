"""Looks the symbols up that installed libraries need, in what the environment and its machine give them."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from wheel_checks.errors import FormatError
from wheel_checks.facts.elf.file import read_elf_file
from wheel_checks.facts.elf.native_members import is_library
from wheel_checks.facts.installed.facts import PackageSymbols
from wheel_checks.facts.installed.imports import Imports
from wheel_checks.facts.installed.package import InstalledPackage
from wheel_checks.facts.links.closure import LoaderEnvironment, close
from wheel_checks.facts.links.decisive import Role, is_for_another
from wheel_checks.facts.links.failing import counted_as_imported, cuda_major, what_is_loaded
from wheel_checks.facts.links.torch_exports import releases_that_export
from wheel_checks.facts.links.unresolved import SymbolFacts, find_unresolved
from wheel_checks.formats.elf.dynamic import DynamicFacts
from wheel_checks.formats.elf.file import LINKAGE_PARTS, LOADER_PARTS, ElfFacts, Part
from wheel_checks.formats.elf.linkage import Exports, hashes_of
from wheel_checks.sources.file_tree import FileTree
from wheel_checks.targets.target import Target

_OF_TORCH = re.compile(r"(.*)/torch/lib/lib[^/]+\.so$")
MOST_LIBRARIES = 5_000  # of the environment; reading what one defines takes some milliseconds
_DEEPEST = 32  # libraries of the system that need one another in a row


class Given:
    """The ``Definitions`` of an environment: its own libraries, and those of the machine that lead on from them."""

    def __init__(self, tree: FileTree, files: Mapping[str, ElfFacts], loader: LoaderEnvironment) -> None:
        self._tree = tree
        self._files = files
        self._loader = loader
        self._known: dict[str, Collection[int] | None] = {}
        self.bytes_read = 0

    @cached_property
    def torch(self) -> Collection[int] | None:
        """As in the protocol."""
        places = [(match[1], path) for path in self._files if (match := _OF_TORCH.match(path))]
        found = self.of([path for folder, path in places if folder == places[0][0]]).values()
        return None if not places or any(one is None for one in found) else frozenset().union(*filter(None, found))

    @cached_property
    def process(self) -> Collection[int] | None:
        """As in the protocol; None, too, where the machine is not available, or something of it cannot be read."""
        program = self._loader.program
        return self._with_needs(program) if program and self._loader.system is not None else None

    @property
    def most_libraries(self) -> int:
        """As in the protocol."""
        return MOST_LIBRARIES

    def of(self, paths: Sequence[str]) -> Mapping[str, Collection[int] | None]:
        """As in the protocol; of a library of the machine with all that it needs itself."""
        for path in paths:
            if path not in self._known:
                self._known[path] = self._exports(path) if path in self._files else self._with_needs(path)
        return {path: self._known[path] for path in paths}

    def libraries(self) -> Sequence[str]:
        """As in the protocol."""
        return sorted((path for path in self._files if is_library(path)), key=lambda path: (path.count("/"), path))

    def linkage(self, path: str) -> ElfFacts | str:
        """What the file needs and defines; why that cannot be read."""
        facts, read = read_elf_file(self._tree, path, LINKAGE_PARTS)
        self.bytes_read += read
        return facts or "it is no longer an ELF file"

    def _exports(self, path: str) -> Collection[int] | None:
        facts, read = read_elf_file(self._tree, path, {Part.EXPORTS})
        self.bytes_read += read
        if not isinstance(facts, ElfFacts) or facts.exports is None:
            return None if not isinstance(facts, ElfFacts) else frozenset()
        return hashes_of(facts.exports) if isinstance(facts.exports, Exports) else None

    def _with_needs(self, start: str) -> Collection[int] | None:
        """What the file defines with all that the loader finds for it; None where something cannot be found or read."""
        files: dict[str, ElfFacts] = {}
        new = {start}
        for _ in range(_DEEPEST):
            for path in sorted(new):
                facts, read = read_elf_file(self._tree, path, LOADER_PARTS)
                self.bytes_read += read
                if not isinstance(facts, ElfFacts):
                    return None
                files[path] = facts
            try:
                found = {need.by for need in close(files, [start], self._loader).needs}
            except FormatError:
                return None
            new = found - files.keys()
            if not new or "" in found:
                break
        exports = [self._exports(path) for path in files]
        is_whole = not new and all(one is not None for one in exports)
        return frozenset().union(*filter(None, exports)) if is_whole else None


def installed_symbols(
    packages: Iterable[InstalledPackage],
    imports: Imports,
    given: Given,
    target: Target,
    *,
    torch: str,
) -> tuple[PackageSymbols, ...]:
    """What came of looking up the symbols of each package that has libraries.

    ``torch`` is the version of the installed one, "" if none. Raises FormatError for a damaged table.
    """
    found = []
    with_libraries = [package for package in packages if any(map(is_library, package.paths))]
    cuda = cuda_major(_sonames(elf for package in with_libraries for elf in package.laid_out.files.values()))
    for package in with_libraries:
        files, reasons = _linkage(package, given, target)
        unresolved, unread, judged = find_unresolved(files, imports.closure.needs, files.keys(), given)
        if unresolved or unread:
            imported = _imported(package, imports, target.interpreter, cuda)
            unresolved = tuple(replace(i, imported=i.imported and i.path in imported) for i in unresolved)
            unread = tuple((path, reason) for path, reason in unread if path in imported)
        missing = {name for item in unresolved if item.imported for name in item.of_torch}
        fitting = releases_that_export(tuple(missing), target.machine) if missing and torch else ()
        open_ = tuple((path, reasons.get(path, reason)) for path, reason in unread)
        found.append(PackageSymbols(package.name, SymbolFacts(unresolved, open_, judged, torch, "", fitting)))
    return tuple(found)


def _imported(package: InstalledPackage, imports: Imports, interpreter: str, cuda: str) -> frozenset[str]:
    """The files that imports load: of a package that brings libraries to others, those that others need."""
    package.read_own()
    roles = package.roles(interpreter)
    brought = {need.by for need in imports.closure.needs if need.elf not in package.paths} & roles.keys()
    if brought and not any(one.role is Role.LOADED for one in roles.values()):
        return what_is_loaded(imports.all_missing, {}, tuple(sorted(brought))).files
    return counted_as_imported(what_is_loaded(imports.all_missing, roles, cuda=cuda), roles)


def _linkage(package: InstalledPackage, given: Given, target: Target) -> tuple[dict[str, ElfFacts], dict[str, str]]:
    """The package's libraries with what each needs and defines; and why that could not be read, by file."""
    files, reasons = {}, {}
    for path, name in package.paths.items():
        elf = package.laid_out.files[name]
        foreign = elf.header.machine != target.machine or is_for_another(path, target.interpreter)
        if foreign or not is_library(path):
            continue
        linkage = given.linkage(path)
        if isinstance(linkage, str):
            files[path], reasons[path] = elf, linkage
        else:
            files[path] = replace(elf, imports=linkage.imports, exports=linkage.exports)
    return files, reasons


def _sonames(elfs: Iterable[ElfFacts]) -> list[str]:
    dynamic = (elf.dynamic for elf in elfs)
    return [one.soname for one in dynamic if isinstance(one, DynamicFacts) and one.soname]
