"""STK101 to STK109: the packages of a stack, and how they fit."""

from __future__ import annotations

from dataclasses import replace

from packaging.requirements import Requirement

from tests.rules.case import NOTE, WARNING, Case
from tests.support.wheel_facts import AARCH64, facts_of
from tests.support.wheels import WheelBuilder, gpu_library, torch_like
from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.gpu.targets import parse_gpus
from wheel_checks.facts.stack.facts import (
    NO_FILE,
    SDIST,
    WHEEL,
    Conflict,
    Demand,
    PreRelease,
    Refused,
    StackFacts,
    StackPackage,
)
from wheel_checks.facts.wheel.expectations import parse_expectation
from wheel_checks.facts.wheel.facts import Sibling
from wheel_checks.facts.wheel.source_archive import SourceArchive
from wheel_checks.formats.index.digests import WrongHash
from wheel_checks.formats.sdist.static_metadata import BuildSystem, StaticMetadata
from wheel_checks.model import Unavailable

REASON = "a GPU is required (GB200)"
VLLM = (Demand("", Requirement("vllm==0.19.0")), Demand("vllm 0.19.0", Requirement("torch==2.10.0")))
X86 = Sibling("demo-1.0-cp312-cp312-manylinux_2_28_x86_64.whl", "x86_64", "cuda", "12.8", "exact", "read in this run")


def torch(accelerator: str, version: str, reason: str = REASON, demands: tuple[Demand, ...] = ()) -> StackPackage:
    """A torch as it is read from a wheel."""
    facts = facts_of(torch_like(accelerator, version), target=AARCH64)
    return StackPackage(
        "torch", version, AARCH64, WHEEL, facts.accelerator, facts.file_name, demands, demands, gpu_reason=reason
    )


def package(
    name: str,
    version: str = "1.0",
    accelerator: str = "none",
    accelerator_version: str = "",
    siblings: tuple[Sibling, ...] = (),
    demands: tuple[Demand, ...] = (),
) -> StackPackage:
    """A package with a wheel for this accelerator."""
    facts = AcceleratorFacts(accelerator, accelerator_version, "", ())
    return StackPackage(
        name, version, AARCH64, WHEEL, facts, demands=demands, chain=demands, siblings=siblings, gpu_reason=REASON
    )


ON_GPU = {"gpus": parse_gpus("GB200")}


def without_cuda(facts: StackFacts) -> StackFacts:
    """Without torch, which has libraries of CUDA by itself."""
    return replace(facts, packages=tuple(one for one in facts.packages if one.name == "demo"))


def without_wheel(distribution: str, explanation: str) -> StackPackage:
    return StackPackage(
        "demo", "1.0", AARCH64, distribution, Unavailable("there is no wheel to read"), explanation=explanation
    )


def archive(computed: str) -> SourceArchive:
    """A source archive of demo 1.0, and why its requirements are ``computed``."""
    return SourceArchive(
        "demo",
        "1.0",
        "demo-1.0.tar.gz",
        metadata=StaticMetadata("demo", "1.0", "PKG-INFO", ("torch>=2", "pytest ; extra == 'test'"), computed=computed),
        build=BuildSystem(("setuptools", "torch")),
        sources=("a C++ compiler",),
    )


def stack(*packages: StackPackage, conflicts: tuple[Conflict, ...] = ()) -> StackFacts:
    return StackFacts(("vllm",), AARCH64, packages, conflicts)


def beside_torch(
    name: str, version: str, accelerator: str, accelerator_version: str, declared: tuple[str, ...] = ()
) -> StackFacts:
    """A package that requires torch, next to a torch for CUDA 13.0."""
    demand = Demand(f"{name} {version}", Requirement("torch"))
    other = package(name, version, accelerator, accelerator_version)
    assert not isinstance(other.accelerator, Unavailable)
    other = replace(other, accelerator=replace(other.accelerator, declared=declared))
    return stack(torch("cuda", "2.11.0", demands=(demand,)), other)


def needing(major: str, *runtimes: str, on_torch: bool = False, older: str = "") -> StackFacts:
    """A library that needs this CUDA, next to a torch for CUDA 13.0, which it may require, and these runtimes.

    There may be one for an ``older`` CUDA, too.
    """
    built = WheelBuilder("demo", "1.0", "cp312-cp312-manylinux_2_28_aarch64")
    built.add("demo/_C.so", gpu_library("aarch64", [f"libcudart.so.{major}"]))
    if older:
        built.add("demo/_old.so", gpu_library("aarch64", [f"libcudart.so.{older}"]))
    facts = facts_of(built)
    demo = replace(package("demo"), accelerator=facts.accelerator, file_name=facts.file_name)
    versions = {"nvidia-cuda-runtime": "13.0.96", "nvidia-cuda-runtime-cu12": "12.8.90"}
    demands = (Demand("demo 1.0", Requirement("torch")),) if on_torch else ()
    return stack(torch("cuda", "2.11.0", demands=demands), *(package(n, versions[n]) for n in runtimes), demo)


