"""Reads the import order of an environment: from its interpreter, or from its files.

An interpreter runs .pth files when it starts, as it does whenever an installer or the user starts it, so its
``sys.path`` is the truth. Nothing of a package is imported: ``find_spec`` only says which file an import would load.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import PurePosixPath
from typing import Any

from packaging.utils import canonicalize_name

from wheel_checks.errors import SourceError
from wheel_checks.facts.pins.families import families, is_glob
from wheel_checks.facts.pins.import_order import Copy, ImportOrder
from wheel_checks.parsing import requirements_in, version_or_none
from wheel_checks.process.child import StartError, run
from wheel_checks.sources.environment import Environment
from wheel_checks.sources.scratch_folder import scratch_folder

_TIMEOUT = 60.0  # seconds; an interpreter on a cold network file system takes ten

# Prints sys.path without the command's own folder, the folders that installers write into, and the result of imports.
_PROBE = """
import importlib.util, json, os, site, sys, sysconfig
folder = os.getcwd()
paths = [p for p in sys.path if p and os.path.realpath(p) != os.path.realpath(folder)]
def find(name):
    try:
        spec = importlib.util.find_spec(name)
    except Exception:
        return ""
    if spec is None:
        return ""
    places = list(spec.submodule_search_locations or [])
    return spec.origin if spec.origin and spec.origin != "namespace" else (places[0] if places else "")
scheme = sysconfig.get_paths()
stdlib = scheme["stdlib"]
print(json.dumps({
    "path": paths,
    "purelib": scheme["purelib"],
    "platlib": scheme["platlib"],
    "prefix": sys.prefix,
    "is_virtual": sys.prefix != sys.base_prefix,
    "user": (site.getusersitepackages() if site.ENABLE_USER_SITE else ""),
    "writable": os.access(scheme["purelib"], os.W_OK),
    "managed": os.path.isfile(os.path.join(stdlib, "EXTERNALLY-MANAGED")),
    "modules": {name: find(name) for name in sys.argv[1:]},
}))
"""


@dataclass(frozen=True, slots=True)
class Interior:
    """An environment as an installer sees it: its import order, and the folders that installers write into.

    ``own`` are the folders of the environment itself, by position; ``user`` is the user's site-packages, "" if imports
    do not search it. ``prefix`` is the folder below which pip uninstalls in a virtual environment. ``is_managed`` says
    that the system's own package manager keeps installers out (PEP 668).
    """

    order: ImportOrder
    purelib: str = ""
    own: tuple[int, ...] = (0,)
    prefix: str = ""
    is_virtual: bool = True
    user: str = ""
    is_writable: bool = True
    is_managed: bool = False


def read_interior(environment: Environment, variables: Mapping[str, str]) -> Interior:
    """The interior of an environment on this host that has an interpreter.

    Raises SourceError when the interpreter cannot be asked.
    """
    answer = _ask(environment.interpreter, _modules_of_families(), variables)
    folders = tuple(answer["path"])
    known = ImportOrder.of(folders, _copies(folders))
    order = ImportOrder(folders, known.copies, dict(_loose(known, answer["modules"])))
    own = {position_of(answer[key], folders) for key in ("purelib", "platlib")}
    return Interior(
        order,
        answer["purelib"],
        tuple(sorted(position for position in own if position is not None)),
        answer["prefix"],
        answer["is_virtual"],
        answer["user"],
        answer["writable"],
        answer["managed"] and not answer["is_virtual"],
    )


def interior_of(environment: Environment) -> Interior:
    """The interior of an environment without an interpreter, in the order that its files say."""
    folders = tuple(entry.path for entry in environment.entries)
    return Interior(ImportOrder.of(folders, _copies(folders)))


def position_of(folder: str, folders: Sequence[str]) -> int | None:
    """The position of a folder in the import order; None if it is not there."""
    real = os.path.realpath(folder)
    return next((number for number, other in enumerate(folders) if os.path.realpath(other) == real), None)


def _modules_of_families() -> list[str]:
    """The import names of frameworks and their companions, as far as these follow from the names of distributions."""
    names = [name for one in families() for name in (one.anchor, *one.companions) if name and not is_glob(name)]
    return sorted({name.replace("-", "_") for name in names})


def _ask(interpreter: str, modules: Iterable[str], variables: Mapping[str, str]) -> dict[str, Any]:
    with scratch_folder() as folder:
        try:
            ended = run(
                [interpreter, "-c", _PROBE, *modules], deadline=_TIMEOUT, environment=variables, cwd=str(folder)
            )
        except StartError as error:
            raise SourceError(f"{interpreter} cannot be started: {error}") from error
    lines = ended.output.decode(errors="replace").splitlines()  # a .pth file may print something
    try:
        answer = json.loads(lines[-1]) if lines and not ended.status else None
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        words = " ".join(ended.errors.decode(errors="replace").split())[-300:]
        raise SourceError(f"{interpreter} does not report its import path: {words or f'status {ended.status}'}")
    return answer


def _copies(folders: Iterable[str]) -> Iterator[Copy]:
    for number, folder in enumerate(folders):
        if not os.path.isdir(folder):
            continue
        seen: set[str] = set()
        for distribution in distributions(path=[folder]):
            copy = copy_of(distribution, number)
            if copy is not None and copy.name not in seen:
                seen.add(copy.name)
                yield copy


def copy_of(distribution: Distribution, folder: int) -> Copy | None:
    """A distribution as a copy; None for one without a readable name and version, which installers pass over too."""
    metadata = distribution.metadata
    name, version = ((metadata.get_all(key) or [""])[0] for key in ("Name", "Version"))
    normalised = str(canonicalize_name(name))
    if version_or_none(version) is None or not normalised:
        return None
    requirements = tuple(requirements_in(distribution.requires or ()))
    return Copy(normalised, version, folder, requirements, _modules(distribution))


def _modules(distribution: Distribution) -> frozenset[str]:
    """The import names that a distribution brings, by its list of files."""
    found = set()
    for file in distribution.files or ():
        parts = PurePosixPath(str(file)).parts
        if (
            parts
            and parts[0] not in ("..", "__pycache__")
            and not parts[0].endswith((".dist-info", ".egg-info", ".pth"))
        ):
            found.add(parts[0].partition(".")[0])
    return frozenset(found)


def _loose(order: ImportOrder, modules: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The packages whose import finds a file that none of their copies has in its folder."""
    for module, origin in modules.items():
        name = str(canonicalize_name(module))
        copies = [c for other, rows in order.copies.items() for c in rows if module in c.modules or other == name]
        if not isinstance(origin, str) or not origin or not copies:
            continue
        # As texts: the file may be a link into an installer's cache.
        if any(_is_below(origin, order.folders[copy.folder]) for copy in copies):
            continue
        first = min(copies, key=lambda copy: copy.folder)
        in_front = [folder for folder in order.folders[: first.folder] if _is_below(origin, folder)]
        if in_front:  # else it is an editable install, which installers know and replace
            yield first.name, origin


def _is_below(file: str, folder: str) -> bool:
    return os.path.normpath(file).startswith(f"{os.path.normpath(folder)}{os.sep}")
