"""Does the installation work? KRN0xx judge the run of the suite itself, KRN1xx what it probed."""

from collections.abc import Iterator

from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.kernels.facts import SUITE, Ending, InstallationFacts, NoDocument
from wheel_checks.model import Evidence, Finding, Fix, Severity, Unavailable, need
from wheel_checks.registry import rules_of
from wheel_checks.rules.kernels.findings import as_evidence, as_fix, evidence_lines

KIND = "installation"
rule = rules_of(KIND)
PASSED = "pass"

TORCH = ("torch",)
TRITON = ("triton",)
DRIVER = ("driver", "cuda_init")
MEMORY = ("allocation", "copies", "memory_pattern")
STREAMS = ("streams_and_events", "cuda_graph")
CUBLAS = ("cublas",)
CUDNN = ("cudnn",)
COMPILER = ("c_compiler", "triton_launcher")
CACHE = ("jit_cache",)
PTXAS = ("ptxas",)
NCCL = ("nccl", "peers")
GPUS = ("gpus", "gpu")
TORCH_COMPILE = ("torch_compile",)
INTERPRETER = ("interpreter",)
FILES = "kernels "  # what the names of these probes begin with: one for each file
_WITHOUT_FAULT = {Ending.PASS, Ending.SKIP, Ending.CAUGHT}
SOAK = ("soak",)  # KRN505 judges what was measured
_OF_THE_GPU = (*SOAK, *DRIVER, *GPUS, *MEMORY, *STREAMS, *CUBLAS, *CUDNN, *NCCL)
_OF_THE_COMPILERS = (*TRITON, *COMPILER, *CACHE, *PTXAS, *TORCH_COMPILE, *INTERPRETER)
KNOWN = frozenset((SUITE, *TORCH, *_OF_THE_GPU, *_OF_THE_COMPILERS))


@rule(
    "KRN001",
    "the suite completed",
    why="A suite that crashed, hung or produced no report has proven nothing: the run ends with exit code 3 (could not "
    "check), never as a pass.",
    example="a process killed because the host ran out of memory",
    fix="Read the end of the process's output, which the finding shows.",
)
def complete(installation: InstallationFacts, _: Expectations) -> Iterator[Finding]:
    """The suite wrote its whole report, its processes ended well, and its verdict follows from what it reports."""
    outcome = installation.outcome
    if isinstance(outcome, NoDocument):
        evidence = (Evidence("interpreter", installation.python), *evidence_lines("last words", outcome.last_words))
        yield Finding(outcome.what, evidence, Fix(outcome.hint) if outcome.hint else None, undecided=True)
        return
    yield from _of(installation, (SUITE,))
    if outcome.partial:
        evidence = evidence_lines("last words", installation.last_words)
        yield Finding(f"the report is partial: {outcome.partial}", evidence, undecided=True)
    elif outcome.verdict != PASSED and outcome.endings <= _WITHOUT_FAULT:
        told = outcome.message or f"its verdict is {outcome.verdict}"
        yield Finding(f"the suite could not decide: {told}", undecided=True)


def _probed(
    rule_id: str,
    title: str,
    names: tuple[str, ...],
    severity: Severity = Severity.ERROR,
    *,
    why: str,
    example: str,
    fix: str,
) -> None:
    """Add the rule that the probes with these names pass."""

    @rule(rule_id, title, severity, why=why, example=example, fix=fix)
    def probed(installation: InstallationFacts, _: Expectations) -> Iterator[Finding]:
        """The probes pass, or were skipped."""
        return _judge(installation, names)


