"""The missing libraries that break the import of a package, by the files that it loads. Pure."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from wheel_checks.facts.links.closure import Closure, Need, Status
from wheel_checks.facts.links.decisive import Decisive, Role, taken_of_group


@dataclass(frozen=True, slots=True)
class Loaded:
    """``files`` are those that the import loads, and their closure. ``undecided`` lack a library while others do not,
    and it is unknown whether the import loads them.
    """

    files: frozenset[str]
    undecided: tuple[str, ...] = ()


def what_is_loaded(
    closure: Closure,
    roles: Mapping[str, Decisive],
    opened: Sequence[str] = (),
    *,
    cuda: str = "",
    sms: Collection[int] = (),
) -> Loaded:
    """The files that the import of a package loads, given the roles of its files, and those it ``opened`` of others.

    Of a group, the files selected by this CUDA ("13") and these GPUs, or those of them that lack nothing. If nothing
    shows which are loaded, all are included when all lack a library.
    """
    reach = _Reach(closure)
    start = [path for path, one in roles.items() if one.role is Role.LOADED]
    for group in _groups(roles).values():
        taken = taken_of_group(group, cuda, sms)
        start += [path for path in taken if not reach.lacks(path)] or taken
    unknown = [path for path, one in roles.items() if one.role is Role.UNKNOWN]
    lacking = [path for path in unknown if reach.lacks(path)]
    if not start and lacking == unknown:
        return Loaded(reach.of([*unknown, *opened]))
    return Loaded(reach.of([*start, *opened, *(path for path in unknown if path not in lacking)]), tuple(lacking))


def counted_as_imported(loaded: Loaded, roles: Mapping[str, Decisive]) -> frozenset[str]:
    """The files that the import loads, and those of unknown role that are not named like libraries.

    A file that a package loads is named like a module; a name that starts with "lib" is for files that link to it. If
    nothing else is included, all are: they are the purpose of the package, but for those for another torch.
    """
    unknown = (path for path, one in roles.items() if one.role is Role.UNKNOWN)
    files = loaded.files | {path for path in unknown if not posixpath.basename(path).startswith("lib")}
    if files & roles.keys():
        return files
    return files | {path for path, one in roles.items() if not one.is_for_another}


def missing_of(closure: Closure, path: str) -> list[str]:
    """The missing libraries in the closure of the file, itself included."""
    reached = _Reach(closure).of([path])
    return sorted({n.soname for n in closure.needs if n.status is Status.MISSING and n.elf in reached})


def cuda_major(sonames: Iterable[str]) -> str:
    """The one CUDA ("13") whose runtime is among the sonames, "" if none exists or several."""
    majors = {name.rpartition(".")[2] for name in sonames if name.startswith("libcudart.so.")}
    return majors.pop() if len(majors) == 1 else ""


def _groups(roles: Mapping[str, Decisive]) -> dict[str, dict[str, Decisive]]:
    groups: defaultdict[str, dict[str, Decisive]] = defaultdict(dict)
    for path, one in roles.items():
        if one.role is Role.ALTERNATIVE:
            groups[one.group][path] = one
    return groups


class _Reach:
    """The closure of files; a library that was not read leads to the files next to it and is needed."""

    def __init__(self, closure: Closure) -> None:
        self._unread = frozenset(closure.unread)
        self._needed: defaultdict[str, list[Need]] = defaultdict(list)
        for need in closure.needs:
            self._needed[need.elf].append(need)
        self._by_folder: defaultdict[str, list[str]] = defaultdict(list)
        for path in sorted(self._needed.keys() - set(closure.orphans)):
            self._by_folder[posixpath.dirname(path)].append(path)

    def of(self, paths: Iterable[str]) -> frozenset[str]:
        return self._walk(paths, lambda _: False)[0]

    def lacks(self, path: str) -> bool:
        """True when a library is missing in the closure of the file."""
        return self._walk([path], lambda need: need.status is Status.MISSING)[1]

    def _walk(self, paths: Iterable[str], ends: Callable[[Need], bool]) -> tuple[frozenset[str], bool]:
        found: set[str] = set()
        front = list(paths)
        while front:
            path = front.pop()
            if path in found:
                continue
            found.add(path)
            needs = self._needed.get(path, ())
            if any(ends(need) for need in needs):
                return frozenset(found), True
            front += [need.by for need in needs if need.by]
            front += self._by_folder.get(posixpath.dirname(path), ()) if path in self._unread else ()
        return frozenset(found), False
