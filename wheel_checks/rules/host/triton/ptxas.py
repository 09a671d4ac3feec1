"""Triton's ptxas: does it run, does it know the GPU, does the driver load its output?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wheel_checks.facts.host.advice import newer_driver, newer_ptxas
from wheel_checks.facts.host.commands import install, is_whole
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.software import Ptxas, TritonFacts
from wheel_checks.facts.host.tables import HostGpu, driver_cuda
from wheel_checks.facts.host.triton_use import (
    kernel_error,
    kernel_words,
    ptxas_for,
    role_for,
    target,
    triton_gpus,
    variable_of,
    weight,
)
from wheel_checks.fixes.commands import Command, NoCommand, Step, Unset, export, run, shell
from wheel_checks.fixes.goal import Goal
from wheel_checks.model import Evidence, Finding, Fix, Severity, Unavailable, need
from wheel_checks.parsing import numbers
from wheel_checks.rules.host.cause import Layer, causes_in

KERNEL = ("kernel:failed",)


UNKNOWN_GPU = r"is not defined for option|[Ii]nternal Triton PTX codegen error|ptxas"


INVALID_IMAGE = r"image is invalid|no kernel image|\[CUDA\].*(invalid|kernel image)"


OPTED = ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH")

cause = causes_in(Layer.TRITON, KERNEL)


def _ptxas_evidence(ptxas: Ptxas) -> Evidence:
    return Evidence(ptxas.role, ptxas.version or ptxas.error, ptxas.path)


@cause(
    "H05",
    "Triton's ptxas supports the GPU",
    why="Triton includes its own ptxas, which is as old as the release. It does not support newer GPUs, whatever CUDA "
    "toolkit is installed.",
    example="ptxas fatal : Value 'sm_121a' is not defined for option 'gpu-name'",
    fix="Set the ptxas variable that this Triton reads for this GPU to a newer ptxas, or install a torch with a newer "
    "Triton.",
    sources="triton#8539, vllm PR31338, sglang#14075, flashinfer#4217",
    tested="the real ptxas of Triton 3.6.0, 3.7.1 and 3.9.0, which answer without a GPU; facts",
)
def ptxas_too_old(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """For every GPU, the ptxas that Triton takes for it; silent if H06 applies."""
    triton, severity = need(facts.triton), weight(facts, UNKNOWN_GPU)
    if triton is None or severity is None:
        return
    for gpu in triton_gpus(facts):
        ptxas = ptxas_for(triton, gpu.sm)
        if ptxas is None or not ptxas.knows or target(gpu.sm) in ptxas.knows or _ignored(facts, triton, gpu):
            continue
        yield Finding(
            f"Triton {triton.version} uses ptxas {ptxas.version} for {gpu.product}, but that ptxas does not support "
            f"{target(gpu.sm)}",
            (
                _ptxas_evidence(ptxas),
                Evidence("newest that it knows", ptxas.knows[-1], ptxas.path),
                *kernel_error(facts),
            ),
            _better_ptxas(facts, triton, ptxas, gpu),
            severity=severity,
        )


def _better_ptxas(facts: HostFacts, triton: TritonFacts, ptxas: Ptxas, gpu: HostGpu) -> Fix:
    role, other = role_for(triton, gpu.sm), next((one for one in triton.ptxas if target(gpu.sm) in one.knows), None)
    if other is not None and ptxas.role in OPTED and other.role == role:
        return Fix(f"Use Triton's own {role} {other.version}, which supports it.", (Unset((ptxas.role,)),))
    if other is not None:
        return Fix(f"Use {other.path} ({other.version}), which supports it.", (export(variable_of(role), other.path),))
    return newer_ptxas(facts, triton, gpu.sm)


def _ignored(facts: HostFacts, triton: TritonFacts, gpu: HostGpu) -> Ptxas | None:
    """The ptxas that a variable names in vain for this GPU, and that knows it."""
    other = OPTED[role_for(triton, gpu.sm) == "ptxas"]
    if not role_for(triton, gpu.sm) or not facts.variables.get(other) or facts.variables.get(_other(other)):
        return None
    return next((one for one in triton.ptxas if one.role == other and target(gpu.sm) in one.knows), None)


def _other(variable: str) -> str:
    return OPTED[variable == OPTED[0]]


@cause(
    "H06",
    "the ptxas variable that is set is the one that Triton reads for the GPU",
    why="Triton has two ptxas, and a variable for each: from Hopper (3.9) or Blackwell (3.6 to 3.8) on it uses "
    "ptxas-blackwell, and TRITON_PTXAS_PATH has no effect. A path that cannot be run is ignored silently.",
    example="TRITON_PTXAS_PATH is set, and the error still comes from the ptxas of Triton",
    fix="Set TRITON_PTXAS_BLACKWELL_PATH for these GPUs.",
    sources="triton-inference-server#8632",
    tested="the sources of Triton 3.6.0, 3.7.1 and 3.9.0; facts",
)
def ignored_variable(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The other variable is set, and would help; or the right one names a program that does not run."""
    triton, severity = need(facts.triton), weight(facts, UNKNOWN_GPU)
    if triton is None or severity is None:
        return
    for gpu in triton_gpus(facts):
        right, known = variable_of(role_for(triton, gpu.sm)), _ignored(facts, triton, gpu)
        if known is not None and (taken := ptxas_for(triton, gpu.sm)) and target(gpu.sm) not in taken.knows:
            yield Finding(
                f"Triton {triton.version} reads only {right} for {gpu.product}, not {known.role}",
                (
                    Evidence(known.role, known.path, facts.variables_origin.get(known.role, "environment")),
                    Evidence("ptxas-blackwell from", f"sm_{triton.blackwell_from}", f"{triton.folder}/backends/nvidia"),
                    _ptxas_evidence(taken),
                    *kernel_error(facts),
                ),
                Fix("Set the variable that Triton reads.", (export(right, known.path),)),
                severity=severity,
            )
    for one in triton.ptxas:
        if one.role in OPTED and one.error and not _refused(one):
            yield Finding(
                f"{one.role} is {one.path}, which does not run: Triton silently uses its own instead",
                (_ptxas_evidence(one),),
                Fix("Set it to a ptxas that runs, or unset it.", (Unset((one.role,)),)),
                severity=Severity.NOTE,
            )


