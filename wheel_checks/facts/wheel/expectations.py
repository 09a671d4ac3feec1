"""The user's requirements for a wheel: ``--expect`` and ``--max-size``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from wheel_checks.errors import UsageError
from wheel_checks.facts.accelerator.signals import GPU
from wheel_checks.facts.accelerator.verdict import LABELS
from wheel_checks.facts.gpu.drivers import NO_DRIVER

if TYPE_CHECKING:  # most runs name no GPU
    from wheel_checks.facts.gpu.expected import HostExpectation
    from wheel_checks.facts.gpu.targets import Product

_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*(?:([kmgt])(i?))?b?", re.IGNORECASE)


_MAJOR = re.compile(r"==\s*(\d{1,9})\s*(?=,|$)", re.ASCII)


@dataclass(frozen=True, slots=True)
class AcceleratorExpectation:
    """An accelerator (cuda, rocm, xpu, cpu, none) and the versions of it that will do (all when empty)."""

    accelerator: str
    versions: SpecifierSet

    def __str__(self) -> str:
        return f"{self.accelerator}{self.versions}"

    def accepts_version(self, version: str) -> bool | None:
        """Whether ``version`` will do; None when the wheel says too little ("13" against ``>=13.1``, or nothing)."""
        if not self.versions:
            return True
        if not version:
            return None
        if "." not in version:  # only the major is known: sure when all of its minor versions get the same answer
            named = [release[1] for spec in self.versions if len(release := _release(spec.version)) > 1]
            minors = {0, 999, *(max(0, minor + step) for minor in named for step in (-1, 0, 1))}
            answers = {self.versions.contains(Version(f"{version}.{minor}")) for minor in minors}
            return answers.pop() if len(answers) == 1 else None
        return self.versions.contains(Version(version))


def _release(text: str) -> tuple[int, ...]:
    """The numbers of a version in a specifier, such as 12.8 or 12.*."""
    return Version(text.removesuffix(".*")).release


@dataclass(frozen=True, slots=True)
class Expectations:
    """The user's requirements that rules compare a wheel with. ``max_size`` is in bytes; None demands nothing.

    ``explain`` are sonames whose search is to be shown; ``gpus`` are GPUs that the wheel must run on, and ``drivers``
    their hosts' drivers ("535", "580.95.05"; "none" is no driver). In a stack (``in_stack``) a build for the CPU alone
    is not a fault by itself: STK101 judges which package should be another, and ``of_torch`` is the accelerator
    expected for the stack's torch. ``host`` has the requirements for a host. ``torch_abi`` are the releases of torch
    that the wheel must load with.
    """

    accelerator: AcceleratorExpectation | None = None
    max_size: int | None = None
    explain: tuple[str, ...] = ()
    gpus: tuple[Product, ...] = ()
    drivers: tuple[str, ...] = ()
    in_stack: bool = False
    of_torch: AcceleratorExpectation | None = None
    host: HostExpectation | None = None
    torch_abi: SpecifierSet | None = None

    @property
    def without_driver(self) -> bool:
        """True if the wheel must import on a host without NVIDIA's driver."""
        return NO_DRIVER in self.drivers

    @property
    def named_drivers(self) -> tuple[str, ...]:
        """The drivers that the wheel must run with; none of NVIDIA's for AMD's GPUs alone."""
        if self.gpus and all(gpu.gfx for gpu in self.gpus):
            return ()
        return tuple(driver for driver in self.drivers if driver != NO_DRIVER)


def parse_expectation(text: str) -> AcceleratorExpectation:
    """Parse ``cuda``, ``cuda==13`` (any CUDA 13, unlike PEP 440), ``cuda>=13``, ``cpu``, ... Raises UsageError."""
    match = re.fullmatch(r"\s*([a-z]+)\s*(.*?)\s*", text, re.IGNORECASE)
    accelerator = match.group(1).lower() if match else ""
    if match is None or accelerator not in LABELS:
        raise UsageError(
            f"--expect {text!r} does not name an accelerator",
            expected=", ".join(LABELS),
            hint="for example --expect cuda==13.0",
        )
    try:
        versions = SpecifierSet(_MAJOR.sub(r"==\1.*", match.group(2)))
    except InvalidSpecifier:
        raise UsageError(
            f"--expect {text!r} has no valid version condition", expected="a form such as cuda==13.0 or cuda>=12.8"
        ) from None
    if versions and accelerator not in GPU:
        raise UsageError(f"--expect {text!r} demands a version", expected=f"{accelerator} without a version")
    return AcceleratorExpectation(accelerator, versions)


def parse_size(text: str) -> int:
    """Bytes of ``900MB`` (powers of ten), ``2GiB`` (powers of two) or plain ``1000``. Raises UsageError."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not a size", expected="a form such as 900MB, 2GiB or a number of bytes")
    number, prefix, binary = match.groups()
    return int(float(number) * (1024 if binary else 1000) ** " kmgt".index((prefix or " ").lower()))
