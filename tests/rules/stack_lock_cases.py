"""STK110 to STK115: a lock's entries for a target, and the files found for them."""

from __future__ import annotations

from dataclasses import replace

from packaging.requirements import Requirement

from tests.rules.case import NOTE, WARNING, Case
from tests.support.wheel_facts import AARCH64
from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.stack.facts import CONDA, NO_FILE, SDIST, WHEEL, Demand, StackFacts, StackPackage
from wheel_checks.facts.stack.locked import (
    LockedEntry,
    LockFacts,
    WrongLockedHash,
    declared_by_build,
    declared_by_version,
)
from wheel_checks.facts.wheel.source_archive import SourceArchive
from wheel_checks.formats.sdist.static_metadata import StaticMetadata
from wheel_checks.model import Unavailable

ENTRY = LockedEntry("uv.lock", 12)
X86 = "torch-2.11.0+cu130-cp312-cp312-manylinux_2_28_x86_64.whl"
MISFIT = f"torch 2.11.0+cu130 is the address of {X86}, which does not install on cp312 aarch64"
UNREAD = "only the lock names torch.example, and it was not contacted"
HASHES = WrongLockedHash("demo-1.0-py3-none-any.whl", "sha256:00", "sha256:11", "https://index.example/simple")
NOT_READ = Unavailable("there is no wheel to read")


def locked(
    entry: LockedEntry,
    distribution: str = WHEEL,
    version: str = "2.11.0+cu130",
    accelerator: AcceleratorFacts | Unavailable = NOT_READ,
    name: str = "torch",
) -> StackPackage:
    return StackPackage(name, version, AARCH64, distribution, accelerator, gpu_reason="a GPU is wanted", locked=entry)


def conda(build: str, reason: str = "a GPU is wanted") -> StackPackage:
    facts = declared_by_build(build, "2.8.0")
    return replace(
        locked(replace(ENTRY, lock="pixi.lock", build=build), CONDA, "2.8.0", facts, "pytorch"), gpu_reason=reason
    )


def stack(*packages: StackPackage, lock: LockFacts | None = None) -> StackFacts:
    return StackFacts(("uv.lock",), AARCH64, packages, lock=lock)


def from_source(*, is_pure: bool) -> StackPackage:
    metadata = StaticMetadata("demo", "1.0", "PKG-INFO", ())
    archive = SourceArchive("demo", "1.0", "demo-1.0.tar.gz", metadata=metadata, is_pure=is_pure)
    return replace(locked(ENTRY, SDIST, "1.0", name="demo"), archive=archive)


DEMAND = Demand("vllm 0.19.0", Requirement("torch==2.10.0"))
OVERRIDDEN = replace(locked(ENTRY), demands=(DEMAND,))

CASES = [
    Case(
        "STK110",
        "the address of a wheel for another machine",
        lambda: locked(replace(ENTRY, misfit=MISFIT, address=f"https://torch.example/{X86}"), NO_FILE),
        (MISFIT,),
        evidence=("torch 2.11.0+cu130", f"https://torch.example/{X86}"),
    ),
    Case("STK110", "a wheel that fits", lambda: locked(ENTRY)),
    Case("STK103", "a locked package without a file, of which STK110 says why", lambda: locked(ENTRY, NO_FILE)),
    Case(
        "STK111",
        "a lock for another machine",
        lambda: stack(lock=LockFacts("pixi.lock", "pixi", "its environment default is for linux-64")),
        ("pixi.lock does not include cp312 aarch64: its environment default is for linux-64",),
    ),
    Case("STK111", "a lock for this host", lambda: stack(locked(ENTRY), lock=LockFacts("uv.lock", "uv"))),
    Case("STK111", "no lock", stack),
    Case(
        "STK112",
        "another hash than the index states",
        lambda: locked(replace(ENTRY, wrong=HASHES), name="demo"),
        ("demo-1.0-py3-none-any.whl has a different hash on the index than in uv.lock",),
        evidence=("sha256:00", "sha256:11"),
    ),
    Case("STK112", "the hash that the index states", lambda: locked(ENTRY)),
    Case(
        "STK113",
        "a wheel of an index that only the lock names",
        lambda: locked(replace(ENTRY, unread=UNREAD), accelerator=declared_by_version("2.11.0+cu130")),
        (f"torch 2.11.0+cu130 was not read: {UNREAD}; its name declares CUDA 13.0",),
        undecided=True,
    ),
    Case(
        "STK113",
        "a wheel whose name says nothing",
        lambda: locked(replace(ENTRY, unread=UNREAD), version="2.11.0", accelerator=declared_by_version("2.11.0")),
        (f"torch 2.11.0 was not read: {UNREAD}",),
        undecided=True,
    ),
    Case("STK113", "a wheel that was read", lambda: locked(ENTRY)),
    Case(
        "STK114",
        "two releases, and nothing that says which",
        lambda: stack(lock=LockFacts("poetry.lock", "poetry", open=("the lock has demo 1 and 2",))),
        ("poetry.lock: the lock has demo 1 and 2",),
        undecided=True,
    ),
    Case(
        "STK114",
        "packages of conda",
        lambda: stack(conda("cuda129_mkl_py313_h7947483_302"), lock=LockFacts("pixi.lock", "pixi", conda=1)),
        ("1 package of conda known only by name, version and build; the files are not read",),
        undecided=True,
    ),
    Case(
        "STK114",
        "a lock that does not say which groups ask for what",
        lambda: stack(lock=LockFacts("poetry.lock", "poetry", notes=("all groups count",))),
        ("poetry.lock: all groups count",),
        NOTE,
    ),
    Case("STK114", "a lock that says it all", lambda: stack(locked(ENTRY), lock=LockFacts("uv.lock", "uv"))),
    Case(
        "STK115",
        "a CPU build of conda",
        lambda: conda("cpu_generic_py312_h1"),
        ("pytorch 2.8.0 is the CPU build cpu_generic_py312_h1, although a GPU is wanted",),
    ),
    Case(
        "STK115",
        "a CPU build of another package, next to which a torch for CUDA works",
        lambda: replace(conda("cpu_h6262cab_0"), name="viskores"),
        ("viskores 2.8.0 is the CPU build cpu_h6262cab_0, although a GPU is wanted",),
        WARNING,
    ),
    Case("STK115", "a CUDA build of conda", lambda: conda("cuda129_mkl_py313_h7947483_302")),
    Case("STK115", "a CPU build where no GPU is wanted", lambda: conda("cpu_generic_py312_h1", reason="")),
    Case("STK115", "a build that does not name an accelerator", lambda: conda("pyhd8ed1ab_0")),
    Case("STK101", "a build of conda that does not name an accelerator", lambda: conda("pyhd8ed1ab_0")),
    Case(
        "STK102",
        "a locked source archive of pure Python",
        lambda: from_source(is_pure=True),
        ("demo 1.0 is built from source when it is installed; it is pure Python",),
        NOTE,
    ),
    Case(
        "STK102",
        "a locked source archive that may compile",
        lambda: from_source(is_pure=False),
        ("demo 1.0 would be built on the target: requires nothing",),
        WARNING,
        undecided=True,
    ),
    Case(
        "STK105",
        "a version that the lock overrides",
        lambda: stack(OVERRIDDEN, lock=LockFacts("uv.lock", "uv")),
        ("vllm 0.19.0 requires torch==2.10.0, but the stack has torch 2.11.0+cu130",),
        WARNING,
    ),
]
