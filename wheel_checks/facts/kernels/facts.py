"""The facts about a run of the kernels that rules judge: the suite's document, and how the run ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any

from wheel_checks.decode import Filled, Key, Made
from wheel_checks.facts.kernels.gpus import Calibration, Gpu, Reading
from wheel_checks.fixes.commands import Command, NoCommand, Step, decoded

RUN, COMPILE, MUTANTS = "run", "compile", "mutants"
CUDA, INTERPRET = "cuda", "interpret"
SUITE = "suite"  # the name of a probe that is about the suite itself


class Ending(StrEnum):
    """How a probe, a case, a timed run, a compilation or a mutant ended, in the words of the suite."""

    PASS = "pass"  # noqa: S105  # a verdict, not a password
    SKIP = "skip"
    ERROR = "error"  # the check could not be made
    FAIL = "fail"
    WRONG = "wrong"
    SLOW = "slow"
    REFUSED = "refused"  # by the compiler, or at the launch
    CRASH = "crash"
    HANG = "hang"
    CAUGHT = "caught"
    MISSED = "missed"
    NOT_RUN_ACROSS = "not run across GPUs"  # a kernel for several GPUs that was run on each alone


@dataclass(frozen=True, slots=True)
class Note:
    """One observed value, as the suite shows it: its label, and its text in one or more lines."""

    label: str
    value: str


def _notes(evidence: Mapping[str, Any]) -> tuple[Note, ...]:
    return tuple(Note(name, _phrase(value)) for name, value in evidence.items() if value not in (None, ""))


def _phrase(value: object, depth: int = 8) -> str:
    """A value for people: the items of a list or an object after one another, down to a depth that people read."""
    if not depth or not isinstance(value, Mapping | list):
        return str(value) if depth else "..."
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_phrase(item, depth - 1)}" for name, item in value.items())
    return ", ".join(_phrase(item, depth - 1) for item in value)


def _advice(items: tuple[Any, ...]) -> tuple[Step | str, ...]:
    """Sentences as they are; everything else must be a step."""
    return tuple(item if isinstance(item, str) else decoded(item) for item in items)


Outcome = Annotated[Ending, Key("outcome")]
Fixes = Annotated[tuple[Step | str, ...], Key("fix"), Made(_advice, of=tuple[Any, ...])]
Notes = Annotated[tuple[Note, ...], Key("evidence"), Made(_notes, of=Mapping[str, Any])]


def _facts_of_probe(evidence: Mapping[str, Any]) -> tuple[Note, ...]:
    return _notes({name: value for name, value in evidence.items() if name != "severity"})


def _is_mild(evidence: Mapping[str, Any]) -> bool:
    return evidence.get("severity") in ("note", "warning")


@dataclass(frozen=True, slots=True)
class Probe:
    """One check of the installation, or of the GPU with the UUID ``gpu``.

    ``fixes`` are steps or sentences; ``mild``: no kernel depends on it. ``rates``: bytes a second, by measurement.
    """

    name: Filled
    ending: Outcome
    message: str = ""
    notes: Annotated[tuple[Note, ...], Key("evidence"), Made(_facts_of_probe, of=Mapping[str, Any])] = ()
    fixes: Fixes = ()
    gpu: str = ""
    rates: Mapping[str, float] = field(default_factory=dict)
    mild: Annotated[bool, Key("evidence"), Made(_is_mild, of=Mapping[str, Any])] = False


@dataclass(frozen=True, slots=True)
class Measured:
    """How far one output of a case is from the reference. ``message`` is "" when that is near enough."""

    output: str = ""
    error: float | None = None
    tolerance: float | None = None
    message: str = ""


def _outputs(by_name: Mapping[str, Measured]) -> tuple[Measured, ...]:
    return tuple(replace(measured, output=name) for name, measured in by_name.items())


@dataclass(frozen=True, slots=True)
class CaseRun:
    """One case of a kernel, run (on the GPU with the UUID ``gpu``) and compared with the reference."""

    kernel: Filled
    case: Filled
    ending: Outcome
    message: str = ""
    outputs: Annotated[tuple[Measured, ...], Made(_outputs, of=Mapping[str, Measured])] = ()
    notes: Notes = ()
    gpu: str = ""


@dataclass(frozen=True, slots=True)
class SpeedRun:
    """One timed run. Times are microseconds, None if not measured; ``ratio`` is that to floor or peer.

    ``floor`` is the least time that the calibrated GPU needs for ``bytes`` and ``flops``; ``versus`` names the
    implementation whose time is ``peer``, "" when the run is compared with the floor. ``bar`` bounds the ratio, and the
    suite allows a little more for noise: ``bar_met`` is the result without that. ``held_down_by`` are the GPU's reasons
    for lower clocks meanwhile.
    """

    kernel: Filled
    case: Filled
    ending: Outcome
    message: str = ""
    time: Annotated[float | None, Key("microseconds")] = None
    floor: Annotated[float | None, Key("floor_microseconds")] = None
    peer: Annotated[float | None, Key("peer_microseconds")] = None
    versus: str = ""
    ratio: float | None = None
    bar: float | None = None
    bar_met: bool = True
    bytes: int = 0
    flops: int = 0
    held_down_by: tuple[str, ...] = ()
    notes: Notes = ()
    gpu: str = ""


@dataclass(frozen=True, slots=True)
class MutantRun:
    """A deliberate fault in a kernel, and whether a case caught it. ``automatic``: made from the kernel's source."""

    kernel: Filled
    mutant: Filled
    ending: Outcome
    message: str = ""
    caught_by: str = ""
    automatic: bool = False


