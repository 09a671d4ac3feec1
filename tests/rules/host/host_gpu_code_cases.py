"""DOC701 to DOC706: GPU code that is not for this GPU."""

from __future__ import annotations

from dataclasses import replace

from tests.rules.case import NOTE, WARNING, Case
from tests.support.hosts import grace, healthy, hgx, kernel_fails, replaced, with_torch, without_gpu
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.probes import CudaProbe
from wheel_checks.facts.host.software import ExtensionCode, Ptxas
from wheel_checks.model import Unavailable

NO_IMAGE = "AcceleratorError: CUDA error: no kernel image is available for execution on the device"
OF_CU124 = ("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90")
OF_CU130 = ("sm_80", "sm_90", "sm_100", "sm_110", "sm_120")  # aarch64
RTX_5090 = "NVIDIA GeForce RTX 5090"


def gpu(facts: HostFacts, name: str, *capabilities: tuple[int, int], says: str = NO_IMAGE) -> HostFacts:
    """GPUs of these capabilities; torch does not compute on the first one."""
    assert isinstance(facts.cuda, CudaProbe)
    one = facts.cuda.gpus[0]
    seen = tuple(replace(one, index=index, name=name, capability=sm) for index, sm in enumerate(capabilities))
    return replaced(replaced(facts, "cuda", gpus=seen), "torch", computes=says)


def spark(version: str, *architectures: str) -> HostFacts:
    facts = gpu(with_torch(grace(), version, architectures=architectures), "NVIDIA GB10", (12, 1), says="")
    return replaced(facts, "torch", warnings=("Found GPU0 NVIDIA GB10 which is of cuda capability 12.1.",))


def triton(facts: HostFacts, version: str, blackwell_from: int, *ptxas: Ptxas) -> HostFacts:
    """A Triton with these ptxas, whose kernel fails."""
    facts = replaced(facts, "triton", version=version, ptxas=ptxas, blackwell_from=blackwell_from)
    return kernel_fails(facts, "triton.runtime.errors.PTXASError: PTXAS error: Internal Triton PTX codegen error")


def ptxas(version: str, *knows: str, role: str = "ptxas") -> Ptxas:
    return Ptxas(f"/opt/{role}", role, version, knows)


def gb300(*ptxas: Ptxas, blackwell_from: int = 0) -> HostFacts:
    facts = with_torch(grace(), "2.9.1+cu130", triton="triton==3.5.1")
    return triton(gpu(facts, "NVIDIA GB300", (10, 3), says=""), "3.5.1", blackwell_from, *ptxas)


def rubin(*ptxas: Ptxas) -> HostFacts:
    facts = with_torch(grace(), "2.13.0+cu130", triton="triton==3.7.1")
    return triton(gpu(facts, "NVIDIA VR200", (10, 7), says=""), "3.7.1", 100, *ptxas)


def beside(facts: HostFacts, *labels: str) -> HostFacts:
    """The same with an attention library that has this code."""
    code = ExtensionCode("flash-attn", "flash_attn_2_cuda.cpython-312-aarch64-linux-gnu.so", labels)
    return replaced(facts, "installed", extension_code=(code,))


OLD = ptxas("12.8.93", "sm_90a", "sm_100a", "sm_120a")
NEW = ptxas("12.9.86", "sm_100a", "sm_103a", "sm_121a", role="ptxas-blackwell")
NEWEST = ptxas("13.4.59", "sm_103a", "sm_107a", role="ptxas-blackwell")

