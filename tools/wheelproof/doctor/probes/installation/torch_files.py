"""Find the torch that an import loads, and read its files. Nothing is imported."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from wheel_checks.errors import FormatError, SourceError
from wheel_checks.facts.accelerator.signals import marker_fault
from wheel_checks.facts.elf.file import read_elf_file
from wheel_checks.facts.host.software import ShadowModule, TorchFiles
from wheel_checks.formats.elf.dynamic import DynamicFacts
from wheel_checks.formats.elf.file import ElfFacts, Part
from wheel_checks.formats.elf.search_path import expand_path
from wheel_checks.formats.gpu.fatbin import find_declared
from wheel_checks.formats.wheel.version_file import MAX_SIZE as LARGEST_VERSION_FILE
from wheel_checks.formats.wheel.version_file import parse_version_file
from wheel_checks.model import Unavailable
from wheel_checks.parsing import requirement_or_none
from wheel_checks.sources.file_tree import FileTree
from wheel_checks.sources.regular_file import open_regular
from wheel_checks.targets.target import Target
from wheelproof.doctor.probes.installation.distributions import Found

_CHUNK, _MOST_CHUNKS = 1 << 20, 512  # bytes read at once; libtorch_python.so has 35 MB
_TRITONS = ("triton", "pytorch-triton", "pytorch-triton-rocm", "pytorch-triton-xpu", "triton-rocm", "triton-xpu")
_WITH_RPATH = ("libtorch_cuda.so", "libtorch_hip.so", "libtorch_cpu.so")


def read_version(tree: FileTree, path: str) -> Mapping[str, str]:
    """The texts that a version.py assigns; empty if it is missing or malformed."""
    try:
        content = tree.read(path, LARGEST_VERSION_FILE)
        values = parse_version_file(path, content).values if content is not None else {}
    except (FormatError, SourceError):
        return {}
    return {name: value for name, value in values.items() if isinstance(value, str)}


def read_torch(
    tree: FileTree, modules: Iterable[ShadowModule], found: Sequence[Found], target: Target | Unavailable, machine: str
) -> TorchFiles | None:
    """The first torch of ``modules`` that has a version.py; None if none exists."""
    for module in modules:
        folder = posixpath.dirname(module.path)
        if module.name == "torch" and tree.is_file(f"{folder}/version.py"):
            return _torch_files(tree, folder, found, target, machine)
    return None


def _torch_files(
    tree: FileTree, folder: str, found: Sequence[Found], target: Target | Unavailable, machine: str
) -> TorchFiles:
    values = read_version(tree, f"{folder}/version.py")
    own = next((one for one in found if one.name == "torch" and one.entry == posixpath.dirname(folder)), None)
    gpu = values.get("cuda") or values.get("hip")
    return TorchFiles(
        folder=folder,
        version=values.get("__version__", own.version if own else ""),
        cuda=values.get("cuda", ""),
        hip=values.get("hip", ""),
        xpu=values.get("xpu", ""),
        architectures=read_architectures(tree, f"{folder}/lib/libtorch_python.so", amd=bool(values.get("hip")))
        if gpu
        else (),
        has_cuda_library=tree.is_file(f"{folder}/lib/libtorch_cuda.so"),
        triton=_triton(own, target) if own else "",
        rpath=_search_folders(tree, f"{folder}/lib", machine),
    )


def read_architectures(tree: FileTree, path: str, *, amd: bool = False) -> tuple[str, ...]:
    """The list that torch reports as torch.cuda.get_arch_list(): its own string in this library."""
    try:
        with open_regular(tree.outside(path)) as file:
            declared = find_declared(_chunks(file.read), amd=amd)
    except OSError:
        return ()
    return tuple(declared.counts) if declared else ()


def _chunks(read: Callable[[int], bytes]) -> Iterator[bytes]:
    for _ in range(_MOST_CHUNKS):
        if not (chunk := read(_CHUNK)):
            return
        yield chunk


def _triton(torch: Found, target: Target | Unavailable) -> str:
    """Torch's requirement of Triton on this host, without the marker."""
    for name, text in torch.requirements():
        requirement = requirement_or_none(text) if name in _TRITONS else None
        if requirement is None:
            continue
        if requirement.marker is not None and not isinstance(target, Unavailable):
            markers = {**target.markers(), "extra": ""}
            if marker_fault(requirement, markers) or not requirement.marker.evaluate(markers):
                continue
        return f"{requirement.name}{requirement.specifier}"
    return ""


def _search_folders(tree: FileTree, folder: str, machine: str) -> tuple[str, ...]:
    """The folders of DT_RPATH, or DT_RUNPATH, of the library that needs most."""
    name = next((name for name in _WITH_RPATH if tree.is_file(f"{folder}/{name}")), "")
    elf = read_elf_file(tree, f"{folder}/{name}", {Part.DYNAMIC})[0] if name else ""
    if not isinstance(elf, ElfFacts) or not isinstance(elf.dynamic, DynamicFacts):
        return ()
    paths = elf.dynamic.runpath or elf.dynamic.rpath
    return tuple(posixpath.normpath(expand_path(path, folder, platform=machine)) for path in paths if path)