@cause(
    "H07",
    "the driver loads the code that Triton's ptxas generates",
    why="A driver loads machine code generated by the ptxas of its own major version of CUDA. From Hopper on, Triton "
    "3.9 uses a ptxas of CUDA 13, whatever CUDA torch was built for. Inferred for 3.9, reported for older ones.",
    example="RuntimeError: Triton Error [CUDA]: device kernel image is invalid",
    fix="Install a newer driver, or use a ptxas of the driver's major version.",
    sources="triton#4172, triton#2971, pytorch#119054",
    tested="facts; no such driver was at hand",
    certain=False,
)
def cubin_too_new(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The major version of ptxas is above the driver's."""
    triton, driver, severity = need(facts.triton), driver_cuda(facts), weight(facts, INVALID_IMAGE)
    if triton is None or driver is None or severity is None:
        return
    for gpu in triton_gpus(facts):
        ptxas = ptxas_for(triton, gpu.sm)
        if ptxas is None or _major(ptxas.version) <= driver.major:
            continue
        fitting = (one for one in triton.ptxas if 0 < _major(one.version) <= driver.major)
        other = next((one for one in fitting if target(gpu.sm) in one.knows), None)
        yield Finding(
            f"ptxas {ptxas.version}, which Triton {triton.version} uses for {gpu.product}, generates code for CUDA "
            f"{_major(ptxas.version)}, but the driver supports {driver.version}",
            (_ptxas_evidence(ptxas), Evidence("driver", driver.version, driver.source), *kernel_error(facts)),
            Fix(
                f"Install a newer driver (recommended), or use ptxas {other.version} of this Triton.",
                (export(variable_of(role_for(triton, gpu.sm)), other.path),),
            )
            if other
            else Fix("Install a newer driver.", newer_driver(facts)),
            severity=severity,
        )


def _major(version: str) -> int:
    """13 of 13.1; 0 if it is no version."""
    return next(iter(numbers(version.partition(".")[0])), 0)


@cause(
    "H08",
    "the driver accepts the PTX that it has to compile",
    layer=Layer.CODE,
    explains=("kernel:failed", "torch:compute"),
    why="Code that is present only as PTX is compiled by the driver, which rejects PTX of a newer CUDA than its own, "
    "even where machine code of that CUDA would run.",
    example="the provided PTX was compiled with an unsupported toolchain (222)",
    fix="Install a newer driver, or a torch for the driver's CUDA version.",
    sources="gpu-burn#112, ctransformers#87",
    tested="facts; no such driver was at hand",
)
def ptx_too_new(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The error of torch or of the kernel."""
    computed = "" if isinstance(facts.torch, Unavailable) else facts.torch.computes or ""
    lines = f"{computed}\n{kernel_words(facts)}".splitlines()
    shown = next((line for line in lines if "unsupported toolchain" in line or "UNSUPPORTED_PTX_VERSION" in line), "")
    driver = driver_cuda(facts)
    if shown:
        supported = f", which supports CUDA {driver.version}" if driver else ""
        yield Finding(
            f"the driver{supported}, rejected PTX of a newer CUDA (222)",
            (
                Evidence("said", shown.strip()),
                *((Evidence("driver", driver.version, driver.source),) if driver else ()),
            ),
            Fix("Install a newer driver.", newer_driver(facts)),
        )


def _make_executable(triton: TritonFacts, file: str) -> Step:
    """Only for a file of Triton's: the path is a probe's, or of facts that were saved on another machine."""
    if not is_whole(file) or not file.startswith(f"{triton.folder}/") or not triton.folder.endswith("/triton"):
        return NoCommand(f"{file!a} is not in Triton's folder")
    return run("chmod", "+x", file)


def _refused(ptxas: Ptxas) -> bool:
    """Whether it cannot even be started: Triton fails then, instead of taking the next."""
    return "Permission denied" in ptxas.error or "Exec format error" in ptxas.error


@cause(
    "H12",
    "Triton's ptxas is executable",
    layer=Layer.FILES,
    why="Copying an environment through an archive or a file system without modes loses the executable bit of ptxas; a "
    "mount with noexec has the same effect, as does a ptxas for another architecture.",
    example="PermissionError: [Errno 13] Permission denied: '.../triton/backends/nvidia/bin/ptxas'",
    fix="Restore the executable bit, or reinstall Triton.",
    sources="facebookexperimental/triton PR704",
    tested="files without the bit; facts",
)
def ptxas_not_executable(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A ptxas that Triton uses for the GPUs here, or any when they are unknown."""
    triton, severity = need(facts.triton), weight(facts, r"Permission denied|PermissionError|Exec format|ptxas")
    if triton is None or severity is None:
        return
    roles = {role_for(triton, gpu.sm) for gpu in triton_gpus(facts)} or {"ptxas", "ptxas-blackwell"}
    for one in triton.ptxas:
        if not _refused(one) or one.role not in {*roles, *map(variable_of, roles)}:
            continue
        if one.role in OPTED:
            fix = Fix("Let Triton use its own ptxas.", (Unset((one.role,)),))
        elif "Exec format" in one.error:
            step = install(facts, f"triton=={triton.version}", force=True, no_deps=True)
            fix = Fix("Install the Triton for this architecture.", step, Goal(intact=("triton",)))
        else:
            again = install(facts, f"triton=={triton.version}", force=True, no_deps=True)
            shown = ", then ".join(f"`{shell(step)}`" for step in again if isinstance(step, Command))
            summary = "Restore the executable bit; otherwise reinstall Triton" + (f": {shown}." if shown else ".")
            fix = Fix(summary, (_make_executable(triton, one.path),))
        yield Finding(
            f"{one.path} cannot be executed, but Triton needs it",
            (_ptxas_evidence(one), *kernel_error(facts)),
            fix,
            severity=severity,
        )
