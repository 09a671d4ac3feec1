"""What the pytest plug-in asks: is the host as expected, do the kernels work, which GPUs does torch see?"""

import functools
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wheel_checks.errors import UsageError, WheelproofError
from wheel_checks.facts.expectations import AcceleratorExpectation, parse_expectation, parse_size
from wheel_checks.facts.gpu.expected import CPU, HostExpectation, parse_host_expectation
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.model import Outcome, Report, Unavailable, Verdict
from wheel_checks.phrases import plural

FAILED, NOT_PROVEN, WRONG_USAGE = 1, 3, 4  # exit codes of pytest: 4 is its own for wrong usage
_BETWEEN = re.compile(r",(?!\s*[<>=!~])")  # "cuda>=12.8,<14" is one part


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a session is not to be run: what is wrong with the fix, for people, and the exit code."""

    text: str
    status: int


@dataclass(frozen=True, slots=True)
class Expected:
    """What ``--gpu-expect`` says: what torch is built for (None: not said), and what the host has."""

    build: AcceleratorExpectation | None
    host: HostExpectation


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as torch sees it: its number, name, capability (90 for sm_90; 0 for other makers') and bytes of memory."""

    index: int
    name: str
    sm: int
    memory: int

    def __str__(self) -> str:
        capability = f"sm_{self.sm}, " if self.sm else ""
        return f"{self.name} ({capability}{self.memory / 1e9:.0f} GB)"


@dataclass(frozen=True, slots=True)
class Accelerator:
    """What torch computes with: ``name`` is cuda, rocm, xpu or cpu, ``version`` that of the toolkit it is built for.

    ``device`` is what torch calls it ("cuda" for ROCm, too). ``absence`` says why there are no ``gpus``.
    """

    name: str
    version: str
    device: str
    gpus: tuple[Gpu, ...] = ()
    absence: str = ""


@dataclass(frozen=True, slots=True)
class Needs:
    """What the marker of a test asks for; ``memory`` is in bytes."""

    count: int = 1
    min_sm: int = 0
    memory: int = 0

    def __str__(self) -> str:
        parts = [f"sm_{self.min_sm} or newer"] if self.min_sm else []
        parts += [f"{self.memory / 1e9:g} GB"] if self.memory else []
        return plural(self.count, "GPU") + (f" with {' and '.join(parts)}" if parts else "")


def parse_expected(text: str) -> Expected:
    """The parts of ``--gpu-expect``. Raises UsageError for one that means nothing, or contradicts another."""
    build: AcceleratorExpectation | None = None
    host: HostExpectation | None = None
    for part in filter(None, (part.strip() for part in _BETWEEN.split(text))):
        if re.fullmatch(r"(cuda|rocm|xpu|cpu)\b.*", part, re.IGNORECASE):
            if build is not None:
                raise UsageError(f"--gpu-expect {text} names two torch builds", expected="one of them")
            build = parse_expectation(part)
        elif host is None:
            host = parse_host_expectation(part)
        else:
            raise UsageError(f"--gpu-expect {text} names two kinds of GPUs", expected='one, such as "4 x GB200"')
    if build is None and host is None:
        raise UsageError("--gpu-expect is empty", expected='a form such as "cuda==13.0,GB200"')
    if host is None and build is not None:
        host = HostExpectation(build.accelerator)
    assert host is not None  # noqa: S101  # for mypy
    if build is not None and (build.accelerator == CPU) != (host.accelerator == CPU):
        raise UsageError(f"--gpu-expect {text} requires both a CPU and a GPU", expected="one of them")
    return Expected(build, host)


def obstacle_to(expected: str, level: str) -> Obstacle | None:
    """Why the session must not start: the host is not as ``expected``, or a kernel of the smoke ``level`` fails."""
    try:
        found = _of_host(parse_expected(expected)) if expected else None
        return found or (_of_kernels(level) if level else None)
    except UsageError as error:
        return Obstacle(f"wheelproof: {error}", WRONG_USAGE)
    except WheelproofError as error:
        return Obstacle(f"wheelproof: {error}", NOT_PROVEN)


def _of_host(expected: Expected) -> Obstacle | None:
    from wheel_checks.interrupts import left_alone
    from wheelproof.doctor.answer import answer_host
    from wheelproof.doctor.reading import Request, read_host
    from wheelproof.doctor.report import examine

    with left_alone():
        found = examine(read_host(Request(sys.executable), os.environ), expected.host)
    wrong = _wrong_build(expected.build, found.facts)
    answer = answer_host(found.facts, found.diagnosis, found.results, expected.host)
    root = found.diagnosis.root
    if not wrong and answer.verdict is Verdict.PASS:
        return None
    lines = [
        f"wheelproof: {said}" for said in (wrong, answer.line if answer.verdict is not Verdict.PASS else "") if said
    ]
    if root is not None and root.fix is not None:
        lines += [f"fix: {root.fix.summary}", *(f"  {line}" for line in root.fix.lines)]
    lines.append(f"more: wheelproof doctor --python {sys.executable}")
    return Obstacle("\n".join(lines), FAILED if wrong or answer.verdict is Verdict.FAIL else NOT_PROVEN)


