"""WHL605 to WHL607: the driver against the wheel's CUDA, its PTX, and the GPU."""

from __future__ import annotations

from tests.rules.case import Case
from tests.rules.wheel.gpu_code_cases import library
from tests.support.elf import X86_64, Elf
from tests.support.fatbin import TOOLKIT_NOTE, Image, cubin_head
from tests.support.wheel_facts import facts_of
from tests.support.wheels import WheelBuilder, torch_like
from wheel_checks.facts.gpu.targets import parse_gpus
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.facts import WheelFacts


def on(driver: str, gpus: str = "") -> dict[str, object]:
    """``--driver DRIVER --gpu GPUS``."""
    return {"drivers": tuple(driver.split(",")), "gpus": parse_gpus(gpus) if gpus else ()}


def cuda(*labels: str | Image, name: str = "demo_cu13", **others: bytes) -> WheelFacts:
    """A wheel for CUDA by its name, with code for these targets."""
    wheel = WheelBuilder(name, "1.0", "cp312-cp312-manylinux_2_28_x86_64")
    wheel.add("demo/_C_cuda.so", library(*([labels] if labels else ()), machine=X86_64))
    for member, data in others.items():
        wheel.add(f"demo/{member}.so", data)
    return facts_of(wheel, depth=Depth.GPU)


def torch(kind: str = "cuda") -> WheelFacts:
    """torch 2.11.0 for CUDA 13.0, or another build of it."""
    wheel = torch_like(kind, "2.11.0", "x86_64")
    if kind == "cuda":
        wheel.add("torch/lib/libtorch_cuda_linalg.so", Elf(machine=X86_64, needed=("libcudart.so.13",)).build().data)
    return facts_of(wheel)


def static(*texts: str, name: str = "demo") -> WheelFacts:
    """A wheel with a library that the CUDA runtime is linked into, with these texts."""
    rodata = b"\0".join([b"", *(text.encode() for text in texts), b""])
    wheel = plain(name).add("demo/_C.so", Elf(machine=X86_64, contents={".rodata": rodata}).build().data)
    return facts_of(wheel, depth=Depth.GPU, drivers=("580",))


def cubin(abi: int, e_version: int, note: str = "", sm: int = 90) -> WheelFacts:
    """A wheel with a cubin as a file, and no runtime."""
    flags = sm << 8 if abi >= 8 else sm
    data = cubin_head(abi, e_version, flags) + (TOOLKIT_NOTE % note.encode() if note else b"")
    return facts_of(plain("demo_cu12").add(f"demo/k_sm{sm}.cubin", data), drivers=("580",))


def alternatives(**needed: str) -> WheelFacts:
    """A wheel with a library for each CUDA, of which it loads one."""
    wheel = plain()
    for cuda, soname in needed.items():
        wheel.add(f"demo/libdemo_{cuda}.so", Elf(machine=X86_64, needed=(soname,)).build().data)
    return facts_of(wheel, drivers=("580",))


def plain(name: str = "demo", version: str = "1.0") -> WheelBuilder:
    """A wheel for x86_64 without libraries."""
    return WheelBuilder(name, version, "cp312-cp312-manylinux_2_28_x86_64")


def linked(*needed: str, soname: str = "") -> WheelBuilder:
    """A wheel with a library for each needed one, and one with this name."""
    wheel = plain()
    for number, name in enumerate(needed):
        wheel.add(f"demo/_C{number}.so", Elf(machine=X86_64, needed=(name,)).build().data)
    return wheel.add(f"demo/lib/{soname}", Elf(machine=X86_64, soname=soname).build().data) if soname else wheel


OLD = library([Image("sm_90", abi=7)], machine=X86_64)
NEW = library(["sm_90", "sm_110"], machine=X86_64)
SIGN = "/cudart.shm.%x.%x.%llx"
SINCE_12 = "is using CUDA Dynamic Parallelism, but the current configuration, like MPS, does not support it"
SINCE_13 = 'Duplicate entry kernels named "%s" detected. The Runtime will use the first'
TOO_OLD = (
    "driver 535 does not run the wheel: CUDA 13.0 needs driver 580 or later; driver 535 supports up to CUDA 12.2",
)

