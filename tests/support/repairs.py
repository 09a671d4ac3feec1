"""Fifteen and more broken environments of stand-in wheels, each made by real installers and broken as users break them.

world = World(tmp_path)                       # an index of small wheels, a driver of stubs
broken = BROKEN["vllm, and a CPU build of another release"]
environment = broken.make(world)              # a RealEnvironment
world.doctor(environment, "--fix", "--yes")   # the whole command, in a child

Their torch imports typing_extensions, opens NCCL as the real one needs it, and asks libcuda.so.1, so that an import
fails for the reasons for which that of the real one fails.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.environments import library
from tests.support.patients import CUDA, MACHINE, NCCL, PLATFORM, RPATH, TORCH, triton_wheel
from tests.support.real_environment import RealEnvironment
from tests.support.stub_driver import build, variables
from tests.support.wheels import WheelBuilder

CUDNN = "nvidia/cudnn/lib/libcudnn.so.9"
IMPORTS = """
import os
import typing_extensions
from torch import version
from torch.functional import einsum

_NCCL = os.path.join(os.path.dirname(os.path.dirname(__file__)), "nvidia", "nccl")
if version.cuda and not os.path.exists(os.path.join(_NCCL, "lib", "libnccl.so.2")):
    raise ImportError("libnccl.so.2: cannot open shared object file: No such file or directory")
if version.cuda and open(os.path.join(_NCCL, "release")).read() != version.nccl:
    raise ImportError("libtorch_cuda.so: undefined symbol: ncclCommWindowRegister")
