"""Does the driver that was named run the wheel, and the GPU?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from packaging.utils import canonicalize_name
from packaging.version import Version

from wheel_checks.data import load
from wheel_checks.facts.accelerator.signals import CUDA, leading_version
from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.gpu.answer import answers
from wheel_checks.facts.gpu.deciding import deciding_groups
from wheel_checks.facts.gpu.drivers import (
    branch_of,
    cuda_of_ptx,
    has_forward_compatibility,
    highest_cuda,
    is_known,
    last_branch_for,
    oldest_driver,
    runs_cuda,
)
from wheel_checks.facts.gpu.targets import Product
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.formats.gpu.fatbin import GpuCode
from wheel_checks.model import Evidence, Finding, Fix, Location, Unavailable, need
from wheel_checks.phrases import joined
from wheel_checks.registry import rule
from wheel_checks.rules.shared.accelerator import signals_shown
from wheel_checks.rules.shared.gpu_code import named

_TABLE = "table of drivers"
_WITHOUT_TURING = 75  # CUDA 13 compiles for sm_75 and newer: so do its compatibility packages
_SINCE = 13


def _drivers(expectations: Expectations) -> tuple[str, ...]:
    """What ``--driver`` names; without it the check is skipped, as it is for GPUs of AMD's alone."""
    if expectations.gpus and all(gpu.gfx for gpu in expectations.gpus):
        need(Unavailable("the GPUs are made by AMD and use another driver"))
    return expectations.named_drivers or need(Unavailable("no driver was specified", "--driver 580"))


def _alternatives(wheel: WheelFacts, gpus: Sequence[Product]) -> tuple[str, ...]:
    """The versions of CUDA for which libraries of one name are built."""
    if isinstance(wheel.archive, Unavailable):
        return ()
    groups = deciding_groups((m.name for m in wheel.archive.members if m.name.endswith(".so")), _project(wheel))
    chosen = [group for group in groups if len({one.cuda for one in group.alternatives} - {""}) > 1]
    if not chosen:
        return ()
    lacking = [] if isinstance(wheel.gpu_code, Unavailable) else answers(wheel.gpu_code, gpus)
    without = {other.cuda for one in lacking for other in one.other_cuda}
    return tuple(sorted({one.cuda for one in chosen[0].alternatives if one.cuda} - without, key=Version))


def _own(wheel: WheelFacts, facts: AcceleratorFacts) -> tuple[str, ...]:
    if len(facts.majors) > 1:
        return facts.majors
    if facts.version:
        return (facts.version,)
    if not isinstance(wheel.name, Unavailable) and _binds(wheel):
        return (".".join(leading_version(wheel.name.version).split(".")[:2]),)
    return ()


def _project(wheel: WheelFacts) -> str:
    return "" if isinstance(wheel.name, Unavailable) else canonicalize_name(wheel.name.distribution)


def _binds(wheel: WheelFacts) -> bool:
    """True for packages of NVIDIA that say which driver they need, though they open its libraries at run time."""
    return re.fullmatch(load("drivers")["bindings"]["pattern"], _project(wheel)) is not None


def _needs_no_cuda(wheel: WheelFacts, facts: AcceleratorFacts) -> bool:
    """True if everything was read, and nothing was compiled by a CUDA toolkit or needs its libraries.

    Triton compiles at run time, NVTX and nvcc need no driver: "cuda" in a name alone implies no CUDA version.
    """
    code, content = wheel.gpu_code, facts.content
    if content is None or not content.complete or _binds(wheel):
        return False
    if not isinstance(code, Unavailable) and not code.known and not code.unread and code.declared is None:
        return not facts.version and not facts.majors
    return not content.is_bound_to(CUDA)


@rule(
    "WHL605",
    "the specified driver runs the wheel's CUDA version",
    why="A driver runs programs for its own major version of CUDA and older ones. With an older driver everything "
    "installs and imports, but `torch.cuda.is_available()` returns False: the driver is too old.",
    example="`wheelproof verify torch==2.11.0 --platform x86_64 --driver 535`: CUDA 13 needs driver 580",
    fix="Update the driver, or use a build for a CUDA version that it supports.",
)
def driver_runs_cuda(wheel: WheelFacts, expectations: Expectations) -> Iterable[Finding]:
    """Every driver is as new as NVIDIA says for the wheel's major version of CUDA (minor-version compatibility)."""
    drivers = _drivers(expectations)
    facts = need(wheel.accelerator)
    if CUDA not in (facts.accelerator, *facts.others):
        return
    if _needs_no_cuda(wheel, facts):
        return
    # of its alternatives with code for the GPUs the wheel needs one
    versions = _alternatives(wheel, expectations.gpus) or _own(wheel, facts)
    if not versions:
        message = f"not known whether driver {', '.join(drivers)} runs the wheel: the wheel's CUDA version is unknown"
        fix = Fix("Read more of the wheel: --depth gpu.")
        yield Finding(message, signals_shown(facts), fix, undecided=True)
        return
    for driver in drivers:
        majors = {int(version.partition(".")[0]): version for version in versions}
        verdicts = {runs_cuda(driver, major) for major in majors}
        if "yes" in verdicts and (len(verdicts) == 1 or _alternatives(wheel, expectations.gpus)):
            continue
        if "yes" in verdicts:
            yield _some_only(driver, versions)
            continue
        oldest = min(majors)
        if "unknown" in verdicts:
            yield _unknown_driver(driver, majors[oldest])
            continue
        needed, own = oldest_driver(oldest), highest_cuda(f"{driver}.")
        message = (
            f"driver {driver} does not run the wheel: CUDA {majors[oldest]} needs driver {needed} or later; driver "
            f"{driver} supports up to CUDA {own}"
        )
        evidence = (Evidence(f"driver {driver}", f"CUDA {own}", _TABLE), *signals_shown(facts))
        fix = _newer_driver(str(needed), majors[oldest], str(own), expectations.gpus)
        yield Finding(message, evidence, fix, cause=f"driver {driver} is too old for CUDA {oldest}")


