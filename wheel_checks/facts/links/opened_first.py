"""What imports of packages open, by their source: modules, and libraries that packages open by path. Pure.

glibc finds a library that is loaded already by its soname, wherever it is: so what an import opens first is there
for everything that is loaded later (``libcuml.load_library()``, cuda-pathfinder, torch's preloads).
"""

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from wheel_checks.formats.wheel.python_source import (
    Action,
    ActionKind,
    Function,
    PythonSource,
    extension_module_name,
    imported_modules,
    matches,
)

_MOST_STEPS = 200_000
_DEEPEST = 40  # modules and functions
_PARAMETER = re.compile("\x01([^\x02]{0,200})\x02")


@dataclass(frozen=True, slots=True)
class Opened:
    """An action with the module that shows it. ``certain``: it belongs to a call, or import, that nothing guards."""

    action: Action
    member: str
    certain: bool = False

    @property
    def place(self) -> str:
        """The line of the source."""
        return f"{self.member} line {self.action.line}"


def by_module(sources: Iterable[PythonSource]) -> dict[str, PythonSource]:
    """Modules by their dotted name; of two the first counts."""
    found: dict[str, PythonSource] = {}
    for source in sources:
        found.setdefault(source.module, source)
    return found


def what_imports_open(roots: Iterable[str], sources: Mapping[str, PythonSource]) -> tuple[Opened, ...]:
    """Every import, call, and opening of a library that importing ``roots`` carries out, in its order."""
    walk = _Walk(sources)
    for root in roots:
        walk.module(root, 0)
    return tuple(dict.fromkeys(walk.opened))


def what_users_may_open(roots: Iterable[str], sources: Mapping[str, PythonSource]) -> tuple[Opened, ...]:
    """As :func:`what_imports_open`, and what functions of these packages open when someone calls them."""
    walk = _Walk(sources)
    roots = tuple(roots)
    for root in roots:
        walk.module(root, 0)
    for source in _below(roots, sources):
        walk.functions(source)
    return tuple(dict.fromkeys(walk.opened))


def what_functions_open(sources: Iterable[PythonSource]) -> Iterator[Opened]:
    """What functions of the modules would do when they are called, and modules when they are imported."""
    for source in sources:
        yield from (Opened(action, source.member) for action in source.actions)
        for function in source.functions:
            yield from (Opened(_filled(action, {}), source.member) for action in function.actions)


class OpenedFiles:
    """Which of many actions import, or open, a library."""

    def __init__(self, opened: Iterable[Opened]) -> None:
        self._modules: dict[str, list[Opened]] = {}
        self._others: list[Opened] = []
        for one in dict.fromkeys(opened):
            if one.action.kind is ActionKind.IMPORT:
                for name in imported_modules(one.action):
                    self._modules.setdefault(name, []).append(one)
            elif one.action.kind is not ActionKind.CALL:
                self._others.append(one)

    def of(self, path: str) -> list[Opened]:
        """The actions that load the library at ``path`` in site-packages, in their order."""
        name = extension_module_name(path)
        return [*(self._modules.get(name, ()) if name else ()), *(o for o in self._others if _opens(o.action, path))]


def _opens(action: Action, path: str) -> bool:
    if action.kind is ActionKind.LOAD:
        return any(_is_path(pattern) and matches(pattern, path) for pattern in action.names)
    return any(matches(f"lib{name}.so*", posixpath.basename(path)) for name in action.names)


def opened_libraries(roots: Iterable[str], sources: Mapping[str, PythonSource], files: Collection[str]) -> list[str]:
    """The ``files`` that importing ``roots`` opens by path or name before, or next to, its extension modules."""
    # Also what its users and its compiled code (Cython) call: load_library() of a package that contains a library.
    opened = what_users_may_open(roots, sources)
    found = OpenedFiles(o for o in opened if o.action.kind is not ActionKind.IMPORT)
    return [path for path in sorted(files) if found.of(path)]


def certainly_opened(
    roots: Iterable[str], sources: Mapping[str, PythonSource], files: Collection[str], needed: Collection[str] = ()
) -> list[str]:
    """The ``files`` that the import opens through a function that it calls unguarded (``libcuml.load_library()``).

    Where the function swallows the loader's error in one of its branches (``libraft.load_library()``), the file
    matters only when it is ``needed`` by another file.
    """
    found = [o for o in what_imports_open(roots, sources) if o.certain and o.action.kind is ActionKind.LOAD]
    exact = [(o.action.names[0], o.action.tried) for o in found if len(o.action.names) == 1]
    swallowed = {path for path, tried in exact if tried and path not in needed}
    opened = {path for path, _ in exact} - swallowed
    return [path for path in sorted(files) if path in opened]


