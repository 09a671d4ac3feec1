"""WHL601 to WHL604: code for the wanted GPUs, PTX, the declared list, and the CPU next to the GPU."""

from __future__ import annotations

from collections.abc import Sequence

from tests.rules.case import NOTE, WARNING, Case
from tests.support.elf import AARCH64, X86_64, Elf
from tests.support.fatbin import Image, fat_binary, section
from tests.support.wheel_facts import facts_of
from tests.support.wheels import WheelBuilder, torch_like
from wheel_checks.facts.gpu.targets import parse_gpus
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.facts import WheelFacts

MAIN = "torch/lib/libtorch_cuda.so"
PTXAS = "triton/backends/nvidia/bin/ptxas"


def library(*containers: Sequence[str | Image], machine: int = AARCH64) -> bytes:
    """A library with these fat binaries, each for some targets; without any it has no GPU code."""
    code = section(*(fat_binary(*labels) for labels in containers))
    return Elf(machine=machine, contents={".nv_fatbin": code} if code else {}).build().data


def torch(*containers: Sequence[str], declares: str = "", machine: str = "aarch64", **others: bytes) -> WheelFacts:
    """The facts of a torch whose libtorch_cuda.so has these fat binaries, next to ``others`` of its libraries."""
    wheel = WheelBuilder("torch", "2.11.0", f"cp312-cp312-manylinux_2_28_{machine}")
    wheel.add(MAIN, library(*containers, machine={"aarch64": AARCH64, "x86_64": X86_64}[machine]))
    for name, data in others.items():
        wheel.add(f"torch/lib/{name}.so", data)
    if declares:
        text = {".rodata": b"\0" + declares.encode() + b"\0"}
        wheel.add("torch/lib/libtorch_python.so", Elf(machine=AARCH64, contents=text).build().data)
    return facts_of(wheel, depth=Depth.GPU)


def gpus(text: str) -> dict[str, object]:
    """``--gpu TEXT``."""
    return {"gpus": parse_gpus(text)}


def unreadable_beside(*containers: Sequence[str]) -> WheelFacts:
    """A torch with a second library whose fat binaries are corrupt."""
    broken = Elf(contents={".nv_fatbin": b"corrupt!" * 8}).build().data
    return torch(*containers, declares="sm_90 sm_100", libbroken=broken)


def loose(target: str) -> WheelFacts:
    """A wheel with a file of PTX and no library."""
    text = f".version 8.7\n.target {target}\n.address_size 64\n".encode()
    return facts_of(WheelBuilder("demo", "1.0", "py3-none-any").add("kernels/a.ptx", text), depth=Depth.GPU)


def pure_python(local: str) -> WheelFacts:
    """A wheel without native code whose version.py has a local version, as torchdata's and torchtune's have."""
    wheel = WheelBuilder("torchdata", "0.11.0", "py3-none-any")
    return facts_of(wheel.add("torchdata/version.py", f"__version__ = '0.11.0+{local}'\n"), depth=Depth.GPU)


def triton(*targets: str) -> WheelFacts:
    """A wheel whose ptxas has these targets in its text."""
    text = b"\0".join(target.encode() for target in targets)
    wheel = WheelBuilder("triton", "3.5.0", "cp312-cp312-manylinux_2_28_aarch64")
    wheel.add(PTXAS, Elf(machine=AARCH64, contents={".rodata": b"\0" + text + b"\0"}).build().data)
    return facts_of(wheel, depth=Depth.GPU, gpus=parse_gpus("GB10"), first_use=True)


def compiled(member: str) -> WheelFacts:
    """A wheel without native code that has this member."""
    wheel = WheelBuilder("demo", "1.0", "py3-none-any").add(member, "add")
    return facts_of(wheel, gpus=parse_gpus("H100"), first_use=True)


TORCH_2_11 = ["sm_80", "sm_90", "sm_100", "sm_110", "sm_120"]
HARDLY = [*[["sm_90"]] * 99, ["sm_90", "sm_100"]]

