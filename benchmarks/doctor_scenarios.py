"""Broken installations for `benchmarks/doctor.py`: a real torch for CUDA, a driver of stubs, and one thing wrong.

``truth`` are our rules that name the cause; ``words`` matches text of a tool that names it.

A stub can answer with any code, but codes that only make sense next to files of the kernel (304, 803, 999) would be
broken in a way that no machine is: tests/doctor/test_stub_drivers.py has those, with the files.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

CPU_TORCH = "torch==2.13.0"
TORCH = ("torch==2.11.0", "torchvision==0.26.0", "numpy")


class NotMadeError(Exception):
    """A scenario that cannot be made here."""


@dataclass(frozen=True)
class Patient:
    """A copy of the environment that a scenario may break. ``work`` is the folder in which the tools are started."""

    environment: Path
    work: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.environment / "bin" / "python"

    @property
    def site(self) -> Path:
        """Its site-packages."""
        return next(self.environment.glob("lib/python3*/site-packages"))

    def uv(self, *arguments: str) -> None:
        """Let `uv pip` change it."""
        command = [sys.executable, "-m", "uv", "pip", *arguments, "--python", str(self.python), "--quiet"]
        subprocess.run(command, check=True)

    def find(self, pattern: str) -> Path:
        """The first file of its site-packages that matches."""
        return next(path for path in sorted(self.site.glob(pattern)) if path.is_file())


@dataclass(frozen=True)
class Scenario:
    """``stub`` are the variables of the stub driver, None for a machine without one; ``variables`` are the user's."""

    name: str
    truth: frozenset[str]
    words: str
    stub: Mapping[str, str] | None = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    harm: Callable[[Patient], Mapping[str, str] | None] = lambda _patient: None