"""
CODE = "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"


def plain(name: str, version: str, *requires: str, **fields: str) -> WheelBuilder:
    """A package of Python without native code."""
    wheel = WheelBuilder(name.replace("-", "_"), version).metadata(*fields.values(), requires=requires)
    return wheel.add(f"{name.replace('-', '_')}/__init__.py", f"__version__ = {version!r}\n")


def nccl(suffix: str = "cu13", version: str = "2.28.9") -> WheelBuilder:
    """NCCL, whose packages for CUDA 12 and 13 own the same paths."""
    wheel = WheelBuilder(f"nvidia_nccl_{suffix}", version, f"py3-none-manylinux_2_18_{MACHINE}").metadata()
    content = library("libnccl.so.2", machine=MACHINE) + version.encode()
    return wheel.add(NCCL, content).add("nvidia/nccl/release", version).add("nvidia/nccl/include/nccl.h", version)


def cudnn(suffix: str = "cu13", version: str = "9.19.0.56") -> WheelBuilder:
    """cuDNN, whose packages for CUDA 12 and 13 own the same paths."""
    wheel = WheelBuilder(f"nvidia_cudnn_{suffix}", version, f"py3-none-manylinux_2_27_{MACHINE}").metadata()
    return wheel.add(CUDNN, library("libcudnn.so.9", machine=MACHINE) + version.encode())


def torch(version: str = "2.11.0", cuda: str = "13.0", *requires: str) -> WheelBuilder:
    """A torch for this CUDA ("" for the CPU); METADATA names the build where ``version`` has a local part."""
    build_of = f"cu{cuda.replace('.', '')}" if cuda else "cpu"
    suffix, of_nccl = ("cu12", "2.27.5") if cuda.startswith("12") else ("cu13", "2.28.9")
    libraries = [f"nvidia-nccl-{suffix}=={of_nccl}", f"nvidia-cudnn-{suffix}==9.19.0.56", "triton==3.6.0"]
    wheel = WheelBuilder("torch", version, PLATFORM)
    wheel.metadata(requires=["typing-extensions>=4.10.0", "sympy>=1.13.3", *(libraries if cuda else []), *requires])
    said = f"__version__ = '{version.partition('+')[0]}+{build_of}'\ncuda = {cuda or None!r}\nhip = None\nxpu = None\n"
    wheel.add("torch/version.py", f"{said}nccl = {of_nccl!r}\n")
    wheel.add("torch/functional.py", "def einsum(*_):\n    pass\n")
    wheel.add("torch/__init__.py", f"{IMPORTS}{TORCH}").add("torch/cuda/__init__.py", CUDA)
    wheel.add("torch/lib/libtorch_cpu.so", library("libtorch_cpu.so", machine=MACHINE))
    declared = b"\0" + CODE.encode() + b"\0" if cuda else b""
    wheel.add("torch/lib/libtorch_python.so", library("libtorch_python.so", machine=MACHINE) + declared)
    if cuda:
        needed = ["libnccl.so.2"]
        wheel.add("torch/lib/libtorch_cuda.so", library("libtorch_cuda.so", needed, MACHINE, rpath=RPATH))
    return wheel.add("torch/bin/torch_shm_manager", "#!/bin/sh\n", mode=0o100755)


def companion(name: str, version: str, of: str, cuda: str = "13.0") -> WheelBuilder:
    """torchvision or torchaudio for a torch release."""
    build_of = f"cu{cuda.replace('.', '')}" if cuda else "cpu"
    wheel = WheelBuilder(name, version, PLATFORM).metadata(requires=[f"torch=={of}"])
    said = f"__version__ = '{version.partition('+')[0]}+{build_of}'\ncuda = {cuda or None!r}\n"
    return wheel.add(f"{name}/__init__.py", f"from {name}.version import __version__\n").add(f"{name}/version.py", said)


def packages() -> list[WheelBuilder]:
    """What every index here has besides torch."""
    return [
        plain("vllm", "0.20.0", "torch==2.11.0", "torchvision==0.26.0", "numpy<2.4", "transformers>=4.56"),
        plain("transformers", "4.57.1", "numpy>=1.17", 'torch>=2.2; extra == "torch"'),
        plain("numpy", "2.3.4"),
        plain("numpy", "2.4.0"),
        plain("sglang", "0.5.9", "torch==2.11.0", "sgl-kernel==0.4.1", "torchao==0.16.0"),
        plain("sgl-kernel", "0.4.1", "torch>=2.10"),
        plain("torchao", "0.16.0"),
        plain("lightning", "2.6.0", "torch<4.0,>=2.1.0", "torchmetrics<3.0,>0.7.0", "typing-extensions<6.0,>4.5.0"),
        plain("torchmetrics", "1.8.2", "torch>=2.0.0", "numpy>1.20.0"),
        plain("jax", "0.9.0", "numpy>=2.0", 'jax-cuda12-plugin[with-cuda]==0.9.0; extra == "cuda12"'),
        plain("jax-cuda12-plugin", "0.9.0", 'nvidia-cudnn-cu12>=9.8; extra == "with-cuda"'),
        plain("typing-extensions", "4.15.0"),
        plain("sympy", "1.14.0"),
        plain("sympy", "1.12.0"),
        triton_wheel(),
        plain("triton", "3.5.0"),
        *(nccl(), nccl("cu12", "2.27.5"), nccl("cu12", "2.27.3"), nccl("cu13", "2.27.5"), cudnn(), cudnn("cu12")),
    ]


def builds() -> list[WheelBuilder]:
    """The torch builds on a configured index, which has several of one release as PyTorch's own has them."""
    return [
        torch("2.11.0"),
        torch("2.11.0+cu128", "12.8"),
        torch("2.11.0+cpu", ""),
        torch("2.13.0"),
        torch("2.13.0+cu126", "12.6"),
        companion("torchvision", "0.26.0", "2.11.0"),
        companion("torchvision", "0.26.0+cu128", "2.11.0", "12.8"),
        companion("torchvision", "0.26.0+cpu", "2.11.0", ""),
        companion("torchvision", "0.28.0", "2.13.0"),
        companion("torchvision", "0.28.0+cu126", "2.13.0", "12.6"),
    ]


