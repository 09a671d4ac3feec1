"""Does the driver that was named run the wheel, and the GPU?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from packaging.utils import canonicalize_name
from packaging.version import Version

from wheel_checks.data import load
from wheel_checks.facts.accelerator.signals import CUDA, leading_version
from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.gpu.answer import answers
from wheel_checks.facts.gpu.code import GpuCodeFacts
from wheel_checks.facts.gpu.deciding import deciding_groups
from wheel_checks.facts.gpu.drivers import (
    branch_of,
    cuda_of_ptx,
    first_branch_for,
    has_forward_compatibility,
    highest_cuda,
    is_known,
    last_branch_for,
    oldest_driver,
)
from wheel_checks.facts.gpu.targets import Product
from wheel_checks.facts.gpu.toolkit import Toolkit, known_of, toolkits_of
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.formats.gpu.fatbin import GpuCode
from wheel_checks.model import Evidence, Finding, Fix, Location, Unavailable, need
from wheel_checks.phrases import joined, plural
from wheel_checks.registry import rule
from wheel_checks.rules.shared.accelerator import signals_shown
from wheel_checks.rules.shared.gpu_code import named

_TABLE = "table of drivers"
_MOST_SHOWN = 4
_READ_MORE = Fix("Read more of the wheel: --depth gpu.")
_WITHOUT_TURING = 75  # CUDA 13 compiles for sm_75 and newer: so do its compatibility packages
_SINCE = 13


def _drivers(expectations: Expectations) -> tuple[str, ...]:
    """What ``--driver`` names; without it the check is skipped, as it is for GPUs of AMD's alone."""
    if expectations.gpus and all(gpu.gfx for gpu in expectations.gpus):
        need(Unavailable("the GPUs are made by AMD and use another driver"))
    return expectations.named_drivers or need(Unavailable("no driver was specified", "--driver 580"))


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
    if not isinstance(code, Unavailable) and not code.known and code.declared is None:
        is_whole = all(
            not isinstance(one.code, Unavailable) and one.code.certainty == "exact" for one in code.libraries
        )
        return is_whole and not facts.majors
    return not content.is_bound_to(CUDA)


@dataclass(frozen=True, slots=True)
class _Group:
    """Alternative files, or a single one: of each the evidence of its CUDA. A driver must run one of them."""

    alternatives: tuple[tuple[Toolkit, ...], ...]

    def runs_with(self, driver: str) -> bool | None:
        """Whether the driver runs one of the files; None when that is unknown."""
        found = [_all(toolkit.runs_with(driver) for toolkit in one) for one in self.alternatives]
        return True if True in found else None if None in found else False

    @property
    def needed(self) -> Toolkit:
        """The CUDA that the group needs: the oldest alternative's."""
        return min((max(one, key=_least) for one in self.alternatives), key=_least)


def _all(found: Iterable[bool | None]) -> bool | None:
    results = [*found]
    return False if False in results else None if None in results else True


def _least(toolkit: Toolkit) -> tuple[int, int]:
    return toolkit.low or toolkit.high or 0, toolkit.shown.count(".")


def _groups(wheel: WheelFacts, found: Mapping[str, Sequence[Toolkit]], gpus: Sequence[Product]) -> list[_Group]:
    """The groups of files that decide, without alternatives that have no code for the GPUs."""
    lacking = set() if isinstance(wheel.gpu_code, Unavailable) else _lacking(wheel.gpu_code, gpus)
    groups = deciding_groups(found, _project(wheel))
    own = [group for group in groups if group.decides] or groups
    kept = [[member for member in group.members if member not in lacking] or group.members for group in own]
    return [_Group(tuple(tuple(found[member]) for member in members)) for members in kept]


def _lacking(code: GpuCodeFacts, gpus: Sequence[Product]) -> set[str]:
    return {other.member for one in answers(code, gpus) for other in one.other_cuda}