def cut(pattern: str) -> Callable[[Patient], None]:
    """The library, cut off in its middle: a copy, since the packages of an environment share their files."""

    def harm(patient: Patient) -> None:
        victim = patient.find(pattern)
        half = victim.read_bytes()[: victim.stat().st_size // 2]
        victim.unlink()
        victim.write_bytes(half)

    return harm


def shared_paths(patient: Patient) -> None:
    """NCCL for CUDA 12 comes and goes, and removes the files of NCCL for CUDA 13."""
    patient.uv("install", "--no-deps", "nvidia-nccl-cu12==2.27.5")
    patient.uv("uninstall", "nvidia-nccl-cu12")


def second_torch(patient: Patient) -> Mapping[str, str]:
    """An older torch in a folder that PYTHONPATH names."""
    folder = patient.work / "elsewhere"
    (folder / "torch").mkdir(parents=True)
    (folder / "torch" / "__init__.py").write_text('__version__ = "2.4.0"\n')
    (folder / "torch" / "version.py").write_text('__version__ = "2.4.0+cpu"\ncuda = None\nhip = None\n')
    return {"PYTHONPATH": str(folder)}


def shadow(patient: Patient) -> None:
    """A script of the user's that has the name of torch."""
    (patient.work / "torch.py").write_text('print("my experiments with torch")\n')


def stub_library(patient: Patient) -> Mapping[str, str]:
    """The stub for linking comes first, as with /usr/local/cuda/lib64/stubs in LD_LIBRARY_PATH."""
    from tests.support.stub_driver import build  # needs gcc

    return {"LD_LIBRARY_PATH": str(build(patient.work / "stubs", version="", only="cuda", DEFAULT_CUINIT=34))}


def cpu_build(patient: Patient) -> None:
    """The CPU build replaces the CUDA build, as a package's pin does it; the libraries of CUDA stay, needed by no one.

    Raises NotMadeError if neither pip's indexes nor PyTorch's own offer one.
    """
    pip = [sys.executable, "-m", "pip", "--python", str(patient.python), "install", "--quiet", "--no-deps"]
    uv = [sys.executable, "-m", "uv", "pip", "install", "--python", str(patient.python), "--quiet", "--no-deps"]
    commands = [*pip, f"{CPU_TORCH}+cpu"], [*uv, "--torch-backend=cpu", CPU_TORCH]
    if all(subprocess.run(command, check=False, capture_output=True).returncode for command in commands):
        raise NotMadeError(f"no index offers {CPU_TORCH} for the CPU")


def removed(pattern: str) -> Callable[[Patient], None]:
    """A file that is deleted."""
    return lambda patient: patient.find(pattern).unlink()


def without(name: str) -> Callable[[Patient], None]:
    """A distribution that is uninstalled."""
    return lambda patient: patient.uv("uninstall", name)


def installed(requirement: str) -> Callable[[Patient], None]:
    """A distribution that is installed without its requirements."""
    return lambda patient: patient.uv("install", "--no-deps", requirement)


def hiding_start(patient: Patient) -> None:
    """A sitecustomize that hides the GPUs from every program."""
    (patient.site / "sitecustomize.py").write_text('import os\nos.environ["CUDA_VISIBLE_DEVICES"] = ""\n')


def shadowed_module(patient: Patient) -> None:
    """A file of the user's with the name of a standard module that torch imports."""
    (patient.work / "random.py").write_text("numbers = [4]\n")


def edited(patient: Patient) -> None:
    """A file of torch with a line too many: a copy, since the packages of an environment share their files."""
    victim = patient.find("torch/functional.py")
    text = victim.read_text()
    victim.unlink()
    victim.write_text(f"{text}\nraise ValueError(split_size)\n")


def second_metadata(patient: Patient) -> None:
    """The metadata of an older torch, which an upgrade did not remove."""
    own = next(patient.site.glob("torch-*.dist-info"))
    older = own.with_name("torch-2.10.0.dist-info")
    shutil.copytree(own, older)
    text = (older / "METADATA").read_text().replace("\nVersion: 2.11.0\n", "\nVersion: 2.10.0\n", 1)
    (older / "METADATA").write_text(text)


def interrupted(patient: Patient) -> None:
    """The remains of an interrupted uninstall: torch under another name, and its metadata."""
    (patient.site / "torch").rename(patient.site / "~orch")


def no_compiler(patient: Patient) -> Mapping[str, str]:
    """A PATH with no C compiler on it."""
    folder = patient.work / "bin"
    folder.mkdir()
    for name in ("sh", "cat", "ls", "uname", "ldd"):
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    return {"PATH": str(folder), "CC": ""}


SCENARIOS = (
    Scenario(
        "no GPU and no driver (a laptop)",
        frozenset({"DOC301", "healthy"}),
        r"no nvidia driver|driver .*not (detected|installed)|no .*gpu",
        stub=None,
    ),
    Scenario(
        "CUDA_VISIBLE_DEVICES is empty",
        frozenset({"DOC601"}),
        r"CUDA_VISIBLE_DEVICES (explicitly )?(masks|hides|is empty)",
        variables={"CUDA_VISIBLE_DEVICES": ""},
    ),
    Scenario(
        "CUDA_VISIBLE_DEVICES names a GPU that is not there",
        frozenset({"DOC602"}),
        r"CUDA_VISIBLE_DEVICES.*(invalid|out of range|does not exist|no such)",
        variables={"CUDA_VISIBLE_DEVICES": "7"},
    ),
    Scenario("cuInit gives 802", frozenset({"DOC401", "DOC405"}), r"fabric ?manager|\b802\b", {"STUB_CUINIT": "802"}),
    Scenario("cuInit gives 804", frozenset({"DOC313"}), r"\b804\b|forward compat", {"STUB_CUINIT": "804"}),
    Scenario("cuInit hangs", frozenset({"DOC318"}), r"hang|timed? ?out", {"STUB_HANG": "cuInit"}),
    Scenario("cuInit is killed by SIGSEGV", frozenset(), r"SIGSEGV|segfault|crash", {"STUB_CRASH": "cuInit"}),
    Scenario(
        "the driver is too old for this torch",
        frozenset({"DOC105"}),
        r"driver.*too old",
        {"STUB_CUDA_VERSION": "12080"},
    ),
    Scenario(
        "a stub of libcuda is found first", frozenset({"DOC311"}), r"stub (driver|library|libcuda)", harm=stub_library
    ),
    Scenario(
        "torch for the CPU, over one for CUDA",
        frozenset({"DOC102", "DOC103"}),
        r"cpu[- ]only|cpu build|\+cpu",
        harm=cpu_build,
    ),
    Scenario(
        "libcudnn is deleted",
        frozenset({"DOC202"}),
        r"cudnn.*(missing|not found|deleted)",
        harm=removed("nvidia/cudnn/lib/libcudnn.so.9"),
    ),
    Scenario(
        "libcublasLt is cut off",
        frozenset({"DOC206"}),
        r"cublas.*(truncat|short|cut|corrupt)",
        harm=cut("nvidia/cu13/lib/libcublasLt.so.*"),
    ),
    Scenario(
        "NCCL for CUDA 12 took NCCL for CUDA 13 with it",
        frozenset({"DOC201"}),
        r"nccl.*(missing|shared|same path|deleted)",
        harm=shared_paths,
    ),
    Scenario("Triton is missing", frozenset({"DOC814"}), r"triton.*(missing|not installed)", harm=without("triton")),
    Scenario(
        "torchvision is for another torch",
        frozenset({"DOC213"}),
        r"torchvision.*(torch 2\.10|mismatch|incompatible|requires)",
        harm=installed("torchvision==0.25.0"),
    ),
    Scenario(
        "another torch comes first on PYTHONPATH",
        frozenset({"DOC207"}),
        r"PYTHONPATH|shadow|two torch",
        harm=second_torch,
    ),
    Scenario("there is no C compiler", frozenset({"DOC801"}), r"C compiler|gcc .*(not|missing)", harm=no_compiler),
    Scenario(
        "torch is not installed",
        frozenset({"DOC002"}),
        r"torch.{0,40}(not installed|missing|not found|No module)",
        harm=without("torch"),
    ),
    Scenario("a sitecustomize hides the GPUs", frozenset({"DOC224"}), r"sitecustomize", harm=hiding_start),
    Scenario(
        "random.py is in the working directory",
        frozenset({"DOC225"}),
        r"shadow|random\.py.{0,40}(instead|in place)",
        harm=shadowed_module,
    ),
    Scenario(
        "typing_extensions is missing",
        frozenset({"DOC227"}),
        r"typing.extensions",
        harm=without("typing_extensions"),
    ),
    Scenario(
        "a file of torch was edited",
        frozenset({"DOC229"}),
        r"functional\.py.{0,60}(edited|changed|modified|hash|RECORD)|(edited|changed|modified).{0,60}functional\.py",
        harm=edited,
    ),
    Scenario(
        "two metadata folders of torch",
        frozenset({"DOC210"}),
        r"\b(two|duplicate|several|multiple)\b.{0,60}(metadata|versions of torch|distributions)|torch-2\.10\.0\.dist",
        harm=second_metadata,
    ),
    Scenario(
        "an interrupted uninstall left ~orch",
        frozenset({"DOC209"}),
        r"~orch|interrupted|leftover|invalid distribution",
        harm=interrupted,
    ),
    Scenario("torch.py is in the working directory", frozenset({"DOC208"}), r"shadow|torch\.py", harm=shadow),
)
