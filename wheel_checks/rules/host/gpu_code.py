"""GPU code that is not for this GPU."""

from collections.abc import Iterator
from typing import Any

from packaging.version import Version

from wheel_checks.facts.gpu.targets import runs_on
from wheel_checks.facts.host.advice import is_old_jetson, newer_ptxas, reinstall_torch
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.probes import TorchProbe
from wheel_checks.facts.host.tables import host_gpus
from wheel_checks.facts.host.torch.choice import public
from wheel_checks.facts.host.torch.fit import gpus_of_entry
from wheel_checks.facts.host.triton_use import ptxas_for, target, weight
from wheel_checks.model import Evidence, Finding, Fix, Severity, need
from wheel_checks.parsing import version_or_none
from wheel_checks.rules.host import other_makers
from wheel_checks.rules.host.cause import Layer, causes_in
from wheel_checks.rules.host.torch_evidence import code_list, gpu_names, installed_torch, version_file

GB300, RUBIN, GB10 = 103, 107, 121
WARNS_OF_GB10_BEFORE = Version("2.11")
PTXAS_ERROR = r"is not defined for option|[Ii]nternal Triton PTX codegen error|ptxas"

cause = causes_in(Layer.CODE)


def _without_code(facts: HostFacts, entry: str) -> Iterator[Finding]:
    torch = installed_torch(facts)
    if torch is None or is_old_jetson(facts):
        return
    for gpu in gpus_of_entry(facts, torch, entry):
        age = "older than all of it" if entry == "G01" else "newer or of another kind"
        yield Finding(
            f"torch {torch.version} has no code for {gpu.product}, which is {age}",
            (version_file(torch), code_list(torch), Evidence("GPU", str(gpu.product), gpu.source), *_said(facts)),
            reinstall_torch(facts),
        )


def _said(facts: HostFacts) -> Iterator[Evidence]:
    if isinstance(facts.torch, TorchProbe) and facts.torch.computes:
        yield Evidence("computing on the GPU", facts.torch.computes, "torch")


