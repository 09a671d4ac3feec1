"""Does the wheel's GPU code run on the GPUs that were asked for?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from packaging.utils import canonicalize_name

from wheel_checks.errors import WheelproofError
from wheel_checks.expectations import Expectations
from wheel_checks.facts.accelerator import NONE
from wheel_checks.facts.gpu_code import COMMON, GpuCodeFacts, is_for_others, runs_how, share_of
from wheel_checks.facts.gpu_targets import Product, coverage, products, runs_on
from wheel_checks.facts.wheel import WheelFacts
from wheel_checks.formats.fatbin import GpuCode
from wheel_checks.model import Evidence, Finding, Fix, Location, Severity, Unavailable, need
from wheel_checks.registry import rule

RARE = 0.02
"""Below this share of its files that run, the main library is said to have hardly any code for a GPU."""

_DECLARED = "torch.cuda.get_arch_list()"


def _wanted(expectations: Expectations) -> tuple[Product, ...]:
    return expectations.gpus or need(Unavailable("no GPU was named", "--gpu GB200, H100, sm_100, ..."))


def _verdict(facts: GpuCodeFacts) -> tuple[str, GpuCode] | None:
    """Where and what the code is that the wheel is judged by. Raises WheelproofError when that is not known."""
    verdict = facts.verdict
    if isinstance(verdict, Unavailable):
        raise WheelproofError(verdict.reason, hint=verdict.hint)
    return verdict


def _others(facts: GpuCodeFacts) -> Iterator[tuple[str, GpuCode]]:
    """The libraries beside the main one that hold GPU code."""
    return (item for item in facts.known if item != facts.main)


def _named(gpus: Iterable[Product]) -> str:
    return ", ".join(map(str, gpus))


def _labels(code: GpuCode) -> str:
    return ", ".join((*code.sass, *code.ptx)) or "nothing that a GPU runs"


@rule(
    "WHL601",
    "there is GPU code for every wanted GPU",
    Severity.ERROR,
    why="A wheel without code for a GPU installs and imports; the first kernel then fails with `no kernel image is "
    "available for execution on the device`, perhaps hours into a job.",
    example="`wheelproof verify torch==2.11.0 --platform aarch64 --gpu T4`: sm_80 and newer, T4 needs sm_75",
    fix="Take a release or an index whose wheel has code for the GPU, or build with TORCH_CUDA_ARCH_LIST.",
)
def has_code(wheel: WheelFacts, expectations: Expectations) -> Iterable[Finding]:
    """The main library, or else the declared list, has code that runs; so has every other library with GPU code."""
    wanted = _wanted(expectations)
    accelerator = need(wheel.accelerator)
    if is_for_others(accelerator):
        message = f"the wheel is {accelerator.label}: it has no code for {_named(wanted)}"
        yield Finding(message, fix=_fix(wheel, wanted))
        return
    facts = need(wheel.gpu_code)
    if accelerator.accelerator == NONE:
        need(facts.verdict)  # nothing hints at GPU code: that some library was not read is no reason to doubt
    for member, reason in facts.unread:
        if not reason.hint:  # otherwise it was not to be read, or cannot be
            message = f"the GPU code of {member} cannot be judged: {reason.reason}"
            yield Finding(message, location=Location(member), severity=Severity.WARNING)
    verdict = _verdict(facts)
    if verdict is None:
        return
    member, code = verdict
    how = {gpu: runs_how(code, gpu) for gpu in wanted}
    lacking = [gpu for gpu in wanted if how[gpu].how == "none"]
    if lacking:
        where = member or _DECLARED
        message = f"no code for {_named(lacking)} in {where}, which has {_labels(code)}"
        evidence = [Evidence(gpu.name, how[gpu].why, f"{where} ({code.certainty})") for gpu in lacking]
        yield Finding(message, tuple(evidence), _fix(wheel, lacking, code), Location(member) if member else None)
    running = [gpu for gpu in wanted if gpu not in lacking]
    for gpu in running:
        counts = coverage(code, gpu)
        files = sum(counts.values())
        some = files - counts.get("none", 0)
        if files and some / files < RARE:
            message = f"hardly any code for {gpu} in {member}: {some:,} of its {files:,} files run there"
            yield Finding(message, fix=_fix(wheel, [gpu], code), location=Location(member), severity=Severity.WARNING)
    yield from _without(facts, running, wheel)


def _without(facts: GpuCodeFacts, served: Sequence[Product], wheel: WheelFacts) -> Iterator[Finding]:
    """Libraries without code for GPUs that the wheel as such runs on: kernels that are missing there, or not meant."""
    for member, code in _others(facts):
        lacking = [gpu for gpu in served if runs_on(code.counts, gpu).how == "none"]
        if lacking:
            message = f"no code for {_named(lacking)} in {member}, which has {_labels(code)}"
            evidence = tuple(
                Evidence(gpu.name, runs_on(code.counts, gpu).why, f"{member} ({code.certainty})") for gpu in lacking
            )
            yield Finding(message, evidence, _fix(wheel, lacking, code), Location(member), Severity.WARNING)


def _project(wheel: WheelFacts) -> str:
    return "NAME" if isinstance(wheel.name, Unavailable) else canonicalize_name(wheel.name.distribution)


def _fix(wheel: WheelFacts, gpus: Sequence[Product], code: GpuCode | None = None) -> Fix:
    """Where to look for code, and how to build it: in later releases for GPUs newer than all code, else in earlier."""
    release = "0" if isinstance(wheel.name, Unavailable) else wheel.name.version
    newest = max((int(label.rpartition("_")[2].rstrip("af")) for label in code.counts), default=0) if code else 0
    where = ">" if min(gpu.sm for gpu in gpus) > newest else "<"
    target = f" --platform {wheel.target.machine} --python {wheel.target.interpreter}" if wheel.target else ""
    architectures = ";".join(dict.fromkeys(gpu.capability for gpu in gpus))
    names = ",".join(gpu.name for gpu in gpus)
    return Fix(
        f"Take another release or index, or build from source with TORCH_CUDA_ARCH_LIST='{architectures}'. "
        f"This shows what {'later' if where == '>' else 'earlier'} releases have:",
        (f"wheelproof verify '{_project(wheel)}{where}{release}'{target} --all-files --gpu '{names}'",),
    )


@rule(
    "WHL602",
    "the wanted GPUs run machine code, not PTX compiled at first use",
    Severity.WARNING,
    why="The driver compiles PTX for every kernel at its first use: minutes of waiting, on every machine and after "
    "every driver update; and the driver must be as new as the CUDA that made the PTX.",
    example="compute_90 in a wheel without sm_100, on GB200",
    fix="Take a wheel with machine code for the GPU; else update the driver, and keep CUDA_CACHE_PATH on a fast disk.",
)
def native(wheel: WheelFacts, expectations: Expectations) -> Iterable[Finding]:
    """No library runs on a wanted GPU only by compiling PTX."""
    wanted = _wanted(expectations)
    facts = need(wheel.gpu_code)
    verdict = need(facts.verdict)  # when it is not known, WHL601 says so
    for member, code in (verdict, *_others(facts)) if verdict else ():
        by_label: dict[str, list[Product]] = defaultdict(list)
        for gpu in wanted:
            how = runs_on(code.counts, gpu)
            if how.how == "jit":
                by_label[how.label].append(gpu)
        for label, gpus in by_label.items():
            where = member or _DECLARED
            message = f"{where} runs on {_named(gpus)} only by compiling {label} at first use"
            evidence = (Evidence("code", _labels(code), f"{where} ({code.certainty})"),)
            fix = Fix(
                "Take a wheel with machine code for it; else make sure that the driver is as new as the wheel's CUDA, "
                "and that CUDA_CACHE_PATH is a lasting folder."
            )
            yield Finding(message, evidence, fix, Location(member) if member else None)


@rule(
    "WHL603",
    "the declared architectures are those of the code",
    Severity.ERROR,
    why="torch compares the GPU with the list that it was built with, `torch.cuda.get_arch_list()`. When the list "
    "names more than the library has, the warning about an unsupported GPU stays away and kernels fail.",
    example="sm_100 in the list, and no sm_100 in libtorch_cuda.so",
    fix="Build libtorch_cuda.so and libtorch_python.so in one build, with one TORCH_CUDA_ARCH_LIST.",
)
def declared(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Every declared target is in the main library, and every target that most of its files have is declared."""
    facts = need(wheel.gpu_code)
    said = need(facts.declared or Unavailable("the wheel declares no architectures"))
    main = facts.main
    if main is None or main[1].certainty != "exact" or facts.verdict != main:
        need(Unavailable("the GPU code was not read as a whole", "--depth gpu"))
        return
    member, code = main
    targets = (*said.sass, *said.ptx)
    evidence = (Evidence(_DECLARED, ", ".join(targets)), Evidence("code", _labels(code), member))
    fix = Fix("Build libtorch_cuda.so and libtorch_python.so in one build, with one TORCH_CUDA_ARCH_LIST.")
    if absent := [label for label in targets if label not in code.counts]:
        yield Finding(f"{_DECLARED} names {', '.join(absent)}, {member} has none", evidence, fix, Location(member))
    more = [label for label in (*code.sass, *code.ptx) if label not in targets and share_of(code, [label]) >= COMMON]
    if more:
        message = f"{member} is built for {', '.join(more)}, {_DECLARED} does not name it"
        yield Finding(message, evidence, fix, Location(member), Severity.WARNING)


