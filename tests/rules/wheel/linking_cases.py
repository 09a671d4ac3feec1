"""WHL521 to WHL529: the needs among wheels, laid out as if they were installed together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.rules.case import NOTE, WARNING, Case
from tests.support.environments import library
from tests.support.wheel_facts import AARCH64, facts_of
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.links.linking import AbsentPackage, lay_out, link
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.model import Unavailable, need

LINUX = "manylinux_2_28_aarch64"
MODULE = "torch/_C.cpython-312-aarch64-linux-gnu.so"
RPATH = "$ORIGIN:$ORIGIN/../../nvidia/cu13/lib"
NO_WHEEL = AbsentPackage(
    "nvidia-cufile-cu12", "1.11.1.6", "its wheels are for manylinux_2_17_x86_64", ("torch",), False
)
NO_BUILD = AbsentPackage("flash-attn", "2.8.3", "flash-attn 2.8.3 has only a source archive", (), True)


def torch(*needed: str) -> WheelBuilder:
    """A wheel in torch's shape: a module, and the library that it leads to, which needs ``needed``."""
    built = WheelBuilder("torch", "2.11.0", f"cp312-cp312-{LINUX}")
    built.add(MODULE, library("", ["libtorch_cuda.so", "libc.so.6"], rpath="$ORIGIN/lib"))
    return built.add("torch/lib/libtorch_cuda.so", library("libtorch_cuda.so", needed, rpath=RPATH))


def cublas(*needed: str) -> WheelBuilder:
    built = WheelBuilder("nvidia_cublas", "13.1.0.3", f"py3-none-{LINUX}")
    return built.add("nvidia/cu13/lib/libcublas.so.13", library("libcublas.so.13", ["libc.so.6", *needed]))


def linked(
    wheel: WheelBuilder,
    *dependencies: WheelBuilder,
    absent: Sequence[AbsentPackage] | Unavailable = (),
    outlined: bool = False,
) -> WheelFacts:
    """The facts of a wheel with its link closure next to these others."""
    facts, *others = (facts_of(one, depth=Depth.LINKS, target=AARCH64) for one in (wheel, *dependencies))
    own, *rest = (lay_out(one.file_name, need(one.elfs), sources=one.sources) for one in (facts, *others))
    links = link(own, rest, AARCH64, absent=absent, how="exact pins of METADATA", outlined=outlined)
    return replace(facts, links=links)


def extension(soname: str, *, opens: str = "") -> WheelFacts:
    """A module that needs a library of cuDNN, in a stack with torch; the package ``opens`` files by path before."""
    source = f"import ctypes\nctypes.CDLL(__file__[:-16] + '{opens}')\n" if opens else ""
    built = WheelBuilder("demo", "1.0", f"cp312-cp312-{LINUX}").add("demo/__init__.py", f"{source}import demo._C\n")
    built.add("demo/_C.cpython-312-aarch64-linux-gnu.so", library("", [soname, "libc.so.6"]))
    cudnn = WheelBuilder("nvidia_cudnn_cu13", "9.19.0.56", f"py3-none-{LINUX}")
    for name in ("libcudnn.so.9", "libcudnn_graph.so.9"):
        cudnn.add(f"nvidia/cudnn/lib/{name}", library(name, ["libc.so.6"]))
    return linked(built, torch(), cudnn, outlined=True)


def unread(wheel: WheelFacts, path: str) -> WheelFacts:
    """The same wheel, when the needs of the file at ``path`` are unknown."""
    links = need(wheel.links)
    return replace(wheel, links=replace(links, closure=replace(links.closure, unread=(path,))))


CHOICE = (
    "import ctypes, os\nbuild = 'cuda118' if os.environ.get('CUDA') else 'cpu'\n"
    "ctypes.CDLL(f'{os.path.dirname(__file__)}/libdemo_{build}.so')"
)


COMPUTED = "import ctypes, json\nfor path in json.load(open('paths')):\n  ctypes.CDLL(path)\nfrom demo import _C"


def variants() -> WheelBuilder:
    """Alternative libraries that the package opens by name, as bitsandbytes does."""
    built = WheelBuilder("demo", "1.0", f"py3-none-{LINUX}").add("demo/libdemo_cpu.so", library("", ["libm.so.6"]))
    return built.add("demo/libdemo_cuda118.so", library("", ["libcublas.so.11", "libcudart.so.11.0"]))


def decoders() -> WheelBuilder:
    """Alternative libraries for the host's FFmpeg, as torchcodec has them."""
    source = "import ctypes\nfor n in (5, 6):\n  ctypes.CDLL(f'{__file__[:-11]}libdemo_core{n}.so')"
    built = WheelBuilder("demo", "1.0", f"py3-none-{LINUX}").add("demo/__init__.py", source)
    for name, avcodec, avutil in (("5", "59", "57"), ("6", "60", "58")):
        needed = [f"libavcodec.so.{avcodec}", f"libavutil.so.{avutil}"]
        built.add(f"demo/libdemo_core{name}.so", library("", needed))
    return built