class World:
    """An index, an index of builds for the CPU, and a driver, below ``root``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "project"  # in which the doctor is started
        self.folder.mkdir()
        self.driver = build(root / "driver")
        self.environment: RealEnvironment | None = None

    def make(self) -> RealEnvironment:
        """An empty environment; the indexes are next to it."""
        made = RealEnvironment(self.root)
        self.base = made.index("base", *packages(), *(one for one in builds() if "+" not in one.version))
        self.good = made.index("good", *packages(), *builds())
        cpu = [torch("2.13.0", ""), torch("2.11.0+cpu", ""), companion("torchvision", "0.26.0+cpu", "2.11.0", "")]
        self.cpu = made.index("whl/cpu", *packages(), *cpu)
        self.environment = made
        return made

    def install(self, environment: RealEnvironment, requirements: str, index: str = "", options: str = "") -> None:
        """Install as a user does, by uv; from an index that has one build of each release, unless another is named."""
        place = f"--index-url {index or self.base}"
        environment.run(f"uv pip install -q --python {environment.python} {place} {options} {requirements}")

    def install_by_pip(self, environment: RealEnvironment, requirements: str) -> None:
        """Install by pip, where it is pip's behaviour that matters."""
        environment.run(f"{environment.pip} install -q --index-url {self.base} {requirements}")

    def doctor(self, environment: RealEnvironment, *arguments: str, **changed: str) -> subprocess.CompletedProcess[str]:
        """Run ``wheelproof doctor`` for it with the driver of stubs, and the good index as the configured one."""
        command = [sys.executable, "-m", "wheelproof", "doctor", "--python", environment.python, *arguments]
        return subprocess.run(
            command, env=self.variables(**changed), cwd=self.folder, capture_output=True, text=True, check=False
        )

    def variables(self, **changed: str) -> dict[str, str]:
        """The variables of a user: nothing of this host's own configuration."""
        kept = {
            name: value
            for name, value in variables(self.driver).items()
            if not name.startswith(("PIP_", "UV_", "VIRTUAL_ENV", "CONDA", "PYTHON"))
        }
        own = {"UV_INDEX_STRATEGY": "unsafe-best-match", "UV_CACHE_DIR": str(self.root / "cache"), "UV_OFFLINE": "1"}
        index = {} if {"PIP_INDEX_URL", "UV_DEFAULT_INDEX"} & changed.keys() else {"UV_DEFAULT_INDEX": self.good}
        return {**kept, "HOME": str(self.root / "home"), **own, **index, **changed}


@dataclass(frozen=True)
class Broken:
    """A broken environment: the rule that is its cause, and versions that are installed when it is fixed."""

    rule: str
    breaks: Callable[[World, RealEnvironment], None]
    installed: dict[str, str] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)

    def make(self, world: World) -> RealEnvironment:
        """The environment, as its user has broken it."""
        environment = world.make()
        self.breaks(world, environment)
        return environment


def _vllm(world: World, environment: RealEnvironment) -> None:
    world.install(environment, "vllm torch==2.11.0 torchvision==0.26.0")
    environment.age()


def _cpu_of_another_release(world: World, environment: RealEnvironment) -> None:
    _vllm(world, environment)
    world.install(environment, "torch==2.13.0", world.cpu)


def _cpu_of_the_same_release(world: World, environment: RealEnvironment) -> None:
    world.install(environment, "vllm torch==2.11.0+cpu torchvision==0.26.0+cpu", world.cpu)


def _sglang_on_the_cpu(world: World, environment: RealEnvironment) -> None:
    world.install(environment, "sglang torch==2.11.0+cpu", world.cpu)
    world.install(environment, "torch==2.13.0", world.cpu)


def _lightning_and_an_old_driver(world: World, environment: RealEnvironment) -> None:
    world.install(environment, "lightning torch==2.13.0")


def _jax_and_torch_for_the_cpu(world: World, environment: RealEnvironment) -> None:
    """torch for CUDA 13 would overwrite the cuDNN for CUDA 12 that JAX requires."""
    world.install(environment, "'jax[cuda12]' torch==2.11.0+cpu", world.cpu)


def _jax_and_a_library_is_gone(world: World, environment: RealEnvironment) -> None:
    world.install(environment, "'jax[cuda12]' torch==2.11.0+cu128", world.good)
    (environment.site_packages / NCCL).unlink()


