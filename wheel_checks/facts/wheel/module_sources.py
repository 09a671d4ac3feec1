"""Reads the Python members of a wheel that say what its import loads: few files, and each once."""

import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.archive.kept import AsJson, FileFacts
from wheel_checks.facts.archive.members import read_members
from wheel_checks.facts.elf.native_members import is_library
from wheel_checks.formats.wheel.python_source import (
    MAX_SIZE,
    ActionKind,
    ModuleSources,
    PythonSource,
    extension_module_name,
    imported_modules,
    module_name,
    parse_python_source,
)
from wheel_checks.sources.byte_source import ByteSource

MOST_FILES = 96
"""Python members of one wheel that are read because an import leads to them."""
MOST_OF_OTHERS = 16
"""Python members of a wheel that the judged one requires that are read."""
MOST_NEAR = 32
"""Python members that are read because they are next to libraries that no import leads to."""
MOST_BYTES = 700_000
"""Compressed bytes of Python members of one wheel that are read, for each of the two reasons."""
_PLACEHOLDER = 16 * 1024  # compressed bytes of all modules up to which they are read of a wheel without libraries, too
_ROUNDS = 6  # of following imports: each costs the time of one request
_NOT_IMPORTED = {"tests", "test", "testing", "docs", "doc", "examples", "benchmarks", "benchmark", "setup", "conftest"}

Sizes = Mapping[str, int]
"""What reading each Python member costs in bytes, by its path in site-packages."""
Reader = Callable[[list[str]], Mapping[str, bytes]]
"""The bytes of members by their paths; those that cannot be read are omitted."""


def read_module_sources(
    source: ByteSource, archive: Archive, native: Collection[str], roots: Collection[str] = ()
) -> ModuleSources:
    """The modules of a wheel that show what is loaded when ``roots``, or else its packages, are imported.

    ``native`` are the members that are libraries. Raises SourceError when bytes cannot be had.
    """
    sizes = {m.name: m.compressed_size for m in archive.members if m.name.endswith(".py") and m.size <= MAX_SIZE}

    def read(names: list[str]) -> Mapping[str, bytes]:
        found = read_members(source, archive, dict.fromkeys(names, MAX_SIZE))
        return {name: data for name, data in found.contents.items() if isinstance(data, bytes)}

    return collect_module_sources(sizes, read, native, roots)


def collect_module_sources(
    sizes: Sizes, read: Reader, native: Collection[str], roots: Collection[str] = ()
) -> ModuleSources:
    """As :func:`read_module_sources`, of members that ``read`` reads."""
    members = {module_name(name): name for name in sorted(sizes)}  # a/__init__.py after a.py, and before it for Python
    given, roots = roots, tuple(roots) or tuple(_packages(members, native))
    found: dict[str, PythonSource] = {}
    unread: dict[str, None] = {}

    def follow(wanted: Iterable[str], most: int) -> None:
        budget = MOST_BYTES
        front = list(dict.fromkeys(wanted))
        for _ in range(_ROUNDS):
            taken: list[str] = []
            for name in front:
                if most and sizes[name] <= budget:
                    taken.append(name)
                    budget -= sizes[name]
                    most -= 1
            unread.update(dict.fromkeys(name for name in front if name not in taken))
            for name, data in (read(taken) if taken else {}).items():
                found[name] = parse_python_source(name, data)
            reached = _imported_by((found[name] for name in taken if name in found), members)
            front = [name for name in dict.fromkeys(reached) if name not in found and name not in unread]
        unread.update(dict.fromkeys(front))

    is_other = bool(given)  # a wheel of which only what it opens matters
    follow((members[root] for root in roots if root in members), MOST_OF_OTHERS if is_other else MOST_FILES)
    if is_other:
        return ModuleSources(tuple(found.values()), roots, tuple(unread))
    near = [name for name in _near(native, found.values(), sizes) if name not in found]
    for name in near:
        unread.pop(name, None)
    follow(near[:MOST_NEAR], MOST_NEAR)
    return ModuleSources(tuple(found.values()), roots, tuple(unread))


