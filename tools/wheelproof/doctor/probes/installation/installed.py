"""What is installed for the interpreter, as far as it matters to torch: distributions, files, libraries and symbols.

Everything is read from files, and nothing is imported or hashed. Of an environment with hundreds of distributions only
those are compared with the disk that torch needs, or that were compiled against it.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
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

MODULES = ("torch", "triton")


def read_installed_facts(
    interpreter: Interpreter | Unavailable,
    root: str = "/",
    python: str = "",
    environ: Mapping[str, str] | None = None,
) -> Installed | Unavailable:
    """What is installed for ``interpreter``; when that is unknown, for ``python`` as its files show.

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
    folders = [entry.path for entry in environment.entries]
    if isinstance(interpreter, Unavailable):
        modules = find_modules(tree, folders, "")
    else:
        modules = find_modules(tree, interpreter.search_path, interpreter.working_directory)
    names = (name for folder in folders for name in folder_names(tree, folder))
    if not (core or users or modules or any(map(is_part_of_torch, names))):
        return Installed((), None, conda=conda_builds(tree, environment.path))

    from wheelproof.doctor.probes.installation.installed_files import judge_files  # much, and needless without torch

    return judge_files(environment, Chosen(found, core, users, neighbours, modules), environ)


def find_modules(tree: FileTree, search_path: Iterable[str], working_directory: str) -> tuple[ShadowModule, ...]:
    """Every torch and triton that an import could find, in the order of the search: the first of a name is taken.

    Of a folder and a module next to it the folder is taken; a folder without ``__init__.py`` counts for nothing while
    there is any other.
    """
    folders = [(entry, entry or working_directory) for entry in search_path]
    found: dict[tuple[str, str], ShadowModule] = {}
    for entry, folder in folders:
        names = [name for name in folder_names(tree, folder) if name.partition(".")[0] in MODULES] if folder else []
        for module in MODULES:
            if path := _module(tree, folder, module, names):
                found.setdefault((module, tree.real(path)), ShadowModule(module, path, entry))
    return tuple(sorted(found.values(), key=lambda one: MODULES.index(one.name)))


def _module(tree: FileTree, folder: str, module: str, names: Sequence[str]) -> str:
    """The file that ``import module`` would run in this folder, "" if none (importlib's FileFinder)."""
    if module in names and tree.is_file(f"{folder}/{module}/__init__.py"):
        return f"{folder}/{module}/__init__.py"
    candidates = [name for name in names if name.startswith(f"{module}.") and name.endswith((".so", ".py", ".pyc"))]
    candidates.sort(key=lambda name: (not name.endswith(".so"), not name.endswith(".py")))
    return next((f"{folder}/{name}" for name in candidates if tree.is_file(f"{folder}/{name}")), "")
