"""Does the wheel's GPU code run on the requested GPUs?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from packaging.utils import canonicalize_name

from wheel_checks.facts.accelerator.shown import CODE
from wheel_checks.facts.accelerator.signals import CPU
from wheel_checks.facts.gpu.code import COMMON, is_for_others, share_of
from wheel_checks.facts.gpu.targets import Product
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.fixes.commands import Options, option, package, run
from wheel_checks.formats.gpu.fatbin import GpuCode
from wheel_checks.model import Audience, Evidence, Finding, Fix, Location, Severity, Unavailable, need
from wheel_checks.phrases import and_more, joined
from wheel_checks.registry import rule
from wheel_checks.rules.shared.commands import target_options
from wheel_checks.rules.shared.gpu_code import (
    DECLARED,
    another_release,
    labels_of,
    named,
    next_to_other_cpus,
    only_compiled,
    wanted_gpus,
    without_code,
)

_SHOWN = 6  # members of evidence


def _wanted(wheel: WheelFacts, expectations: Expectations) -> tuple[Product, ...]:
    """What ``--gpu`` names; of a variant only those GPUs that it claims, since no others get it."""
    gpus = wanted_gpus(expectations)
    variant = wheel.variant.variant if wheel.variant else None
    if variant is None or isinstance(variant, Unavailable):
        return gpus
    from wheel_checks.facts.variants.claims import claimed_gpus

    return claimed_gpus(variant, gpus) or need(Unavailable(f"the variant does not claim {named(gpus)}"))


@rule(
    "WHL601",
    "the wheel has GPU code for every requested GPU",
    why="A wheel without code for a GPU installs and imports; the first kernel then fails with `no kernel image is "
    "available for execution on the device`, perhaps hours into a job.",
    example="`wheelproof verify torch==2.11.0 --platform aarch64 --gpu T4`: sm_80 and newer, but T4 needs sm_75",
    fix="Use a release or an index whose wheel has code for the GPU, or compile it for the GPU.",
)
def has_code(wheel: WheelFacts, expectations: Expectations) -> Iterable[Finding]:
    """Every deciding library has code that runs: those that the package imports, one of several alternatives each."""
    wanted = _wanted(wheel, expectations)
    accelerator = need(wheel.accelerator)
    if expectations.in_stack and accelerator.accelerator == CPU:
        return
    if others := [gpu for gpu in wanted if is_for_others(accelerator, gpu)]:
        message = f"the wheel is {accelerator.label}: it has no code for {named(others)}"
        # In a stack a library that only links to another maker's runtime (Intel's OpenMP) may never look at the GPU.
        links_only = accelerator.content is not None and all(shown.how != CODE for shown in accelerator.content.shown)
        yield Finding(message, fix=_fix(wheel, others), undecided=expectations.in_stack and links_only)
    if wanted := tuple(gpu for gpu in wanted if gpu not in others):
        code = need(wheel.gpu_code)
        content = accelerator.content
        is_part = expectations.in_stack or (content is not None and content.native > 0)
        yield from without_code(code, wanted, lambda gpus, code: _fix(wheel, gpus, code), Location, is_part=is_part)
        yield from _compiled_at_first_use(wheel, [gpu for gpu in wanted if gpu.sm])


def _compiled_at_first_use(wheel: WheelFacts, wanted: Sequence[Product]) -> Iterable[Finding]:
    """The GPUs that the compiler in a wheel without GPU code does not know (errors), or no compiler in it (undecided).

    Stacks are omitted: there the compiler may be that of another package.
    """
    found = wheel.first_use
    if found is not None and found.unread and wanted:
        what = f"whether it compiles for {named(wanted)} at first use is unknown: {found.unread[0]}"
        message = f"{what}{and_more(len(found.unread) - 1, before=' ')} was not searched"
        evidence = tuple(Evidence("not searched", name) for name in found.unread[:_SHOWN])
        fix = Fix("Search all of it.", (Options(("wheelproof", "verify"), ("--depth", "gpu")),))
        yield Finding(message, evidence, fix, undecided=True)
    if found is None or not (found.signs or found.compilers):
        return
    evidence = tuple(
        Evidence(
            "targets", one.targets.reason if isinstance(one.targets, Unavailable) else _names(one.targets), one.member
        )
        for one in found.compilers
    )
    unknown = [gpu for gpu in wanted if found.knows(gpu.sm) is False]
    if unknown:
        compiler = next(one.member for one in found.compilers if one.decides)
        message = f"no code for {named(unknown)}: it is compiled at first use, and {compiler} does not know the target"
        yield Finding(message, evidence, _fix(wheel, unknown), Location(compiler))
    if unproven := [gpu for gpu in wanted if found.knows(gpu.sm) is None]:
        signs = tuple(Evidence(sign.what, sign.compiler, sign.member) for sign in found.signs)
        compilers = joined(list(dict.fromkeys(sign.compiler for sign in found.signs))) or found.compilers[0].member
        message = f"not proven that this runs on {named(unproven)}: it is compiled at first use, by {compilers}"
        fix = Fix("Run it on the GPU, or check the package or host that has the compiler.")
        yield Finding(message, (*signs, *evidence), fix, undecided=True)


def _names(targets: Sequence[int]) -> str:
    return ", ".join(f"sm_{sm}" for sm in targets)


def _fix(wheel: WheelFacts, gpus: Sequence[Product], code: GpuCode | None = None) -> Fix:
    if isinstance(wheel.name, Unavailable):
        return Fix("Use another release, or one of another index, with code for the GPU.")
    project = canonicalize_name(wheel.name.distribution)
    on_index = wheel.listing is not None
    return another_release(project, wheel.name.version, target_options(wheel.target), gpus, code, on_index=on_index)


@rule(
    "WHL602",
    "the requested GPUs run machine code, not PTX compiled at first use",
    Severity.WARNING,
    why="The driver compiles PTX for every kernel at its first use: this takes minutes, on every host and after every "
    "driver update; the driver must also be as new as the CUDA that generated the PTX.",
    example="compute_90 in a wheel without sm_100, on GB200",
    fix="Use a wheel with machine code for the GPU; otherwise update the driver, and keep CUDA_CACHE_PATH on a fast "
    "disk.",
)
def native(wheel: WheelFacts, expectations: Expectations) -> Iterable[Finding]:
    """No library runs on a wanted GPU only by compiling PTX."""
    wanted = _wanted(wheel, expectations)
    facts = need(wheel.gpu_code)
    fix = Fix(
        "Use a wheel with machine code for it; otherwise make sure that the driver is as new as the wheel's CUDA, and "
        "that CUDA_CACHE_PATH is a persistent folder."
    )
    yield from only_compiled(facts, wanted, fix, Location)


@rule(
    "WHL603",
    "the declared GPU architectures match the code",
    audience=Audience.PUBLISHER,
    why="torch compares the GPU with the list that it was built with, `torch.cuda.get_arch_list()`. If the list has "
    "more than the library, torch does not warn about an unsupported GPU, and kernels fail.",
    example="sm_100 in the list, but not in libtorch_cuda.so",
    fix="Build libtorch_cuda.so and libtorch_python.so in one build, with one TORCH_CUDA_ARCH_LIST.",
)
def declared(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Every declared target is in the main library, and every target that most of its files have is declared."""
    facts = need(wheel.gpu_code)
    declared = need(facts.declared or Unavailable("the wheel declares no architectures"))
    main = facts.main
    if main is None or main[1].certainty != "exact" or facts.verdict != main:
        need(Unavailable("the GPU code was not read completely", "--depth gpu"))
        return
    member, code = main
    targets = (*declared.sass, *declared.ptx)
    evidence = (Evidence(DECLARED, ", ".join(targets)), Evidence("code", labels_of(code), member))
    fix = Fix("Build libtorch_cuda.so and libtorch_python.so in one build, with one TORCH_CUDA_ARCH_LIST.")
    if absent := [label for label in targets if label not in code.counts]:
        yield Finding(
            f"{DECLARED} lists {', '.join(absent)}, but {member} does not have it", evidence, fix, Location(member)
        )
    more = [label for label in (*code.sass, *code.ptx) if label not in targets and share_of(code, [label]) >= COMMON]
    if more:
        message = f"{member} is built for {', '.join(more)}, but {DECLARED} does not list it"
        yield Finding(message, evidence, fix, Location(member), Severity.WARNING)