@rule(
    "WHL604",
    "the wanted GPUs are found in machines of the wheel's kind",
    Severity.WARNING,
    why="A GPU comes with a CPU: GB200 with aarch64, T4 with x86_64. A wheel for the other CPU is never installed "
    "there, and what it has for the GPU says nothing about the wheel that is.",
    example="`--gpu T4` for an aarch64 wheel: the GPU of that kind beside an aarch64 CPU is T4G",
    fix="Judge the wheel of the GPU's own machine, or name the GPU that is meant.",
)
def same_machine(wheel: WheelFacts, expectations: Expectations) -> Iterable[Finding]:
    """The CPU that each wanted GPU is usually found with is that of the target."""
    wanted = _wanted(expectations)
    target = need(wheel.target or Unavailable("the wheel is for no single machine", "--platform x86_64 or aarch64"))
    for gpu in wanted:
        if gpu.machine in ("", target.machine):
            continue
        twins = [other.name for other in products() if other.sm == gpu.sm and other.machine == target.machine]
        message = f"{gpu} is found in {gpu.machine} machines, the wheel is for {target.machine}"
        evidence = (Evidence(f"{gpu.capability} in {target.machine} machines", ", ".join(twins) or "none known"),)
        requirement = f"{_project(wheel)}=={need(wheel.name).version}"
        fix = Fix(
            f"Judge the wheel for {gpu.machine}{f', or name {twins[0]}' if twins else ''}:",
            (f"wheelproof verify '{requirement}' --platform {gpu.machine} --gpu '{gpu.name}'",),
        )
        yield Finding(message, evidence, fix)
