"""Companions and extensions that were built for another torch, or for another CUDA."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from packaging.utils import canonicalize_name

from wheel_checks.facts.host.advice import reinstall_torch
from wheel_checks.facts.host.commands import install
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.gpus.presence import may_have_gpu
from wheel_checks.facts.host.software import MissingLibrary, Package, TorchFiles
from wheel_checks.facts.host.torch.choice import COMPANIONS, companions, public
from wheel_checks.facts.host.torch.fit import cuda_major
from wheel_checks.facts.host.torch.origin import origin
from wheel_checks.fixes.goal import Goal
from wheel_checks.formats.cxx_names import readable
from wheel_checks.model import Evidence, Finding, Fix, Severity
from wheel_checks.parsing import requirement_or_none, version_or_none
from wheel_checks.phrases import and_more
from wheel_checks.rules.host.cause import Layer, causes_in
from wheel_checks.rules.host.installation.evidence import (
    file_name,
    installed,
    listed,
    missing_of_torch,
)

# Libraries whose soname has the major version of CUDA, since CUDA 12; others (cuFFT, cuSPARSE) have their own.
_OF_CUDA = re.compile(r"lib(?:cudart|cublas|cublasLt|nvrtc|nvJitLink|cupti)\.so\.(\d{2})(?:\.|$)")
_OF_TORCH = re.compile(r"lib(?:torch|c10)_(cuda|hip|xpu)\.so")  # which each build of torch has for its accelerator
_MAKERS = {"cuda": "CUDA", "hip": "ROCm", "xpu": "Intel GPUs"}
_BEYOND_TORCH = {"libnvpl_blas": "nvpl-blas", "libnvpl_lapack": "nvpl-lapack", "libcudss": "nvidia-cudss-cu"}

cause = causes_in(Layer.FILES)


def _torch(facts: HostFacts) -> TorchFiles | None:
    """The torch that extensions meet; None when it is itself the wrong one and will be replaced with its companions."""
    return None if origin(facts) else installed(facts).torch


@cause(
    "B05",
    "extensions are built for the CUDA of torch",
    why="An extension's wheel links the runtime of one major version of CUDA, and torch's libraries for its "
    "accelerator. Next to a torch for another major version, or for the CPU, a library is missing, and the extension "
    "cannot be imported.",
    example="ImportError: libcudart.so.12: cannot open shared object file, of an extension next to torch for CUDA 13",
    fix="Install the extension's build for torch's CUDA version, or compile it against the installed torch.",
    sources="nixl#1705, sglang PR22719",
    tested="an environment with a module for the other runtime; xformers 0.0.35 next to torch 2.14.0 for CUDA 13",
)
def other_cuda(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """Extension modules, not libraries that are chosen by name, which need another runtime, or a torch for GPUs."""
    torch = _torch(facts)
    if torch is None or not torch.version:
        return
    own = _accelerator(_build_of(torch))
    reported = {package.name for package, _ in _mismatched(facts, torch)}  # B13 says more
    for library in installed(facts).missing:
        wanted = _wanted(library, torch)
        package = installed(facts).named(library.user)
        modules = [path for path in library.needed_by if not file_name(path).startswith("lib")]
        if package is None or package.name in reported or not wanted or not modules or _is_of_torch(package):
            continue
        reported.add(package.name)
        yield Finding(
            f"{package.name} {package.version} is built for {wanted}, but torch {torch.version} for {own}: "
            f"{file_name(modules[0])} needs {library.soname}, which is not found",
            (_needs(library, modules), Evidence("torch", own, f"{torch.folder}/version.py")),
            _companions(facts, torch) if package.name in COMPANIONS else _rebuild(facts, package, torch),
        )


def _wanted(library: MissingLibrary, torch: TorchFiles) -> str:
    """The accelerator for which a file that needs this library is built, if it is another than that of torch."""
    if maker := _OF_TORCH.match(library.soname):
        return "" if getattr(torch, maker[1]) else _MAKERS[maker[1]]
    found = _OF_CUDA.match(library.soname) if torch.cuda else None
    return f"CUDA {int(found[1])}" if found and int(found[1]) != cuda_major(torch.cuda) else ""


def _needs(library: MissingLibrary, modules: list[str]) -> Evidence:
    return Evidence(f"needs {library.soname}", listed(modules, len(modules)), modules[0])


def _is_of_torch(package: Package) -> bool:
    """True for torch itself, Triton and NVIDIA's libraries: for those others speak."""
    return package.name == "torch" or package.name.startswith(("nvidia-", "cuda-", "triton", "pytorch-triton"))


