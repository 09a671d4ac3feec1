"""Which of the libraries that lack something the installed packages load when they are imported, by their source."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from wheel_checks.facts.installed.package import InstalledPackage
from wheel_checks.facts.links.closure import Closure, Need, Status
from wheel_checks.facts.links.failing import what_is_loaded
from wheel_checks.facts.links.linking import LaidOutWheel, modules_to_read
from wheel_checks.facts.links.opened_first import by_module, opened_libraries
from wheel_checks.formats.elf.dynamic import DynamicFacts
from wheel_checks.formats.elf.file import ElfFacts
from wheel_checks.formats.wheel.python_source import ModuleSources

_ROUNDS = 6  # of following what packages open of each other


@dataclass(frozen=True, slots=True)
class Imports:
    """The closure as imports find it. ``undecided`` are files that lack a library, and that an import may load.

    ``all_missing`` is the same closure in which also is missing what no import needs.
    """

    closure: Closure
    all_missing: Closure
    undecided: frozenset[str] = frozenset()


def as_imported(closure: Closure, packages: Sequence[InstalledPackage], interpreter: str) -> Imports:
    """The closure in which what an import opens first is there, and what no import loads is optional.

    ``interpreter`` is as in wheel tags ("cp312"), "" where it is unknown.
    """
    lame = {need.elf for need in closure.needs if need.status is Status.MISSING}
    concerned = [package for package in packages if lame & package.paths.keys()]
    for package in concerned:
        package.read_own()
        closure = _with_preloads(closure, package, packages)
    all_missing = closure
    undecided: set[str] = set()
    by_others = {need.by for need in closure.needs if need.by}

    def optional(package: InstalledPackage, keep: frozenset[str]) -> Callable[[Need], Need]:
        how = f"importing {package.name} does not load the file"

        def change(need: Need) -> Need:
            is_optional = need.elf in package.paths and need.elf not in keep
            return replace(need, status=Status.OPTIONAL, how=how) if is_optional else need

        return change

    for package in concerned:
        loaded = what_is_loaded(closure, package.roles(interpreter))
        undecided |= package.paths.keys() & set(loaded.undecided)
        closure = _changed(closure, optional(package, loaded.files | set(loaded.undecided) | by_others))
    return Imports(closure, all_missing, frozenset(undecided))


def _with_preloads(closure: Closure, package: InstalledPackage, packages: Sequence[InstalledPackage]) -> Closure:
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
