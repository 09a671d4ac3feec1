"""The link closure of an installed environment: its ELF files, and the machine's ld.so.cache where it is known."""

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from wheel_checks.errors import FormatError
from wheel_checks.facts.elf.file import read_elf_file
from wheel_checks.facts.installed.facts import WrongElf
from wheel_checks.facts.links.closure import Closure, LoaderEnvironment, Status, SystemLibraries, close
from wheel_checks.facts.links.known_libraries import preloader_of
from wheel_checks.formats.elf.file import ElfFacts
from wheel_checks.formats.elf.ld_cache import MAX_SIZE, libraries_of, parse_ld_cache
from wheel_checks.model import Unavailable
from wheel_checks.sources.environment import Environment
from wheel_checks.sources.file_tree import FileTree

_LIBRARY = re.compile(r"\.so(?:\.\d+)*$")
_EXTENSION = re.compile(r"\.(?:cpython-\d+t?|abi3t?)(?:-[\w-]+)?\.so$")
_LIBRARY_FOLDERS = {"x86_64": ("lib64", "lib/x86_64-linux-gnu"), "aarch64": ("lib64", "lib/aarch64-linux-gnu")}
_CACHE = "/etc/ld.so.cache"


@dataclass(frozen=True, slots=True)
class InstalledElfs:
    """The ELF files by absolute path, those that could not be read, and how many bytes that took."""

    files: Mapping[str, ElfFacts]
    wrong: tuple[WrongElf, ...]
    bytes_read: int


def read_elfs(environment: Environment) -> InstalledElfs:
    """The libraries of all listed folders, and the programs in their ``bin`` folders: what the loader goes by."""
    paths = [
        f"{entry.path}/{file}"
        for entry in environment.entries
        for file in sorted(entry.files)
        if _LIBRARY.search(file) or ("." not in posixpath.basename(file) and posixpath.dirname(file).endswith("bin"))
    ]
    files: dict[str, ElfFacts] = {}
    wrong: list[WrongElf] = []
    read = 0
    with ThreadPoolExecutor(4, "elf") as pool:
        for path, (elf, length) in zip(
            paths, pool.map(lambda path: read_elf_file(environment.tree, path), paths), strict=True
        ):
            read += length
            if isinstance(elf, ElfFacts):
                files[path] = elf
            elif elf:
                wrong.append(WrongElf(path, elf))
    return InstalledElfs(files, tuple(wrong), read)


def loader_of(
    environment: Environment, files: Iterable[str], *, host_machine: str, library_path: Sequence[str]
) -> LoaderEnvironment | Unavailable:
    """The loader of the environment. The machine outside is known when the environment is this host's own, by its
    CPU, or is in its own file system; otherwise the tables of driver and system libraries decide.
    """
    machine = environment.machine
    if not machine:
        return Unavailable("the environment's machine is unknown", "it has no compiled module")
    tree = environment.tree
    names = {name for entry in environment.entries for name in entry.names}
    knows_system = not tree.is_this_machine or machine == host_machine
    return LoaderEnvironment(
        machine,
        tuple(library_path) if knows_system else (),
        tree.real(environment.interpreter) if environment.interpreter else "",
        tuple(path for path in files if preloader_of(path) in names),
        _system(tree, machine) if knows_system else None,
    )


def _system(tree: FileTree, machine: str) -> SystemLibraries:
    cache: Mapping[str, tuple[str, ...]] = {}
    with suppress(FormatError):  # ld.so ignores a cache that it cannot read, and continues to the default folders
        cache = libraries_of(parse_ld_cache(tree.read(_CACHE, MAX_SIZE) or b""), machine)
    folders = [*_LIBRARY_FOLDERS.get(machine, ()), "lib"]
    read: dict[str, ElfFacts | None] = {}

    def elf_at(path: str) -> ElfFacts | None:
        if path not in read:
            elf = read_elf_file(tree, path)[0] if tree.is_file(path) else ""
            read[path] = elf if isinstance(elf, ElfFacts) else None
        return read[path]

    return SystemLibraries(cache, tuple(f"{top}/{folder}" for folder in folders for top in ("", "/usr")), elf_at)


def installed_closure(files: Mapping[str, ElfFacts], loader: LoaderEnvironment) -> Closure:
    """The closure with Python's extension modules and programs as roots. Raises FormatError as :func:`close` does."""
    roots = [path for path in sorted(files) if _EXTENSION.search(path) or not _LIBRARY.search(path)]
    return close({path: elf for path, elf in files.items() if elf.header.machine == loader.machine}, roots, loader)


def of_other_machines(closure: Closure, files: Mapping[str, ElfFacts], machine: str) -> tuple[WrongElf, ...]:
    """Extension modules and needed libraries that are for another machine; what nothing asks for is left alone."""
    needed = {need.soname for need in closure.needs if need.status is Status.MISSING}
    return tuple(
        WrongElf(path, f"it is for {elf.header.machine}, but the environment is for {machine}")
        for path, elf in sorted(files.items())
        if elf.header.machine != machine and (_EXTENSION.search(path) or posixpath.basename(path) in needed)
    )