def versioned(*defined: str) -> WheelFacts:
    """A torch that needs NCCL_2 of a libnccl.so.2 that defines these."""
    nccl = WheelBuilder("nvidia_nccl_cu13", "2.28.9", f"py3-none-{LINUX}")
    nccl.add("nvidia/cu13/lib/libnccl.so.2", library("libnccl.so.2", definitions=defined))
    built = WheelBuilder("torch", "2.11.0", f"cp312-cp312-{LINUX}")
    needs = {"libnccl.so.2": ("NCCL_2", "?NCCL_99")}
    built.add(MODULE, library("", ["libnccl.so.2"], rpath="$ORIGIN/../nvidia/cu13/lib", needs=needs))
    return linked(built, nccl)


def with_extras(*required: str) -> WheelFacts:
    """A wheel without libraries that was requested with extras, which require these."""
    facts = linked(WheelBuilder("demo", "1.0").add("demo/__init__.py"))
    return replace(facts, links=replace(need(facts.links), not_judged=required))


CASES = [
    Case(
        "WHL521",
        "extras of a wheel without libraries",
        lambda: with_extras("demo-core==1.0"),
        ("the wheel has no libraries, and those of its extras were not read: demo-core==1.0",),
        undecided=True,
    ),
    Case("WHL521", "a wheel without libraries", with_extras),
    Case(
        "WHL521",
        "a library in a wheel of the stack that no search path leads to, and that torch does not load",
        lambda: extension("libcudnn_graph.so.9"),
        (
            "libcudnn_graph.so.9 is needed, but in nvidia_cudnn_cu13-9.19.0.56-py3-none-manylinux_2_28_aarch64.whl, "
            "to which no search path leads; the import of torch does not load it",
        ),
        evidence=("libcudnn_graph.so.9",),
        undecided=True,
    ),
    Case("WHL521", "a library that the import of torch loads", lambda: extension("libcudnn.so.9")),
    Case(
        "WHL521",
        "a library that the package itself opens by its path",
        lambda: extension("libcudnn_graph.so.9", opens="nvidia/cudnn/lib/libcudnn_graph.so.9"),
    ),
    Case(
        "WHL521",
        "no wheel brings what a library needs that an import leads to",
        lambda: linked(torch("libcublas.so.13", "libcusparseLt.so.0"), cublas(), absent=[NO_WHEEL]),
        ("libcusparseLt.so.0 is needed, but no wheel contains it",),
        member="torch/lib/libtorch_cuda.so",
        evidence=(
            "torch/lib/libtorch_cuda.so",
            "torch/lib/libcusparseLt.so.0, nvidia/cu13/lib/libcusparseLt.so.0",
            "2 (exact pins of METADATA)",
            "nvidia-cufile-cu12: its wheels are for manylinux_2_17_x86_64",
        ),
    ),
    Case(
        "WHL521",
        "a dependency that lacks something itself",
        lambda: linked(torch("libcublas.so.13"), cublas("libcublasLt.so.13")),
        ("libcublasLt.so.13 is needed, but no wheel contains it",),
        evidence=(f"nvidia/cu13/lib/libcublas.so.13 of nvidia_cublas-13.1.0.3-py3-none-{LINUX}.whl",),
    ),
    Case(
        "WHL521",
        "one of several libraries that are opened by name",
        lambda: linked(variants()),
        ("the import may load 1 file of the wheel, whose libraries are missing",),
        undecided=True,
        evidence=("libcublas.so.11, libcudart.so.11.0",),
    ),
    Case(
        "WHL521",
        "alternatives of which another one is taken",
        lambda: linked(variants().add("demo/__init__.py", CHOICE)),
    ),
    Case(
        "WHL521",
        "a library next to the module, that no import leads to",
        lambda: linked(torch("libm.so.6").add("torch/lib/libplugin.so", library("", ["libnvcomp.so.5"]))),
        ("1 file needs libraries that no wheel contains; the import does not need it",),
        WARNING,
    ),
    Case(
        "WHL521",
        "the only library that a package opens by name",
        lambda: linked(
            WheelBuilder("demo", "1.0", f"py3-none-{LINUX}").add("demo/libdemo.so", library("", ["libnccl.so.2"]))
        ),
        ("libnccl.so.2 is needed, but no wheel contains it",),
    ),
    Case(
        "WHL521",
        "a module of another package that it may do without, as numba's thread pools",
        lambda: linked(
            torch("libcublas.so.13"),
            cublas(),
            WheelBuilder("numba", "0.65.0", f"cp312-cp312-{LINUX}").add(
                "numba/np/ufunc/tbbpool.cpython-312-aarch64-linux-gnu.so", library("", ["libtbb.so.12"])
            ),
        ),
        ("1 file needs libraries that no wheel contains; the import does not need it",),
        NOTE,
    ),
    Case(
        "WHL521",
        "libraries of one package that is not required are one cause",
        lambda: linked(
            WheelBuilder("demo", "1.0", f"cp312-cp312-{LINUX}").add(
                "demo/_C.abi3.so", library("", ["libc10.so", "libtorch.so", "libnvcomp.so.5"])
            )
        ),
        (
            "2 libraries of torch are needed, but it is not required: libc10.so, libtorch.so",
            "libnvcomp.so.5 is needed, but no wheel contains it",
        ),
    ),
    Case(
        "WHL521",
        "so are those of CUDA that the package requires itself",
        lambda: linked(
            WheelBuilder("demo", "1.0", f"cp312-cp312-{LINUX}").add(
                "demo/_C.abi3.so", library("", ["libtorch.so", "libcudart.so.13", "libcublasLt.so.13"])
            )
        ),
        (
            "torch is not required, but 3 libraries that it contains or requires are needed: libcublasLt.so.13, "
            "libcudart.so.13, libtorch.so",
        ),
    ),
    Case(
        "WHL521",
        "libraries of CUDA that nothing brings are one cause",
        lambda: linked(
            WheelBuilder("demo", "1.0", f"cp312-cp312-{LINUX}")
            .metadata(requires=["nvidia-cudnn-cu13; extra == 'cuda'"])
            .add("demo/_C.abi3.so", library("", ["libcublasLt.so.13", "libcudart.so.13", "libcudnn_adv.so.9"]))
        ),
        (
            "3 CUDA libraries are needed, but no wheel contains them: libcublasLt.so.13, libcudart.so.13, "
            "libcudnn_adv.so.9",
        ),
        evidence=("libcublasLt.so.13, libcudart.so.13, libcudnn_adv.so.9", "cuda"),
    ),
    Case(
        "WHL521",
        "a library that the import may open by a path that it computes, as faiss does",
        lambda: linked(
            WheelBuilder("demo", "1.0", f"cp312-cp312-{LINUX}")
            .add("demo/__init__.py", COMPUTED)
            .add("demo/_C.abi3.so", library("", ["libcublas.so.13"])),
            cublas(),
        ),
        (
            "not proven that libcublas.so.13 is loaded: the import opens libraries by paths that its source does not "
            "show",
        ),
        undecided=True,
        evidence=(
            "demo/__init__.py line 3",
            f"nvidia/cu13/lib/libcublas.so.13 of nvidia_cublas-13.1.0.3-py3-none-{LINUX}.whl",
        ),
    ),
    Case(
        "WHL521",
        "a library that lies where no search path leads",
        lambda: linked(torch("libcublas.so.12").add("demo/lib/libcublas.so.12", library("libcublas.so.12"))),
        ("libcublas.so.12 is needed, but no search path leads to demo/lib/libcublas.so.12",),
    ),
    Case(
        "WHL521",
        "alternatives that each want another FFmpeg of the host",
        lambda: linked(decoders()),
        (
            "the wheel loads only on hosts with FFmpeg: libavcodec.so.59, libavcodec.so.60, libavutil.so.57, "
            "libavutil.so.58 are needed, but no wheel contains them",
        ),
        WARNING,
        evidence=("demo/libdemo_core5.so, demo/libdemo_core6.so",),
    ),
    Case(
        "WHL521",
        "a library that a host may have",
        lambda: linked(torch("libnuma.so.1")),
        ("the wheel loads only on hosts with numactl: libnuma.so.1 is needed, but no wheel contains it",),
        WARNING,
        member="torch/lib/libtorch_cuda.so",
    ),
    Case("WHL521", "all is there", lambda: linked(torch("libcublas.so.13"), cublas())),
    Case(
        "WHL521", "the driver, the system", lambda: linked(torch("libcuda.so.1", "libnvidia-ml.so.1", "libstdc++.so.6"))
    ),
    Case(
        "WHL521",
        "a plugin for hardware that few have",
        lambda: linked(
            WheelBuilder("nvidia_nvshmem_cu13", "3.4.5", f"py3-none-{LINUX}")
            .add("nvidia/nvshmem/lib/nvshmem_transport_ucx.so.3", library("", ["libucp.so.0"]))
            .add("nvidia/nvshmem/lib/libnvshmem_host.so.3", library("libnvshmem_host.so.3"))
        ),
    ),
    Case(
        "WHL521",
        "names that auditwheel made up",
        lambda: linked(
            WheelBuilder("demo", "1.0", f"cp312-cp312-{LINUX}")
            .add("demo/_x.abi3.so", library("", ["libgomp-a49a47f9.so.1"], rpath="$ORIGIN/../demo.libs"))
            .add("demo.libs/libgomp-a49a47f9.so.1.0.0", library("libgomp-a49a47f9.so.1.0.0"))
            .add("demo.libs/libgomp-a49a47f9.so.1", library("libgomp-a49a47f9.so.1"))
        ),
    ),
    Case(
        "WHL522",
        "a library of the right name and the wrong age",
        lambda: versioned("libnccl.so.2", "NCCL_1"),
        (
            f"nvidia/cu13/lib/libnccl.so.2 of nvidia_nccl_cu13-2.28.9-py3-none-{LINUX}.whl lacks symbol versions that "
            f"{MODULE} needs",
        ),
        evidence=("NCCL_2", "NCCL_1, libnccl.so.2"),
    ),
    Case(
        "WHL522",
        "the version that is needed, while a weak one is not there",
        lambda: versioned("libnccl.so.2", "NCCL_2"),
    ),
    Case("WHL522", "a library without versions satisfies every need", versioned),
    Case(
        "WHL523",
        "a library that was left over",
        lambda: linked(torch("libm.so.6").add("torch/lib/libgfortran.so.5", library("libgfortran.so.5"))),
        ("no file in the wheel needs 1 library of it",),
        NOTE,
        evidence=("torch/lib/libgfortran.so.5",),
    ),
    Case("WHL523", "all are needed", lambda: linked(torch("libm.so.6"))),
    Case("WHL523", "the orphans of a dependency are its own affair", lambda: linked(torch("libm.so.6"), cublas())),
    Case(
        "WHL523",
        "what an unread file of a dependency needs says nothing of the wheel's own libraries",
        lambda: unread(
            linked(
                torch("libm.so.6").add("torch/lib/libgfortran.so.5", library("libgfortran.so.5")),
                cublas(),
            ),
            "nvidia/cu13/lib/libcublas.so.13",
        ),
        ("no file in the wheel needs 1 library of it",),
        NOTE,
    ),
    Case(
        "WHL524",
        "a pin that one platform does not have",
        lambda: linked(torch("libm.so.6"), absent=[NO_WHEEL]),
        ("nvidia-cufile-cu12 has no wheel for the target: its wheels are for manylinux_2_17_x86_64",),
        evidence=("torch",),
    ),
    Case(
        "WHL524",
        "a source archive",
        lambda: linked(torch("libm.so.6"), absent=[NO_BUILD]),
        ("flash-attn has no wheel for the target: flash-attn 2.8.3 has only a source archive",),
        WARNING,
        evidence=(f"torch-2.11.0-cp312-cp312-{LINUX}.whl",),
    ),
    Case("WHL524", "a wheel for every pin", lambda: linked(torch("libcublas.so.13"), cublas())),
    Case(
        "WHL525",
        "what torch has loaded already",
        lambda: linked(
            WheelBuilder("torchvision", "0.29.1", f"cp312-cp312-{LINUX}").add(
                "torchvision/_C.so", library("", ["libtorch_cuda.so"])
            ),
            torch("libm.so.6"),
        ),
        ("1 file finds libraries only after another package was imported",),
        NOTE,
        evidence=(
            "torchvision/_C.so",
            f"libtorch_cuda.so (torch/lib/libtorch_cuda.so of torch-2.11.0-cp312-cp312-{LINUX}.whl)",
        ),
    ),
    Case("WHL525", "its own search path leads there", lambda: linked(torch("libcublas.so.13"), cublas())),
    Case(
        "WHL529",
        "the search that was asked for",
        lambda: linked(torch("libcublas.so.13"), cublas()),
        (
            "torch/lib/libtorch_cuda.so needs libcublas.so.13: resolved: nvidia/cu13/lib/libcublas.so.13 of "
            f"nvidia_cublas-13.1.0.3-py3-none-{LINUX}.whl (RPATH of torch/lib/libtorch_cuda.so)",
        ),
        NOTE,
        evidence=("torch/lib/libcublas.so.13", "nvidia/cu13/lib/libcublas.so.13"),
        expectations={"explain": ("libcublas.so.13",)},
    ),
    Case(
        "WHL529",
        "a library that nothing needs",
        lambda: linked(torch("libm.so.6")),
        ("no file needs libnccl.so.2",),
        NOTE,
        expectations={"explain": ("libnccl.so.2",)},
    ),
    Case("WHL529", "nothing was asked", lambda: linked(torch("libm.so.6"))),
]