def _edited_in_place(world: World, environment: RealEnvironment) -> None:
    """uv has linked the file to its cache, so the copy in the cache is edited, too."""
    world.install(environment, "lightning torch==2.11.0", options="--link-mode hardlink")
    with (environment.site_packages / "torch" / "__init__.py").open("a") as file:
        file.write("\nraise ValueError('tried something')\n")


def _module_is_gone(world: World, environment: RealEnvironment) -> None:
    world.install(environment, "sglang torch==2.11.0")
    (environment.site_packages / "torch" / "functional.py").unlink()


def _without_dependencies(world: World, environment: RealEnvironment) -> None:
    _vllm(world, environment)
    environment.run(f"uv pip uninstall -q --python {environment.python} typing-extensions sympy")


def _companion_of_another_release(world: World, environment: RealEnvironment) -> None:
    _vllm(world, environment)
    world.install(environment, "torchvision==0.28.0", options="--no-deps")


def _companion_of_another_cuda(world: World, environment: RealEnvironment) -> None:
    _vllm(world, environment)
    options = "--no-deps --reinstall-package torchvision"
    world.install(environment, "torchvision==0.26.0+cu128", world.good, options)


def _library_of_another_release(world: World, environment: RealEnvironment) -> None:
    world.install(environment, "sglang torch==2.11.0")
    world.install(environment, "nvidia-nccl-cu13==2.27.5")


def _two_owners(world: World, environment: RealEnvironment) -> None:
    _vllm(world, environment)
    world.install_by_pip(environment, "nvidia-nccl-cu12==2.27.3")


def _cut_off(world: World, environment: RealEnvironment) -> None:
    world.install(environment, "lightning torch==2.11.0")
    file = environment.site_packages / NCCL
    content = file.read_bytes()
    file.unlink()
    file.write_bytes(content[:300])


def _interrupted_uninstall(world: World, environment: RealEnvironment) -> None:
    _vllm(world, environment)
    (environment.site_packages / "torch").rename(environment.site_packages / "~orch")
    for folder in environment.site_packages.glob("torch-*.dist-info"):
        folder.rename(folder.with_name(f"~{folder.name[1:]}"))


