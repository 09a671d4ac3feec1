"""The native files of a package that decide whether its import works, by its Python source. Pure.

* LOADED: the import certainly loads it, also if the package catches the error: without its only binary module, a
  package that continues is incomplete.
* ALTERNATIVE: one of a group is loaded, chosen by CUDA, GPU, or the files present.
* OPTIONAL: only a function loads it, or nothing that was read, while the package loads other files.
* UNKNOWN: the source does not show it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from wheel_checks.facts.gpu.deciding import DecidingGroup, deciding_groups
from wheel_checks.facts.links.opened_first import (
    Opened,
    OpenedFiles,
    by_module,
    what_functions_open,
    what_imports_open,
)
from wheel_checks.formats.wheel.python_source import ActionKind, ModuleSources, PythonSource, extension_module_name
from wheel_checks.model import Unavailable

# As CPython imports them; the last for modules that are built without a tag (setuptools' no_python_abi_suffix).
_EXTENSION_MODULE = re.compile(r"(?:\.cpython-[\w-]+|\.abi3)\.so$|(?:^|/)_[^/]*\.so$|(?:^|/)_C/[^/]+\.so$")
_BUNDLED = re.compile(r"^[^/]+\.libs/")  # auditwheel's folder for bundled libraries
_TAG = re.compile(r"\.cpython-(3\d+t?)[^/]*\.so$")
# A library that is one of several for releases of torch: libaddon_torch29-cuda.so, build/torch210-cxx11-cu130/
_TORCH = re.compile(r"(?:^|[^a-z0-9])(?:torch|pt)[-_]?([12])[._]?(\d{1,2})(?![\d.])")


class Role(StrEnum):
    """How the import of a package uses a native file."""

    LOADED = "loaded"
    ALTERNATIVE = "alternative"
    OPTIONAL = "optional"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Decisive:
    """The role of one native file. ``group`` names the alternatives that it belongs to; ``cuda`` and ``architectures``
    are those in its name; ``shown_by`` is the line of source that shows it, or "" for a name. ``is_for_another``: it is
    named after another release of torch than the installed one. ``imported``: the import
    of the package fails unless Python can import the file as a module, also if the file is for another Python; True,
    too, if no source was read.
    """

    role: Role
    group: str = ""
    shown_by: str = ""
    cuda: str = ""
    architectures: tuple[int | str, ...] = ()
    imported: bool = False
    is_for_another: bool = False

    def fits(self, cuda: str, sms: Iterable[int] = ()) -> bool:
        """False for an alternative that is for another CUDA, or for none of the GPUs; "" and no GPU fit all."""
        own, given = self.cuda.split("."), cuda.split(".")
        if self.cuda and cuda and any(one != other for one, other in zip(own, given, strict=False)):
            return False
        wanted = set(sms)
        return not wanted or not self.architectures or bool(wanted & set(self.architectures))


def decisive_files(
    files: Iterable[str],
    sources: ModuleSources | Unavailable,
    project: str = "",
    interpreter: str = "",
    torch: str = "",
) -> dict[str, Decisive]:
    """The role of each native file of a package, by its path in site-packages.

    A module that is tagged for another ``interpreter`` ("cp312") is optional, unless it is opened by its path; a file
    that is named after another release of ``torch`` than the installed one ("2.11.0") always is.
    """
    paths = list(dict.fromkeys(files))
    read = ModuleSources() if isinstance(sources, Unavailable) else sources
    modules = by_module(read.modules)
    imported = OpenedFiles(what_imports_open(read.roots, modules))
    possible = OpenedFiles(what_functions_open(read.modules))
    groups = {member: group for group in deciding_groups(paths, project) for member in group.members}
    shown = {path: imported.of(path) for path in paths}
    other_torch = {path for path in paths if _is_for_another_torch(path, torch)}
    foreign = {path for path in paths if is_for_another(path, interpreter)} | other_torch
    for path in foreign:
        shown[path] = (
            [] if path in other_torch else [one for one in shown[path] if one.action.kind is not ActionKind.IMPORT]
        )
    roles = {path: _role(path, shown[path], possible, groups[path], is_foreign=path in foreign) for path in paths}
    if not any(role is Role.LOADED for role, _ in roles.values()):  # then an uncertain one is all that there is
        tried = [path for path in paths if shown[path] and roles[path][0] is Role.OPTIONAL]
        roles |= {path: (Role.LOADED, roles[path][1]) for path in tried}
    if not any(role is Role.LOADED for role, _ in roles.values()):
        # A file that a function opens by its path is the purpose of a package without modules: libraft.load_library().
        by_path = [
            p
            for p in paths
            if p not in other_torch and any(one.action.kind is ActionKind.LOAD for one in possible.of(p))
        ]
        unnamed = [p for p in paths if not roles[p][1] and p not in foreign and not _BUNDLED.search(p)]
        only = [p for p in by_path or unnamed if roles[p][0] is Role.OPTIONAL]
        roles |= {p: (Role.UNKNOWN, roles[p][1]) for p in only}
    found = _with_groups(roles, groups, _chosen_among(paths, shown))
    needed = {path for path in paths if _is_imported(path, imported, modules)}
    return {
        path: replace(one, imported=path in needed, is_for_another=path in other_torch) for path, one in found.items()
    }


def _is_imported(path: str, opened: OpenedFiles, modules: Mapping[str, PythonSource]) -> bool:
    """Whether an unguarded import names the file as a module (unless shadowed), or no module was read."""
    name = extension_module_name(path)
    if not name or name in modules:
        return False
    actions = [one.action for one in opened.of(path) if one.action.kind is ActionKind.IMPORT]
    certain = any(not action.tried and not action.conditional for action in actions)
    return certain or not modules


def is_for_another(path: str, interpreter: str) -> bool:
    """True for a module whose tag names another interpreter than this one ("cp312"); for "" none is another."""
    tag = _TAG.search(path)
    return tag is not None and bool(interpreter) and f"cp{tag[1]}" != interpreter


def _is_for_another_torch(path: str, torch: str) -> bool:
    named = _TORCH.search(path.lower())
    return named is not None and bool(torch) and [named[1], named[2]] != torch.split(".")[:2]


def _role(
    path: str, shown: list[Opened], possible: OpenedFiles, group: DecidingGroup, *, is_foreign: bool
) -> tuple[Role, str]:
    is_main = group.role == "main" and is_extension_module(path) and not is_foreign
    certain = [one for one in shown if not one.action.tried and not one.action.conditional]
    if certain:
        return Role.LOADED, certain[0].place
    if shown:
        unconditional = [one for one in shown if not one.action.conditional]
        if is_main:
            return Role.LOADED, shown[0].place
        return (Role.OPTIONAL if unconditional else Role.UNKNOWN), shown[0].place
    maybe = next(iter(possible.of(path)), None)
    if is_main:
        return Role.LOADED, maybe.place if maybe else ""
    return Role.OPTIONAL, maybe.place if maybe else ""


def _chosen_among(paths: Iterable[str], shown: Mapping[str, list[Opened]]) -> dict[str, str]:
    """Alternative files, one of which the source opens, each with the line that chooses."""
    together: defaultdict[str, list[str]] = defaultdict(list)
    for path in paths:
        for one in shown[path]:
            choices = one.action.kind is ActionKind.LOAD and (one.action.one_of or len(one.action.names) > 1)
            if choices:
                together[one.place].append(path)
    return {path: place for place, members in together.items() if len(set(members)) > 1 for path in members}


def _with_groups(
    roles: Mapping[str, tuple[Role, str]], groups: Mapping[str, DecidingGroup], chosen: Mapping[str, str]
) -> dict[str, Decisive]:
    found = {}
    for path, (given, place) in roles.items():
        own = next(a for a in groups[path].alternatives if a.member == path)
        group = chosen.get(path, "")
        others = [member for member in groups[path].members if member != path]
        alike = [member for member in others if roles[member][0] in (given, Role.LOADED, Role.UNKNOWN)]
        if not group and alike and (own.cuda or own.architectures):
            group = groups[path].name
        role = Role.ALTERNATIVE if group and given is not Role.OPTIONAL else given
        found[path] = Decisive(role, group, place, own.cuda, own.architectures)
    return found


def is_extension_module(path: str) -> bool:
    """True for a library that Python imports as a module, by its name."""
    return bool(_EXTENSION_MODULE.search(path)) and bool(extension_module_name(path))


def taken_of_group(group: Mapping[str, Decisive], cuda: str, sms: Iterable[int] = ()) -> list[str]:
    """The alternatives of one group that the package may choose with this CUDA ("13", "" if unknown) and GPUs."""
    fitting = [path for path, one in group.items() if one.fits(cuda, sms)]
    named = [path for path in fitting if cuda and group[path].cuda]
    return named or fitting or list(group)