@rule(
    "WHL605",
    "the specified driver runs the wheel's CUDA version",
    why="A driver runs programs for its own major version of CUDA and older ones. With an older driver everything "
    "installs and imports, but `torch.cuda.is_available()` returns False: the driver is too old.",
    example="`wheelproof verify torch==2.11.0 --platform x86_64 --driver 535`: CUDA 13 needs driver 580",
    fix="Update the driver, or use a build for a CUDA version that it supports.",
)
def driver_runs_cuda(wheel: WheelFacts, expectations: Expectations) -> Iterable[Finding]:
    """Every driver is as new as NVIDIA says for the major version of CUDA (minor-version compatibility) of the toolkit
    that made the GPU code, and of the runtime that a library needs or contains.

    Undecided if these do not show it: names and requirements prove nothing.
    """
    drivers = _drivers(expectations)
    facts = need(wheel.accelerator)
    found = toolkits_of(facts.content, wheel.gpu_code, wheel.static_runtimes)
    if not found:
        if CUDA not in (facts.accelerator, *facts.others) or _needs_no_cuda(wheel, facts):
            return
        if not _binds(wheel):
            message = (
                f"not known whether driver {', '.join(drivers)} runs the wheel: the wheel's CUDA version is unknown"
            )
            yield Finding(message, signals_shown(facts), _READ_MORE, undecided=True)
            return
        version = ".".join(leading_version(need(wheel.name).version).split(".")[:2])
        major = int(version.partition(".")[0])
        found = {"": [Toolkit(major, major, f"CUDA {version}", "version")]}
    groups = _groups(wheel, found, expectations.gpus)
    for driver in drivers:
        verdicts = [group.runs_with(driver) for group in groups]
        if _all(verdicts):
            continue
        lost = [(group.needed, runs) for group, runs in zip(groups, verdicts, strict=True) if not runs]
        needed = max((one for one, runs in lost if runs is None or None not in verdicts), key=_least)
        cuda = _version_of(needed, facts)
        if not is_known(driver):
            yield _unknown_driver(driver, cuda)
        elif True in verdicts or None in verdicts:
            yield _not_known(wheel, driver, found, needed if None in verdicts else None)
        else:
            oldest, own = oldest_driver(needed.low), highest_cuda(f"{driver}.")
            message = (
                f"driver {driver} does not run the wheel: CUDA {cuda} needs driver {oldest} or later; driver "
                f"{driver} supports up to CUDA {own}"
            )
            evidence = (Evidence(f"driver {driver}", f"CUDA {own}", _TABLE), *_shown(found), *signals_shown(facts))
            fix = _newer_driver(str(oldest), cuda, str(own), expectations.gpus)
            yield Finding(message, evidence, fix, cause=f"driver {driver} is too old for CUDA {needed.low}")


def _version_of(toolkit: Toolkit, facts: AcceleratorFacts) -> str:
    """The CUDA for people, with the minor version that the wheel itself names, if the code does not."""
    shown = leading_version(toolkit.shown.removeprefix("CUDA ")) or "of an unknown version"
    return facts.version if facts.version.startswith(f"{shown}.") else shown


def _not_known(
    wheel: WheelFacts, driver: str, found: Mapping[str, Sequence[Toolkit]], unknown: Toolkit | None
) -> Finding:
    """The undecided finding: parts of the wheel are for several CUDA, or the CUDA of one is ``unknown``."""
    majors = sorted({toolkit.low or toolkit.high or 0 for one in found.values() for toolkit in one} - {0})
    message = f"not known whether driver {driver} runs the wheel"
    if unknown is None:
        message += f", which has libraries for CUDA {joined([*map(str, majors)])}"
        fix = Fix("Use a driver for the newest of them, or test it: it is unknown which of them it loads.")
        return Finding(message, _shown(found), fix, undecided=True)
    codes = [] if isinstance(wheel.gpu_code, Unavailable) else [code for _, code in wheel.gpu_code.known]
    known, files = known_of(codes)
    message += f": its code is of {unknown.shown}"
    message += f" ({known} of {plural(files, 'compiled file')} show it)" if known < files else ""
    whole = all(code.certainty == "exact" for code in codes)
    fix = Fix("Ask its authors which CUDA toolkit made it, or test it with that driver.") if whole else _READ_MORE
    return Finding(message, _shown(found), fix, undecided=True)


def _shown(found: Mapping[str, Sequence[Toolkit]]) -> tuple[Evidence, ...]:
    rows = [(member, toolkit) for member, toolkits in found.items() for toolkit in toolkits if member]
    return tuple(Evidence(member, toolkit.shown, toolkit.how) for member, toolkit in rows[:_MOST_SHOWN])


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
    why="A driver does not find a GPU that is newer than its branch. NVIDIA also drops old GPUs with a branch: newer "
    "drivers do not find them.",
    example="V100 with driver 590: 580 is the last branch for Maxwell, Pascal and Volta",
    fix="Use a driver branch that supports the GPU.",
)
def driver_supports_gpu(wheel: WheelFacts, expectations: Expectations) -> Iterable[Finding]:
    """No driver is of a branch before the first one for a GPU, or after the last one. Only of wheels for CUDA."""
    drivers, gpus = (
        _drivers(expectations),
        expectations.gpus or need(Unavailable("no GPU was specified", "--gpu GB200")),
    )
    facts = need(wheel.accelerator)
    if CUDA not in (facts.accelerator, *facts.others):
        return
    for driver in drivers:
        for gpu in gpus:
            first, last = first_branch_for(gpu.sm), last_branch_for(gpu.sm)
            if not gpu.gfx and first is not None and branch_of(driver) < first:
                message = f"driver {driver} does not support {gpu}; the first branch that does is {first}"
                evidence = (Evidence(gpu.name, f"from driver {first} on", _TABLE),)
                yield Finding(message, evidence, Fix(f"Install driver {first} or later."))
            if not gpu.gfx and last is not None and branch_of(driver) > last and is_known(driver):
                message = f"driver {driver} does not support {gpu}; the last branch that does is {last}"
                yield Finding(
                    message, (Evidence(gpu.name, f"up to driver {last}", _TABLE),), Fix(f"Keep driver {last}.")
                )