class FaultKind(StrEnum):
    """Faults of a kernel that was compiled for a GPU that is not present."""

    REFUSED = "refused"
    UNSUPPORTED = "unsupported"
    UNKNOWN_TO_PTXAS = "unknown_to_ptxas"
    SPILLS = "spills"
    MATRIX_INSTRUCTIONS = "matrix_instructions"
    SHARED_MEMORY = "shared_memory"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a compilation. ``fixes`` are steps or sentences."""

    kind: Annotated[FaultKind, Key("fault")]
    message: str = ""
    fixes: Fixes = ()


@dataclass(frozen=True, slots=True)
class Compilation:
    """One device function compiled for one target, or a kernel that could not be.

    Sizes are bytes, None if the machine code could not be read; ``instructions`` are those of tensor cores, ``sha256``
    is the machine code's. ``case`` and ``function`` are "" when the compiler did not get that far.
    """

    kernel: Filled
    target: Filled
    ending: Outcome
    message: str = ""
    case: str = ""
    function: str = ""
    faults: tuple[Fault, ...] = ()
    registers: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None
    instructions: tuple[str, ...] = ()
    sha256: str = ""
    notes: Notes = ()

    @property
    def made(self) -> bool:
        """Whether there is machine code, sound or not."""
        refusals = {FaultKind.REFUSED, FaultKind.UNSUPPORTED, FaultKind.UNKNOWN_TO_PTXAS}
        return bool(self.function) and refusals.isdisjoint(fault.kind for fault in self.faults)

    @property
    def label(self) -> str:
        """Such as ``scaled_mm / prefill: _scaled_mm``."""
        about = f"{self.kernel} / {self.case}" if self.case else self.kernel
        return f"{about}: {self.function}" if self.function else about


def _version(found: Mapping[str, Any]) -> str:
    version = found.get("version")
    return "" if version is None else str(version)


Version = Annotated[str, Made(_version, of=Mapping[str, Any])]


@dataclass(frozen=True, slots=True)
class SmokeEnvironment:
    """The interpreter that ran the suite and the versions it found; "" if missing."""

    executable: str = ""
    python: str = ""
    machine: str = ""
    torch: Version = ""
    triton: Version = ""
    driver: Version = ""
    gpus: tuple[Gpu, ...] = ()


@dataclass(frozen=True, slots=True)
class NotRun:
    """Cases of a kernel that a level omits (without any: all of the kernel), and the level that runs them."""

    kernel: Filled
    level: str = ""
    cases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OwnKernel:
    """A kernel of the user; ``triton`` is False if it is not written in Triton."""

    name: Filled
    triton: bool = True


@dataclass(frozen=True, slots=True)
class Family:
    """The user's kernels in one file, module or entry point; ``label`` is its name."""

    source: Filled
    label: str = ""
    family: str = ""
    kernels: tuple[OwnKernel, ...] = ()