def for_both_cudas(asked: bool = False) -> StackFacts:
    """A package that requires nixl for CUDA 12 and 13, each with torch, next to a torch for CUDA 13.0."""
    demands = tuple(Demand(f"nixl-cu{major} 1.5.1", Requirement("torch")) for major in (12, 13))
    by = Demand("" if asked else "nixl 1.5.1", Requirement("nixl-cu12"))
    builds = [package(f"nixl-cu{major}", "1.5.1", "cuda", f"{major}.0", demands=(by,)) for major in (12, 13)]
    return stack(torch("cuda", "2.11.0", demands=demands), *builds)


def renamed(facts: StackFacts, name: str) -> StackFacts:
    """The same with another name of the last package."""
    *others, last = facts.packages
    return stack(*others, replace(last, name=name))


def naming_only(facts: StackFacts) -> StackFacts:
    """The same, if the needs of the last package are known by its dynamic strings alone."""
    *others, last = facts.packages
    known = last.known_accelerator
    assert known
    assert known.content
    shown = tuple(replace(item, how="names" if item.how == "needs" else item.how) for item in known.content.shown)
    named = replace(last, accelerator=replace(known, content=replace(known.content, shown=shown)))
    return replace(facts, packages=(*others, named))


CONFLICT = Conflict(
    ("vllm==0.19.0 depends on torch==2.10.0 and you require vllm==0.19.0", "you require torch==2.11.0"),
    ("vllm==0.19.0 depends on torch==2.10.0", "you require torch==2.11.0"),
)