@rule(
    "WHL604",
    "the requested GPUs exist in machines of the wheel's CPU architecture",
    Severity.WARNING,
    why="A GPU is paired with a CPU: GB200 with aarch64, T4 with x86_64. A wheel for the other CPU is never installed "
    "there, and its GPU code says nothing about the wheel that is.",
    example="`--gpu T4` for an aarch64 wheel: the equivalent GPU with an aarch64 CPU is T4G",
    fix="Check the wheel of the GPU's own machine, or specify the intended GPU.",
)
def same_machine(wheel: WheelFacts, expectations: Expectations) -> Iterable[Finding]:
    """The usual CPU of each requested GPU is that of the target."""
    wanted = _wanted(wheel, expectations)
    target = need(wheel.target or Unavailable("the wheel is not for a single machine", "--platform x86_64 or aarch64"))

    def fix(gpu: Product, twin: str) -> Fix:
        name = need(wheel.name)
        wanted = package(canonicalize_name(name.distribution), name.version)
        where = (option("--platform", gpu.machine), option("--gpu", gpu.name))
        return Fix(
            f"Check the wheel for {gpu.machine}{f', or specify {twin}' if twin else ''}:",
            (run("wheelproof", "verify", wanted, *where),),
        )

    yield from next_to_other_cpus(wanted, target.machine, "the wheel", fix)