_probed(
    "KRN101",
    "torch is installed, and built for the GPU",
    TORCH,
    why="A CPU build of torch installs and imports like any other, but finds no GPU. A CUDA build without code for "
    "this GPU fails at its first kernel.",
    example="`pip install torch==2.10.0` on a Grace machine: 2.10.0+cpu next to a GH200",
    fix="Install the build named in the finding, into this interpreter.",
)
_probed(
    "KRN102",
    "Triton is installed in the release that torch requires",
    TRITON,
    why="Triton compiles kernels when they are first used. torch.compile works with the release that its torch "
    "requires, and fails unpredictably with another.",
    example="torch 2.11.0, which requires triton 3.6.0, next to triton 3.3.0 of an older install",
    fix="Install the release of Triton that torch requires, which the finding names.",
)
_probed(
    "KRN103",
    "the driver responds, and CUDA initializes",
    DRIVER,
    why="A missing driver, a driver that is too old, a container without a GPU, the stub library of a toolkit and a "
    "GPU that is lost all look the same from Python: `torch.cuda.is_available()` returns False.",
    example="CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803) after a driver update without a reboot",
    fix="Follow the finding, which names the cause: it is identified by the driver's own error code.",
)
_probed(
    "KRN104",
    "memory can be allocated, and copied in both directions",
    MEMORY,
    why="All other checks depend on this. A checksum that differs after a copy means faulty hardware or a broken IOMMU "
    "setup, and makes results silently wrong.",
    example="pinned memory arrives at the GPU with different bytes",
    fix="If memory is insufficient, check which process holds it (`nvidia-smi`). If bytes differ, test the host's "
    "hardware.",
)
_probed(
    "KRN105",
    "streams, events and CUDA graphs work",
    STREAMS,
    why="Inference engines overlap work on streams and replay CUDA graphs. If events do not order streams, the result "
    "is a race that no other test shows.",
    example="a captured graph replays the inputs of its capture",
    fix="Update the driver to one that supports this CUDA.",
)
_probed(
    "KRN106",
    "cuBLAS works, with correct results",
    CUBLAS,
    why="A model spends nearly all its time in matrix products. A cuBLAS for another CUDA than torch's, found through "
    "LD_LIBRARY_PATH, fails to initialize or computes wrong results.",
    example="CUBLAS_STATUS_NOT_INITIALIZED because a cuBLAS of CUDA 12 precedes that of CUDA 13",
    fix="Remove other CUDA folders from LD_LIBRARY_PATH; `wheelproof verify --installed` shows what is loaded.",
)
_probed(
    "KRN107",
    "cuDNN works, with correct results",
    CUDNN,
    why="torch loads cuDNN when it is first needed, so that a missing or mismatched one fails in the middle of a run.",
    example="CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH, because LD_LIBRARY_PATH has another cuDNN",
    fix="Install the nvidia-cudnn package that torch requires, and keep other copies out of LD_LIBRARY_PATH.",
)
_probed(
    "KRN108",
    "Triton can compile its launcher",
    COMPILER,
    why="Some releases of Triton compile a small C module at the first launch: without a C compiler and Python.h every "
    "kernel fails, which in slim images shows only then.",
    example="a python:3.12-slim image, which has no gcc",
    fix="Install a C compiler and the headers of this Python.",
)
_probed(
    "KRN109",
    "the cache of compiled kernels is writable",
    CACHE,
    why="Without a writable cache every process compiles every kernel again, or fails, for example in containers with "
    "a read-only home folder, or without one.",
    example="HOME=/nonexistent in a service's unit",
    fix="Set TRITON_CACHE_DIR to a writable folder.",
)
_probed(
    "KRN110",
    "ptxas runs, and supports the GPU",
    PTXAS,
    why="Triton passes its code to the ptxas that it includes. A ptxas older than the GPU rejects all of it.",
    example="triton 3.6.0 on a GPU of compute capability 12.1",
    fix="Install a newer Triton, or set TRITON_PTXAS_PATH to a newer ptxas.",
)
_probed(
    "KRN111",
    "GPUs can communicate through NCCL",
    NCCL,
    why="Training and tensor parallelism start with an all-reduce; if that hangs, the job hangs without a message.",
    example="a container with 64 MB of /dev/shm",
    fix="Run with NCCL_DEBUG=INFO; give containers --ipc=host or a larger /dev/shm.",
)
_probed(
    "KRN112",
    "torch.compile works",
    TORCH_COMPILE,
    Severity.WARNING,
    why="Many programs run without torch.compile, so this is a warning. In addition to Triton it needs a C++ compiler, "
    "and the Triton that torch requires.",
    example="InvalidCxxCompiler in an image without g++",
    fix="Install g++ and the headers of this Python, and the Triton that torch requires.",
)
_probed(
    "KRN113",
    "Triton's interpreter works",
    INTERPRETER,
    why="The interpreter runs kernels on the CPU, through NumPy. With a NumPy that is too new for this Triton it fails "
    "or computes wrong results, and then proves nothing about the kernels.",
    example="triton 3.6.0 with NumPy 2.4",
    fix="Install the NumPy version that the finding names.",
)
_probed(
    "KRN114",
    "every GPU can be tested",
    GPUS,
    why="A GPU that is lost, or in a mode that admits no process, is missing from the node's work. A run that passes "
    "on the others has not tested it.",
    example="`--gpus 0,7` on a node where CUDA lists seven GPUs; a GPU that NVML lists but CUDA does not",
    fix="Check what `nvidia-smi -L` lists and what the kernel log says about the GPU (Xid); reset the compute mode.",
)


@rule(
    "KRN115",
    "every file of kernels can be used",
    why="The kernels of a file that cannot be imported, or whose kernels have the names of others, have not been run: "
    "their results are unknown.",
    example="`--kernels smoke_kernels.py`, which imports a package that the interpreter of `--python` lacks",
    fix="Fix the file, or install what it imports into that interpreter.",
)
def files(installation: InstallationFacts, _: Expectations) -> Iterator[Finding]:
    """Every file, module and entry point of kernels was imported in time, and its names are its own."""
    return _judge(installation, tuple(probe.name for probe in installation.probes if probe.name.startswith(FILES)))


@rule(
    "KRN199",
    "every other probe of the suite passes",
    why="A probe without its own rule must not be ignored.",
    example="a probe that a later release of the suite has and this release does not know",
    fix="Follow the finding.",
)
def others(installation: InstallationFacts, _: Expectations) -> Iterator[Finding]:
    """Every probe without its own rule passes."""
    names = (probe.name for probe in installation.probes if not probe.name.startswith(FILES))
    return _judge(installation, tuple(name for name in names if name not in KNOWN))


def _judge(installation: InstallationFacts, names: tuple[str, ...]) -> Iterator[Finding]:
    """The findings of the probes with these names. The check is skipped if there isn't one, or all were skipped."""
    probes = [probe for probe in installation.probes if probe.name in names]
    if not probes:
        need(Unavailable("this run did not include the probe"))
    if all(probe.ending is Ending.SKIP for probe in probes):
        need(Unavailable("; ".join(dict.fromkeys(probe.message for probe in probes))))
    return _of(installation, names)


def _of(installation: InstallationFacts, names: tuple[str, ...]) -> Iterator[Finding]:
    for probe in installation.probes:
        if probe.name in names and probe.ending not in (Ending.PASS, Ending.SKIP):
            message = probe.message or f"{probe.name}: {probe.ending}"
            if where := installation.label(probe.gpu):
                message = f"{where}: {message}"
            evidence, fix = as_evidence(probe.notes), as_fix(probe.fixes)
            severity = Severity.WARNING if probe.mild else None
            yield Finding(message, evidence, fix, severity=severity, undecided=probe.ending is Ending.ERROR)