def opens_unknown(own: Iterable[PythonSource], roots: Iterable[str], sources: Mapping[str, PythonSource]) -> str:
    """The line of one of the ``own`` modules where the import opens a library whose path the source does not show.

    It computes the path, or reads it from a file; "" where every path is known.
    """
    members = {source.member for source in own}
    for one in what_imports_open(roots, sources):
        if one.member in members and one.action.kind is ActionKind.LOAD and "*" in one.action.names:
            return one.place
    return ""


def _below(roots: Iterable[str], sources: Mapping[str, PythonSource]) -> list[PythonSource]:
    packages = tuple(roots)
    below = tuple(f"{name}." for name in packages)
    return [source for name, source in sources.items() if name in packages or name.startswith(below)]


def _is_path(pattern: str) -> bool:
    """A library without a folder is looked up by ld.so, not in site-packages; ``*`` alone says nothing."""
    name = posixpath.basename(pattern)
    return "/" in pattern and len(name.strip("*.so0123456789")) > 1


class _Walk:
    """Follows imports and calls from module to module, each module once, each call with its arguments once."""

    def __init__(self, sources: Mapping[str, PythonSource]) -> None:
        self._sources = sources
        self._seen: set[object] = set()
        self._steps = _MOST_STEPS
        self.opened: list[Opened] = []

    def module(self, name: str, depth: int, outer: Action | None = None) -> None:
        source = self._sources.get(name)
        if source is None or name in self._seen or depth > _DEEPEST:
            return
        self._seen.add(name)
        self._actions(source, source.actions, depth, outer)

    def functions(self, source: PythonSource) -> None:
        """What the functions of the module open when someone calls them."""
        for function in source.functions:
            self._actions(source, [_filled(action, {}) for action in function.actions], 1, None)

    def _actions(self, source: PythonSource, actions: Sequence[Action], depth: int, outer: Action | None) -> None:
        for given in actions:
            self._steps -= 1
            if self._steps < 0:
                return
            action = given
            if outer is not None:
                tried, conditional = given.tried or outer.tried, given.conditional or outer.conditional
                action = replace(given, tried=tried, conditional=conditional)
            is_certain = outer is not None and outer.kind is ActionKind.CALL and not outer.tried
            self.opened.append(Opened(action, source.member, is_certain and not (outer and outer.conditional)))
            if action.kind is ActionKind.CALL:
                self._call(action, depth)
            if action.kind is ActionKind.IMPORT:
                for name in imported_modules(action):
                    self.module(name, depth + 1, action)

    def _call(self, action: Action, depth: int) -> None:
        key = (action.target, action.names)
        if key in self._seen or depth > _DEEPEST:
            return
        self._seen.add(key)
        found = self._function(action.target)
        if found is None:
            return
        module, function = found
        given = dict(zip(function.parameters, action.names, strict=False))
        actions = [_filled(inner, given) for inner in function.actions]
        self._actions(module, actions, depth + 1, action)

    def _function(self, name: str) -> tuple[PythonSource, Function] | None:
        """The function of a dotted name, also where its module only imports it from another one."""
        for _ in range(5):
            module, _, last = name.rpartition(".")
            source = self._sources.get(module)
            if source is None:
                return None
            function = source.function(last)
            if function is not None:
                return source, function
            exported = [a for a in source.actions if a.kind is ActionKind.IMPORT and last in a.names]
            if not exported:
                return None
            name = f"{exported[0].target}.{last}"
        return None


def _filled(action: Action, given: Mapping[str, str]) -> Action:
    """The action with arguments in place of parameters; of several texts each, and ``*`` where none is known."""
    if not any("\x01" in name for name in action.names):
        return action
    names: list[str] = []
    for name in action.names:
        choices = [name]
        for parameter in dict.fromkeys(_PARAMETER.findall(name)):
            texts = given.get(parameter, "*").split("|")[:24]
            choices = [c.replace(f"\x01{parameter}\x02", text) for c in choices[:24] for text in texts]
        names += choices
    return replace(action, names=tuple(dict.fromkeys(names)))
