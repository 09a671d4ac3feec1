"""Libraries that are opened by name: the driver's, wherever they lie, and those that cuDNN opens at run time.

No trace of the loader shows these. What is found depends on LD_LIBRARY_PATH, which for them counts, and on ld.so.cache.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase

from wheel_checks.errors import FormatError, SourceError
from wheel_checks.facts.elf.file import read_elf_file
from wheel_checks.facts.host.software import CudaLibrary
from wheel_checks.formats.elf.dynamic import DynamicFacts
from wheel_checks.formats.elf.file import ElfFacts, Part
from wheel_checks.formats.elf.ld_cache import MAX_SIZE, libraries_of, parse_ld_cache
from wheel_checks.sources.file_tree import FileTree
from wheel_checks.sources.regular_file import open_regular
from wheelproof.doctor.probes.installation.distributions import folder_names

DRIVER_LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1")
SMALLEST = {"libcuda.so.1": 1 << 20, "libnvidia-ml.so.1": 256 << 10}  # bytes; the toolkit's stubs have a tenth of it

_LIBRARY_PATH, _CACHE, _KNOWN, _BESIDE = "LD_LIBRARY_PATH", "ld.so.cache", "known folder", "next to torch"
_WSL = "/usr/lib/wsl/lib"  # its libraries are small: they call those of Windows' driver

# Where drivers, toolkits and container runtimes put them, next to what the loader knows; {machine} as uname has it.
_FOLDERS = (
    "/usr/lib/{machine}-linux-gnu",
    "/usr/lib/{machine}-linux-gnu/nvidia/current",
    "/usr/lib/{machine}-linux-gnu/nvidia",
    "/usr/lib/{machine}-linux-gnu/tegra",
    "/usr/lib64",
    "/usr/lib64/nvidia",
    "/usr/lib",
    "/usr/lib/nvidia",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/run/opengl-driver/lib",
    _WSL,
    "/.singularity.d/libs",
)
_TOOLKIT_FOLDERS = ("compat", "compat/lib.real", "lib64/stubs", "lib64", "targets/*/lib/stubs")
_DRIVER_VERSION = re.compile(r"\.so\.(\d{3,4}\.\d+(?:\.\d+)?)$")
_CUDNN = re.compile(r"libcudnn(?:_\w+)?\.so\.\d+")
_CUDNN_VERSION = re.compile(r"\.so\.(\d+\.\d+\.\d+)$")
_CUDNN_NAMES = re.compile(rb"libcudnn_\w+\.so")
_LARGEST_OPENER = 4 << 20  # bytes; libcudnn.so.9 itself has 130 KB, its graph library a hundred times as many
_LARGEST_GRAPH = 1 << 30
_PIECE = 1 << 20

Cache = Mapping[str, tuple[str, ...]]


def read_cache(tree: FileTree, machine: str) -> Cache:
    """The paths of ld.so.cache by soname; none when there is no cache, or the loader would not understand it either."""
    with suppress(FormatError, SourceError):
        return libraries_of(parse_ld_cache(tree.read("/etc/ld.so.cache", MAX_SIZE) or b""), machine)
    return {}


def driver_libraries(
    tree: FileTree, library_path: Sequence[str], cache: Cache, machine: str
) -> tuple[CudaLibrary, ...]:
    """Every libcuda and libnvidia-ml there is: for each name in the order in which the loader would find them, and then
    those that it would not find.
    """
    return tuple(one for name in DRIVER_LIBRARIES for one in _driver_library(tree, name, library_path, cache, machine))


def cudnn_libraries(
    tree: FileTree, folders: Iterable[str], library_path: Sequence[str], cache: Cache
) -> tuple[CudaLibrary, ...]:
    """The libraries that the cuDNN in ``folders``, those of torch's RPATH, opens by name, each as the file that it
    gets.

    LD_LIBRARY_PATH goes before the folder of a library with DT_RUNPATH, and after that of one with DT_RPATH.
    """
    home = next((folder for folder in folders if any(map(_CUDNN.fullmatch, folder_names(tree, folder)))), "")
    own = [name for name in folder_names(tree, home) if _CUDNN.fullmatch(name)] if home else []
    main = next((name for name in own if "_" not in name), "")
    if not main:
        return ()
    suffix = main.removeprefix("libcudnn.so")
    graph = f"{home}/libcudnn_graph.so{suffix}"
    elsewhere = {name for folder in library_path for name in folder_names(tree, folder)}.union(cache)
    others = {name for name in elsewhere if _CUDNN.fullmatch(name) and name.endswith(f".so{suffix}")} - set(own)
    opened_by_main = _names_in(tree, f"{home}/{main}")
    wanted = {*own, *(_names_in(tree, graph, _LARGEST_GRAPH) | opened_by_main if others else ())} - {main}
    found = []
    for name in sorted(name if name.endswith(suffix) else name + suffix for name in wanted):
        opener = f"{home}/{main}" if name.removesuffix(suffix) in opened_by_main else graph
        places = [(f"{home}/{name}", "bundled", _BESIDE)]
        at = 0 if _has_runpath(tree, opener) else 1
        places[at:at] = [(f"{folder}/{name}", "other", _LIBRARY_PATH) for folder in library_path]
        places += [(path, "other", _CACHE) for path in cache.get(name, ())]
        taken = next((place for place in places if tree.is_file(place[0])), None)
        if taken is not None:
            path, kind, where = taken
            version = _CUDNN_VERSION.search(tree.real(path))
            found.append(CudaLibrary(name, path, version[1] if version else "", kind, where, tree.size(path) or 0))
    return tuple(found)


def _driver_library(
    tree: FileTree, name: str, library_path: Sequence[str], cache: Cache, machine: str
) -> Iterator[CudaLibrary]:
    places = [(f"{folder}/{name}", _LIBRARY_PATH) for folder in library_path]
    places += [(path, _CACHE) for path in cache.get(name, ())]
    places += [(f"{folder}/{name}", _KNOWN) for folder in _known_folders(tree, machine)]
    seen: set[str] = set()
    for path, where in places:
        size = tree.size(path)
        real = tree.real(path) if size is not None else ""
        if size is None or real in seen:
            continue
        seen.add(real)
        version = _DRIVER_VERSION.search(real)
        yield CudaLibrary(
            name, posixpath.normpath(path), version[1] if version else "", _kind(name, real, size), where, size
        )


def _known_folders(tree: FileTree, machine: str) -> Iterator[str]:
    yield from (folder.format(machine=machine) for folder in _FOLDERS)
    toolkits = [name for name in folder_names(tree, "/usr/local") if fnmatchcase(name, "cuda*")]
    for toolkit in toolkits:
        for folder in _TOOLKIT_FOLDERS:
            top, star, rest = f"/usr/local/{toolkit}/{folder}".partition("/*/")
            yield from (f"{top}/{name}/{rest}" for name in folder_names(tree, top)) if star else (top,)


def _kind(name: str, real: str, size: int) -> str:
    """By folder, by the version that the driver's own files have in their names, and by size, which shows a stub."""
    if "/stubs/" in real:
        return "stub"
    if "/compat" in real:
        return "compat"
    if _DRIVER_VERSION.search(real) or real.startswith(_WSL) or "/tegra/" in real:
        return "driver"
    return "stub" if size < SMALLEST[name] else "unknown"


def _names_in(tree: FileTree, path: str, limit: int = _LARGEST_OPENER) -> set[str]:
    """The names of cuDNN's libraries, without version, that a library mentions: it opens them."""
    found: set[bytes] = set()
    with suppress(OSError), open_regular(tree.outside(path)) as file:
        held = b""
        while limit > 0 and (piece := file.read(min(_PIECE, limit))):
            found.update(_CUDNN_NAMES.findall(held + piece))
            held, limit = piece[-64:], limit - len(piece)
    return {name.decode() for name in found}


def _has_runpath(tree: FileTree, path: str) -> bool:
    elf, _ = read_elf_file(tree, path, {Part.DYNAMIC})
    return isinstance(elf, ElfFacts) and isinstance(elf.dynamic, DynamicFacts) and bool(elf.dynamic.runpath)
