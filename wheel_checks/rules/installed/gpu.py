"""Does the installed GPU code run on the GPUs that were asked for?"""

import posixpath
from collections.abc import Iterable, Sequence

from wheel_checks.commands import option, run
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.gpu.code import is_for_others
from wheel_checks.facts.gpu.targets import Product
from wheel_checks.facts.installed.facts import InstalledDistribution, InstalledEnvironment
from wheel_checks.formats.gpu.fatbin import GpuCode
from wheel_checks.model import Audience, Finding, Fix, Location, Severity, Unavailable, need
from wheel_checks.registry import rule
from wheel_checks.rules.shared.commands import target_options
from wheel_checks.rules.shared.gpu_code import (
    another_release,
    beside_other_cpus,
    named,
    only_compiled,
    wanted_gpus,
    without_code,
    without_code_beside,
)


def _place(subject: InstalledDistribution, member: str) -> Location:
    return Location(path=posixpath.join(subject.distribution.entry, member))


def _fix(subject: InstalledDistribution, gpus: Sequence[Product], code: GpuCode | None = None) -> Fix:
    distribution, target = subject.distribution, subject.inside.target
    return another_release(distribution.name, distribution.version, target_options(target), gpus, code)


@rule(
    "WHL731",
    "the installed packages have GPU code for every requested GPU",
    kind="distribution",
    audience=Audience.INSTALLER,
    why="A library without code for a GPU installs and imports; the first kernel then fails with `no kernel image is "
    "available for execution on the device`, perhaps hours into a job.",
    example="`wheelproof verify --installed --gpu GB200`, and an attention library with code for sm_90a alone",
    fix="Install a release or a build with code for the GPU.",
)
def has_code(subject: InstalledDistribution, expectations: Expectations) -> Iterable[Finding]:
    """Every library of a distribution that decides has code that runs, one of several alternatives each."""
    wanted, torch = wanted_gpus(expectations), subject.inside.accelerator
    if subject.distribution.shadowed_by:
        return
    if subject.distribution.name == "torch" and not isinstance(torch, Unavailable):
        if others := [gpu for gpu in wanted if is_for_others(torch, gpu)]:
            message = f"the installed torch is {torch.label}: it has no code for {named(others)}"
            yield Finding(message, fix=_fix(subject, others))
        wanted = tuple(gpu for gpu in wanted if gpu not in others)
        if not wanted:
            return
    yield from without_code(
        need(subject.gpu_code),
        wanted,
        lambda gpus, code: _fix(subject, gpus, code),
        lambda member: _place(subject, member),
        is_part=True,
    )


@rule(
    "WHL732",
    "the requested GPUs run installed machine code, not PTX compiled at first use",
    Severity.WARNING,
    kind="distribution",
    audience=Audience.INSTALLER,
    why="The driver compiles PTX for every kernel at its first use: this takes minutes, on every host and after every "
    "driver update; the driver must also be as new as the CUDA that generated the PTX.",
    example="compute_90 in a library without sm_100, on GB200",
    fix="Install a build with machine code for the GPU; otherwise keep CUDA_CACHE_PATH on a fast, persistent disk.",
)
def native(subject: InstalledDistribution, expectations: Expectations) -> Iterable[Finding]:
    """No library runs on a wanted GPU only by compiling PTX."""
    wanted, facts = wanted_gpus(expectations), need(subject.gpu_code)
    if subject.distribution.shadowed_by:
        return
    fix = Fix(
        "Install a build with machine code for it; otherwise make sure that the driver is as new as the CUDA of the "
        "library, and that CUDA_CACHE_PATH is a persistent folder."
    )
    yield from only_compiled(facts, wanted, fix, lambda member: _place(subject, member))


@rule(
    "WHL733",
    "the requested GPUs exist in machines of the environment's CPU architecture",
    Severity.WARNING,
    kind="environment",
    audience=Audience.INSTALLER,
    why="A GPU is paired with a CPU: GB200 with aarch64, T4 with x86_64. The GPU code in an environment for the other "
    "CPU says nothing about the environment that will run there.",
    example="`--gpu T4` for an aarch64 environment: the equivalent GPU with an aarch64 CPU is T4G",
    fix="Check the environment on the GPU's own machine, or name the intended GPU.",
)
def same_machine(inside: InstalledEnvironment, expectations: Expectations) -> Iterable[Finding]:
    """The CPU that each wanted GPU is usually found with is that of the environment."""
    wanted, environment = wanted_gpus(expectations), inside.environment
    machine = environment.machine or need(Unavailable("the environment's machine is unknown"))

    def fix(gpu: Product, twin: str) -> Fix:
        if not twin:
            return Fix(f"Check the environment of the {gpu.machine} machine with that GPU.")
        root = [] if environment.tree.is_this_machine else [option("--root", environment.tree.root)]
        where = (option("--python", environment.path), *root)
        command = run("wheelproof", "verify", "--installed", *where, option("--gpu", twin))
        return Fix(f"Check the environment of the {gpu.machine} machine with that GPU, or name {twin}:", (command,))

    yield from beside_other_cpus(wanted, machine, "the environment", fix)


@rule(
    "WHL734",
    "libraries that belong to no distribution also have GPU code for the requested GPUs",
    Severity.WARNING,
    kind="environment",
    audience=Audience.INSTALLER,
    why="Libraries built in place, installed editable or copied there are loaded like all others, and were often "
    "compiled only for the GPU of the machine that built them.",
    example="a development build of kernels for sm_90a, in the source folder of an editable install",
    fix="Rebuild it with TORCH_CUDA_ARCH_LIST set to the GPU.",
)
def unowned(inside: InstalledEnvironment, expectations: Expectations) -> Iterable[Finding]:
    """Each library that no RECORD lists has code that runs, when it has GPU code."""
    wanted, code = wanted_gpus(expectations), need(inside.gpu_code)

    def fix(gpus: Sequence[Product], _: GpuCode) -> Fix:
        architectures = ";".join(dict.fromkeys(gpu.capability for gpu in gpus))
        return Fix(f"Rebuild it with TORCH_CUDA_ARCH_LIST='{architectures}', or remove it.")

    known = code[""].known if "" in code else ()
    paths = {inside.relative(path): path for path, _ in known}
    named_code = [(inside.relative(path), found) for path, found in known]
    yield from without_code_beside(named_code, wanted, fix, lambda name: Location(path=paths[name]))
