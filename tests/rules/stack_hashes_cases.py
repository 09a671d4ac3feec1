"""STK120 to STK123: files with hashes, the expected accelerator of torch, and regressions."""

from __future__ import annotations

from dataclasses import replace

from packaging.requirements import Requirement

from tests.rules.case import WARNING, Case
from tests.rules.stack_cases import package, stack, torch
from wheel_checks.facts.stack.changes import PackageSide, StackChanges, compare
from wheel_checks.facts.stack.facts import WHEEL, Demand, Unhashed
from wheel_checks.facts.wheel.expectations import parse_expectation
from wheel_checks.model import Location

ON_CUDA = PackageSide("2.11.0", WHEEL, "cuda", "13.0")
ON_CPU = PackageSide("2.10.0", WHEEL, "cpu")


def changed(before: PackageSide | None, after: PackageSide | None, worse: tuple[str, ...] = ()) -> StackChanges:
    """A torch on two sides."""
    sides = [{"torch": side} if side else {} for side in (before, after)]
    return StackChanges("aarch64", "main", compare(sides[0], sides[1], {}), worse)


PLACE = Location(file="requirements.txt", line=3)

CASES = [
    Case(
        "STK120",
        "a line without a hash among lines with hashes",
        lambda: replace(stack(package("demo")), unhashed=(Unhashed("torch==2.9.1", "has no hash", PLACE),)),
        ("torch==2.9.1 has no hash, but other lines have hashes: pip rejects the file",),
    ),
    Case("STK120", "hashes in every line", lambda: stack(package("demo"))),
    Case(
        "STK121",
        "a requirement that the file does not list",
        lambda: replace(
            stack(package("torch", "2.9.1")),
            unlisted=(Demand("torch 2.9.1", Requirement('setuptools; python_version >= "3.12"')),),
        ),
        (
            "torch 2.9.1 requires setuptools, which the file with hashes does not list: pip rejects it unless it is "
            "already installed",
        ),
        evidence=('python_version >= "3.12"',),
        undecided=True,
    ),
    Case("STK121", "a file that lists all", lambda: stack(package("torch", "2.9.1"), package("setuptools"))),
    Case(
        "STK123",
        "a torch that becomes a CPU build, and a failure of the stack that is new",
        lambda: changed(ON_CUDA, ON_CPU, worse=("libraries of two majors of CUDA",)),
        ("aarch64: libraries of two majors of CUDA", "torch on aarch64: CUDA 13.0 -> CPU only"),
        WARNING,
    ),
    Case(
        "STK123",
        "the same with --fail-on-change",
        lambda: replace(changed(ON_CUDA, ON_CPU), fails=True),
        ("torch on aarch64: CUDA 13.0 -> CPU only",),
        evidence=("2.11.0 (CUDA 13.0)", "2.10.0 (CPU only)"),
    ),
    Case(
        "STK123",
        "a failure that is new",
        lambda: changed(ON_CUDA, replace(ON_CUDA, version="2.12.0", errors={"STK103": "torch 2.12.0 has no file"})),
        ("torch on aarch64: torch 2.12.0 has no file",),
        WARNING,
    ),
    Case(
        "STK123",
        "a new release that could not be read",
        lambda: changed(ON_CUDA, PackageSide("2.12.0", WHEEL, is_open=True)),
        ("torch on aarch64: 2.11.0 (CUDA 13.0) -> 2.12.0 (unknown), not all of which could be checked",),
        WARNING,
        undecided=True,
    ),
    Case("STK123", "a torch that becomes a CUDA build", lambda: changed(ON_CPU, ON_CUDA)),
    Case("STK123", "a package that is removed", lambda: changed(ON_CUDA, None)),
    Case(
        "STK123",
        "a failure that was there before",
        lambda: changed(
            replace(ON_CUDA, errors={"STK101": "torch 2.11.0"}),
            replace(ON_CUDA, version="2.12.0", errors={"STK101": "torch 2.12.0"}),
        ),
    ),
    Case(
        "STK122",
        "a torch for another CUDA",
        lambda: stack(torch("cuda", "2.11.0")),
        ("torch 2.11.0 is built for CUDA 13.0; expected cuda==12.*",),
        expectations={"of_torch": parse_expectation("cuda==12")},
    ),
    Case(
        "STK122",
        "a torch for CUDA where the CPU is expected",
        lambda: stack(torch("cuda", "2.11.0")),
        ("torch 2.11.0 is built for CUDA 13.0; expected cpu",),
        expectations={"of_torch": parse_expectation("cpu")},
    ),
    Case(
        "STK122",
        "a stack without torch",
        lambda: stack(package("numpy")),
        ("--expect cuda applies to torch, but the stack does not contain torch",),
        expectations={"of_torch": parse_expectation("cuda")},
        undecided=True,
    ),
    Case(
        "STK122",
        "a torch for the CUDA that is expected",
        lambda: stack(torch("cuda", "2.11.0")),
        expectations={"of_torch": parse_expectation("cuda>=13")},
    ),
    Case(
        "STK122",
        "a torch for the CPU where CUDA is expected, which is STK101's",
        lambda: stack(torch("cpu", "2.11.0")),
        expectations={"of_torch": parse_expectation("cuda")},
    ),
]