def _rebuild(facts: HostFacts, package: Package, torch: TorchFiles) -> Fix:
    """Compile an extension against the installed torch. Which wheels its authors offer is not known here."""
    options = ("--no-build-isolation", f"--no-binary={package.name}")
    commands = install(facts, package.name, force=True, no_deps=True, options=options)
    summary = (
        f"Install a wheel of {package.name} for torch {public(torch.version)}"
        + (f" and CUDA {torch.cuda}" if torch.cuda else "")
        + ", where its authors publish one; otherwise compile it against this torch (needs nvcc and a C++ compiler)."
    )
    return Fix(summary, commands)


@cause(
    "B13",
    "torchvision and torchaudio are the releases made for the installed torch",
    why="Their C++ code is compiled against one release of torch, which their metadata pins. With another release it "
    "cannot be loaded, and the operators that it registers are missing.",
    example="RuntimeError: operator torchvision::nms does not exist",
    fix="Install matching releases, all from one index.",
    sources="pytorch#157648, vision#8985",
    tested="an environment with the companion of another torch, and the fix run; torchvision 0.24.1, torch 2.14.0",
)
def companion_release(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A companion whose requirement of torch the installed one does not meet."""
    torch = _torch(facts)
    if torch is None:
        return
    for package, wanted in _mismatched(facts, torch):
        symbol = next((one for one in installed(facts).unresolved if one.distribution == package.name), None)
        evidence = [
            Evidence(package.name, f"requires {wanted}", f"METADATA of {package.name} {package.version}"),
            Evidence("torch", torch.version, f"{torch.folder}/version.py"),
        ]
        if symbol:
            evidence.append(Evidence("missing in torch", readable(symbol.symbol), symbol.path))
        yield Finding(
            f"{package.name} {package.version} requires {wanted}, but torch {torch.version} is installed",
            tuple(evidence),
            _companions(facts, torch),
        )


def _mismatched(facts: HostFacts, torch: TorchFiles) -> Iterator[tuple[Package, str]]:
    """The companions that require another torch, and which one."""
    version = version_or_none(torch.version)
    if version is None:
        return
    for package in installed(facts).packages:
        for text in package.requires if package.name in COMPANIONS else ():
            requirement = requirement_or_none(text)
            if requirement is None or canonicalize_name(requirement.name) != "torch":
                continue
            if not requirement.specifier.contains(version, prereleases=True):
                yield package, f"torch{requirement.specifier}"


def _companions(facts: HostFacts, torch: TorchFiles) -> Fix:
    """The companions that belong to this torch, from the index that it came from; past the table, torch and all."""
    wanted = companions(public(torch.version), installed(facts))
    package = installed(facts).named("torch")
    if not wanted:
        return reinstall_torch(facts)
    build = package.version.partition("+")[2] if package else ""
    index = build if re.fullmatch(r"cu\d{3}|cpu", build) else ""
    commands = install(facts, *wanted, force=True, no_deps=True, index=index)
    summary = f"Install the releases made for torch {public(torch.version)}: {' and '.join(wanted)}."
    return Fix(summary, commands, Goal(companions=tuple(name for name in COMPANIONS if installed(facts).named(name))))


@cause(
    "B14",
    "torch, torchvision and torchaudio are built for the same accelerator",
    why="torchvision rejects a torch of another major version of CUDA, torchaudio a torch of any other version. With a "
    "CPU build of torch neither loads its libraries for a GPU. A CPU build of torchvision can be imported, but its "
    "operators fail on GPU tensors: an error if a GPU may be there, else a warning.",
    example="PyTorch and TorchAudio were compiled with different CUDA versions",
    fix="Install all of them from the same index.",
    sources="TTS-WebUI#433; torchvision/extension.py, torchaudio/_extension/utils.py",
    tested="facts; what torchvision 0.29.2 and torchaudio 2.11.0 check was read in their source",
)
def companion_build(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A companion of the right release for another CUDA, or for the CPU."""
    torch = _torch(facts)
    if torch is None or not torch.version:
        return
    mismatched = {package.name for package, _ in _mismatched(facts, torch)}
    own = _build_of(torch)
    for package in installed(facts).packages:
        if package.name not in COMPANIONS or package.name in mismatched or package.build in {"", own}:
            continue
        other_major = cuda_major(package.build) != cuda_major(own)
        is_same = _maker(package.build) == _maker(own)
        if package.build == "cpu" and package.name != "torchvision":
            continue  # torchaudio computes with torch's own operators
        if is_same and not (_maker(own) == "cu" and (package.name != "torchvision" or other_major)):
            continue  # torchvision accepts its own major version of CUDA; nothing compares those of ROCm
        works_here = package.build == "cpu" and not may_have_gpu(facts)
        yield Finding(
            f"{package.name} {package.version} is built for {_accelerator(package.build)}, but torch {torch.version} "
            f"for {_accelerator(own)}",
            (
                Evidence(package.name, package.build, f"{package.folder}/{package.name}/version.py"),
                Evidence("torch", own, f"{torch.folder}/version.py"),
            ),
            _companions(facts, torch),
            severity=Severity.WARNING if works_here else Severity.ERROR,
        )


def _build_of(torch: TorchFiles) -> str:
    """The accelerator of a torch, as the local version of a companion names it."""
    if torch.cuda:
        return f"cu{torch.cuda.replace('.', '')}"
    return f"rocm{torch.hip}" if torch.hip else "xpu" if torch.xpu else "cpu"


def _maker(build: str) -> str:
    return build.rstrip("0123456789.")


def _accelerator(build: str) -> str:
    if build in ("cpu", "xpu"):
        return {"cpu": "the CPU", "xpu": "Intel GPUs"}[build]
    if build.startswith("rocm"):
        return f"ROCm {'.'.join(build.removeprefix('rocm').split('.')[:2])}"
    digits = build.removeprefix("cu")
    return f"CUDA {digits[:-1]}.{digits[-1]}" if build.startswith("cu") and len(digits) > 2 else build


@cause(
    "B15",
    "extensions find the torch symbols that they were compiled against",
    why="The C++ names in torch's libraries change with every release, and with the compiler's C++ ABI. An extension "
    "for another torch needs symbols that no longer exist, and the loader rejects it.",
    example="flash_attn_2_cuda.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationESs",
    fix="Install the extension's wheel for this torch, or compile it without build isolation.",
    sources="flash-attention#975, flash-attention#1644, flash-attention#1832",
    tested="modules compiled by gcc against two versions of a library, and the real loader's answer; no real extension",
)
def foreign_symbols(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """Undefined symbols of torch's namespaces that none of its libraries defines."""
    torch = _torch(facts)
    if torch is None:
        return
    mismatched = {package.name for package, _ in _mismatched(facts, torch)}
    reported = set(mismatched)
    for symbol in installed(facts).unresolved:
        package = installed(facts).named(symbol.distribution)
        if package is None or package.name in reported:
            continue
        reported.add(package.name)
        yield Finding(
            f"{package.name} {package.version} was compiled against another torch: {file_name(symbol.path)} needs "
            f"{readable(symbol.symbol)}{and_more(symbol.count - 1)}, which torch {torch.version} does not define",
            (
                Evidence("undefined symbol", symbol.symbol, symbol.path),
                Evidence("searched", "the dynamic symbols of all libraries of torch", f"{torch.folder}/lib"),
            ),
            _companions(facts, torch) if package.name in COMPANIONS else _rebuild(facts, package, torch),
        )


@cause(
    "B23",
    "libraries that torch needs but does not require are installed",
    explains=("torch:import",),
    why="Builds of torch for NVIDIA's Grace and Jetson link NVPL and cuDSS, and the metadata of some wheels does not "
    "declare them.",
    example="libnvpl_lapack_lp64_gomp.so.0: cannot open shared object file",
    fix="Install the packages that contain them.",
    sources="microduck_rl#38",
    tested="facts; an environment with such a library; no such wheel",
)
def undeclared_libraries(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """NVPL or cuDSS, needed by torch and nowhere."""
    torch, package = installed(facts).torch, installed(facts).named("torch")
    declared = " ".join(package.requires if package else ())
    bringers = ((library, _distribution_of(library, torch)) for library in missing_of_torch(facts))
    missing = {library: name for library, name in bringers if name and name not in declared}
    if torch is None or not missing:
        return
    names = sorted(set(missing.values()))
    yield Finding(
        f"torch {torch.version} needs {next(iter(missing)).soname}, which is not found and which its metadata does not "
        "require",
        tuple(_needs(library, list(library.needed_by)) for library in missing),
        Fix(f"Install {' and '.join(names)}.", install(facts, *names), Goal(wanted=tuple(names))),
    )


def _distribution_of(library: MissingLibrary, torch: TorchFiles | None) -> str:
    """The distribution that provides NVPL or cuDSS; "" for other libraries, and for lost ones."""
    name = next((name for prefix, name in _BEYOND_TORCH.items() if library.soname.startswith(prefix)), "")
    if library.owner or not torch:
        return ""
    return f"{name}{cuda_major(torch.cuda)}" if name.endswith("-cu") else name
