"""Do the kernels compile for GPUs that are not here, and into good machine code? KRN4xx judge each target."""

from collections.abc import Iterator, Sequence

from wheel_checks.commands import Step
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.kernels.facts import Compilation, Ending, Fault, FaultKind, TargetFacts
from wheel_checks.model import Evidence, Finding, Severity, Unavailable, need
from wheel_checks.phrases import summarised
from wheel_checks.registry import rules_of
from wheel_checks.rules.kernels.findings import as_evidence, as_fix

KIND = "gpu-target"
rule = rules_of(KIND)
MOST_SHOWN = 20
_OWN_RULES = frozenset(FaultKind) - {FaultKind.REFUSED}


@rule(
    "KRN401",
    "every kernel compiles for the target",
    why="A kernel that the compiler rejects on the build host also fails on the customer's host, at its first use.",
    example="`ptxas fatal : Ptx assembly aborted due to errors`",
    fix="Use a newer Triton, or report the compiler's message to its project.",
)
def compiles(target: TargetFacts, _: Expectations) -> Iterator[Finding]:
    """No compilation was refused, crashed or hung, and each could be tried."""
    for compilation in target.compiled:
        known = any(fault.kind in _OWN_RULES for fault in compilation.faults)
        if compilation.ending in (Ending.PASS, Ending.SKIP) or known:
            continue
        told = [fault.message for fault in compilation.faults] or [compilation.message or str(compilation.ending)]
        how = "the compiler crashed: " * (compilation.ending is Ending.CRASH)
        how += "the compiler hung: " * (compilation.ending is Ending.HANG)
        fix = as_fix([advice for fault in compilation.faults for advice in fault.fixes])
        message = f"{compilation.label}: {how}{'; '.join(told)}"
        undecided = compilation.ending is Ending.ERROR
        yield Finding(message, as_evidence(compilation.notes), fix, undecided=undecided)


@rule(
    "KRN402",
    "no kernel spills more registers than recorded",
    why="Values that do not fit into registers are spilled to memory, and the kernel becomes several times slower "
    "without being wrong. Changes of the compiler show here first.",
    example="a matrix product with 1,024 bytes of spills per thread, where 0 are recorded",
    fix="Use another release of Triton, or another configuration of the kernel for this architecture.",
)
def spills(target: TargetFacts, _: Expectations) -> Iterator[Finding]:
    """Each function spills at most what is recorded for its kernel."""
    return _machine_code(target, FaultKind.SPILLS)


@rule(
    "KRN403",
    "tensor-core kernels use tensor cores",
    why="A matrix product compiled without tensor-core instructions is correct but many times slower.",
    example="a kernel for sm_90 without HGMMA",
    fix="Use another release of Triton; check that the tile shapes fit the instructions of the target.",
)
def matrix_units(target: TargetFacts, _: Expectations) -> Iterator[Finding]:
    """The machine code of matrix kernels has matrix instructions."""
    return _machine_code(target, FaultKind.MATRIX_INSTRUCTIONS)


@rule(
    "KRN404",
    "no kernel needs more shared memory than the target has",
    why="Such a kernel compiles, but fails at its first launch. GPUs of one generation differ: a block has 227 KiB on "
    "sm_100, and 99 KiB on sm_120.",
    example="a tile of 128 x 256 in four stages on an RTX 5090",
    fix="Choose a configuration with smaller tiles or fewer stages for this architecture.",
)
def shared_memory(target: TargetFacts, _: Expectations) -> Iterator[Finding]:
    """Each function fits into the shared memory of a block."""
    return _machine_code(target, FaultKind.SHARED_MEMORY)


@rule(
    "KRN405",
    "the compiler supports the target",
    why="A release of Triton supports the GPUs that existed when it was released. For a newer GPU no kernel compiles.",
    example="sm_110 (Thor) with the ptxas of triton 3.6.0",
    fix="Install a newer Triton, or set TRITON_PTXAS_PATH to a newer ptxas.",
)
def known(target: TargetFacts, _: Expectations) -> Iterator[Finding]:
    """The assembler and the compiler know this architecture."""
    found = list(target.faults(FaultKind.UNKNOWN_TO_PTXAS))
    if found:
        messages = list(dict.fromkeys(fault.message for _, fault in found))
        evidence = (
            Evidence("kernels", summarised(dict.fromkeys(compilation.kernel for compilation, _ in found), MOST_SHOWN)),
            *_rest(messages),
        )
        yield Finding(messages[0], evidence, as_fix(_advice(found)))


@rule(
    "KRN406",
    "the target supports every feature that the kernels use",
    Severity.NOTE,
    why="Some kernels use features that not every architecture has, such as fp8 arithmetic. They cannot run there, or "
    "Triton converts their operands without a warning and they are slower. Neither is a fault of the installation.",
    example="scaled_mm on sm_80, which has no fp8; on gfx942, whose matrix units multiply another format of fp8",
    fix="No action is needed: use another kernel there.",
)
def possible(target: TargetFacts, _: Expectations) -> Iterator[Finding]:
    """No kernel is made of what the target lacks, and none is converted to what it has."""
    reasons: dict[str, list[str]] = {}
    for compilation, fault in target.faults(FaultKind.UNSUPPORTED):
        reasons.setdefault(fault.message, []).append(compilation.kernel)
    for message, kernels in reasons.items():
        yield Finding(
            f"{summarised(dict.fromkeys(kernels), MOST_SHOWN)} cannot run on the target, at least in part: {message}"
        )
    converted: dict[str, list[str]] = {}
    for compilation in target.compiled:
        if compilation.ending is Ending.PASS and compilation.message:
            converted.setdefault(compilation.message, []).append(compilation.kernel)
    for message, kernels in converted.items():
        yield Finding(f"{summarised(dict.fromkeys(kernels), MOST_SHOWN)}: {message}")


def _machine_code(target: TargetFacts, kind: FaultKind) -> Iterator[Finding]:
    """A finding for each fault of this kind. Skipped when nothing could be read from any machine code."""
    found = list(target.faults(kind))
    read = [c for c in target.compiled if c.registers is not None]
    if not found and not read:
        told = dict.fromkeys(c.message for c in target.compiled if c.ending is Ending.SKIP and c.message)
        need(Unavailable("; ".join(told) or "there is no machine code to examine"))
    for compilation, fault in found:
        yield Finding(f"{compilation.label}: {fault.message}", tuple(_figures(compilation)), as_fix(fault.fixes))


def _figures(compilation: Compilation) -> Iterator[Evidence]:
    sizes = (("registers", compilation.registers), ("spills", compilation.spill_bytes))
    for label, value in (*sizes, ("shared memory", compilation.shared_bytes)):
        if value is not None:
            yield Evidence(label, f"{value:,}" + " bytes" * (label != "registers"), compilation.target)
    if compilation.instructions:
        yield Evidence("matrix instructions", ", ".join(compilation.instructions), compilation.target)
    yield from as_evidence(compilation.notes)


def _advice(found: Sequence[tuple[Compilation, Fault]]) -> list[Step | str]:
    return list(dict.fromkeys(advice for _, fault in found for advice in fault.fixes))


def _rest(messages: Sequence[str]) -> tuple[Evidence, ...]:
    return tuple(Evidence("also", message) for message in messages[1:MOST_SHOWN])
