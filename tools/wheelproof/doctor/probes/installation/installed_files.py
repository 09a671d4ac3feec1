"""What the files of the distributions say that matter to torch: what is missing, damaged, mixed, unresolved."""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from wheel_checks.facts.host.software import Installed, MissingLibrary, Package, TorchFiles, UnresolvedSymbol
from wheel_checks.facts.host.torch.extension_code import read_extension_code
from wheel_checks.facts.installed.facts import InstalledEnvironment, RecordedFiles
from wheel_checks.facts.installed.reading import Reading, read_installed
from wheel_checks.facts.links.closure import Closure, Status
from wheel_checks.sources.environment import Environment, PathEntry
from wheel_checks.sources.file_tree import FileTree
from wheel_checks.targets.target import this_machine
from wheelproof.doctor.probes.installation.compiled_modules import unresolved_symbols
from wheelproof.doctor.probes.installation.distributions import (
    FOLDERS,
    Chosen,
    Found,
    build_of,
    conda_builds,
    folder_names,
)
from wheelproof.doctor.probes.installation.file_findings import MOST_PATHS, file_findings
from wheelproof.doctor.probes.installation.torch_files import read_torch, read_version

_NATIVE = re.compile(rb"\.so(?:\.\d+)*\"?,", re.MULTILINE)
_LIBRARY = re.compile(r"\.so(?:\.\d+)*$")
_WITH_VERSION_FILE = ("torch", "torchvision", "torchaudio")


def judge_files(environment: Environment, chosen: Chosen, environ: Mapping[str, str]) -> Installed:
    """The facts of the chosen distributions; ``environment`` is that of the search path, without files."""
    tree, core, users = environment.tree, chosen.core, chosen.users
    compiled = [one for one in users if _NATIVE.search(one.record)]
    names = {one.name for one in compiled}
    inside = read_installed(_with_files(environment, [*core, *compiled]), _reading(tree, environ))
    torch = read_torch(tree, chosen.modules, chosen.found, inside.target, environment.machine)
    return Installed(
        packages=tuple(_package(one) for one in (*(one for one in core if one.is_core), *users, *chosen.neighbours)),
        torch=torch,
        modules=chosen.modules,
        findings=file_findings(inside),
        conda=conda_builds(tree, environment.path),
        missing=tuple(_missing(inside)),
        unresolved=_unresolved(inside, torch, names) if torch else (),
        extension_code=read_extension_code(inside, names),
    )


def _reading(tree: FileTree, environ: Mapping[str, str]) -> Reading:
    """LD_LIBRARY_PATH is that of this host, and means nothing below another root."""
    folders = environ.get("LD_LIBRARY_PATH", "").split(":") if tree.is_this_machine else []
    return Reading(library_path=tuple(filter(None, folders)), host_machine=this_machine().target.machine)


def _with_files(environment: Environment, chosen: Sequence[Found]) -> Environment:
    """The entries with the files of the chosen distributions, and what an interrupted installation left."""
    entries = []
    for entry in environment.entries:
        names = folder_names(environment.tree, entry.path)
        here = [one for one in chosen if one.entry == entry.path]
        tops = {name for one in here for name in one.tops}.union(FOLDERS).intersection(names)
        kept = {one.folder_name for one in here} | {name for name in names if name[0] == "~"} | tops
        if here or any(name in names for name in FOLDERS):
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
