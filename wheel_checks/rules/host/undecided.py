"""What the doctor could not decide, and what comes before every other question: is there a torch, and a GPU?"""

from collections.abc import Iterator
from dataclasses import replace

from wheel_checks.commands import Command
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.gpu.expected import CPU, HostExpectation, counted, mismatch
from wheel_checks.facts.host.advice import reinstall_torch
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.probes import TorchProbe
from wheel_checks.facts.host.seen import gpus_of
from wheel_checks.facts.host.unexplained import UnexplainedSymptom
from wheel_checks.model import Evidence, Finding, Fix, Unavailable, need
from wheel_checks.registry import rule
from wheel_checks.rules.host.cause import CAUSES, KIND, Cause, Layer

TORCH_MISSING, GPUS_EXPECTED, CPU_COMPUTES = "DOC002", "DOC003", "DOC004"
_NOTHING_EXPECTED: Unavailable | HostExpectation = Unavailable("no GPUs were expected (--expect)")
_LOOK_FOR_IT = Fix(
    "Compare with what the driver lists: a GPU that it does not list is missing, or was not given to this container.",
    (Command(("nvidia-smi", "-L")),),
)

REPORT = Fix(
    "save the facts, from which names, tokens and identifiers are removed, and report them together with this message",
    (Command(("wheelproof", "doctor", "--save-facts", "facts.json")),),
)


@rule(
    "DOC000",
    "every symptom has a known cause",
    why="A wrong cause is worse than an undecided diagnosis. A symptom that no finding explains makes the diagnosis "
    "undecided (exit code 3), with the raw facts that were observed.",
    example="cuInit returned 719, and no finding explains it",
    fix="Report the facts (`wheelproof doctor --save-facts FILE`): they become a test, and the cause a rule.",
    kind="symptom",
)
def unexplained_symptom(facts: UnexplainedSymptom, _expectations: Expectations) -> Iterator[Finding]:
    """The symptom itself; this rule is asked only when nothing explains it."""
    evidence = tuple(Evidence(label, value) for label, value in facts.observed)
    yield Finding(f"{facts.phrase}; no known cause explains it", evidence, REPORT, undecided=True)


@rule(
    "DOC001",
    "every requested fact was read",
    why="Facts that were not read cannot be judged: a reader that timed out or crashed leaves the diagnosis undecided "
    "(exit code 3) unless a cause was found without it.",
    example="the section cuda was not read: the timeout (--timeout) was reached",
    fix="Increase the timeout (--timeout SECONDS); a reader that crashed is a bug in wheelproof, please report it.",
    kind=KIND,
)
def unread_section(facts: HostFacts, _expectations: Expectations) -> Iterator[Finding]:
    """One finding for each section."""
    for section, reason in facts.unread.items():
        yield Finding(f"the section {section} was not read: {reason}", undecided=True)


CAUSES[TORCH_MISSING] = Cause("", Layer.TRITON, ("torch:missing",))  # whatever else explains it is the better answer


@rule(
    TORCH_MISSING,
    "torch is installed",
    why="Many hosts have several environments, and the one that was examined may not be the intended one: the finding "
    "names the interpreter, and why it was chosen. A torch that can be imported but has no metadata (dist-info) is not "
    "installed for pip and uv: the next install puts another one in its place.",
    example="torch is not installed for /usr/bin/python3",
    fix="Select the intended interpreter (--python PATH), or install torch for this one.",
    kind=KIND,
)
def torch_missing(facts: HostFacts, _expectations: Expectations) -> Iterator[Finding]:
    """Nothing when torch is there, or when it is unknown what is installed."""
    installed, interpreter = need(facts.installed), need(facts.interpreter)
    probe, torch = facts.torch, installed.torch
    imported = isinstance(probe, TorchProbe) and probe.imported
    if torch is not None and (not imported or installed.named("torch") or installed.conda):
        return
    advised, where = reinstall_torch(facts), Evidence("site-packages", interpreter.purelib)
    if isinstance(probe, TorchProbe) and probe.imported:
        yield Finding(
            f"torch {probe.version} in {probe.path} has no metadata: for pip and uv it is not installed",
            (Evidence("interpreter", interpreter.path, interpreter.found), where),
            replace(advised, summary=f"Install it, so that it is not replaced silently. {advised.summary}"),
        )
        return
    yield Finding(
        f"torch is not installed for {interpreter.path}",
        (Evidence("interpreter", interpreter.path, interpreter.found), where),
        replace(
            advised,
            summary=f"If another interpreter is intended, select it with --python PATH. Otherwise: {advised.summary}",
        ),
    )


CAUSES[GPUS_EXPECTED] = Cause("", Layer.HARDWARE, (), certain=True)


@rule(
    GPUS_EXPECTED,
    "the host has the expected GPUs",
    why="A GPU that is missing from a node, or a node of another kind, causes no error by itself: work is only slower. "
    'Only the user knows what the host should have (`--expect gpu`, `--expect "4 x GB200"`).',
    example="expected: 2 x H200; found: NVIDIA H200",
    fix="Look for the missing GPU with nvidia-smi and in the kernel log; in a container or a job, request all GPUs.",
    kind=KIND,
)
def gpus_expected(facts: HostFacts, expectations: Expectations) -> Iterator[Finding]:
    """Undecided where nothing shows GPUs; nothing where a CPU is expected."""
    expected = expectations.host or need(_NOTHING_EXPECTED)
    if expected.accelerator == CPU:
        return
    gpus = gpus_of(facts)
    if isinstance(gpus, Unavailable):
        yield Finding(f"the GPUs of the host are unknown: {gpus.reason}", undecided=True)
    elif why := mismatch(expected, gpus):
        yield Finding(why, fix=_LOOK_FOR_IT)
    elif any(expected.accepts(gpu) is None for gpu in gpus):
        yield Finding(f"not proven that the GPUs are {expected}: {counted(gpus)}", undecided=True)


CAUSES[CPU_COMPUTES] = Cause("", Layer.CODE, ())


@rule(
    CPU_COMPUTES,
    "torch computes correctly on the CPU",
    why="Without a GPU the work is done on the CPU. A wrong product points to faulty memory, or to a library for "
    "another CPU.",
    example="the product of two matrices is wrong by 2",
    fix="Reinstall torch; if that does not help, test the memory of the host.",
    kind=KIND,
)
def computes_on_cpu(facts: HostFacts, _expectations: Expectations) -> Iterator[Finding]:
    """Nothing where it was not tried, which leaves the answer open."""
    probe = need(facts.torch)
    if probe.computes_on_cpu:
        yield Finding(f"torch {probe.version} does not compute correctly on the CPU: {probe.computes_on_cpu}")