CASES = [
    Case("WHL605", "CUDA 13 on a driver of CUDA 12", torch, TOO_OLD, evidence=("CUDA 12.2",), expectations=on("535")),
    Case(
        "WHL605",
        "CUDA 13 on a driver of CUDA 12, with a GPU",
        torch,
        TOO_OLD,
        expectations=on("580.95.05,535", "H100"),
    ),
    Case(
        "WHL605",
        "a driver that the table does not have",
        torch,
        ("not known whether driver 700 runs CUDA 13.0: the table of drivers does not list it",),
        expectations=on("700"),
        undecided=True,
    ),
    Case(
        "WHL605",
        "a wheel for CUDA that does not say which",
        lambda: facts_of(plain("demo_cu12").add("demo/_C_cuda.so", library(["sm_90"], machine=X86_64))),
        ("not known whether driver 580 runs the wheel: the wheel's CUDA version is unknown",),
        expectations=on("580"),
        undecided=True,
    ),
    Case("WHL605", "CUDA 13 on its first driver", torch, expectations=on("580,595.10")),
    Case(
        "WHL605",
        "CUDA 12 on a newer driver",
        lambda: cuda(Image("sm_90", abi=7), name="demo_cu12"),
        expectations=on("580,525"),
    ),
    Case("WHL605", "a wheel without code that a toolkit compiled", lambda: cuda(name="demo"), expectations=on("450")),
    Case(
        "WHL605",
        "CUDA in the names of its folders alone, as in nvcc",
        lambda: facts_of(plain("nvidia_cuda_nvcc").add("nvidia/cu13/bin/nvcc", Elf(machine=X86_64).build().data)),
        expectations=on("450"),
    ),
    Case(
        "WHL605",
        "a copy of CUPTI, as in triton",
        lambda: facts_of(linked(soname="libcupti.so.12")),
        expectations=on("450"),
    ),
    Case(
        "WHL605",
        "the runtime itself",
        lambda: facts_of(linked(soname="libcudart.so.13")),
        ("driver 535 does not run the wheel: CUDA 13 needs driver 580 or later; driver 535 supports up to CUDA 12.2",),
        expectations=on("535"),
    ),
    Case(
        "WHL605",
        "bindings, which say what they need",
        lambda: facts_of(plain("cuda_bindings", "13.5.0").add("cuda/bindings/d.so", Elf(machine=X86_64).build().data)),
        (
            "driver 535 does not run the wheel: CUDA 13.5 needs driver 580 or later; driver 535 supports up to CUDA "
            "12.2",
        ),
        expectations=on("535"),
    ),
    Case(
        "WHL605",
        "libraries for two CUDA, on a driver for one",
        lambda: facts_of(linked("libcudart.so.12", "libcudart.so.13")),
        ("not known whether driver 535 runs the wheel, which has libraries for CUDA 12 and 13",),
        expectations=on("535"),
        undecided=True,
    ),
    Case(
        "WHL605",
        "libraries for two CUDA without GPU code, which was read",
        lambda: facts_of(linked("libcudart.so.12", "libcudart.so.13"), depth=Depth.GPU),
        ("not known whether driver 535 runs the wheel, which has libraries for CUDA 12 and 13",),
        expectations=on("535"),
        undecided=True,
    ),
    Case(
        "WHL605",
        "libraries for two CUDA, on a driver for both",
        lambda: facts_of(linked("libcudart.so.12", "libcudart.so.13")),
        expectations=on("580"),
    ),
    Case("WHL605", "a build for the CPU", lambda: torch("cpu"), expectations=on("450")),
    Case(
        "WHL605",
        "one of its libraries is for an older CUDA",
        lambda: alternatives(cuda126="libcudart.so.12", cuda130="libcudart.so.13"),
        expectations=on("535"),
    ),
    Case(
        "WHL605",
        "the only one of its libraries with code for the GPU is for a newer CUDA",
        lambda: cuda("sm_90", "sm_110", name="demo", ops_cuda126=OLD, ops_cuda130=NEW),
        ("driver 570 does not run the wheel: CUDA 13 needs driver 580 or later; driver 570 supports up to CUDA 12.8",),
        expectations=on("570", "Thor"),
    ),
    Case(
        "WHL605",
        "another of its libraries has code for the GPU, too",
        lambda: cuda(Image("sm_90", abi=7), name="demo", ops_cuda126=OLD, ops_cuda130=NEW),
        expectations=on("570", "H100"),
    ),
    Case(
        "WHL605",
        "a static runtime of CUDA 13, in a package named after CUDA 12",
        lambda: static(SIGN, SINCE_12, SINCE_13, name="demo_cu12"),
        ("driver 575 does not run the wheel: CUDA 13 needs driver 580 or later; driver 575 supports up to CUDA 12.9",),
        evidence=("CUDA 13",),
        expectations=on("575"),
    ),
    Case("WHL605", "a static runtime of CUDA 12", lambda: static(SIGN, SINCE_12), expectations=on("525,580")),
    Case(
        "WHL605",
        "a compiler in a package named after CUDA 12",
        lambda: facts_of(
            plain("nvidia_cuda_nvcc_cu12").add("nvidia/nvvm/libdevice/libdevice.10.bc", b"BC\xc0\xde" + bytes(64)),
            depth=Depth.GPU,
            drivers=("450",),
        ),
        expectations=on("450"),
    ),
    Case("WHL605", "its texts without the runtime", lambda: static(SINCE_12, SINCE_13), expectations=on("450")),
    Case(
        "WHL605",
        "a cubin that names CUDA 13.0 in its note",
        lambda: cubin(8, 1, "13.0", 100),
        (
            "driver 570 does not run the wheel: CUDA 13.0 needs driver 580 or later; driver 570 supports up to CUDA "
            "12.8",
        ),
        expectations=on("570"),
    ),
    Case("WHL605", "a cubin that names CUDA 12.8", lambda: cubin(8, 1, "12.8", 100), expectations=on("525,570,580")),
    Case(
        "WHL605",
        "a cubin of CUDA 12.4 by e_version",
        lambda: cubin(7, 124),
        (
            "driver 520 does not run the wheel: CUDA 12.4 needs driver 525.60.13 or later; driver 520 supports up to "
            "CUDA 11.8",
        ),
        expectations=on("520"),
    ),
    Case("WHL605", "the same on a driver of its major", lambda: cubin(7, 124), expectations=on("525,580")),
    Case(
        "WHL605",
        "a cubin for sm_100 that does not say whether CUDA 12 or 13 made it",
        lambda: cubin(8, 1, "", 100),
        (
            "not known whether driver 575 runs the wheel: its code is of CUDA 12 or newer (0 of 1 compiled file show "
            "it)",
        ),
        expectations=on("575"),
        undecided=True,
    ),
    Case("WHL605", "the same on a driver of CUDA 13", lambda: cubin(8, 1, "", 100), expectations=on("580")),
    Case(
        "WHL605",
        "a cubin of an ABI that no table has",
        lambda: cubin(9, 1),
        ("not known whether driver 580 runs the wheel: its code is of an unknown CUDA (0 of 1 compiled file show it)",),
        expectations=on("580"),
        undecided=True,
    ),
    Case(
        "WHL605",
        "cubins of the old ABI, of CUDA 12 or older",
        lambda: cuda(Image("sm_90", abi=7, compression="lz4"), name="demo"),
        ("not known whether driver 520 runs the wheel: its code is of CUDA 12 or older",),
        expectations=on("520"),
        undecided=True,
    ),
    Case(
        "WHL605",
        "the same next to PTX of CUDA 12.8",
        lambda: cuda(
            Image("sm_90", abi=7, compression="lz4"), Image("compute_90", ptx_isa="8.7", compression="lz4"), name="demo"
        ),
        (
            "driver 520 does not run the wheel: CUDA 12.8 needs driver 525.60.13 or later; driver 520 supports up to "
            "CUDA 11.8",
        ),
        expectations=on("520"),
    ),
    Case(
        "WHL605",
        "one of its files is of CUDA 13, of another nothing shows it",
        lambda: facts_of(
            plain().add("demo/_C.so", library(["sm_90"], [Image("sm_100", abi=9)], machine=X86_64)), depth=Depth.GPU
        ),
        ("driver 575 does not run the wheel: CUDA 13 needs driver 580 or later; driver 575 supports up to CUDA 12.9",),
        expectations=on("575", "H100"),
    ),
    Case(
        "WHL605",
        "code that does not show its CUDA, on a driver that the table does not have",
        lambda: cubin(9, 1),
        ("not known whether driver 700 runs CUDA of an unknown version: the table of drivers does not list it",),
        expectations=on("700"),
        undecided=True,
    ),
    Case(
        "WHL605",
        "a library of CUDA 13 in a wheel of CUDA 12",
        lambda: cuda(Image("sm_90", abi=7), name="demo_cu12", extra=library(["sm_90"], machine=X86_64)),
        ("not known whether driver 575 runs the wheel, which has libraries for CUDA 12 and 13",),
        expectations=on("575"),
        undecided=True,
    ),
    Case(
        "WHL606",
        "PTX of CUDA 13 on a driver of CUDA 12",
        lambda: cuda("sm_80", "compute_80"),
        (
            "demo/_C_cuda.so runs on H100 (9.0) only through compute_80 of CUDA 13.0, which driver 535 (CUDA 12.2) "
            "does not compile",
        ),
        member="demo/_C_cuda.so",
        expectations=on("535", "H100,A100"),
    ),
    Case(
        "WHL606",
        "PTX of a version that the table does not have",
        lambda: cuda("sm_80", Image("compute_80", ptx_isa="9.9")),
        ("not known whether driver 580 compiles the PTX (compute_80) of demo/_C_cuda.so on H100 (9.0)",),
        expectations=on("580", "H100,A100"),
        undecided=True,
    ),
    Case("WHL606", "machine code", lambda: cuda("sm_80", "sm_90", "compute_90"), expectations=on("535", "H100,A100")),
    Case(
        "WHL606",
        "PTX of an older CUDA",
        lambda: cuda("sm_80", Image("compute_80", ptx_isa="8.7")),
        expectations=on("570,580", "H100"),
    ),
    Case(
        "WHL607",
        "V100 with a driver that has left it",
        lambda: cuda("sm_70", name="demo_cu12"),
        ("driver 590 does not support V100 (7.0); the last branch that does is 580",),
        expectations=on("590", "V100,T4"),
    ),
    Case(
        "WHL607",
        "Blackwell with a driver that is older",
        lambda: cuda("sm_100", name="demo_cu12"),
        ("driver 565 does not support B200 (10.0); the first branch that does is 570",),
        expectations=on("565", "B200,H100"),
    ),
    Case("WHL607", "Blackwell with its first driver", lambda: cuda("sm_100"), expectations=on("570", "B200,RTX 5090")),
    Case(
        "WHL607", "V100 with its last driver", lambda: cuda("sm_70", name="demo_cu12"), expectations=on("580", "V100")
    ),
]
