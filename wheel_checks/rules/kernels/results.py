"""Are the kernels right, and fast? KRN2xx judge the results of each kernel, KRN3xx its speed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wheel_checks.facts.kernels.facts import CaseRun, Ending, KernelFacts, SpeedRun
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.model import Evidence, Finding, Fix, Severity, Unavailable, need
from wheel_checks.phrases import summarised
from wheel_checks.registry import rules_of
from wheel_checks.rules.kernels.findings import as_evidence

KIND = "kernel"
rule = rules_of(KIND)
MOST_SHOWN = 8
"""Cases that a finding lists one by one."""

_UNTRIED = {Ending.ERROR: "not checked", Ending.NOT_RUN_ACROSS: "not run across GPUs"}
_ELSEWHERE = frozenset({Ending.PASS, Ending.SKIP, *_UNTRIED, Ending.REFUSED, Ending.CRASH, Ending.HANG})
"""Endings that another rule reports than those about wrong results and about speed."""

# Reasons for lower clocks other than faults of the installation: heat, and the server's power supply. The cap on its
# own power is no reason: a large matrix product runs at that cap on a healthy GPU.
_THROTTLING = ("thermal", "hardware slowdown", "power brake")

Run = CaseRun | SpeedRun


@rule(
    "KRN201",
    "every case gives the correct result",
    why="A kernel that silently computes wrong results is the worst fault of an installation: one release of Triton "
    "miscompiles on one architecture, or the hardware is faulty. Each case is compared with a plain high-precision "
    "reference, by its norm and by its worst row, and the memory around every tensor is poisoned.",
    example="two products chained in one accumulator: wrong results on sm_100 with Triton 3.6 to 3.8",
    fix="Repeat the run with the seed that it printed. If only one architecture or release of Triton is affected, use "
    "another release; if the error differs from run to run, suspect the hardware.",
)
def right(kernel: KernelFacts, _: Expectations) -> Iterator[Finding]:
    """No case that ran is wrong."""
    _need_runs(kernel.cases, "case")
    bad = [case for case in kernel.cases if case.ending not in _ELSEWHERE]
    if bad:
        yield Finding(_count(bad, kernel.cases, "wrong"), _messages_of(bad), _again(kernel))


@rule(
    "KRN202",
    "no kernel crashes",
    why="An invalid address ends the whole process: nothing that its CUDA context computes afterwards is reliable. "
    "Each family of kernels therefore runs in a separate process.",
    example="`CUDA error: an illegal memory access was encountered`",
    fix="Repeat it alone with the finding's command, under `compute-sanitizer` to find the address.",
)
def alive(kernel: KernelFacts, _: Expectations) -> Iterator[Finding]:
    """No case and no timed run ended its process, or made its CUDA context unusable."""
    return _ended(kernel, Ending.CRASH, "crashed")


@rule(
    "KRN203",
    "no kernel hangs",
    why="A kernel that never returns keeps its GPU busy until it is killed by a user or the driver.",
    example="a barrier that not all threads reach",
    fix="Repeat it alone with the finding's command. Reset a GPU that stays busy afterwards.",
)
def returning(kernel: KernelFacts, _: Expectations) -> Iterator[Finding]:
    """Something is heard of every case and every timed run before its deadline."""
    return _ended(kernel, Ending.HANG, "hung")


@rule(
    "KRN204",
    "every kernel compiles and launches",
    why="Triton compiles a kernel when it is first used. If the compiler rejects it, or its launch exceeds the GPU's "
    "resources, every program that uses it fails.",
    example="`OutOfResources: out of resource: shared memory, Required: 262144, Hardware limit: 101376`",
    fix="Install the release of Triton that torch requires, or a newer one for a GPU that it does not support "
    "(KRN110).",
)
def launched(kernel: KernelFacts, _: Expectations) -> Iterator[Finding]:
    """Nothing was refused, and everything could be tried."""
    yield from _ended(kernel, Ending.REFUSED, "refused")
    for ending, word in _UNTRIED.items():
        unknown = [run for run in kernel.runs if run.ending is ending]
        if unknown:
            fix = _again(kernel) if ending is Ending.ERROR else None
            yield Finding(_count(unknown, kernel.runs, word), _messages_of(unknown), fix, undecided=True)


@rule(
    "KRN205",
    "the test cases detect every mutant",
    Severity.WARNING,
    why="A mutant is the kernel with a deliberate fault. If no case detects a fault, the kernel itself could have it "
    "and pass. Mutants that the suite generates from a kernel's source (a mask dropped, a stride exchanged, a bound "
    "off by one) may be equivalent to the kernel, so a missed one is a warning; a mutant written by an author must be "
    "detected.",
    example="a load without its mask, where every width in the cases is a power of two",
    fix="Add a case that shows the fault: an odd width, padded rows, more than one block, rows beyond 2^31 elements.",
)
def caught(kernel: KernelFacts, _: Expectations) -> Iterator[Finding]:
    """A case fails with each mutant of the kernel, and each could be made and run."""
    if not kernel.mutants:
        need(Unavailable("this run did not include a mutant of it"))
    if all(mutant.ending is Ending.SKIP for mutant in kernel.mutants):
        need(Unavailable("; ".join(dict.fromkeys(mutant.message for mutant in kernel.mutants))))
    for ending, automatic, what in (
        (Ending.MISSED, False, "mutants missed"),
        (Ending.MISSED, True, "automatic mutants missed"),
        (Ending.ERROR, None, "mutants not judged"),
    ):
        found = [m for m in kernel.mutants if m.ending is ending and automatic in (None, m.automatic)]
        if found:
            names = summarised([mutant.mutant for mutant in found], MOST_SHOWN)
            evidence = tuple(Evidence(m.mutant, m.message) for m in found[:MOST_SHOWN] if ending is Ending.ERROR)
            severity = Severity.ERROR if automatic is False else None
            message = f"{len(found)} of {len(kernel.mutants)} {what}: {names}"
            yield Finding(message, evidence, severity=severity, undecided=ending is Ending.ERROR)


@rule(
    "KRN301",
    "every timed run meets its time limit",
    why="The limit of a kernel's time follows from what this GPU reached in the same run, in bytes or operations per "
    "second, or from the time of another implementation. A kernel far above it was compiled badly, or shares the GPU "
    "with another job. 10 % are allowed for noise (15 % where matrix products dominate), and a slow run is repeated "
    "once. While heat or the power supply reduce the clocks it is a warning.",
    example="fused_add_rms_norm at 1.6 times the floor of 125 us; the limit is 1.10",
    fix="Check that the GPU is idle and cool (`nvidia-smi`), and repeat the run.",
)
def fast(kernel: KernelFacts, _: Expectations) -> Iterator[Finding]:
    """No timed run took longer than its bar allows."""
    _need_runs(kernel.speeds, "timed run")
    for speed in kernel.speeds:
        if speed.ending not in _ELSEWHERE:
            throttling = [r for r in speed.held_down_by if any(word in r for word in _THROTTLING)]
            fix = Fix("Repeat it while the GPU is idle and cool:", (kernel.replay,) if kernel.replay else ())
            severity = Severity.WARNING if throttling else None
            message = f"{speed.case}: {speed.message or speed.ending}"
            yield Finding(message, tuple(_rates(speed)), fix, severity=severity)


def _need_runs(runs: Sequence[Run], noun: str) -> None:
    """Skip the check when there is nothing to judge, or when all of it was skipped."""
    if not runs:
        need(Unavailable(f"this run did not include a {noun} of it"))
    if all(run.ending is Ending.SKIP for run in runs):
        need(Unavailable("; ".join(dict.fromkeys(run.message for run in runs))))


def _ended(kernel: KernelFacts, ending: Ending, word: str) -> Iterator[Finding]:
    _need_runs(kernel.runs, "case")
    ended = [run for run in kernel.runs if run.ending is ending]
    if ended:
        yield Finding(_count(ended, kernel.runs, word), _messages_of(ended), _again(kernel))


def _count(some: Sequence[Run], of: Sequence[Run], word: str) -> str:
    """Such as ``2 of 12 cases wrong: plain, strided``."""
    names = summarised([run.case for run in some], MOST_SHOWN)
    noun = "case" if all(isinstance(run, CaseRun) for run in of) else "run"
    return f"{len(some)} of {len(of)} {noun}s {word}: {names}"


def _messages_of(runs: Sequence[Run]) -> tuple[Evidence, ...]:
    return tuple(
        item
        for run in runs[:MOST_SHOWN]
        for item in (Evidence(run.case, run.message or str(run.ending)), *as_evidence(run.notes))
    )


def _again(kernel: KernelFacts) -> Fix | None:
    return Fix("Repeat it alone, with the same inputs:", (kernel.replay,)) if kernel.replay else None


def _rates(speed: SpeedRun) -> Iterator[Evidence]:
    if speed.time and speed.bytes:
        yield Evidence("memory", f"{speed.bytes / speed.time / 1e6:.2f} TB/s", f"{speed.bytes:,} bytes")
    if speed.time and speed.flops:
        yield Evidence("matrix units", f"{speed.flops / speed.time / 1e6:.0f} TFLOP/s", f"{speed.flops:,} operations")
    yield from as_evidence(speed.notes)