@cause(
    "G01",
    "torch has code for GPUs as old as this one",
    explains=("torch:compute",),
    why="Builds for CUDA 13 start at Turing (sm_75), as do those for CUDA 12.8 since torch 2.11. Volta, Pascal and "
    "Maxwell need builds for CUDA 12.6, the last of which is torch 2.14.",
    example="torch 2.11.0+cu130 on a V100: no kernel image is available for execution on the device",
    fix="Install the build for CUDA 12.6: --torch-backend=cu126, and torch before 2.15.",
    sources="ComfyUI PR16438, pytorch#172352, pytorch#190385",
    tested="facts; no GPU before Turing",
)
def gpu_too_old(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The GPU is older than everything that torch has code for."""
    return _without_code(facts, "G01")


@cause(
    "G02",
    "torch has code for GPUs as new as this one",
    explains=("torch:compute",),
    why="Machine code runs only on GPUs of its own major version, and PyTorch's wheels contain hardly any PTX that "
    "could be compiled for newer ones. Blackwell needs torch 2.7 for CUDA 12.8 or later.",
    example="torch 2.6.0+cu124 on an RTX 5090: no kernel image is available for execution on the device",
    fix="Install a newer torch for CUDA 12.8 or later.",
    sources="CVlization#128",
    tested="facts; no Blackwell GPU",
)
def gpu_too_new(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """There is code for older GPUs, and none that this one runs; or a torch for ROCm has none for AMD's GPU."""
    yield from other_makers.no_code(facts)
    yield from _without_code(facts, "G02")


@cause(
    "G03",
    "torch recognizes that its code for sm_120 runs on GB10",
    Severity.NOTE,
    why="Before 2.11 torch warns that a GB10 (DGX Spark, 12.1) is not supported, because it compares versions. Code "
    "for sm_120 runs there.",
    example="Found GPU0 NVIDIA GB10 which is of cuda capability 12.1 ... supported by this version (8.0) - (12.0)",
    fix="Ignore the warning, or install torch 2.11 or later.",
    sources="pytorch PR164590, pytorch#172629",
    tested="facts; no GB10",
)
def needless_warning(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A GPU of 12.1, code for 12.0, and a torch that warns."""
    torch = installed_torch(facts)
    if torch is None or "sm_120" not in torch.architectures or not any(gpu.sm == GB10 for gpu in host_gpus(facts)):
        return
    version = version_or_none(public(torch.version))
    if version is not None and version < WARNS_OF_GB10_BEFORE:
        warnings = facts.torch.warnings if isinstance(facts.torch, TorchProbe) else ()
        said = tuple(Evidence("warning", text, "torch") for text in warnings if "capability" in text)
        yield Finding(
            f"harmless: torch {torch.version} warns about the GB10 (12.1), but its code for sm_120 runs there",
            (code_list(torch), gpu_names(facts), *said),
            Fix("Ignore the warning, or install torch 2.11 or later."),
        )


@cause(
    "G04",
    "Triton's ptxas supports GB300 and B300",
    explains=("kernel:failed",),
    why="torch runs on sm_103 with its code for sm_100. Triton compiles for sm_103a, which only the ptxas of CUDA 12.9 "
    "and later supports.",
    example="ptxas fatal: Value 'sm_103a' is not defined for option 'gpu-name'",
    fix="Install torch 2.10 or later, whose Triton includes such a ptxas; or set the path of another one.",
    sources="sglang#14075, TransformerEngine PR2539, triton PR8485",
    tested="facts; the ptxas of Triton 3.6.0, 3.7.1 and 3.9.0 were asked for sm_103a; no such GPU",
)
def ptxas_before_gb300(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A GPU of 10.3, and a ptxas that does not know it."""
    return _unknown_to_ptxas(facts, GB300)


@cause(
    "G05",
    "Triton's ptxas supports Rubin",
    explains=("kernel:failed",),
    why="torch's code for sm_100 runs on Rubin (sm_107). Triton compiles for sm_107a, which the ptxas of CUDA 13.2 "
    "does not support yet.",
    example="ptxas fatal: Value 'sm_107a' is not defined for option 'gpu-name'",
    fix="Install Triton 3.9 or later (torch 2.15), or set the path of another ptxas.",
    sources="flashinfer#4217",
    tested="facts; of the ptxas of Triton 3.6.0, 3.7.1 and 3.9.0 only the last one knows sm_107a; no such GPU",
)
def ptxas_before_rubin(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A GPU of 10.7, and a ptxas that does not know it."""
    return _unknown_to_ptxas(facts, RUBIN)


def _unknown_to_ptxas(facts: HostFacts, sm: int) -> Iterator[Finding]:
    """H05 shows it of every GPU; here it is the cause, since torch itself runs on this one."""
    triton, severity = need(facts.triton), weight(facts, PTXAS_ERROR)
    gpu = next((gpu for gpu in host_gpus(facts) if gpu.sm == sm), None)
    if triton is None or gpu is None or severity is None:
        return
    ptxas = ptxas_for(triton, sm)
    if ptxas is None or not ptxas.knows or target(sm) in ptxas.knows:
        return
    yield Finding(
        f"Triton {triton.version} uses ptxas {ptxas.version}, which does not support {target(sm)}; torch itself runs "
        "there",
        (
            Evidence("GPU", str(gpu.product), gpu.source),
            Evidence("ptxas", f"{ptxas.version}, newest {ptxas.knows[-1]}", ptxas.path),
        ),
        newer_ptxas(facts, triton, sm),
        severity=severity,
    )


@cause(
    "G06",
    "extension libraries have code for the GPU",
    Severity.WARNING,
    why="Code with the suffix a (sm_90a, sm_100a) runs only on exactly that GPU. Libraries of attention and matrix "
    "kernels often contain nothing else, and fail at the first call on the next generation.",
    example="an attention library with sm_90a alone, on a B200",
    fix="Install a build of the library for this GPU.",
    sources="flash-attention PR2257",
    tested="facts; real fat binaries of small libraries; no such GPU",
)
def extension_without_code(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """What was compiled against torch and has GPU code, but none for a GPU of this host."""
    gpus = [gpu for gpu in host_gpus(facts) if gpu.sm]
    for extension in need(facts.installed).extension_code:
        lacking = dict.fromkeys(
            str(gpu.product) for gpu in gpus if runs_on(extension.labels, gpu.product).how == "none"
        )
        if lacking:
            yield Finding(
                f"{extension.distribution} has no code for {', '.join(lacking)}",
                (Evidence("code", " ".join(extension.labels), extension.member), gpu_names(facts)),
                Fix(
                    f"Install a build of {extension.distribution} for this GPU, or build it on this host with "
                    "TORCH_CUDA_ARCH_LIST set to the GPU."
                ),
            )
