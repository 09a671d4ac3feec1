"""Derive from the truth about a wheel: its accelerator, its CUDA major versions, and the GPUs that its own code runs
on.

The rules are from the CUDA Programming Guide ("Binary Compatibility", "Family-Specific Features"), reimplemented on
purpose: machine code runs on the same major version and the same or a higher minor one, with ``a`` on exactly its own;
PTX runs on the same and newer versions. cuobjdump does not print the suffix ``f``, which restricts code to the family
of its version: among the GPUs judged here, no family is smaller than its major version.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from packaging.version import Version

# The runtime libraries that carry the major version of CUDA in their names, and those whose number differs from it.
_MAJORS = re.compile(
    r"lib(?:cudart|cublas|cublasLt|nvrtc|nvJitLink|cupti|nvjpeg|npp[a-z]+)(?:-[0-9a-f]{8})?\.so\.(1\d)\b"
)
_SHIFTED = {"libcufft.so.11": "12", "libcufft.so.12": "13", "libcusolver.so.11": "12", "libcusolver.so.12": "13"}
_CUDA = re.compile(
    r"lib(?:cuda|cudart|cublas|cublasLt|cudnn\w*|cufft|cufftw|curand|cusolver\w*|cusparse\w*|nvrtc|nvJitLink|nvjpeg"
    r"|cupti|nccl|npp[a-z]+|nvinfer\w*|nvshmem\w*|cufile|c10_cuda|torch_cuda\w*|cutensor\w*|nvcomp\w*)(?:-[0-9a-f]{8})?\.so\b"
)
_ROCM = re.compile(r"lib(?:amdhip64|hsa-runtime64|rocblas|hipblas\w*|MIOpen|torch_hip|c10_hip|rccl)\.so\b")
_XPU = re.compile(r"lib(?:sycl|ze_loader|torch_xpu|c10_xpu)\.so\b")
_HINTS = re.compile(r"(nvidia|cuda|cupy)-|sgl-kernel|flashinfer|\w[\w-]*-cu1\d")
# Libraries of NVIDIA that other packages bundle: their code says nothing about the package.
_BUNDLED = re.compile(
    r"(^|/)nvidia/|(^|/)lib(?:cublas|cudnn|cufft|cusparse|cusolver|curand|nccl|nvrtc|nvjpeg|npp|nvJitLink|cudart|cupti|"
    r"nvinfer|nvshmem|nvcomp|cutensor|cudadevrt)[^/]*\.(?:so|a)"
)


@dataclass(frozen=True)
class Truth:
    """``accelerator`` is cuda, rocm, xpu or none; ``loaded`` says which one is only loaded at run time (dlopen), "" for
    none. ``cuda`` are majors by sonames. ``how`` is for each capability ("10.0") native, jit, "native or jit", none,
    mixed or "no code"; ``libraries`` has the same for each library. ``native`` is false for a wheel of sources alone;
    ``hinted`` is true where requirements name CUDA.
    """

    accelerator: str
    loaded: str
    cuda: tuple[str, ...]
    how: dict[str, str]
    libraries: dict[str, dict[str, str]]
    native: bool
    hinted: bool


def of_row(row: dict[str, Any], capabilities: Iterable[str]) -> Truth:
    """Sum up one wheel of the truth."""
    files = row.get("files", [])
    own = [file for file in files if is_own(row["package"], file["path"])]
    libraries = {
        capability: {file["path"]: how_of(labels, capability) for file in own if (labels := labels_of(file))}
        | {folder: how_of([f"sass {arch}" for arch in archs], capability) for folder, archs in _cubins(row).items()}
        for capability in capabilities
    }
    return Truth(
        accelerator=_accelerator(row, files),
        loaded=_loaded(files),
        cuda=_majors(files),
        how={capability: _together(found.values()) for capability, found in libraries.items()},
        libraries=libraries,
        hinted=any(_HINTS.match(requirement) for requirement in row.get("requires", [])),
        native=any(file.get("kind") != "ptx" for file in files) or bool(row.get("cubins")),
    )


def from_source(row: dict[str, Any]) -> bool:
    """True if an installer builds a source archive: there is no wheel, or only one of an older release."""
    if not row["wheel"]:
        return True
    version = Version(row["wheel"].split("-")[1])
    return bool(row.get("newest_source")) and Version(row["newest_source"]) > version


def is_own(package: str, path: str) -> bool:
    """True for a library of the package itself, false for one of NVIDIA that it bundles, and for data of tests."""
    if re.search(r"(^|/)tests?/", path):
        return False
    return package.startswith(("nvidia-", "tensorrt")) or not _BUNDLED.search(path)


def labels_of(file: dict[str, Any]) -> list[str]:
    """The code of a member that something loads: "sass 100a", "ptx 90". Archives and loose PTX are input of builds."""
    if file.get("kind") in {"archive", "ptx"}:
        return []
    sections = [f"sass {arch}" for arch in file.get("sass", {})] + [f"ptx {arch}" for arch in file.get("ptx", {})]
    return sections + [label for label in file.get("outside", {}) if label.startswith(("sass ", "ptx "))]


def how_of(labels: Iterable[str], capability: str) -> str:
    """How code runs on a GPU: native, jit or none."""
    major, minor = (int(part) for part in capability.split("."))
    hows = {_how(label, major, minor) for label in labels}
    return next((how for how in ("native", "jit") if how in hows), "none")


def _how(label: str, major: int, minor: int) -> str:
    kind, arch = label.split(" ")
    number = int(arch.rstrip("af"))
    exact, same = number == major * 10 + minor, number // 10 == major
    if arch.endswith("a"):
        return ("native" if kind == "sass" else "jit") if exact else "none"
    if kind == "sass":
        return "native" if same and number % 10 <= minor else "none"
    return "jit" if number <= major * 10 + minor else "none"


def _together(hows: Iterable[str]) -> str:
    found = set(hows)
    if not found:
        return "no code"
    if len(found) == 1:
        return found.pop()
    return "native or jit" if found == {"native", "jit"} else "mixed"


def _cubins(row: dict[str, Any]) -> dict[str, list[str]]:
    folders: dict[str, list[str]] = {}
    for name in row.get("cubins", {}):
        _folder, arch = name.rsplit(" ", 1)
        folders.setdefault("cubins", []).append(arch)
    return {folder: [arch for arch in archs if arch] for folder, archs in folders.items()}


def _accelerator(row: dict[str, Any], files: list[dict[str, Any]]) -> str:
    needed = " ".join(name for file in files for name in file.get("needed", []))
    sections = {name for file in files for name, size in file.get("gpu_sections", {}).items() if size}
    if row.get("cubins") or any("nv" in name.lower() for name in sections) or _CUDA.search(needed):
        return "cuda"
    if any("hip" in name.lower() for name in sections) or _ROCM.search(needed):
        return "rocm"
    return "xpu" if _XPU.search(needed) else "none"


def _loaded(files: list[dict[str, Any]]) -> str:
    mentions = " ".join(name for file in files for name in file.get("mentions", []))
    if _CUDA.search(mentions):
        return "cuda"
    return "rocm" if _ROCM.search(mentions) else "xpu" if _XPU.search(mentions) else ""


def _majors(files: list[dict[str, Any]]) -> tuple[str, ...]:
    needed = [name for file in files for name in (*file.get("needed", []), file.get("soname", ""))]
    found = {match[1] for name in needed if (match := _MAJORS.match(name))}
    return tuple(sorted(found | {_SHIFTED[name] for name in needed if name in _SHIFTED}))