@dataclass(frozen=True, slots=True)
class SmokeDocument:
    """The report of the suite, ``kernels_smoke/1``."""

    mode: Filled  # such as run or compile
    verdict: Filled  # of the suite
    device: str = ""  # name of the GPU
    level: str = ""  # of the suite: quick, full or deep
    seed: int = 0  # of random inputs
    started: str = ""  # UTC, ISO 8601
    seconds: float = 0.0  # of the whole run
    message: str = ""  # of the suite, with the verdict
    partial: str = ""  # why the run did not end; "" for a whole run
    environment: SmokeEnvironment = SmokeEnvironment()  # versions
    calibration: Calibration | None = None  # measured rates of the GPU
    readings: tuple[Reading, ...] = ()  # of each GPU
    probes: tuple[Probe, ...] = ()  # of the suite
    cases: tuple[CaseRun, ...] = ()  # correctness
    speeds: tuple[SpeedRun, ...] = ()  # timed runs
    compiled: tuple[Compilation, ...] = ()  # ahead of time
    left_out: tuple[NotRun, ...] = ()  # cases that did not run
    mutants: tuple[MutantRun, ...] = ()  # broken kernels that cases must notice
    families: tuple[Family, ...] = ()  # of kernels

    @property
    def runs(self) -> tuple[CaseRun | SpeedRun, ...]:
        """Every case and every timed run."""
        return (*self.cases, *self.speeds)

    def label(self, uuid: str) -> str:
        """``GPU 1 (NVIDIA H200, GPU-...)`` in a run on several GPUs; "" in a run on one, which needs no name."""
        gpus = self.environment.gpus
        return next((gpu.label for gpu in gpus if gpu.uuid == uuid), "") if len(gpus) > 1 else ""

    @property
    def endings(self) -> frozenset[Ending]:
        """How anything ended that the document describes."""
        records: tuple[Probe | CaseRun | SpeedRun | Compilation | MutantRun, ...]
        records = (*self.probes, *self.runs, *self.compiled, *self.mutants)
        return frozenset(record.ending for record in records)


@dataclass(frozen=True, slots=True)
class NoDocument:
    """The suite ended without a report: how, the last lines that it wrote, and advice."""

    what: str
    last_words: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class InstallationFacts:
    """The installation under the interpreter ``python``, as the suite found it, and the last words of a partial run."""

    python: str
    outcome: SmokeDocument | NoDocument
    last_words: str = ""

    @property
    def probes(self) -> tuple[Probe, ...]:
        """The probes; none when there is no report."""
        return () if isinstance(self.outcome, NoDocument) else self.outcome.probes

    def label(self, uuid: str) -> str:
        """The GPU with this UUID, in a run on several."""
        return "" if isinstance(self.outcome, NoDocument) else self.outcome.label(uuid)


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """One kernel on one GPU: its cases, timed runs and mutants, and the command that repeats them."""

    name: str
    cases: tuple[CaseRun, ...]
    speeds: tuple[SpeedRun, ...] = ()
    replay: Command | NoCommand | None = None
    gpu: Gpu | None = None
    mutants: tuple[MutantRun, ...] = ()

    @property
    def label(self) -> str:
        """``scaled_mm``, or ``scaled_mm on GPU 1``."""
        return self.name if self.gpu is None else f"{self.name} on GPU {self.gpu.index}"

    @property
    def runs(self) -> tuple[CaseRun | SpeedRun, ...]:
        """All that was run of it."""
        return (*self.cases, *self.speeds)

    @property
    def score(self) -> tuple[int, int]:
        """How many mutants were caught, and of how many that could be run."""
        endings = [mutant.ending for mutant in self.mutants]
        return endings.count(Ending.CAUGHT), endings.count(Ending.CAUGHT) + endings.count(Ending.MISSED)

    @property
    def worst_speed(self) -> SpeedRun | None:
        """The timed run that is nearest to its bar, or furthest above it; None when nothing was timed."""
        timed = [(speed.ratio / speed.bar, speed) for speed in self.speeds if speed.ratio and speed.bar]
        return max(timed, key=lambda pair: pair[0])[1] if timed else None


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """All kernels, compiled for one target (``sm_90``, ``gfx942``), and the products that this is."""

    target: str
    compiled: tuple[Compilation, ...]
    products: tuple[str, ...] = ()

    @property
    def kernels(self) -> tuple[str, ...]:
        """The kernels that were compiled, or were to be."""
        return tuple(dict.fromkeys(compilation.kernel for compilation in self.compiled))

    def of(self, kernel: str) -> tuple[Compilation, ...]:
        """The compilations of one kernel."""
        return tuple(compilation for compilation in self.compiled if compilation.kernel == kernel)

    def faults(self, kind: FaultKind) -> Iterator[tuple[Compilation, Fault]]:
        """Every fault of this kind, with the compilation that has it."""
        return ((c, fault) for c in self.compiled for fault in c.faults if fault.kind is kind)

    @property
    def impossible(self) -> tuple[str, ...]:
        """The kernels that this target cannot run, fully or partly, because it lacks the required features."""
        return tuple(dict.fromkeys(compilation.kernel for compilation, _ in self.faults(FaultKind.UNSUPPORTED)))

    @property
    def sound(self) -> tuple[str, ...]:
        """The kernels that compiled completely and without faults."""
        return tuple(
            kernel
            for kernel in self.kernels
            if kernel not in self.impossible and all(c.ending in (Ending.PASS, Ending.SKIP) for c in self.of(kernel))
        )
