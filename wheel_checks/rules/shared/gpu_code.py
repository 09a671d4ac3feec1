"""What the rules about the GPU code of wheels and of installed distributions say alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from wheel_checks.commands import Word, option, requirement, run
from wheel_checks.errors import WheelproofError
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.gpu.code import GpuCodeFacts, runs_how
from wheel_checks.facts.gpu.targets import Product, coverage, products, runs_on
from wheel_checks.formats.gpu.fatbin import GpuCode
from wheel_checks.model import Evidence, Finding, Fix, Location, Severity, Unavailable, need

RARE = 0.02
"""Below this share of its files that run, the main library is said to have hardly any code for a GPU."""

DECLARED = "torch.cuda.get_arch_list()"

NamedCode = tuple[str, GpuCode]
"""A library and its code; "" for the declared list."""
Place = Callable[[str], Location]
"""Tells where a library is."""
Remedy = Callable[[Sequence[Product], GpuCode], Fix]
"""Tells what to do when this code lacks these GPUs."""


def wanted_gpus(expectations: Expectations) -> tuple[Product, ...]:
    """What ``--gpu`` names; without it the check is skipped."""
    return expectations.gpus or need(Unavailable("no GPU was named", "--gpu GB200, H100, sm_100, ..."))


def named(gpus: Iterable[Product]) -> str:
    """GPUs for people: "GH200 (9.0), GB200 (10.0)"."""
    return ", ".join(map(str, gpus))


def labels_of(code: GpuCode) -> str:
    """What there is, for people: "sm_80, sm_90, compute_90"."""
    return ", ".join((*code.sass, *code.ptx)) or "nothing that a GPU runs"


def beside(facts: GpuCodeFacts) -> Iterator[NamedCode]:
    """The libraries beside the main one that hold GPU code."""
    return (item for item in facts.known if item != facts.main)


def without_code(facts: GpuCodeFacts, wanted: Sequence[Product], remedy: Remedy, place: Place) -> Iterator[Finding]:
    """What lacks code for a GPU: the main library, or else the declared list (an error); for GPUs on which that runs,
    the libraries beside it (warnings). Raises WheelproofError when the code is not known that tells.
    """
    for member, reason in facts.unread:
        if not reason.hint:  # otherwise it was not to be read, or cannot be
            message = f"the GPU code of {member} cannot be judged: {reason.reason}"
            yield Finding(message, location=place(member), severity=Severity.WARNING)
    verdict = facts.verdict
    if isinstance(verdict, Unavailable):
        raise WheelproofError(verdict.reason, hint=verdict.hint)
    if verdict is None:
        return
    member, code = verdict
    how = {gpu: runs_how(code, gpu) for gpu in wanted}
    lacking = [gpu for gpu in wanted if how[gpu].how == "none"]
    if lacking:
        where = member or DECLARED
        message = f"no code for {named(lacking)} in {where}, which has {labels_of(code)}"
        evidence = [Evidence(gpu.name, how[gpu].why, f"{where} ({code.certainty})") for gpu in lacking]
        yield Finding(message, tuple(evidence), remedy(lacking, code), place(member) if member else None)
    running = [gpu for gpu in wanted if gpu not in lacking]
    for gpu in running:
        counts = coverage(code, gpu)
        files = sum(counts.values())
        some = files - counts.get("none", 0)
        if files and some / files < RARE:
            message = f"hardly any code for {gpu} in {member}: {some:,} of its {files:,} files run there"
            yield Finding(message, fix=remedy([gpu], code), location=place(member), severity=Severity.WARNING)
    yield from without_code_beside(beside(facts), running, remedy, place)


def without_code_beside(
    libraries: Iterable[NamedCode], served: Sequence[Product], remedy: Remedy, place: Place
) -> Iterator[Finding]:
    """Libraries without code for GPUs that the whole as such runs on: kernels that are missing there, or not meant."""
    for member, code in libraries:
        lacking = [gpu for gpu in served if runs_on(code.counts, gpu).how == "none"]
        if lacking:
            message = f"no code for {named(lacking)} in {member}, which has {labels_of(code)}"
            evidence = tuple(
                Evidence(gpu.name, runs_on(code.counts, gpu).why, f"{member} ({code.certainty})") for gpu in lacking
            )
            yield Finding(message, evidence, remedy(lacking, code), place(member), Severity.WARNING)


def only_compiled(
    libraries: Iterable[NamedCode], wanted: Sequence[Product], fix: Fix, place: Place
) -> Iterator[Finding]:
    """Libraries that run on a GPU only by compiling PTX."""
    for member, code in libraries:
        by_label: dict[str, list[Product]] = defaultdict(list)
        for gpu in wanted:
            how = runs_on(code.counts, gpu)
            if how.how == "jit":
                by_label[how.label].append(gpu)
        for label, gpus in by_label.items():
            where = member or DECLARED
            message = f"{where} runs on {named(gpus)} only by compiling {label} at first use"
            evidence = (Evidence("code", labels_of(code), f"{where} ({code.certainty})"),)
            yield Finding(message, evidence, fix, place(member) if member else None)


def beside_other_cpus(
    wanted: Iterable[Product], machine: str, judged: str, fix: Callable[[Product, str], Fix]
) -> Iterator[Finding]:
    """GPUs that are found beside another CPU than ``machine``, which is that of what was ``judged`` ("the wheel").

    ``fix`` is told the GPU and a twin of it, a GPU of the same capability beside this CPU, "" when there is none.
    """
    for gpu in wanted:
        if gpu.machine in ("", machine):
            continue
        twins = [other.name for other in products() if other.sm == gpu.sm and other.machine == machine]
        message = f"{gpu} is found in {gpu.machine} machines, {judged} is for {machine}"
        evidence = (Evidence(f"{gpu.capability} in {machine} machines", ", ".join(twins) or "none known"),)
        yield Finding(message, evidence, fix(gpu, twins[0] if twins else ""))


def another_release(
    project: str, version: str, target: Sequence[Word], gpus: Sequence[Product], code: GpuCode | None = None
) -> Fix:
    """Where to look for code, and how to build it: in later releases for GPUs newer than all code, else in earlier.

    ``target`` are the options that tell ``verify`` what for, as :func:`target_options` gives them.
    """
    newest = max((int(label.rpartition("_")[2].rstrip("af")) for label in code.counts), default=0) if code else 0
    where = ">" if min(gpu.sm for gpu in gpus) > newest else "<"
    architectures = ";".join(dict.fromkeys(gpu.capability for gpu in gpus))
    names = ",".join(gpu.name for gpu in gpus)
    wanted = requirement(f"{project}{where}{version}")
    return Fix(
        f"Take another release or index, or build from source with TORCH_CUDA_ARCH_LIST='{architectures}'. "
        f"This shows what {'later' if where == '>' else 'earlier'} releases have:",
        (run("wheelproof", "verify", wanted, *target, "--all-files", option("--gpu", names)),),
    )
