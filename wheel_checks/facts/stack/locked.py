"""A lock file's entry for a package, and the file found for it: facts for the rules about locks."""

from __future__ import annotations

import re
from dataclasses import dataclass

from wheel_checks.facts.accelerator.signals import CPU, CUDA, ROCM, VERSION, XPU, Signal
from wheel_checks.facts.accelerator.verdict import DECLARED, AcceleratorFacts
from wheel_checks.model import Unavailable

# "+cu130", "+rocm6.4" and "+cpu" as PyTorch's own index names local versions, also among other words as in
# "+20260608.cu130torch2110cxx11abitrue".
_LOCAL = re.compile(r"(?:^|[.])(?:(?P<cuda>cu)(?P<cu>\d{2,3})|(?P<rocm>rocm)(?P<ro>\d+(?:\.\d+)*)|(?P<only>cpu|xpu))")

# conda-forge's builds: cuda129_mkl_py313_h7947483_302, cpu_generic_py312_h0; the channel pytorch's:
# py3.10_cuda12.1_cudnn8.9.2_0, py3.10_cpu_0; NVIDIA's: cuda12_py311_0.
_BUILD = re.compile(
    r"(?:^|_)(?:(?P<cuda>cuda)_?(?P<cu>\d{2,3}|\d{1,2}\.\d+)?|(?P<rocm>rocm)(?P<ro>[\d.]*)|(?P<only>cpu))(?=_|$)"
)
_MAJOR_DIGITS = 2


@dataclass(frozen=True, slots=True)
class WrongLockedHash:
    """The hash of a file in the lock, and the index's hash for a file of that name."""

    file_name: str
    locked: str
    stated: str
    index: str


@dataclass(frozen=True, slots=True)
class LockedEntry:
    """A lock's entry for one package on a target.

    ``lock`` is the name of the file, ``line`` that of the entry, 0 when it is unknown. ``misfit`` says why no file of
    the entry can be installed on the target, ``unread`` why its file was not read, or "". ``build`` is the build string
    of a package of conda; ``address`` the address of the file in the lock, without credentials.
    """

    lock: str
    line: int = 0
    misfit: str = ""
    unread: str = ""
    address: str = ""
    build: str = ""
    wrong: WrongLockedHash | None = None

    @property
    def where(self) -> str:
        """Such as "uv.lock:120"."""
        return f"{self.lock}:{self.line}" if self.line else self.lock


@dataclass(frozen=True, slots=True)
class LockFacts:
    """A lock as a whole, for one target.

    ``outside`` says why it is not for the target, or is "". ``open`` are sentences about undecided points, ``notes``
    about how it was read. ``conda`` counts packages of conda, whose files are not read. ``requires_python`` is that of
    the whole lock.
    """

    name: str
    format: str
    outside: str = ""
    open: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    conda: int = 0
    requires_python: str = ""


def declared_by_version(version: str) -> AcceleratorFacts | Unavailable:
    """The accelerator in a local version label: CUDA 13.0 of "2.11.0+cu130"."""
    found = _LOCAL.search(version.partition("+")[2].lower())
    if found is None:
        return Unavailable("neither the file nor its name shows an accelerator")
    return _declared(found["cuda"], found["cu"], found["rocm"], found["ro"], found["only"], version)


def declared_by_build(build: str, version: str) -> AcceleratorFacts | Unavailable:
    """The accelerator in the build string of a conda package: CUDA 12.9 of "cuda129_mkl_py313_h7947483_302"."""
    found = _BUILD.search(build.lower())
    if found is None:
        return Unavailable("the build string shows no accelerator")
    return _declared(found["cuda"], found["cu"], found["rocm"], found["ro"], found["only"], f"{version} {build}")


def _declared(
    cuda: str | None, cu: str | None, rocm: str | None, ro: str | None, only: str | None, text: str
) -> AcceleratorFacts:
    kind = CUDA if cuda else ROCM if rocm else XPU if only == "xpu" else CPU
    number = ro or cu or ""
    if cuda and number.isdigit() and len(number) > _MAJOR_DIGITS:
        number = f"{number[:_MAJOR_DIGITS]}.{number[_MAJOR_DIGITS:]}"
    elif cuda and number.isdigit() and int(number) >= 80:  # cu92 was CUDA 9.2
        number = f"{number[0]}.{number[1]}"
    signal = Signal(VERSION, (kind,), number, text, "its name")
    return AcceleratorFacts(kind, number, "", (signal,), certainty=DECLARED, declared=(kind,), unread="it was not read")