CASES = [
    Case(
        "DOC701",
        "a V100, and a build for CUDA 13",
        lambda: gpu(healthy(), "Tesla V100-SXM2-32GB", (7, 0)),
        ("torch 2.11.0+cu130 has no code for Tesla V100-SXM2-32GB (7.0), which is older than all of it",),
        evidence=("sm_75 sm_80 sm_86 sm_90 sm_100 sm_120", NO_IMAGE),
    ),
    Case(
        "DOC701",
        "an old GPU next to one on which torch computes",
        lambda: gpu(healthy(), "NVIDIA GPU", (9, 0), (6, 1), says=""),
        ("torch 2.11.0+cu130 has no code for NVIDIA GPU (6.1), which is older than all of it",),
    ),
    Case(
        "DOC701",
        "a V100, and a build for CUDA 12.6",
        lambda: gpu(
            with_torch(healthy(), "2.11.0+cu126", cuda="12.6", architectures=OF_CU124), "V100", (7, 0), says=""
        ),
    ),
    Case("DOC701", "a GPU whose code runs on newer ones of its kind", lambda: gpu(healthy(), "L40S", (8, 9), says="")),
    Case(
        "DOC701",
        "nothing says which code torch has",
        lambda: gpu(with_torch(healthy(), "2.11.0", architectures=()), "V100", (7, 0)),
    ),
    Case("DOC701", "a T4G, which A12 reports", lambda: gpu(grace(), "NVIDIA T4G", (7, 5))),
    Case(
        "DOC701", "torch computes on it all the same", lambda: gpu(healthy(), "Tesla V100-SXM2-32GB", (7, 0), says="")
    ),
    Case(
        "DOC702",
        "an RTX 5090, and torch 2.6",
        lambda: gpu(with_torch(healthy(), "2.6.0+cu124", cuda="12.4", architectures=OF_CU124), RTX_5090, (12, 0)),
        ("torch 2.6.0+cu124 has no code for NVIDIA GeForce RTX 5090 (12.0), which is newer or of another kind",),
        evidence=(" ".join(OF_CU124), NO_IMAGE),
    ),
    Case("DOC702", "an RTX 5090, and a build with code for it", lambda: gpu(healthy(), RTX_5090, (12, 0), says="")),
    Case(
        "DOC702",
        "an RTX 5090, and PTX that the driver compiles for it",
        lambda: gpu(with_torch(healthy(), "2.6.0", architectures=("sm_90", "compute_90")), RTX_5090, (12, 0)),
    ),
    Case("DOC702", "a GPU that is too old", lambda: gpu(healthy(), "V100", (7, 0))),
    Case("DOC702", "eight GPUs with code", hgx),
    Case(
        "DOC703",
        "GB10, and a torch that compares versions",
        lambda: spark("2.10.0+cu130", *OF_CU130),
        ("harmless: torch 2.10.0+cu130 warns about the GB10 (12.1), but its code for sm_120 runs there",),
        severity=NOTE,
        evidence=("Found GPU0 NVIDIA GB10 which is of cuda capability 12.1.",),
    ),
    Case("DOC703", "GB10, and a torch that knows", lambda: spark("2.11.0+cu130", *OF_CU130)),
    Case("DOC703", "GB10, and a torch without code for it", lambda: spark("2.6.0+cu124", *OF_CU124)),
    Case("DOC703", "another GPU", lambda: with_torch(grace(), "2.10.0+cu130")),
    Case(
        "DOC704",
        "GB300, and the ptxas of CUDA 12.8",
        lambda: gb300(OLD),
        ("Triton 3.5.1 uses ptxas 12.8.93, which does not support sm_103a; torch itself runs there",),
        evidence=("NVIDIA GB300 (10.3)", "12.8.93, newest sm_120a"),
    ),
    Case("DOC704", "GB300, and a ptxas-blackwell that knows it", lambda: gb300(OLD, NEW, blackwell_from=100)),
    Case(
        "DOC704",
        "GB300, and a variable that names a newer one",
        lambda: gb300(ptxas("13.0.88", "sm_103a", role="TRITON_PTXAS_PATH"), OLD),
    ),
    Case(
        "DOC704",
        "GB300, and no kernel could be tried",
        lambda: replace(gb300(OLD), kernel=Unavailable("torch sees no GPU")),
        ("Triton 3.5.1 uses ptxas 12.8.93, which does not support sm_103a; torch itself runs there",),
        severity=NOTE,
    ),
    Case("DOC704", "a kernel runs anyway", lambda: replace(gb300(OLD), kernel=healthy().kernel)),
    Case("DOC704", "another GPU, and the old ptxas", lambda: triton(grace(), "3.5.1", 0, OLD)),
    Case("DOC704", "a ptxas that does not run", lambda: gb300(Ptxas("/opt/ptxas", "ptxas", "", (), "not executable"))),
    Case(
        "DOC705",
        "Rubin, and the ptxas of CUDA 13.1",
        lambda: rubin(OLD, ptxas("13.1.80", "sm_103a", "sm_121a", role="ptxas-blackwell")),
        ("Triton 3.7.1 uses ptxas 13.1.80, which does not support sm_107a; torch itself runs there",),
        evidence=("13.1.80, newest sm_121a",),
    ),
    Case("DOC705", "Rubin, and a ptxas that knows it", lambda: rubin(OLD, NEWEST)),
    Case("DOC705", "no Rubin", lambda: gb300(OLD)),
    Case(
        "DOC706",
        "an attention library for exactly another GPU",
        lambda: beside(grace(), "sm_100a"),
        ("flash-attn has no code for NVIDIA GH200 480GB (9.0)",),
        severity=WARNING,
        evidence=("sm_100a",),
    ),
    Case("DOC706", "one for exactly this GPU", lambda: beside(grace(), "sm_90a", "sm_100a")),
    Case("DOC706", "one with PTX", lambda: beside(grace(), "sm_80", "compute_80")),
    Case("DOC706", "no GPU of a known capability", lambda: without_gpu(beside(grace(), "sm_100a"))),
]
