"""PIN301 to PIN316: whether a requirement, or a planned install, keeps the torch that is installed."""

from __future__ import annotations

from typing import Any

from packaging.requirements import Requirement
from packaging.version import Version

from tests.rules.case import WARNING, Case
from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.pins.changes import Fate, PackageChange, PlannedInstall, Role, Survival
from wheel_checks.facts.stack.facts import Conflict, Demand
from wheel_checks.model import Unavailable

CPU = AcceleratorFacts("cpu", "", "2.10.0+cpu", ())
CUDA = AcceleratorFacts("cuda", "13.0", "", ())
VLLM = (Demand("", Requirement("vllm==0.19.0")), Demand("vllm 0.19.0", Requirement("torch==2.10.0")))


def survival(spec: str, *reasons: str) -> Survival:
    requirement, installed = Requirement(spec), Version("2.7.0+cu128")
    return Survival("torch", installed, requirement, requirement.specifier.contains(installed), reasons)


def change(
    name: str,
    before: str,
    after: str,
    accelerator: AcceleratorFacts | Unavailable | None = None,
    chain: tuple[Demand, ...] = (),
    upgrade: bool = False,
    fate: Fate = Fate.REPLACED,
    **more: Any,
) -> PackageChange:
    role = Role.ANCHOR if name == "torch" else Role.COMPANION
    more = {"role": role, "chain": chain, "upgrade": upgrade, **more}
    return PackageChange(name, before, after, "uv", "aarch64", fate, accelerator, **more)


CASES = [
    Case(
        "PIN301",
        "a clause that excludes local versions",
        lambda: survival("torch>2.7.0", "> excludes local versions"),
        ("torch 2.7.0+cu128 does not satisfy torch>2.7.0: > excludes local versions",),
    ),
    Case("PIN301", "the public version of what is installed", lambda: survival("torch==2.7.0", "it is satisfied")),
    Case(
        "PIN311",
        "a pin of another package, and a CPU build",
        lambda: change("torch", "2.9.1+cu128", "2.10.0", CPU, VLLM),
        (
            "torch 2.9.1+cu128 would be replaced by 2.10.0, CPU only (2.10.0+cpu) on aarch64; required by vllm "
            "0.19.0 (torch==2.10.0)",
        ),
        evidence=("you ask for vllm==0.19.0; vllm 0.19.0 requires torch==2.10.0",),
    ),
    Case(
        "PIN311",
        "an upgrade to another CUDA build",
        lambda: change("torch", "2.9.1+cu128", "2.15.0", CUDA, upgrade=True),
        (
            "torch 2.9.1+cu128 would be replaced by 2.15.0, CUDA 13.0 on aarch64; no requirement causes it, "
            "--upgrade does",
        ),
    ),
    Case(
        "PIN311",
        "a wheel that cannot be read",
        lambda: change("torch", "2.9.1+cu128", "2.10.0", Unavailable("the index does not answer")),
        ("torch 2.9.1+cu128 would be replaced by 2.10.0, an unknown build: the index does not answer",),
    ),
    Case(
        "PIN311",
        "the build of the index in the place of the same version",
        lambda: change("torch", "2.10.0", "2.10.0", CPU),
        ("torch 2.10.0 would be replaced by 2.10.0 from the index, CPU only (2.10.0+cpu) on aarch64",),
    ),
    Case(
        "PIN311",
        "a removal",
        lambda: change("torch", "2.9.1", "", fate=Fate.REMOVED),
        ("torch 2.9.1 would be removed",),
    ),
    Case("PIN311", "a torch that stays", lambda: change("torch", "2.9.1+cu128", "2.9.1+cu128", fate=Fate.KEPT)),
    Case("PIN311", "a first torch", lambda: change("torch", "", "2.10.0", CPU, fate=Fate.ADDED)),
    Case("PIN311", "a companion, which is another rule's", lambda: change("torchcodec", "0.8", "0.9")),
    Case(
        "PIN311",
        "a second copy in front of a torch of the base installation",
        lambda: change("torch", "2.9.1+cu128", "2.10.0", CUDA, fate=Fate.SHADOWED, place="/venv/site-packages"),
        (
            "torch 2.9.1+cu128 would be shadowed by 2.10.0, CUDA 13.0 on aarch64, in /venv/site-packages; uv does "
            "not see the installed one, or must not change it",
        ),
    ),
    Case(
        "PIN311",
        "another distribution of the same framework",
        lambda: change("cupy-cuda12x", "14.0", "14.0", fate=Fate.OVERWRITTEN, by="cupy-cuda13x 14.2", role=Role.ANCHOR),
        ("cupy-cuda12x 14.0 would be overwritten by cupy-cuda13x 14.2, which installs the same files",),
    ),
    Case(
        "PIN312",
        "a companion for another accelerator takes its place",
        lambda: change("torchvision", "0.24.1+cu128", "0.25.0", CPU),
        ("torchvision 0.24.1+cu128 would be replaced by 0.25.0, CPU only (2.10.0+cpu) on aarch64",),
    ),
    Case(
        "PIN312",
        "a companion that is replaced",
        lambda: change("torchvision", "0.24.1+cu128", "0.25.0", CUDA),
        ("torchvision 0.24.1+cu128 would be replaced by 0.25.0, CUDA 13.0 on aarch64",),
        WARNING,
    ),
    Case("PIN312", "a companion that stays", lambda: change("torchvision", "0.24.1", "0.24.1", fate=Fate.KEPT)),
    Case(
        "PIN313",
        "requirements that contradict each other",
        lambda: PlannedInstall(
            Conflict(("you require torch==2.8.0", "you require torch==2.7.0+cu128"), ("torch==2.8.0",))
        ),
        ("the install would fail and change nothing: you require torch==2.8.0; you require torch==2.7.0+cu128",),
        WARNING,
        evidence=("torch==2.8.0",),
    ),
    Case("PIN313", "an install that can be done", PlannedInstall),
    Case(
        "PIN314",
        "a torchaudio that declares no torch",
        lambda: change("torchaudio", "", "2.11.0", fate=Fate.BROKEN, unfit=("it goes with torch==2.11.0",)),
        ("torchaudio 2.11.0 would not match: it goes with torch==2.11.0",),
    ),
    Case(
        "PIN314",
        "a companion that comes and fits",
        lambda: change("torchaudio", "", "2.7.0", fate=Fate.ADDED),
    ),
    Case(
        "PIN315",
        "a library of torch that another framework takes away",
        lambda: change(
            "torch",
            "2.7.0+cu128",
            "2.7.0+cu128",
            fate=Fate.BROKEN,
            broken=("it requires nvidia-cudnn-cu12==9.5.1.17, but nvidia-cudnn-cu12 9.10.2.21 would be installed",),
        ),
        (
            "torch 2.7.0+cu128 is kept, but would be broken: it requires nvidia-cudnn-cu12==9.5.1.17, but "
            "nvidia-cudnn-cu12 9.10.2.21 would be installed",
        ),
    ),
    Case("PIN315", "a torch that stays whole", lambda: change("torch", "2.7.0", "2.7.0", fate=Fate.KEPT)),
    Case(
        "PIN316",
        "a source archive that computes its requirements",
        lambda: PlannedInstall(open=("demo 1.0 would be built, which computes what it requires",)),
        ("demo 1.0 would be built, which computes what it requires",),
        undecided=True,
    ),
    Case("PIN316", "a plan that is known", PlannedInstall),
]