CASES = [
    Case(
        "WHL601",
        "no code for an older GPU",
        lambda: torch(TORCH_2_11),
        (f"no code for T4G (7.5) in {MAIN}, which has sm_80, sm_90, sm_100, sm_110, sm_120",),
        member=MAIN,
        evidence=(
            "nothing runs on T4G (7.5): sm_80, sm_90, sm_100, sm_110, sm_120: machine code for another major version",
        ),
        expectations=gpus("T4G"),
    ),
    Case(
        "WHL601",
        "code for another architecture alone",
        lambda: torch(["sm_90a"]),
        (f"no code for GB200 (10.0), Thor (11.0) in {MAIN}, which has sm_90a",),
        member=MAIN,
        expectations=gpus("GH200,GB200,Thor"),
    ),
    Case(
        "WHL601",
        "one kernel library without code for a GPU that the wheel runs on",
        lambda: torch(TORCH_2_11, libattention=library(["sm_90a"]), libhost=library()),
        ("1 file with GPU code made for GPUs other than GB200 (10.0)",),
        NOTE,
        evidence=("sm_90a",),
        expectations=gpus("GH200,GB200"),
    ),
    Case(
        "WHL601",
        "one file in a hundred",
        lambda: torch(*HARDLY),
        (f"hardly any code for GB200 (10.0) in {MAIN}: 1 of 100 compiled files have code for GB200 (10.0)",),
        member=MAIN,
        expectations=gpus("GB200,GH200"),
    ),
    Case(
        "WHL601",
        "PTX in less than half of the files",
        lambda: torch(*[["sm_90"]] * 67, *[["sm_90", "compute_90"]] * 20),
        (
            f"not proven that this runs on GB200 (10.0): in {MAIN} only 20 of 87 compiled files have code for GB200 "
            "(10.0)",
        ),
        member=MAIN,
        evidence=("20 of 87 compiled files, of sm_90, compute_90",),
        expectations=gpus("GB200,GH200"),
        undecided=True,
    ),
    Case(
        "WHL601",
        "code in most of the files",
        lambda: torch(*[["sm_90"]] * 7, *[["sm_90", "sm_100"]] * 47, ["sm_90a"]),
        (f"47 of 54 compiled files of {MAIN} have code for GB200 (10.0)",),
        NOTE,
        member=MAIN,
        expectations=gpus("GB200,GH200"),
    ),
    Case(
        "WHL601",
        "a library of the package without code, next to the main one that has",
        lambda: torch(TORCH_2_11, libtorch_cuda_linalg=library(["sm_90"])),
        (
            "not proven that this runs on GB200 (10.0): torch/lib/libtorch_cuda_linalg.so has no code for GB200 "
            f"(10.0), but {MAIN} has",
        ),
        member="torch/lib/libtorch_cuda_linalg.so",
        evidence=("sm_90",),
        expectations=gpus("GH200,GB200"),
        undecided=True,
    ),
    Case(
        "WHL601",
        "a copy of another project's library without code",
        lambda: torch(TORCH_2_11, libnvjpeg=library(["sm_90"])),
        ("no code for GB200 (10.0) in torch/lib/libnvjpeg.so, which has sm_90",),
        WARNING,
        member="torch/lib/libnvjpeg.so",
        expectations=gpus("GH200,GB200"),
    ),
    Case(
        "WHL601",
        "a library that is chosen by its CUDA",
        lambda: torch(TORCH_2_11, libops_cuda126=library(["sm_90"]), libops_cuda130=library(["sm_90", "sm_100"])),
        ("no code for GB200 (10.0) in the libraries for CUDA 12.6; the libraries for other versions have it",),
        NOTE,
        expectations=gpus("GH200,GB200"),
    ),
    Case(
        "WHL601",
        "a wheel for CUDA on a GPU of AMD's",
        lambda: torch(TORCH_2_11),
        ("the wheel is CUDA: it has no code for MI300X (gfx942), MI250X (gfx90a)",),
        expectations=gpus("MI300X,MI250X"),
    ),
    Case(
        "WHL601",
        "a CPU wheel",
        lambda: facts_of(torch_like("cpu", "2.10.0", "aarch64")),
        ("the wheel is CPU only: it has no code for GB200 (10.0)",),
        expectations=gpus("GB200"),
    ),
    Case(
        "WHL601",
        "a CPU wheel in a stack, where STK101 judges it",
        lambda: facts_of(torch_like("cpu", "2.10.0", "aarch64")),
        expectations={**gpus("GB200"), "in_stack": True},
    ),
    Case(
        "WHL601",
        "nothing but files of code for another GPU",
        lambda: loose("sm_100a"),
        ("no code for H100 (9.0) in kernels/*.ptx, which has compute_100a",),
        member="kernels/*.ptx",
        expectations=gpus("H100,GB200"),
    ),
    Case(
        "WHL601",
        "files of code for another GPU in a stack, of which no one may need any",
        lambda: loose("sm_100a"),
        (
            "not proven that this runs on H100 (9.0): its files of GPU code are made for other GPUs (kernels/*.ptx); "
            "it is unknown whether any are needed",
        ),
        expectations={**gpus("H100,GB200"), "in_stack": True},
        undecided=True,
    ),
    Case(
        "WHL601",
        "a wheel for ROCm",
        lambda: facts_of(torch_like("rocm", "2.11.0", "x86_64")),
        ("the wheel is ROCm 7.1.25424: it has no code for H100 (9.0)",),
        expectations=gpus("H100"),
    ),
    Case(
        "WHL601",
        "a library whose code is corrupt",
        lambda: unreadable_beside(["sm_100"]),
        (
            "not proven that this runs on GB200 (10.0): the GPU code of torch/lib/libbroken.so is unknown: it cannot "
            "be read: the fat binary at byte 0 of its section has magic 0x72726F63; expected 0xBA55ED50, or zeros to "
            "the end of the section",
        ),
        member="torch/lib/libbroken.so",
        expectations=gpus("GB200"),
        undecided=True,
    ),
    Case(
        "WHL601",
        "torch 2.11.0 for aarch64 on all that is Grace and its kin",
        lambda: torch(TORCH_2_11),
        expectations=gpus("GH200,GB200,GB300,GB10,Thor,A100,A10,L4"),
    ),
    Case(
        "WHL601",
        "PTX for an older GPU",
        lambda: torch(["sm_80", "compute_80"]),
        expectations=gpus("GB200"),
    ),
    Case(
        "WHL601",
        "a wheel without GPU code",
        lambda: facts_of(WheelBuilder().add("demo/_C.so", library()), depth=Depth.GPU),
        expectations=gpus("GB200"),
    ),
    Case(
        "WHL601",
        "files for one GPU each, together for all",
        lambda: torch(["sm_80"], ["sm_90a"], ["sm_100f"], ["sm_120f"]),
        expectations=gpus("GH200,GB200,GB300,GB10,sm_120,A10"),
    ),
    Case(
        "WHL601",
        "a compiler that does not know the GPU",
        lambda: triton("sm_90", "sm_120"),
        (f"no code for GB10 (12.1): it is compiled at first use, and {PTXAS} does not know the target",),
        member=PTXAS,
        evidence=("sm_90, sm_120",),
        expectations=gpus("GB10,GH200"),
    ),
    Case("WHL601", "a compiler that knows the GPU", lambda: triton("sm_121a"), expectations=gpus("GB10")),
    Case(
        "WHL601",
        "sources that are compiled at first use, by the host",
        lambda: compiled("demo/csrc/add.cu"),
        ("not proven that this runs on H100 (9.0): it is compiled at first use, by nvcc or NVRTC on the host",),
        evidence=("nvcc or NVRTC on the host",),
        expectations=gpus("H100"),
        undecided=True,
    ),
    Case("WHL601", "a pure Python package", lambda: compiled("demo/add.py"), expectations=gpus("H100")),
    Case("WHL601", "a CPU build by version.py alone", lambda: pure_python("cpu"), expectations=gpus("H100")),
    Case("WHL601", "a ROCm build by version.py alone", lambda: pure_python("rocm6.4"), expectations=gpus("H100")),
    Case(
        "WHL602",
        "PTX alone for the latest GPU",
        lambda: torch(["sm_80", "sm_90", "compute_90"], libkernels=library(["compute_80"])),
        (
            f"{MAIN} runs on GB200 (10.0), GB10 (12.1) only by compiling compute_90 at first use",
            "torch/lib/libkernels.so runs on GH200 (9.0), GB200 (10.0), GB10 (12.1) only by compiling compute_80 at "
            "first use",
        ),
        WARNING,
        member=MAIN,
        evidence=("sm_80, sm_90, compute_90",),
        expectations=gpus("GH200,GB200,GB10"),
    ),
    Case(
        "WHL602",
        "PTX next to machine code",
        lambda: torch(["sm_80", "sm_100", "compute_100"]),
        expectations=gpus("GB200,GB300,A100"),
    ),
    Case("WHL602", "nothing that runs", lambda: torch(["sm_100", "compute_100"]), expectations=gpus("T4")),
    Case(
        "WHL603",
        "an architecture that is only declared",
        lambda: torch(["sm_80", "sm_90"], declares="sm_80 sm_90 sm_100"),
        (f"torch.cuda.get_arch_list() lists sm_100, but {MAIN} does not have it",),
        member=MAIN,
        evidence=("sm_80, sm_90, sm_100", "sm_80, sm_90"),
    ),
    Case(
        "WHL603",
        "an architecture that is not declared",
        lambda: torch(["sm_80", "sm_90", "sm_100"], declares="sm_80 sm_90"),
        (f"{MAIN} is built for sm_100, but torch.cuda.get_arch_list() does not list it",),
        WARNING,
        member=MAIN,
    ),
    Case(
        "WHL603",
        "a few files for more, as torch has them",
        lambda: torch(*[["sm_80", "sm_90"]] * 3, ["sm_90a", "sm_89"], declares="sm_80 sm_90"),
    ),
    Case(
        "WHL604",
        "T4 for aarch64",
        lambda: torch(TORCH_2_11),
        ("T4 (7.5) exists in x86_64 machines, but the wheel is for aarch64",),
        WARNING,
        evidence=("T4G",),
        expectations=gpus("T4,GB200"),
    ),
    Case(
        "WHL604",
        "Thor for x86_64",
        lambda: torch(["sm_80", "sm_110"], machine="x86_64"),
        ("Thor (11.0) exists in aarch64 machines, but the wheel is for x86_64",),
        WARNING,
        evidence=("none known",),
        expectations=gpus("Thor"),
    ),
    Case("WHL604", "T4G, and a capability of any", lambda: torch(TORCH_2_11), expectations=gpus("T4G,sm_75")),
]
