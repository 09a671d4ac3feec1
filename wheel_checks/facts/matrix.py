"""Everything that the rules may know about one cell of a matrix: what was resolved, read, imported and compiled."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from wheel_checks.facts.accelerator.verdict import LABELS
from wheel_checks.facts.expectations import AcceleratorExpectation
from wheel_checks.facts.kernels.facts import SmokeDocument
from wheel_checks.formats.junit import SKIPPED, JUnitCase
from wheel_checks.model import Unavailable

_NOT_RESOLVED = Unavailable("the requirements were not resolved")
_NOT_READ = Unavailable("the wheel was not read")
_NOT_IMPORTED = Unavailable("torch was not imported")
_NOT_ASKED = Unavailable("the cell requests none, or did not reach it")
_ALONE = Unavailable("no other cell compiles the same kernels")

Function = tuple[str, str, str, str]
"""A device function as compiled for a target: target, kernel, case, name of the function."""


@dataclass(frozen=True, slots=True)
class Build:
    """What a torch build is: "cuda" and "13.0", "cpu" and "". ``version`` is torch's own, local part included."""

    accelerator: str
    accelerator_version: str = ""
    version: str = ""

    @property
    def label(self) -> str:
        """Such as ``CUDA 13.0 (2.11.0+cu130)``."""
        told = f"{LABELS.get(self.accelerator, self.accelerator)} {self.accelerator_version}".strip()
        return f"{told} ({self.version})" if self.version else told

    def meets(self, expected: AcceleratorExpectation) -> bool:
        """Whether it is what is expected; a version that is unknown meets no condition on it."""
        return self.accelerator == expected.accelerator and bool(expected.accepts_version(self.accelerator_version))