def _packages(members: Mapping[str, str], native: Collection[str]) -> Iterator[str]:
    """The packages and modules at the top of the wheel, and those in folders that are no packages (``nvidia/cu13``)."""
    holders = {name.partition("/")[0] for name in native}
    top = [module for module in members if module.isidentifier() and module not in _NOT_IMPORTED]
    yield from sorted(top, key=lambda module: (module not in holders, module))
    for module in sorted(members):
        outer, _, _ = module.rpartition(".")
        is_package = members[module].endswith("/__init__.py")
        if outer and is_package and outer not in members and outer.partition(".")[0] in holders - set(top):
            yield module


def _imported_by(sources: Iterable[PythonSource], members: Mapping[str, str]) -> Iterator[str]:
    """The members that the modules import, and those whose functions they call, when they are imported."""
    for source in sources:
        inside = [action for function in source.functions for action in function.actions]
        calls = {action.target.rpartition(".")[0] for action in source.actions if action.kind is ActionKind.CALL}
        for action in (*source.actions, *inside):
            if action.kind is ActionKind.IMPORT and (action in source.actions or action.target in calls):
                yield from (members[name] for name in imported_modules(action) if name in members)


def _near(native: Collection[str], found: Iterable[PythonSource], sizes: Sizes) -> Iterator[str]:
    """Members next to extension modules that nothing which was read imports; the small ones first."""
    mentioned = {
        name
        for source in found
        for actions in (source.actions, *(function.actions for function in source.functions))
        for action in actions
        if action.kind is ActionKind.IMPORT
        for name in imported_modules(action)
    }
    lonely = [path for path in native if (name := extension_module_name(path)) and name not in mentioned]
    folders = {posixpath.dirname(path) for path in lonely}
    if lonely:
        near = [name for name in sizes if posixpath.dirname(name) in folders]
        yield from sorted(near, key=lambda name: (sizes[name], name))


def kept_module_sources(
    source: ByteSource, archive: Archive, kept: FileFacts, roots: Collection[str] = ()
) -> ModuleSources:
    """As :func:`read_module_sources`; what is ``kept`` of the wheel is not read again.

    Of a wheel without libraries nothing is read but what is small: a name that is taken on an index raises an error.
    """
    native = [member.name for member in archive.members if is_library(member.name)]
    python = sum(member.compressed_size for member in archive.members if member.name.endswith(".py"))
    is_wanted = bool(native or roots) or 0 < python <= _PLACEHOLDER
    part = " ".join(["python sources", *sorted(roots)])
    return kept.remember(
        part,
        AsJson(ModuleSources),
        lambda: read_module_sources(source, archive, native, roots) if is_wanted else ModuleSources(),
    )


def packages_of(names: Iterable[str]) -> frozenset[str]:
    """The outermost packages and modules among files, ``nvidia.libnvcomp`` where ``nvidia`` itself is not a package."""
    python = [name for name in names if name.endswith(".py")]
    packages = {module_name(name) for name in python if name.endswith("/__init__.py")}
    single = {module_name(name) for name in python if "/" not in name}
    outer = {name for name in packages if not any(name.startswith(f"{one}.") for one in _above(name) & packages)}
    return frozenset(name for name in outer | single if all(part.isidentifier() for part in name.split(".")))


def _above(name: str) -> set[str]:
    parts = name.split(".")[:20]
    return {".".join(parts[:count]) for count in range(1, len(parts))}


def joined(one: ModuleSources, other: ModuleSources) -> ModuleSources:
    """What was read of one wheel at two times."""
    modules = {source.member: source for source in (*one.modules, *other.modules)}
    return ModuleSources(tuple(modules.values()), (*one.roots, *other.roots), (*one.unread, *other.unread))
