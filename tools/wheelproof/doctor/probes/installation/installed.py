"""What is installed for the interpreter, as far as it matters to torch: distributions, files, libraries and symbols.

Everything is read from files, and nothing is imported or hashed. Of an environment with hundreds of distributions only
those are compared with the disk that torch needs, or that were compiled against it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from wheel_checks.errors import WheelproofError
from wheel_checks.facts.host.software import Installed, Interpreter, ShadowModule
from wheel_checks.model import Unavailable
from wheel_checks.sources.environment import Environment, PathEntry, find_environment
from wheel_checks.sources.file_tree import FileTree
from wheelproof.doctor.probes.installation.distributions import (
    Chosen,
    conda_builds,
    find_distributions,
    folder_names,
    is_part_of_torch,
    neighbours_of_torch,
    required_by_core,
    users_of_torch,
)
from wheelproof.doctor.probes.installation.module_search import find_modules


def read_installed_facts(
    interpreter: Interpreter | Unavailable,
    root: str = "/",
    python: str = "",
    environ: Mapping[str, str] | None = None,
) -> Installed | Unavailable:
    """What is installed for ``interpreter``; when that is not known, for ``python`` as its files tell.

    ``environ`` gives LD_LIBRARY_PATH, and the active environment when no interpreter is known.
    """
    environ = os.environ if environ is None else environ
    tree = FileTree(os.path.realpath(root))
    try:
        environment = _without_files(tree, interpreter, python, environ)
        return _read(environment, interpreter, environ)
    except WheelproofError as error:
        return Unavailable(error.what, error.hint or error.expected)


def _without_files(
    tree: FileTree, interpreter: Interpreter | Unavailable, python: str, environ: Mapping[str, str]
) -> Environment:
    """The environment, its entries those of the search path, without what they hold."""
    if isinstance(interpreter, Unavailable):
        found = find_environment(python, variables=environ, root=tree.root)
        return replace(found, entries=tuple(PathEntry(one.path, one.origin, ()) for one in found.entries))
    major, minor, patch = (int(number) for number in (*re.findall(r"\d+", interpreter.version), 0, 0, 0)[:3])
    folders: dict[str, PathEntry] = {}
    for entry in interpreter.search_path:
        folder = entry or interpreter.working_directory
        if folder and tree.is_folder(folder):
            folders.setdefault(tree.real(folder), PathEntry(folder, "sys.path", ()))
    return Environment(
        tree,
        interpreter.prefix,
        "venv" if interpreter.is_virtual else "base",
        tuple(folders.values()),
        interpreter.path,
        (major, minor),
        patch,
        interpreter.free_threaded,
        interpreter.machine,
        interpreter.found,
    )


def _read(environment: Environment, interpreter: Interpreter | Unavailable, environ: Mapping[str, str]) -> Installed:
    tree = environment.tree
    found = find_distributions(tree, [entry.path for entry in environment.entries])
    core, users, neighbours = required_by_core(found), users_of_torch(found), neighbours_of_torch(found)
    modules = _modules(environment, interpreter)
    if not (core or users or modules or any(map(is_part_of_torch, _names(environment)))):
        return Installed((), None, conda=conda_builds(tree, environment.path))

    from wheelproof.doctor.probes.installation.installed_files import judge_files  # much, and needless without torch

    return judge_files(environment, Chosen(found, core, users, neighbours, modules), environ)


def _names(environment: Environment) -> Iterator[str]:
    for entry in environment.entries:
        yield from folder_names(environment.tree, entry.path)


def _modules(environment: Environment, interpreter: Interpreter | Unavailable) -> tuple[ShadowModule, ...]:
    if isinstance(interpreter, Unavailable):
        return find_modules(environment.tree, [entry.path for entry in environment.entries], "")
    return find_modules(environment.tree, interpreter.search_path, interpreter.working_directory)