def _two_dist_infos(world: World, environment: RealEnvironment) -> None:
    _vllm(world, environment)
    old = environment.site_packages / "torch-2.9.0.dist-info"
    old.mkdir()
    (old / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.9.0\n")
    (old / "RECORD").write_text(
        "torch/version.py,,\ntorch-2.9.0.dist-info/METADATA,,\ntorch-2.9.0.dist-info/RECORD,,\n"
    )
    (environment.site_packages / "torch" / "functional.py").write_text("raise ImportError('of 2.9')\n")


def _sibling_uninstalled(world: World, environment: RealEnvironment) -> None:
    _vllm(world, environment)
    world.install_by_pip(environment, "nvidia-nccl-cu12==2.27.3")
    world.install_by_pip(environment, "--force-reinstall --no-deps nvidia-nccl-cu13==2.28.9")
    environment.run(f"{environment.pip} uninstall -q -y nvidia-nccl-cu12")


def _triton_missing(world: World, environment: RealEnvironment) -> None:
    world.install(environment, "sglang torch==2.11.0")
    environment.run(f"uv pip uninstall -q --python {environment.python} triton")


def _torch_missing(world: World, environment: RealEnvironment) -> None:
    _vllm(world, environment)
    environment.run(f"uv pip uninstall -q --python {environment.python} torch torchvision")


BROKEN = {
    "vllm, and a CPU build of another release": Broken(
        "DOC103", _cpu_of_another_release, {"torch": "2.11.0", "torchvision": "0.26.0", "numpy": "2.3.4"}
    ),
    "vllm, and CPU builds of the same release": Broken(
        "DOC102", _cpu_of_the_same_release, {"torch": "2.11.0", "torchvision": "0.26.0", "numpy": "2.3.4"}
    ),
    "sglang, and a CPU build of another release": Broken("DOC102", _sglang_on_the_cpu, {"torch": "2.11.0"}),
    "lightning, and a driver that is too old": Broken(
        "DOC105", _lightning_and_an_old_driver, {"torch": "2.13.0+cu126"}, variables={"STUB_CUDA_VERSION": "12060"}
    ),
    "jax with its own cuDNN, and a CPU build": Broken(
        "DOC102", _jax_and_torch_for_the_cpu, {"torch": "2.11.0+cu128", "nvidia-cudnn-cu12": "9.19.0.56"}
    ),
    "jax and torch, and a library that is gone": Broken(
        "DOC202", _jax_and_a_library_is_gone, {"torch": "2.11.0+cu128", "nvidia-cudnn-cu12": "9.19.0.56"}
    ),
    "lightning, and a file of torch that was edited": Broken("DOC229", _edited_in_place, {"torch": "2.11.0"}),
    "sglang, and a module of torch that is gone": Broken("DOC202", _module_is_gone, {"torch": "2.11.0"}),
    "vllm, and a requirement of torch that is gone": Broken(
        "DOC227", _without_dependencies, {"typing-extensions": "4.15.0", "sympy": "1.14.0", "torch": "2.11.0"}
    ),
    "vllm, and a torchvision of another release": Broken(
        "DOC213", _companion_of_another_release, {"torch": "2.11.0", "torchvision": "0.26.0"}
    ),
    "vllm, and a torchvision for another CUDA": Broken(
        "DOC214", _companion_of_another_cuda, {"torch": "2.11.0", "torchvision": "0.26.0"}
    ),
    "sglang, and an NCCL of another release": Broken(
        "DOC203", _library_of_another_release, {"nvidia-nccl-cu13": "2.28.9", "torch": "2.11.0"}
    ),
    "vllm, and an NCCL that another has overwritten": Broken(
        "DOC204", _two_owners, {"nvidia-nccl-cu13": "2.28.9"}, gone=("nvidia-nccl-cu12",)
    ),
    "lightning, and a library that was cut off": Broken("DOC206", _cut_off, {"torch": "2.11.0"}),
    "vllm, and an uninstall that was interrupted": Broken("DOC209", _interrupted_uninstall, {"torch": "2.11.0"}),
    "vllm, and two sets of metadata of torch": Broken("DOC210", _two_dist_infos, {"torch": "2.11.0"}),
    "vllm, and files that an uninstall of another took": Broken("DOC201", _sibling_uninstalled, {"torch": "2.11.0"}),
    "sglang without Triton": Broken("DOC814", _triton_missing, {"triton": "3.6.0"}),
    "vllm without torch": Broken("DOC002", _torch_missing, {"torch": "2.11.0", "torchvision": "0.26.0"}),
}


def tree(folder: Path) -> dict[str, str]:
    """Everything in a folder but byte code: modes, links, and the hashes of contents."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if "__pycache__" not in path.parts:
            status = path.lstat()
            content = (
                os.readlink(path)  # noqa: PTH115
                if path.is_symlink()
                else "" if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()
            )  # fmt: skip
            found[str(path.relative_to(folder))] = f"{status.st_mode:o} {content}"
    return found


def conflicts(environment: RealEnvironment) -> set[str]:
    """What ``uv pip check`` complains of."""
    said = environment.run(f"uv pip check --python {environment.python} 2>&1 || true")
    return {line for line in said.splitlines() if line.startswith("The package")}


def versions(environment: RealEnvironment) -> dict[str, str]:
    """What is installed, by name."""
    rows = json.loads(environment.run(f"uv pip list --format json --python {environment.python}"))
    return {row["name"]: row["version"] for row in rows}


def findings(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    """The results of a report in JSON that failed and are worth more than a note, by rule."""
    results = json.loads(done.stdout)["subjects"][0]["results"]
    return {one["rule"]: one for one in results if one["outcome"] == "fail" and one["severity"] != "note"}
