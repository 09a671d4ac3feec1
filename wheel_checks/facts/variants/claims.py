"""What a variant claims of the system, read as NVIDIA's provider and those of the CPUs mean it.

``cuda_version_lower_bound`` says that the driver's CUDA is at least this, ``cuda_version_upper_bound`` that it is less,
``sm_arch`` names a GPU as CMake does: "90_real" is its machine code, "90_virtual" PTX. Several values of a feature are
alternatives. Source: nvidia-variant-provider, nvidia_variant_provider/plugin.py and README, 2026-11.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from packaging.version import Version

from wheel_checks.data import load
from wheel_checks.facts.gpu.targets import Product
from wheel_checks.formats.wheel.variant_metadata import Variant, VariantProperty
from wheel_checks.parsing import version_or_none
from wheel_checks.targets.variant_machine import NVIDIA, Machine, cpu_of

LOWER, UPPER, SM_ARCH = "cuda_version_lower_bound", "cuda_version_upper_bound", "sm_arch"

_ANY_CUDA = "13.0"  # without a driver a machine has no GPU; which one does not matter here
_LEVEL = re.compile(r"v([1-4])")
_SM = re.compile(r"(\d{2,3})_(real|virtual)", re.ASCII)


@dataclass(frozen=True, slots=True)
class CudaClaim:
    """The CUDA versions of drivers that a variant claims to serve, from ``lower`` on and below ``upper``.

    None is no bound. ``malformed`` are values that are no versions.
    """

    lower: Version | None
    upper: Version | None
    malformed: tuple[VariantProperty, ...] = ()

    def __str__(self) -> str:
        parts = [f"CUDA {self.lower} or later"] if self.lower else []
        parts += [f"below CUDA {self.upper}"] if self.upper else []
        return ", ".join(parts)

    def refuses(self, version: str) -> bool:
        """True for content of this CUDA version ("13.0", or "13" alone) that does not belong to the claim.

        Libraries of one major version run on every driver of that major version (CUDA Compatibility, "Minor Version
        Compatibility"), so that a lower bound must be of the major version of the content.
        """
        content = Version(version)
        below = self.lower is not None and content.major != self.lower.major
        above = self.upper is not None and content >= self.upper
        return below or above


@dataclass(frozen=True, slots=True)
class SmClaim:
    """One value of ``sm_arch``: a GPU of this capability, and "real" when it gets machine code, "virtual" for PTX."""

    value: str
    product: Product
    kind: str


def cuda_claim(variant: Variant) -> CudaClaim | None:
    """The claim about CUDA versions; None if none exists."""
    malformed: list[VariantProperty] = []
    bounds = {}
    for feature, widest in ((LOWER, min), (UPPER, max)):
        versions = []
        for value in variant.values(NVIDIA, feature):
            if (version := version_or_none(value)) is not None:
                versions.append(version)
            else:
                malformed.append(VariantProperty(NVIDIA, feature, value))
        bounds[feature] = widest(versions) if versions else None
    if not malformed and not any(bounds.values()):
        return None
    return CudaClaim(bounds[LOWER], bounds[UPPER], tuple(malformed))


def sm_claims(variant: Variant) -> tuple[tuple[SmClaim, ...], tuple[str, ...]]:
    """The GPUs that are claimed, and the values that name none."""
    claims, malformed = [], []
    for value in variant.values(NVIDIA, SM_ARCH):
        match = _SM.fullmatch(value)
        if match is None:
            malformed.append(value)
        else:
            sm = int(match[1])
            claims.append(SmClaim(value, Product(f"sm_{sm}", sm), match[2]))
    return tuple(claims), tuple(malformed)


def claimed_gpus(variant: Variant, gpus: Iterable[Product]) -> tuple[Product, ...]:
    """Those of ``gpus`` on which an installer may choose the variant, whatever the driver; none for a CPU's variant."""
    if not any(each.namespace == NVIDIA for each in variant.properties):
        return ()
    values = variant.values(NVIDIA, SM_ARCH)
    return tuple(gpu for gpu in gpus if not values or not set(values).isdisjoint(_supported(gpu)))


def _supported(gpu: Product) -> tuple[str, ...]:
    """The values of ``sm_arch`` that a GPU supports, by NVIDIA's provider."""
    machine = gpu.machine or "x86_64"
    described = Machine(machine, cpu_of(gpu.name, machine), gpu.name, gpu.sm, cuda=_ANY_CUDA)
    return (described.features(NVIDIA) or {}).get(SM_ARCH, ())


def cpu_level(variant: Variant) -> int:
    """The lowest level of x86-64 that the variant claims, 1 to 4; 1 for none: any x86-64 machine has that."""
    levels = [match for value in variant.values("x86_64", "level") if (match := _LEVEL.fullmatch(value))]
    return min((int(match[1]) for match in levels), default=1)


@cache
def known_namespaces() -> dict[str, dict[str, Any]]:
    """The namespaces that we know, by name: rows of the table."""
    return {row["name"]: row for row in load("variants")["namespace"]}
