"""Which of the libraries that lack something the installed packages load when they are imported, by their source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from wheel_checks.facts.installed.facts import Distribution, RecordedFiles
from wheel_checks.facts.links.closure import Closure, Need, Status
from wheel_checks.facts.links.decisive import decisive_files
from wheel_checks.facts.links.failing import what_is_loaded
from wheel_checks.facts.links.linking import LaidOutWheel, modules_to_read
from wheel_checks.facts.links.opened_first import by_module, opened_libraries
from wheel_checks.facts.wheel.module_sources import collect_module_sources, joined, packages_of
from wheel_checks.formats.elf.dynamic import DynamicFacts
from wheel_checks.formats.elf.file import ElfFacts
from wheel_checks.formats.wheel.python_source import MAX_SIZE, ModuleSources
from wheel_checks.sources.file_tree import FileTree

_ROUNDS = 6  # of following what packages open of each other


@dataclass(frozen=True, slots=True)
class Imports:
    """The closure as imports find it. ``undecided`` are files that lack a library, and that an import may load."""

    closure: Closure
    undecided: frozenset[str] = frozenset()


def as_imported(
    closure: Closure, files: Mapping[str, ElfFacts], distributions: Sequence[Distribution], tree: FileTree
) -> Imports:
    """The closure in which what an import opens first is there, and what no import loads is optional."""
    lame = {need.elf for need in closure.needs if need.status is Status.MISSING}
    packages = [_Package(one, files, tree) for one in distributions if isinstance(one.files, RecordedFiles)]
    concerned = [package for package in packages if lame & package.paths.keys()]
    for package in concerned:
        package.read(package.laid_out, ())
        closure = _with_preloads(closure, package, packages)
    undecided: set[str] = set()
    by_others = {need.by for need in closure.needs if need.by}

    def optional(package: _Package, keep: frozenset[str]) -> Callable[[Need], Need]:
        how = f"importing {package.distribution.name} does not load the file"

        def change(need: Need) -> Need:
            is_optional = need.elf in package.paths and need.elf not in keep
            return replace(need, status=Status.OPTIONAL, how=how) if is_optional else need

        return change

    for package in concerned:
        roles = decisive_files(package.laid_out.files, package.laid_out.sources, package.distribution.name)
        loaded = what_is_loaded(closure, {package.absolute(path): role for path, role in roles.items()})
        undecided |= package.paths.keys() & set(loaded.undecided)
        closure = _changed(closure, optional(package, loaded.files | set(loaded.undecided) | by_others))
    return Imports(closure, frozenset(undecided))


class _Package:
    """One distribution: its libraries by absolute path with that in its folder, and what was read of its source."""

    def __init__(self, distribution: Distribution, files: Mapping[str, ElfFacts], tree: FileTree) -> None:
        self.distribution = distribution
        self._tree = tree
        self._prefix = f"{distribution.entry}/"
        owned = distribution.files.owned if isinstance(distribution.files, RecordedFiles) else {}
        inside = [path for path in owned if path.startswith(self._prefix)]
        self.paths = {path: path.removeprefix(self._prefix) for path in inside if path in files}
        self._modules = dict.fromkeys((p.removeprefix(self._prefix) for p in inside if p.endswith(".py")), 1)
        laid_out = {name: files[path] for path, name in self.paths.items()}
        self.laid_out = LaidOutWheel(
            f"{distribution.name.replace('-', '_')}-0", laid_out, packages=packages_of(self._modules)
        )

    def absolute(self, path: str) -> str:
        """The absolute path of a file of the distribution."""
        return self._prefix + path

    def read(self, known: LaidOutWheel, roots: Iterable[str]) -> None:
        """Read the source that importing ``roots`` leads to, or for none its packages."""
        found = collect_module_sources(self._modules, self._read, known.files, tuple(roots))
        self.laid_out = replace(known, sources=joined(known.sources, found))

    def _read(self, names: list[str]) -> dict[str, bytes]:
        read = ((name, self._tree.read(self.absolute(name), MAX_SIZE)) for name in names)
        return {name: data for name, data in read if data is not None}


def _with_preloads(closure: Closure, package: _Package, packages: Sequence[_Package]) -> Closure:
    """The closure in which the package finds what its import, or a function of it, opens before."""
    missing = {n.soname for n in closure.needs if n.status is Status.MISSING and n.elf in package.paths}
    others = {one.laid_out.file_name: one for one in packages if one is not package}
    seen: dict[str, LaidOutWheel] = {
        name: replace(one.laid_out, sources=ModuleSources()) for name, one in others.items()
    }
    for _ in range(_ROUNDS):
        wanted = modules_to_read(package.laid_out, list(seen.values()), missing)
        if not wanted:
            break
        for wheel, roots in wanted:
            other = others[wheel.file_name]
            other.read(wheel, roots)
            seen[wheel.file_name] = other.laid_out
    sources = by_module(s for one in (package.laid_out, *seen.values()) for s in one.sources.modules)
    places = {name: path for one in packages for path, name in one.paths.items()}
    libraries = {name: elf for one in packages for name, elf in one.laid_out.files.items()}
    opened = opened_libraries(package.laid_out.sources.roots, sources, libraries)
    names = {soname: places[name] for name in opened if (soname := _soname(libraries[name]))}

    def change(need: Need) -> Need:
        if need.elf in package.paths and need.soname in names:
            how = "opened by the package before it is needed"
            return replace(need, status=Status.PRELOAD, by=names[need.soname], how=how)
        return need

    return _changed(closure, change)


def _soname(elf: ElfFacts) -> str:
    return elf.dynamic.soname or "" if isinstance(elf.dynamic, DynamicFacts) else ""


def _changed(closure: Closure, change: Callable[[Need], Need]) -> Closure:
    """With every need that is missing changed."""
    return replace(closure, needs=tuple(change(n) if n.status is Status.MISSING else n for n in closure.needs))