def _some_only(driver: str, versions: Sequence[str]) -> Finding:
    message = f"not known whether driver {driver} runs the wheel, which has libraries for CUDA {joined(versions)}"
    fix = Fix("Use a driver for the newest of them, or test it: it is unknown which of them it loads.")
    return Finding(message, fix=fix, undecided=True)


def _unknown_driver(driver: str, cuda: str) -> Finding:
    table = load("drivers")
    known = f"drivers {table['branch'][0]['branch']} to {table['horizon'] - 1} (collected {table['collected']})"
    message = f"not known whether driver {driver} runs CUDA {cuda}: the table of drivers does not list it"
    return Finding(message, (Evidence("known", known, _TABLE),), Fix("Update wheelproof."), undecided=True)


def _newer_driver(needed: str, cuda: str, own: str, gpus: Sequence[Product]) -> Fix:
    """Update, take an older build, or, on data centre GPUs alone, install NVIDIA's forward compatibility package."""
    major, minor = (*cuda.split("."), "0")[:2]
    advice = f"Update the driver to {needed} or later, or use a build for CUDA {own.partition('.')[0]}."
    able = [
        gpu
        for gpu in gpus
        if has_forward_compatibility(gpu.name) and not (int(major) >= _SINCE and gpu.sm < _WITHOUT_TURING)
    ]
    if able or not gpus:
        package = f"cuda-compat-{major}-{minor}"
        where = f"on {named(able)}" if able else "on data centre GPUs"
        advice += f" NVIDIA's forward compatibility package {package} (or later) runs it on an older driver, {where}."
    return Fix(advice)


@rule(
    "WHL606",
    "PTX that is compiled at first use is not newer than the driver",
    why="A driver compiles only PTX of toolkits up to its own CUDA version. Machine code of a newer minor version "
    "runs, but PTX does not: the first kernel fails with `the provided PTX was compiled with an unsupported "
    "toolchain`.",
    example="a wheel of CUDA 13.2 with compute_90 but without sm_100, on GB200 with driver 580 (CUDA 13.0)",
    fix="Update the driver, or use a wheel with machine code for the GPU.",
)
def driver_compiles_ptx(wheel: WheelFacts, expectations: Expectations) -> Iterable[Finding]:
    """If the wheel runs by PTX alone, each driver supports the CUDA that made it."""
    drivers, gpus = (
        _drivers(expectations),
        expectations.gpus or need(Unavailable("no GPU was specified", "--gpu GB200")),
    )
    compiled = [one for one in answers(need(wheel.gpu_code), gpus) if one.runs.how == "jit"]
    fix = Fix(
        "Use a wheel with machine code for the GPU, or a driver that supports the CUDA version that generated the PTX."
    )
    for driver in drivers:
        own = highest_cuda(f"{driver}.")
        for one in compiled:
            library = next((library for library in one.compiled if library.member == one.member), None)
            label, place = one.runs.label, Location(one.member)
            cuda = _made_by(library.code, label) if library else None
            if own is None or cuda is None:
                message = f"not known whether driver {driver} compiles the PTX ({label}) of {one.member}"
                yield Finding(f"{message} on {one.product}", (), fix, place, undecided=True)
            elif Version(cuda) > Version(own):
                message = (
                    f"{one.member} runs on {one.product} only through {label} of CUDA {cuda}, which driver {driver} "
                    f"(CUDA {own}) does not compile"
                )
                yield Finding(message, (Evidence(f"driver {driver}", f"CUDA {own}", _TABLE),), fix, place)


def _made_by(code: GpuCode | Unavailable, label: str) -> str | None:
    """The CUDA whose drivers compile this PTX, by the version of its instruction set; None when not known."""
    isa = "" if isinstance(code, Unavailable) else code.ptx_isa.get(label, "")
    return cuda_of_ptx(isa)


@rule(
    "WHL607",
    "the specified driver supports the GPU",
    why="NVIDIA drops old GPUs with a driver branch: newer drivers do not find the GPU.",
    example="V100 with driver 590: 580 is the last branch for Maxwell, Pascal and Volta",
    fix="Keep the last driver branch that supports the GPU, or use a newer GPU.",
)
def driver_supports_gpu(wheel: WheelFacts, expectations: Expectations) -> Iterable[Finding]:
    """No driver is of a later branch than the last one for a GPU. Only wheels for CUDA are judged."""
    drivers, gpus = (
        _drivers(expectations),
        expectations.gpus or need(Unavailable("no GPU was specified", "--gpu GB200")),
    )
    facts = need(wheel.accelerator)
    if CUDA not in (facts.accelerator, *facts.others):
        return
    for driver in drivers:
        for gpu in gpus:
            last = last_branch_for(gpu.sm)
            if not gpu.gfx and last is not None and branch_of(driver) > last and is_known(driver):
                message = f"driver {driver} does not support {gpu}; the last branch that does is {last}"
                yield Finding(
                    message, (Evidence(gpu.name, f"up to driver {last}", _TABLE),), Fix(f"Keep driver {last}.")
                )
