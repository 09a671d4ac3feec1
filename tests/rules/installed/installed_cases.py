"""WHL701 to WHL734: installed distributions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from packaging.specifiers import SpecifierSet

from tests.rules.case import NOTE, WARNING, Case
from tests.rules.wheel.gpu_code_cases import gpus
from tests.support.elf import WEAK, Symbol
from tests.support.environments import MODULE, Installed, distribution_facts, installed_facts, library
from tests.support.fatbin import fat_binary, section
from tests.support.wheels import WheelBuilder, record_row
from wheel_checks.facts.installed.facts import InstalledDistribution, InstalledEnvironment
from wheel_checks.facts.wheel.expectations import AcceleratorExpectation

Build = Callable[[Installed], object]
NCCL = "nvidia/nccl/lib/libnccl.so.2"
CUDA = AcceleratorExpectation("cuda", SpecifierSet(""))


def wheel(name: str = "demo", version: str = "1.0", *requires: str, **files: bytes) -> WheelBuilder:
    """A wheel with these requirements; files by name, two underscores for a slash."""
    built = WheelBuilder(name, version, "cp312-cp312-manylinux_2_28_aarch64").metadata(requires=requires)
    for path, data in files.items():
        built.add(path.replace("__", "/"), data)
    return built


def module(*needed: str, **options: Any) -> WheelBuilder:
    """A wheel "demo" with an extension module that needs these libraries."""
    return wheel("demo", "1.0", *options.pop("requires", ())).add(MODULE, library("", needed, **options))


def nccl(name: str = "nvidia-nccl-cu13", version: str = "2.28.9", content: bytes = b"") -> WheelBuilder:
    data = library("libnccl.so.2", build_id=content or b"one")
    return wheel(name.replace("-", "_"), version).add(NCCL, data)


def user(*requires: str) -> WheelBuilder:
    """A wheel whose module is linked with NCCL, and that finds it."""
    return module("libnccl.so.2", requires=requires, rpath="$ORIGIN/../nvidia/nccl/lib")


SUFFIX = ".cpython-312-aarch64-linux-gnu.so"


def pools(source: str) -> WheelBuilder:
    """A wheel "demo" with two extension modules, one of which needs TBB, and this source of its package."""
    built = wheel().add("demo/__init__.py", source)
    built.add(f"demo/core{SUFFIX}", library("", ["libc.so.6"]))
    return built.add(f"demo/pool{SUFFIX}", library("", ["libtbb.so.12"]))


def demo(build: Build, **reading: Any) -> Callable[[], InstalledDistribution]:
    return lambda: distribution_facts("demo", build, **reading)


def env(build: Build, **reading: Any) -> Callable[[], InstalledEnvironment]:
    return lambda: installed_facts(build, **reading)


def torch(accelerator: str, local: str) -> WheelBuilder:
    built = wheel("torch", "2.11.0").add("torch/version.py", f"__version__ = '2.11.0+{local}'\n")
    built.add(f"torch/lib/libtorch_{accelerator}.so", library(f"libtorch_{accelerator}.so"))
    return built.add("torch/_C.cpython-312-aarch64-linux-gnu.so", library())


def versioned(*defined: str) -> InstalledEnvironment:
    """A module that needs NCCL_2 of a libnccl.so.2 that defines these."""
    provider = wheel("nvidia_nccl_cu13", "2.28.9").add(NCCL, library("libnccl.so.2", definitions=defined))
    needs = {"libnccl.so.2": ("NCCL_2", "?NCCL_99")}
    needing = module("libnccl.so.2", rpath="$ORIGIN/../nvidia/nccl/lib", needs=needs)
    return installed_facts(lambda e: e.install(needing).install(provider))


def cuda(*labels: str) -> bytes:
    """A library with one fat binary for these targets."""
    return library("libcuda_code.so", contents={".nv_fatbin": section(fat_binary(*labels))})


def kernels(labels: Sequence[str], **others: Sequence[str]) -> WheelBuilder:
    """A wheel "demo" whose main library is for these targets; ``others`` of its libraries next to it."""
    built = module().add("demo/libmain.so", cuda(*labels))
    for name, its in others.items():
        built.add(f"demo/{name}.so", cuda(*its))
    return built


SPARE = "nvidia/cu13/lib/libcusolverMg.so.12"


def spare_of_cuda(*needed: str) -> WheelBuilder:
    """cuSOLVER for several GPUs, which torch does not load, in its wheel."""
    data = library("libcusolverMg.so.12", needed, rpath="$ORIGIN/../../nccl/lib")
    return wheel("nvidia_cusolver", "12.0.4").add(SPARE, data)


TORCH_NAME, OLD_NAME = "_ZN3c105ErrorC2ENS_14SourceLocationESs", "_ZN2at5raiseEv"


def torch_with(*names: str) -> WheelBuilder:
    """A torch whose library defines these names."""
    library_of_torch = library("libtorch_cpu.so", symbols=[Symbol(name) for name in names] or [Symbol("x")])
    built = wheel("torch", "2.11.0").add("torch/version.py", "__version__ = '2.11.0+cpu'\n")
    return built.add("torch/lib/libtorch_cpu.so", library_of_torch)


def extension(*names: str, file: str = MODULE, **options: Any) -> WheelBuilder:
    """A wheel "demo" with a library that needs these names of torch."""
    wanted = [Symbol(name, defined=False, **options) for name in names]
    return wheel().add(
        file, library("", ["libtorch_cpu.so"], symbols=[*wanted, Symbol("x")], rpath="$ORIGIN/../torch/lib")
    )


def on_gpus(*wheels: WheelBuilder) -> Callable[[], InstalledDistribution]:
    """The first of these wheels, installed together, and its GPU code read."""
    return lambda: distribution_facts(wheels[0].name, lambda e: [e.install(one) for one in wheels], gpu_code=True)


CASES = [
    Case(
        "WHL701",
        "no METADATA",
        demo(lambda e: e.install(wheel()).remove("demo-1.0.dist-info/METADATA")),
        ("demo-1.0.dist-info has no METADATA",),
    ),
    Case(
        "WHL701",
        "no RECORD",
        demo(lambda e: e.install(wheel()).remove("demo-1.0.dist-info/RECORD")),
        ("demo-1.0.dist-info has no RECORD",),
    ),
    Case(
        "WHL701",
        "an egg of the operating system",
        demo(lambda e: e.write("demo-1.0.egg-info", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")),
    ),
    Case(
        "WHL702",
        "two files removed",
        demo(lambda e: e.install(wheel(demo__a=b"1", demo__b=b"2")).remove("demo")),
        ("2 files of demo 1.0 are missing",),
        evidence=("demo/a, demo/b",),
    ),
    Case(
        "WHL702",
        "byte code removed, and scripts where pip puts them in a target folder",
        demo(
            lambda e: e.install(
                wheel()
                .record_extra("demo/__pycache__/a.cpython-312.pyc,,")
                .record_extra(record_row("../../bin/demo", b"#!"))
            ).write("bin/demo", "#!")
        ),
    ),
    Case(
        "WHL703",
        "a file of another size",
        demo(lambda e: e.install(wheel(demo__a=b"1")).write("demo/a", "123")),
        ("1 file of demo 1.0 changed after the installation: the size differs",),
        evidence=("3 bytes, RECORD says 1 bytes",),
    ),
    Case(
        "WHL703",
        "another content of the same size",
        demo(lambda e: e.install(wheel(demo__a=b"1")).write("demo/a", "2")),
    ),
    Case(
        "WHL704",
        "another content of the same size, hashed",
        demo(lambda e: e.install(wheel(demo__a=b"1")).write("demo/a", "2"), full=True),
        ("1 file of demo 1.0 changed after the installation: the content differs",),
    ),
    Case("WHL704", "every content as it was", demo(lambda e: e.install(wheel(demo__a=b"1")), full=True)),
    Case(
        "WHL705",
        "one requirement missing, one of another version",
        demo(lambda e: e.install(user("nvidia-nccl-cu13==2.28.9", "filelock")).install(nccl(version="2.27.5"))),
        (
            "demo 1.0 requires nvidia-nccl-cu13==2.28.9, but 2.27.5 is installed",
            "demo 1.0 requires filelock, but it is not installed",
        ),
    ),
    Case(
        "WHL705",
        "an extra that no one asked for, another platform, a local version, a pre-release",
        demo(
            lambda e: (
                e.install(user("a; extra == 'x'", "b; platform_machine == 'x86_64'", "c==1.0", "d>=1"))
                .install(wheel("c", "1.0+local"))
                .install(wheel("d", "2.0rc1"))
            )
        ),
    ),
    Case(
        "WHL705",
        "an extra that another distribution asks for",
        lambda: distribution_facts(
            "cuda-toolkit",
            lambda e: e.install(user("cuda-toolkit[cublas]")).install(
                wheel("cuda_toolkit", "13.0.2", "nvidia-cublas==13.1.*; extra == 'cublas'")
            ),
        ),
        ("cuda-toolkit 13.0.2 requires nvidia-cublas==13.1.*, but it is not installed",),
    ),
    Case(
        "WHL710",
        "two versions in one folder",
        env(lambda e: e.install(wheel("demo", "1.0")).install(wheel("demo", "2.0"))),
        ("demo has 2 dist-info folders",),
        evidence=("demo-1.0.dist-info, demo-2.0.dist-info",),
    ),
    Case("WHL710", "names that begin alike", env(lambda e: e.install(wheel()).install(wheel("demo_more")))),
    Case(
        "WHL711",
        "one more in a folder that a .pth file names",
        env(
            lambda e: (
                e.install(wheel("demo", "1.0"))
                .write("more.pth", "more\n")
                .write("more/demo-2.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 2.0\n")
            )
        ),
        ("demo 1.0 shadows demo 2.0 in another folder",),
        severity=WARNING,
    ),
    Case("WHL711", "two versions in one folder", env(lambda e: e.install(wheel()).install(wheel("demo", "2.0")))),
    Case(
        "WHL712",
        "what pip leaves",
        env(lambda e: e.install(wheel()).write("~orch/a.py", "").write("~orch-2.1.dist-info/RECORD", "")),
        ("an interrupted installation left 2 folders or files behind",),
        severity=WARNING,
        evidence=("~orch, ~orch-2.1.dist-info",),
    ),
    Case("WHL712", "a tilde within a name", env(lambda e: e.install(wheel()).write("a~b", ""))),
    Case(
        "WHL713",
        "the NCCL of two CUDA majors",
        env(lambda e: e.install(nccl()).install(nccl("nvidia-nccl-cu12", "2.27.5", b"two"))),
        ("nvidia-nccl-cu12 and nvidia-nccl-cu13 install 1 file with the same path and different contents",),
        evidence=(NCCL,),
    ),
    Case(
        "WHL713",
        "texts that two packages put at the top",
        env(lambda e: e.install(wheel("a", README=b"a")).install(wheel("b", README=b"b"))),
        ("a and b install 1 file with the same path and different contents",),
        severity=WARNING,
    ),
    Case(
        "WHL713",
        "the same __init__ of a shared package",
        env(lambda e: e.install(wheel("a", nvidia____init__=b"")).install(wheel("b", nvidia____init__=b""))),
    ),
    Case(
        "WHL714",
        "a library copied there",
        env(lambda e: e.install(nccl()).write("nvidia/nccl/lib/libnccl.so.2.bak", b"x")),
        ("no distribution owns 1 file in the folders of nvidia, torch or triton",),
        severity=WARNING,
        evidence=("nvidia/nccl/lib/libnccl.so.2.bak",),
    ),
    Case(
        "WHL714",
        "byte code, and files of no one elsewhere",
        env(lambda e: e.install(nccl()).write("nvidia/__pycache__/a.pyc", b"").write("mine/a.py", b"")),
    ),
    Case(
        "WHL715",
        "a CPU build where CUDA is expected",
        env(lambda e: e.install(torch("cpu", "cpu"))),
        ("the installed torch is CPU only (2.11.0+cpu); expected cuda",),
        expectations={"accelerator": CUDA},
    ),
    Case(
        "WHL715",
        "a CUDA library next to a version.py that says CPU",
        env(lambda e: e.install(torch("cuda", "cpu"))),
        (
            "the parts of the installed torch disagree: content says CUDA "
            "(torch/lib/libtorch_cuda.so is libtorch_cuda.so), "
            "version.py says CPU only (__version__ = '2.11.0+cpu')",
        ),
    ),
    Case(
        "WHL715",
        "a CUDA build as expected",
        env(lambda e: e.install(torch("cuda", "cu130"))),
        expectations={"accelerator": CUDA},
    ),
    Case(
        "WHL720",
        "a library that was removed",
        env(lambda e: e.install(user()).install(nccl()).remove(NCCL)),
        (f"{MODULE} needs libnccl.so.2, which is not found",),
        evidence=(MODULE,),
    ),
    Case(
        "WHL720",
        "a module that the import loads",
        env(lambda e: e.install(pools("from demo import core, pool"))),
        (f"demo/pool{SUFFIX} needs libtbb.so.12, which is not found",),
    ),
    Case(
        "WHL720",
        "a module that a function alone imports",
        env(lambda e: e.install(pools("from demo import core\ndef start():\n  from demo import pool"))),
    ),
    Case(
        "WHL720",
        "a module of which its source does not show whether it is loaded",
        env(
            lambda e: e.install(
                pools("import os\nfrom demo import core\nif os.environ.get('X'):\n  from demo import pool")
            )
        ),
        ("libraries not found: libtbb.so.12; it is unknown whether an import loads the files that need them",),
        undecided=True,
    ),
    Case("WHL720", "driver and system alone", env(lambda e: e.install(module("libcuda.so.1", "libc.so.6")))),
    Case(
        "WHL721",
        "another file in its place",
        env(lambda e: e.install(user()).install(nccl()).write(NCCL, library("libnccl.so.2", build_id=b"other one"))),
        (f"the libnccl.so.2 loaded by {MODULE} is not the file that nvidia-nccl-cu13 2.28.9 installed",),
    ),
    Case(
        "WHL721",
        "another file of the same size in its place, hashed",
        env(
            lambda e: e.install(user()).install(nccl()).write(NCCL, library("libnccl.so.2", build_id=b"two")),
            full=True,
        ),
        (f"the libnccl.so.2 loaded by {MODULE} is not the file that nvidia-nccl-cu13 2.28.9 installed",),
    ),
    Case(
        "WHL721",
        "a version that is not accepted",
        env(lambda e: e.install(user("nvidia-nccl-cu13==2.28.9")).install(nccl(version="2.27.5"))),
        (f"the libnccl.so.2 loaded by {MODULE} is of nvidia-nccl-cu13 2.27.5, which demo does not accept",),
    ),
    Case(
        "WHL721",
        "another file in its place, for a library of CUDA that nothing needs",
        env(
            lambda e: (
                e.install(module("libc.so.6"))
                .install(spare_of_cuda("libnccl.so.2"))
                .install(nccl())
                .write(NCCL, library("libnccl.so.2", build_id=b"other one"))
            )
        ),
        (f"the libnccl.so.2 loaded by {SPARE} is not the file that nvidia-nccl-cu13 2.28.9 installed",),
        WARNING,
    ),
    Case(
        "WHL721",
        "the file of the required version",
        env(lambda e: e.install(user("nvidia-nccl-cu13==2.28.9")).install(nccl())),
    ),
    Case(
        "WHL722",
        "a library for another machine in place of a needed one",
        env(
            lambda e: e.install(user()).install(
                wheel("nccl").add(NCCL.replace("nccl/lib", "other"), library("libnccl.so.2", machine="x86_64"))
            )
        ),
        ("nvidia/other/libnccl.so.2: it is for x86_64, but the environment is for aarch64",),
    ),
    Case(
        "WHL722",
        "a module that is cut off",
        env(lambda e: e.install(user()).install(nccl()).write(NCCL, library("libnccl.so.2")[:40])),
        (
            f"{NCCL}: the ELF header is at bytes 0x10 to 0x40; expected a place inside the file of 0x28 bytes "
            "(the ELF file is cut off or damaged)",
        ),
    ),
    Case(
        "WHL722",
        "a program for another machine that nothing loads, and a linker script",
        env(
            lambda e: e.install(
                user().add("demo/data/libx.so", library("libx.so", machine="x86_64")).add("demo/liby.so", b"GROUP")
            ).install(nccl())
        ),
    ),
    Case(
        "WHL723",
        "an older library",
        lambda: versioned("libnccl.so.2", "NCCL_1"),
        (f"{NCCL} lacks symbol versions that {MODULE} needs",),
        evidence=("NCCL_2", "NCCL_1, libnccl.so.2"),
    ),
    Case("WHL723", "the version is defined, a weak one is not", lambda: versioned("libnccl.so.2", "NCCL_2")),
    Case("WHL723", "a library without versions", versioned),
    Case(
        "WHL724",
        "an extension that was built for another torch",
        env(lambda e: e.install(extension(TORCH_NAME, OLD_NAME)).install(torch_with(TORCH_NAME))),
        (f"{MODULE} needs at::raise ({OLD_NAME}), which torch 2.11.0+cpu does not export",),
        evidence=(OLD_NAME,),
    ),
    Case(
        "WHL724",
        "a plug-in that nothing opens",
        env(
            lambda e: e.install(extension(OLD_NAME, file="demo/libplugin.so").add(MODULE, library())).install(
                torch_with(TORCH_NAME)
            )
        ),
        (f"demo/libplugin.so needs at::raise ({OLD_NAME}), which torch 2.11.0+cpu does not export",),
        WARNING,
    ),
    Case(
        "WHL724",
        "a plug-in of a package that brings libraries to others",
        env(
            lambda e: e.install(user()).install(
                nccl().add("nvidia/nccl/lib/net_plugin.so", library("", symbols=[Symbol("gone", defined=False)]))
            )
        ),
        ("nvidia/nccl/lib/net_plugin.so needs gone, which no library next to it defines",),
        WARNING,
    ),
    Case(
        "WHL724",
        "a library that no distribution owns",
        env(
            lambda e: e.install(torch_with(TORCH_NAME)).write(
                f"built/ops{SUFFIX}",
                library(
                    "", ["libtorch_cpu.so"], symbols=[Symbol(OLD_NAME, defined=False)], rpath="$ORIGIN/../torch/lib"
                ),
            )
        ),
        (f"built/ops{SUFFIX} needs at::raise ({OLD_NAME}), which torch 2.11.0+cpu does not export",),
    ),
    Case(
        "WHL724",
        "all is defined",
        env(
            lambda e: e.install(extension(TORCH_NAME)).install(torch_with(TORCH_NAME, OLD_NAME)),
        ),
    ),
    Case(
        "WHL724",
        "a weak name",
        env(lambda e: e.install(extension(OLD_NAME, binding=WEAK)).install(torch_with(TORCH_NAME))),
    ),
    Case(
        "WHL724",
        "a module for another Python",
        env(
            lambda e: e.install(extension(OLD_NAME, file=MODULE.replace("312", "313")).add(MODULE, library())).install(
                torch_with(TORCH_NAME)
            )
        ),
    ),
    Case(
        "WHL724",
        "a library is missing, of which WHL720 speaks",
        env(lambda e: e.install(extension(OLD_NAME)).install(wheel("torch", "2.11.0"))),
    ),
    Case(
        "WHL731",
        "no code in the main library",
        on_gpus(kernels(["sm_80", "sm_90"], libside=["sm_80"])),
        ("no code for GB200 (10.0) in demo/libmain.so, which has sm_80, sm_90",),
        evidence=("nothing runs on GB200 (10.0): sm_80, sm_90: machine code for another major version",),
        expectations=gpus("A100,GB200"),
    ),
    Case(
        "WHL731",
        "no code in a library next to it",
        on_gpus(kernels(["sm_90", "sm_100"], libattention=["sm_90a"])),
        ("1 file with GPU code made for GPUs other than GB200 (10.0)",),
        severity=NOTE,
        expectations=gpus("GH200,GB200"),
    ),
    Case(
        "WHL731",
        "a torch for the CPU",
        on_gpus(torch("cpu", "cpu")),
        ("the installed torch is CPU only: it has no code for GB200 (10.0)",),
        expectations=gpus("GB200"),
    ),
    Case(
        "WHL731",
        "another distribution lacks it",
        on_gpus(kernels(["sm_100"]), wheel("other").add("other/libx.so", cuda("sm_75"))),
        expectations=gpus("GB200,GB300"),
    ),
    Case(
        "WHL732",
        "PTX alone",
        on_gpus(kernels(["sm_80", "compute_90"])),
        ("demo/libmain.so runs on GH200 (9.0), GB200 (10.0) only by compiling compute_90 at first use",),
        severity=WARNING,
        expectations=gpus("GH200,GB200"),
    ),
    Case("WHL732", "PTX next to machine code", on_gpus(kernels(["sm_100", "compute_100"])), expectations=gpus("GB200")),
    Case(
        "WHL733",
        "T4 in an environment for aarch64",
        env(lambda e: e.install(kernels(["sm_75"]))),
        ("T4 (7.5) exists in x86_64 machines, but the environment is for aarch64",),
        severity=WARNING,
        evidence=("T4G",),
        expectations=gpus("T4,GB200"),
    ),
    Case("WHL733", "T4G", env(lambda e: e.install(kernels(["sm_75"]))), expectations=gpus("T4G,sm_75")),
    Case(
        "WHL734",
        "a library copied there",
        env(
            lambda e: e.install(kernels(["sm_100"])).write("built/libmine.so", cuda("sm_90a")),
            gpu_code=True,
        ),
        ("no code for GB200 (10.0) in built/libmine.so, which has sm_90a",),
        severity=WARNING,
        expectations=gpus("GB200"),
    ),
    Case(
        "WHL734",
        "libraries of distributions that lack it, and one of none that has it",
        env(lambda e: e.install(kernels(["sm_75"])).write("built/libmine.so", cuda("sm_100")), gpu_code=True),
        expectations=gpus("GB200"),
    ),
]