def _wrong_build(wanted: AcceleratorExpectation | None, facts: HostFacts) -> str:
    """How the installed torch differs from the build that is expected; "" when it does not."""
    torch = None if isinstance(facts.installed, Unavailable) else facts.installed.torch
    if wanted is None or torch is None:  # that torch is missing is what the diagnosis says
        return ""
    builds = (("rocm", torch.hip), ("xpu", torch.xpu), ("cuda", torch.cuda))
    name, version = next(((name, version) for name, version in builds if version), (CPU, ""))
    if name == wanted.accelerator and wanted.accepts_version(version):
        return ""
    return f"torch {torch.version} is a build for {' '.join(filter(None, (name, version)))}; expected {wanted}"


def _of_kernels(level: str) -> Obstacle | None:
    from wheelproof.reporting import EVERY_RULE
    from wheelproof.smoke.report import smoke
    from wheelproof.smoke.request import SmokeRequest

    request = SmokeRequest(sys.executable, level=level)
    report, _ = smoke(request, deadline=request.deadline, selection=EVERY_RULE, quiet=True)
    if report.verdict is Verdict.PASS:
        return None
    lines = [f"wheelproof: the kernels of `wheelproof smoke --level {level}` did not pass", *_worst(report)]
    return Obstacle("\n".join(lines), FAILED if report.verdict is Verdict.FAIL else NOT_PROVEN)


def _worst(report: Report) -> list[str]:
    every = [(subject, result) for subject in report.subjects for result in subject.results]
    wrong = [(subject, result) for subject, result in every if result.outcome in {Outcome.FAIL, Outcome.ERROR}]
    bad = [f"  {result.rule} {subject.id}: {result.message}" for subject, result in wrong]
    more = [f"  and {len(bad) - 5} more"] if len(bad) > 5 else []
    return [*bad[:5], *more]


def needs_of(arguments: Sequence[Any], options: Mapping[str, Any]) -> Needs:
    """What a marker asks for. Raises ValueError for what it cannot mean."""
    unknown = sorted(set(options) - {"count", "min_sm", "memory"})
    if arguments or unknown:
        named = unknown[0] if unknown else repr(arguments[0])
        raise ValueError(f"the marker gpu has unknown arguments {named}; expected count, min_sm or memory, by name")
    count, min_sm, memory = options.get("count", 1), options.get("min_sm", 0), options.get("memory", 0)
    if not all(isinstance(number, int) and number >= 0 for number in (count, min_sm)) or not count:
        raise ValueError(f"the marker gpu has count={count!r}, min_sm={min_sm!r}; expected numbers such as 2 and 90")
    try:
        size = memory if isinstance(memory, int) else parse_size(str(memory))
    except UsageError as error:
        raise ValueError(f"the marker gpu has memory={memory!r}: {error}") from None
    return Needs(count, min_sm, size)


def why_not(needs: Needs) -> str:
    """Why the GPUs that are here do not do; "" when they do."""
    here = accelerator_here()
    if here.absence:
        return f"needs {needs}: {here.absence}"
    enough = [gpu for gpu in here.gpus if gpu.sm >= needs.min_sm and gpu.memory >= needs.memory]
    return "" if len(enough) >= needs.count else f"needs {needs}; here is {', '.join(map(str, here.gpus)) or 'no GPU'}"


@functools.cache
def accelerator_here() -> Accelerator:
    """What the torch of this process computes with; importing it fails as in the test itself."""
    import torch

    version = torch.version
    for name, built_for, device in (
        ("rocm", getattr(version, "hip", None), "cuda"),
        ("xpu", getattr(version, "xpu", None), "xpu"),
        ("cuda", version.cuda, "cuda"),
    ):
        if built_for:
            module = getattr(torch, device)
            if not module.is_available():
                return Accelerator(name, str(built_for), device, (), f"torch {torch.__version__} sees no GPU")
            gpus = tuple(_gpu(module, number, name) for number in range(module.device_count()))
            return Accelerator(name, str(built_for), device, gpus)
    return Accelerator(CPU, "", CPU, (), f"torch {torch.__version__} is a CPU build")


def _gpu(module: Any, number: int, accelerator: str) -> Gpu:
    seen = module.get_device_properties(number)
    sm = 10 * seen.major + seen.minor if accelerator == "cuda" else 0
    return Gpu(number, str(seen.name), sm, int(seen.total_memory))