CASES = [
    Case(
        "STK101",
        "a torch for the CPU that another package pins",
        lambda: torch("cpu", "2.10.0", demands=VLLM),
        (
            "torch 2.10.0 is a CPU build (2.10.0+cpu) on aarch64, although a GPU is required (GB200); vllm 0.19.0 pins "
            "torch==2.10.0",
        ),
        evidence=("you ask for vllm==0.19.0; vllm 0.19.0 requires torch==2.10.0",),
    ),
    Case(
        "STK101",
        "a CPU build whose release has a CUDA build for another machine",
        lambda: package("demo", accelerator="cpu", siblings=(X86,)),
        ("demo 1.0 is a CPU build on aarch64, although a GPU is required (GB200)",),
        evidence=(f"{X86.file_name}: CUDA 12.8",),
        expectations={"of_torch": parse_expectation("cuda")},
    ),
    Case(
        "STK101",
        "a CPU build next to a torch for CUDA, where no one asks for a GPU",
        lambda: replace(package("demo", accelerator="cpu", siblings=(X86,)), gpu_reason="torch 2.13.0 is for CUDA"),
        ("demo 1.0 is a CPU build on aarch64, although torch 2.13.0 is for CUDA",),
        WARNING,
    ),
    Case(
        "STK101",
        "a torch that was not read, whose version is for the CPU",
        lambda: replace(
            package("torch", "2.9.1+cpu", demands=VLLM),
            accelerator=AcceleratorFacts("cpu", "", "", (), certainty="declared"),
        ),
        (
            "torch 2.9.1+cpu is a CPU build on aarch64, although a GPU is required (GB200); vllm 0.19.0 pins "
            "torch==2.10.0",
        ),
    ),
    Case("STK101", "a torch for CUDA", lambda: torch("cuda", "2.11.0")),
    Case(
        "STK101",
        "a torch for the CPU where no GPU is wanted, and nothing asks for the CPU",
        lambda: torch("cpu", "2.10.0", reason="", demands=VLLM),
        (
            "torch 2.10.0 is a CPU build (2.10.0+cpu) on aarch64, although nothing requests a CPU build; vllm 0.19.0 "
            "pins torch==2.10.0",
        ),
        NOTE,
    ),
    Case(
        "STK101",
        "a torch for the CPU that an index is named for",
        lambda: replace(torch("cpu", "2.10.0", reason=""), cpu_reason="it comes from https://example.org/whl/cpu"),
    ),
    Case(
        "STK101",
        "a torch for the CPU that --expect names",
        lambda: torch("cpu", "2.10.0", reason=""),
        expectations={"of_torch": parse_expectation("cpu")},
    ),
    Case("STK101", "a package that is for the CPU everywhere", lambda: package("onnxruntime", accelerator="cpu")),
    Case(
        "STK101",
        "a package without an accelerator",
        lambda: package("numpy", siblings=(replace(X86, accelerator="none"),)),
    ),
    Case(
        "STK102",
        "a source archive",
        lambda: without_wheel(SDIST, "demo 1.0 has no wheel for cp312 aarch64, only a source archive"),
        ("demo 1.0 has no wheel for cp312 aarch64, only a source archive",),
        WARNING,
        undecided=True,
    ),
    Case(
        "STK102",
        "a source archive whose requirements are known",
        lambda: replace(without_wheel(SDIST, ""), archive=archive("")),
        (
            "demo 1.0 would be built on the target: requires torch>=2; its build needs setuptools, torch; a C++ "
            "compiler",
        ),
        WARNING,
        evidence=("demo-1.0.tar.gz", "torch>=2", "setuptools, torch; a C++ compiler"),
        undecided=True,
    ),
    Case(
        "STK102",
        "a source archive whose requirements a build computes",
        lambda: replace(without_wheel(SDIST, ""), archive=archive("PKG-INFO says `Dynamic: Requires-Dist`")),
        (
            "demo 1.0 would be built on the target: requires torch>=2; the build computes its requirements (PKG-INFO "
            "says `Dynamic: Requires-Dist`); its build needs setuptools, torch; a C++ compiler",
        ),
        WARNING,
        evidence=("PKG-INFO says `Dynamic: Requires-Dist`",),
        undecided=True,
    ),
    Case(
        "STK102",
        "a newer source archive that could not be read",
        lambda: replace(package("demo"), unread_archive="it has no PKG-INFO"),
        ("an installer would try a newer source archive of demo, which could not be read",),
        WARNING,
        evidence=("it has no PKG-INFO",),
        undecided=True,
    ),
    Case("STK102", "a wheel", lambda: package("demo")),
    Case("STK102", "no files, which is another rule's", lambda: without_wheel(NO_FILE, "")),
    Case(
        "STK103",
        "wheels for another machine only",
        lambda: without_wheel(NO_FILE, "demo 1.0 has no file for cp312 aarch64; its wheels are for linux_x86_64"),
        ("demo 1.0 has no file for cp312 aarch64; its wheels are for linux_x86_64",),
    ),
    Case("STK103", "a source archive, which can be built", lambda: without_wheel(SDIST, "")),
    Case(
        "STK124",
        "an extra of a later release",
        lambda: replace(
            package("jax"), extras=frozenset({"cuda12"}), demands=(Demand("", Requirement("jax[cuda13]")),)
        ),
        ("jax 1.0 has no extra cuda13, which you ask for",),
        evidence=("cuda12", "you ask for jax[cuda13]"),
    ),
    Case(
        "STK124",
        "an extra that another package requires",
        lambda: replace(
            package("jax"), extras=frozenset[str](), demands=(Demand("flax 1.0", Requirement("jax[tpu]")),)
        ),
        ("jax 1.0 has no extra tpu, which flax 1.0 requires",),
        WARNING,
        evidence=("none",),
    ),
    Case(
        "STK124",
        "an extra in another spelling",
        lambda: replace(
            package("jax"), extras=frozenset({"and-cuda"}), demands=(Demand("", Requirement("jax[And_Cuda]")),)
        ),
    ),
    Case(
        "STK104",
        "cuDNN for CUDA 12 and 13",
        lambda: stack(package("nvidia-cudnn-cu13", "9.26.0"), package("nvidia-cudnn-cu12", "9.28.0")),
        (
            "nvidia-cudnn-cu13 9.26.0 and nvidia-cudnn-cu12 9.28.0 install files with the same paths: one overwrites "
            "the other",
        ),
    ),
    Case(
        "STK104",
        "the runtimes of CUDA 12 and 13, which have other paths",
        lambda: stack(package("nvidia-cuda-runtime", "13.0.96"), package("nvidia-cuda-runtime-cu12", "12.8.90")),
    ),
    Case(
        "STK104",
        "a library on torch that needs another CUDA than the stack brings",
        lambda: needing("12", "nvidia-cuda-runtime", on_torch=True),
        ("demo 1.0 needs libcudart.so.12, of CUDA 12; the stack is for CUDA 13",),
        evidence=("demo/_C.so needs libcudart.so.12",),
    ),
    Case(
        "STK104",
        "a library on torch that does not require torch, and needs another CUDA than the stack contains",
        lambda: renamed(needing("12", "nvidia-cuda-runtime"), "torchcodec"),
        ("torchcodec 1.0 needs libcudart.so.12, of CUDA 12; the stack is for CUDA 13",),
    ),
    Case(
        "STK104",
        "libraries on torch for two CUDAs, neither of which is that of the stack",
        lambda: needing("12", "nvidia-cuda-runtime", on_torch=True, older="11.0"),
        (
            "demo 1.0 needs libcudart.so.11.0, of CUDA 11 and 12, of which it uses one; the stack is for CUDA 13, "
            "and it is unknown whether it works without one",
        ),
        undecided=True,
    ),
    Case(
        "STK104",
        "a library on torch of which only the strings are known",
        lambda: naming_only(needing("12", "nvidia-cuda-runtime", on_torch=True)),
        ("demo 1.0 is built for CUDA 12 (demo/_C.so names libcudart.so.12); the stack is for CUDA 13",),
    ),
    Case(
        "STK104",
        "a library on torch for another CUDA, which the stack brings, too",
        lambda: needing("12", "nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12", on_torch=True),
        ("not proven that demo 1.0, which needs libcudart.so.12, of CUDA 12, works with torch for CUDA 13",),
        undecided=True,
    ),
    Case(
        "STK104",
        "a library for another CUDA, which only the system may have",
        lambda: needing("12", "nvidia-cuda-runtime"),
        (
            "demo 1.0 needs libcudart.so.12, of CUDA 12, which no package of the stack contains: only the system can "
            "provide it",
        ),
        undecided=True,
    ),
    Case(
        "STK104",
        "a library for another CUDA than torch, with its runtime",
        lambda: needing("12", "nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12"),
    ),
    Case(
        "STK104",
        "a library of CUDA that nothing brings, for a GPU that is asked about",
        lambda: without_cuda(needing("13")),
        ("demo 1.0 needs libcudart.so.13, but no package of the stack contains CUDA: only the system can provide it",),
        evidence=("demo/_C.so needs libcudart.so.13",),
        expectations=ON_GPU,
        undecided=True,
    ),
    Case(
        "STK104",
        "an extra that brings CUDA and was not asked for",
        lambda: stack(replace(package("tensorflow", "2.21.0", "cuda"), cuda_extras=("and-cuda",))),
        (
            "tensorflow 2.21.0 gets CUDA from its extra and-cuda, but no package of the stack contains CUDA: only "
            "the system can provide it",
        ),
        expectations=ON_GPU,
        undecided=True,
    ),
    Case(
        "STK104",
        "a library of CUDA that nothing brings, and no GPU is asked about",
        lambda: without_cuda(needing("13")),
    ),
    Case("STK104", "a library on torch for its CUDA", lambda: needing("13", "nvidia-cuda-runtime", on_torch=True)),
    Case(
        "STK104",
        "a package on torch of which only requirements name CUDA 12",
        lambda: beside_torch("sglang", "0.1", "cuda", "12.8", declared=("cuda",)),
    ),
    Case(
        "STK104",
        "an extension for CUDA 12 next to a torch for CUDA 13",
        lambda: beside_torch("vllm", "0.1", "cuda", "12.8"),
        ("vllm 0.1 is built for CUDA 12.8; the stack is for CUDA 13",),
    ),
    Case(
        "STK104",
        "a library for each CUDA, both required by one package",
        for_both_cudas,
        ("nixl-cu12 1.5.1 is built for CUDA 12.0; the stack is for CUDA 13, which nixl-cu13 1.5.1 supports",),
        WARNING,
    ),
    Case(
        "STK104",
        "a library for each CUDA, of which the wrong one was requested",
        lambda: for_both_cudas(asked=True),
        ("nixl-cu12 1.5.1 is built for CUDA 12.0; the stack is for CUDA 13",),
    ),
    Case("STK104", "an extension for another minor version", lambda: beside_torch("vllm", "0.1", "cuda", "13.2")),
    Case("STK104", "an extension that shows only the major", lambda: beside_torch("vllm", "0.1", "cuda", "13")),
    Case(
        "STK104",
        "libraries whose own version is not that of CUDA",
        lambda: stack(
            package("nvidia-cuda-runtime", "13.0.96"),
            package("nvidia-cufft", "12.0.0.61"),
            package("nvidia-cudnn-cu13", "9.19.0.56"),
            package("nvidia-cutlass-dsl-libs-cu12", "4.8.1"),
        ),
    ),
    Case(
        "STK105",
        "two pins that contradict each other",
        lambda: stack(conflicts=(CONFLICT,)),
        (
            "no versions satisfy all requirements: vllm==0.19.0 depends on torch==2.10.0 and you require "
            "vllm==0.19.0; you require torch==2.11.0",
        ),
        evidence=("vllm==0.19.0 depends on torch==2.10.0", "you require torch==2.11.0"),
    ),
    Case(
        "STK105",
        "a conflict with requirements that a build computes",
        lambda: stack(conflicts=(replace(CONFLICT, computed=(archive("it is dynamic"),)),)),
        (
            "it is unknown whether any versions satisfy all requirements: a build computes those of demo 1.0; "
            "vllm==0.19.0 depends on torch==2.10.0 and you require vllm==0.19.0; you require torch==2.11.0",
        ),
        undecided=True,
    ),
    Case(
        "STK105",
        "a resolver that would go on",
        lambda: replace(stack(), unfinished="it tried 12 times"),
        ("newer releases than these might be installed: it tried 12 times",),
        undecided=True,
    ),
    Case(
        "STK105",
        "a version that a METADATA does not allow",
        lambda: stack(package("torch", "2.11.0", demands=VLLM[1:])),
        ("vllm 0.19.0 requires torch==2.10.0, but the stack has torch 2.11.0",),
    ),
    Case(
        "STK105",
        "a demand that a local version fulfils",
        lambda: stack(package("torch", "2.10.0+cu128", demands=VLLM[1:])),
    ),
    Case(
        "STK106",
        "a torchvision for the CPU next to a torch for CUDA",
        lambda: beside_torch("torchvision", "0.26.0", "cpu", ""),
        ("torchvision 0.26.0 is built for CPU only, but torch 2.11.0 for CUDA 13.0",),
    ),
    Case(
        "STK106",
        "a torchaudio for another CUDA",
        lambda: beside_torch("torchaudio", "2.11.0", "cuda", "12.8"),
        ("torchaudio 2.11.0 is built for CUDA 12.8, but torch 2.11.0 for CUDA 13.0",),
    ),
    Case(
        "STK106",
        "a torchaudio for another minor CUDA version, which its import compares",
        lambda: beside_torch("torchaudio", "2.11.0", "cuda", "13.2"),
        (
            "torchaudio 2.11.0 is built for CUDA 13.2, but torch 2.11.0 for CUDA 13.0; its import compares the two "
            "and raises RuntimeError",
        ),
    ),
    Case(
        "STK106",
        "a torchaudio of a later release, which compares major CUDA versions",
        lambda: beside_torch("torchaudio", "2.11.1+cu132", "cuda", "13.2"),
    ),
    Case(
        "STK106",
        "a torchvision for another minor CUDA version",
        lambda: beside_torch("torchvision", "0.26.0", "cuda", "13.2"),
    ),
    Case("STK106", "a torchaudio for the same CUDA", lambda: beside_torch("torchaudio", "2.11.0", "cuda", "13.0")),
    Case(
        "STK106",
        "a torchaudio of which only the major version is known",
        lambda: beside_torch("torchaudio", "2.11.0", "cuda", "13"),
    ),
    Case("STK106", "a torchvision for the same CUDA", lambda: beside_torch("torchvision", "0.26.0", "cuda", "13.0")),
    Case("STK106", "a torchaudio without an accelerator", lambda: beside_torch("torchaudio", "2.11.0", "none", "")),
    Case(
        "STK107",
        "METADATA with another hash than stated",
        lambda: replace(stack(), wrong_metadata=(WrongHash("demo-1.0-py3-none-any.whl", "sha256=00", "sha256=11"),)),
        (
            "uv rejects the METADATA that the index serves for demo-1.0-py3-none-any.whl: its hash is not the stated "
            "one",
        ),
        evidence=("sha256=00", "sha256=11"),
    ),
    Case("STK107", "a stack that was resolved", lambda: stack(package("torch", "2.11.0"))),
    Case(
        "STK108",
        "a newer release that cannot be taken",
        lambda: replace(
            stack(package("vllm")), refused=(Refused("vllm", "2.0", "1.0", "vllm==2.0 depends on certifi>9000"),)
        ),
        ("vllm 2.0 is newer than 1.0, but was rejected: vllm==2.0 depends on certifi>9000",),
        NOTE,
    ),
    Case("STK108", "the latest releases", lambda: stack(package("vllm"))),
    Case(
        "STK109",
        "a pre-release that uv alone takes",
        lambda: replace(stack(package("demo")), pre_releases=(PreRelease("demo", "4.0b1", "", "0.1"),)),
        ("demo: uv selects the pre-release 4.0b1 by default, pip nothing (the final release 0.1 is yanked)",),
        NOTE,
    ),
    Case("STK109", "final releases", lambda: stack(package("demo"))),
]