@dataclass(frozen=True, slots=True)
class ImportProof:
    """What torch said of itself when it was imported in the cell. ``gpu_code`` are labels as sm_100 and compute_120."""

    machine: str
    python: str
    build: Build
    gpu_code: tuple[str, ...] = ()
    triton: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a cell's way. ``started`` is UTC, ``seconds`` wall time.

    ``kept`` says that the result is that of an earlier run with the same inputs. ``failure`` says why the step was not
    carried out; a step that was carried out may still have found much to object. ``log`` is the path of its log,
    ``attempts`` is how often it was tried.
    """

    name: str
    started: str = ""
    seconds: float = 0.0
    kept: bool = False
    failure: Unavailable | None = None
    log: str = ""
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class MachineCode:
    """The sha256 of the machine code of each device function, and the Triton that made it, on which machine.

    A function that was compiled several times in one case has several. ``targets`` are those that Triton was asked to
    compile for, whether or not anything came of it.
    """

    machine: str
    triton: str
    digests: Mapping[Function, tuple[str, ...]]
    targets: frozenset[str]


@dataclass(frozen=True, slots=True)
class TestedWheel:
    """A wheel that a requirement of the cell names by its URL: the library under test, and not one of an index."""

    name: str
    version: str
    file: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Tried:
    """What was run in the cell for the library under test: modules that were imported, or its own command.

    ``error`` says why it failed, with the last lines of its output; "" when it did not.
    """

    what: tuple[str, ...]
    error: str = ""


@dataclass(frozen=True, slots=True)
class TestsRun:
    """A JUnit report of the command of a cell: ``file`` as the command calls it, ``path`` where it is kept.

    ``unnamed`` failures are counted there without a test that says so. ``fault`` says why it was not read, "" when it
    was.
    """

    __test__ = False  # for pytest: this is not a test

    file: str
    path: str = ""
    cases: tuple[JUnitCase, ...] = ()
    unnamed: int = 0
    fault: str = ""

    @property
    def failed(self) -> tuple[JUnitCase, ...]:
        """The tests that failed."""
        return tuple(case for case in self.cases if case.has_failed)

    @property
    def ran(self) -> int:
        """How many tests were not skipped."""
        return sum(case.outcome != SKIPPED for case in self.cases)


@dataclass(frozen=True, slots=True)
class CellFacts:
    """One cell of the matrix."""

    id: str  # as in the matrix
    platform: str  # x86_64 or aarch64
    python: str  # version, such as 3.12
    torch: str  # version that was resolved, else ``asked``
    wanted: AcceleratorExpectation  # the build of torch that is expected
    asked: str = ""  # what the matrix specifies (">=2.11")
    known: AcceleratorExpectation | None = None  # the build that torch is known to be instead
    reason: str = ""  # why that build is known
    source: str = "the matrix"  # name of the matrix
    targets: tuple[str, ...] = ()  # that kernels are compiled for (sm_100)
    steps: tuple[Step, ...] = ()  # of the pipeline, in order
    resolved: Mapping[str, str] | Unavailable = _NOT_RESOLVED  # versions by project
    tested: tuple[TestedWheel, ...] = ()  # wheels that the cell names itself
    wheel: Build | Unavailable = _NOT_READ  # what the wheel on the index shows
    imported: ImportProof | Unavailable = _NOT_IMPORTED  # what the import showed
    import_error: str = ""  # why there was no import
    smoke: Mapping[str, SmokeDocument] = field(default_factory=dict)  # a document for each kind of smoke test
    modules: Tried | Unavailable = _NOT_ASKED  # import of the modules under test
    command: Tried | Unavailable = _NOT_ASKED  # the test command of the cell
    junit: str = ""  # pattern of the reports of its command
    tests: tuple[TestsRun, ...] = ()  # content of these reports
    reference: str = ""  # cell of the other machine that compiles the same kernels; "" if the matrix has none
    reference_code: MachineCode | Unavailable = _ALONE  # machine code that it made

    @property
    def build(self) -> Build | Unavailable:
        """What torch is in this cell: by the import, else by the wheel."""
        return self.imported.build if isinstance(self.imported, ImportProof) else self.wheel

    @property
    def machine_code(self) -> MachineCode | Unavailable:
        """What the kernels were compiled to."""
        return machine_code(self.smoke.get("compile"))


def machine_code(document: SmokeDocument | None) -> MachineCode | Unavailable:
    """Machine code reported by ``smoke``."""
    if document is None:
        return Unavailable("no kernels were compiled")
    digests: dict[Function, tuple[str, ...]] = {}
    for compilation in document.compiled:
        if compilation.sha256:
            key = (compilation.target, compilation.kernel, compilation.case, compilation.function)
            digests[key] = tuple(sorted((*digests.get(key, ()), compilation.sha256)))
    if not digests:
        return Unavailable("the smoke test generated no machine code")
    targets = frozenset(compilation.target for compilation in document.compiled)
    return MachineCode(document.environment.machine, document.environment.triton, digests, targets)


@dataclass(frozen=True, slots=True)
class CodeComparison:
    """Machine code of two machines: the functions that are equal, that differ, and that only one of them has."""

    equal: tuple[Function, ...]
    different: tuple[Function, ...]
    here_only: tuple[Function, ...]
    there_only: tuple[Function, ...]

    @property
    def functions(self) -> int:
        """How many were compared."""
        return sum(map(len, (self.equal, self.different, self.here_only, self.there_only)))


def compare_code(here: MachineCode, there: MachineCode) -> CodeComparison:
    """Compare function by function, in order of target and kernel, what was compiled for the targets of both."""
    targets = here.targets & there.targets
    ours, theirs = ({f for f in code.digests if f[0] in targets} for code in (here, there))
    both = sorted(ours & theirs)
    return CodeComparison(
        tuple(f for f in both if here.digests[f] == there.digests[f]),
        tuple(f for f in both if here.digests[f] != there.digests[f]),
        tuple(sorted(ours - theirs)),
        tuple(sorted(theirs - ours)),
    )
