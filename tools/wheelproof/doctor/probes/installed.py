"""What is installed for the interpreter, as far as it matters to torch: distributions, files, libraries and symbols.

Everything is read from files, and nothing is imported or hashed. Of an environment with hundreds of distributions only
those are compared with the disk that torch needs, or that were compiled against it.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from wheel_checks.errors import WheelproofError
from wheel_checks.facts.closure import Closure, Status
from wheel_checks.facts.host.extension_code import read_extension_code
from wheel_checks.facts.host.software import (
    Installed,
    Interpreter,
    MissingLibrary,
    Package,
    ShadowModule,
    TorchFiles,
    UnresolvedSymbol,
)
from wheel_checks.facts.installed import InstalledEnvironment, RecordedFiles
from wheel_checks.facts.installed_reading import Reading, read_installed
from wheel_checks.model import Unavailable
from wheel_checks.sources.environment import Environment, PathEntry, find_environment
from wheel_checks.sources.file_tree import FileTree
from wheel_checks.targets.target import this_machine
from wheelproof.doctor.probes.compiled_modules import unresolved_symbols
from wheelproof.doctor.probes.distributions import (
    Found,
    build_of,
    conda_builds,
    find_distributions,
    folder_names,
    required_by_core,
    users_of_torch,
)
from wheelproof.doctor.probes.file_findings import MOST_PATHS, file_findings
from wheelproof.doctor.probes.torch_files import find_modules, read_torch, read_version

_FOLDERS = ("torch", "triton", "nvidia")  # looked into even when no RECORD names them
_NATIVE = re.compile(rb"\.so(?:\.\d+)*\"?,", re.MULTILINE)
_LIBRARY = re.compile(r"\.so(?:\.\d+)*$")
_WITH_VERSION_FILE = ("torch", "torchvision", "torchaudio")


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
    core, users = required_by_core(found), users_of_torch(found)
    compiled = [one for one in users if _NATIVE.search(one.record)]
    names = {one.name for one in compiled}
    modules = _modules(environment, interpreter)
    inside = read_installed(_with_files(environment, [*core, *compiled]), _reading(tree, environ))
    torch = read_torch(tree, modules, found, inside.target, environment.machine)
    return Installed(
        packages=tuple(_package(one) for one in (*(one for one in core if one.is_core), *users)),
        torch=torch,
        modules=modules,
        findings=file_findings(inside),
        conda=conda_builds(tree, environment.path),
        missing=tuple(_missing(inside)),
        unresolved=_unresolved(inside, torch, names) if torch else (),
        extension_code=read_extension_code(inside, names),
    )


def _reading(tree: FileTree, environ: Mapping[str, str]) -> Reading:
    """LD_LIBRARY_PATH is that of this machine, and means nothing below another root."""
    folders = environ.get("LD_LIBRARY_PATH", "").split(":") if tree.is_this_machine else []
    return Reading(library_path=tuple(filter(None, folders)), host_machine=this_machine().target.machine)


def _modules(environment: Environment, interpreter: Interpreter | Unavailable) -> tuple[ShadowModule, ...]:
    if isinstance(interpreter, Unavailable):
        return find_modules(environment.tree, [entry.path for entry in environment.entries], "")
    return find_modules(environment.tree, interpreter.search_path, interpreter.working_directory)


def _with_files(environment: Environment, chosen: Sequence[Found]) -> Environment:
    """The entries with the files of the chosen distributions, and what an interrupted installation left."""
    entries = []
    for entry in environment.entries:
        names = folder_names(environment.tree, entry.path)
        here = [one for one in chosen if one.entry == entry.path]
        tops = {name for one in here for name in one.tops}.union(_FOLDERS).intersection(names)
        kept = {one.folder_name for one in here} | {name for name in names if name[0] == "~"} | tops
        if here or any(name in names for name in _FOLDERS):
            files = dict(_files(environment.tree, entry.path, sorted(kept)))
            kept_names = tuple(name for name in names if name in kept)
            entries.append(PathEntry(entry.path, entry.origin, kept_names, files))
    return replace(environment, entries=tuple(entries))


def _files(tree: FileTree, folder: str, names: Iterable[str]) -> Iterator[tuple[str, int]]:
    for name in names:
        size = tree.size(f"{folder}/{name}")
        if size is not None:
            yield name, size
        elif name[0] != "~":
            yield from ((f"{name}/{path}", size) for path, size in tree.walk(f"{folder}/{name}").items())


def _package(one: Found) -> Package:
    """Of torch and its companions version.py names the build, which METADATA hides."""
    if one.name not in _WITH_VERSION_FILE:
        return one.package()
    values = read_version(one.tree, f"{one.entry}/{one.name}/version.py")
    cuda = values.get("cuda", "").replace(".", "")
    return one.package(build_of(values.get("__version__", "")) or (f"cu{cuda}" if cuda else ""))


def _missing(inside: InstalledEnvironment) -> Iterator[MissingLibrary]:
    """The needs that nothing satisfies, by soname and by who has them."""
    if not isinstance(inside.closure, Closure):
        return
    together: dict[tuple[str, str], list[tuple[str, tuple[str, ...]]]] = {}
    for need in inside.closure.needs:
        if need.status is Status.MISSING:
            user = inside.owner_of(need.elf)
            together.setdefault((need.soname, user.name if user else ""), []).append((need.elf, need.searched))
    for (soname, user_name), needs in together.items():
        owners = (
            d.name
            for d in inside.distributions
            if isinstance(d.files, RecordedFiles) and any(path.endswith(f"/{soname}") for path in d.files.owned)
        )
        users = tuple(path for path, _ in needs)[:MOST_PATHS]
        yield MissingLibrary(soname, users, user_name, next(owners, ""), needs[0][1][:MOST_PATHS])


def _unresolved(inside: InstalledEnvironment, torch: TorchFiles, users: set[str]) -> tuple[UnresolvedSymbol, ...]:
    native = [f"{e.path}/{file}" for e in inside.environment.entries for file in e.files if _LIBRARY.search(file)]
    owners = {path: owner.name for path in native if (owner := inside.owner_of(path))}
    compiled = [(path, name) for path, name in owners.items() if name in users or name in _WITH_VERSION_FILE[1:]]
    others = {posixpath.basename(path): path for path, name in compiled}
    return unresolved_symbols(inside.environment.tree, torch.folder, compiled, others)
