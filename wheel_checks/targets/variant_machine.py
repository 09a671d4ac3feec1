"""What a described machine supports, in the words of variant properties, by our own tables instead of providers.

The tables are ``wheel_checks/data/variant_machines.toml``: what NVIDIA's provider and those of the CPUs would answer.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from wheel_checks.data import load
from wheel_checks.errors import UsageError
from wheel_checks.formats.wheel.variant_metadata import VariantProvider

NVIDIA = "nvidia"
"""The namespace of NVIDIA's properties: a variant that has some is made for a GPU."""

Features = Mapping[str, tuple[str, ...]]
"""The features of one namespace in their order, each with the values that are supported, most preferred first."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine that is described and not asked. ``machine`` is "x86_64" or "aarch64", ``cpu`` a row of the table.

    ``gpu`` is the product's name, "" for a machine without a GPU, and ``sm`` its compute capability as in sm_100, 0 for
    none. ``cuda`` is the latest CUDA that its ``driver`` supports, "13.0"; both are "" without a driver.
    """

    machine: str
    cpu: str
    gpu: str = ""
    sm: int = 0
    driver: str = ""
    cuda: str = ""

    @property
    def label(self) -> str:
        """For people: "GB200 (driver 580, aarch64)", "a machine without a GPU (x86-64-v3)"."""
        if not self.gpu:
            return f"a machine without a GPU ({self.cpu})"
        return f"{self.gpu} ({f'driver {self.driver}' if self.driver else 'no driver'}, {self.machine})"

    def features(self, namespace: str) -> Features | None:
        """What it supports of a namespace, {} for nothing; None for a namespace that is unknown here."""
        if namespace == NVIDIA:
            return _nvidia(self.sm, self.cuda)
        rows = {row["name"]: row["feature"] for row in load("variant_machines")["cpu_namespace"]}
        if namespace not in rows:
            return None
        return _of_cpu(self.cpu, rows[namespace]) if _cpu(self.cpu)["namespace"] == namespace else {}

    def supported(self, namespace: str, provider: VariantProvider | None) -> Features | None:
        """The same where the package names a ``provider``: one that only lists values is believed (PEP 850).

        ``feature_order`` of the provider comes before the order of the table.
        """
        known = dict(provider.static_properties) if provider and provider.static_properties else None
        found = known if known is not None else self.features(namespace)
        order = provider.feature_order if provider else ()
        if not found or not order:
            return found
        return {feature: found[feature] for feature in dict.fromkeys((*order, *found)) if feature in found}


def parse_cpu(text: str) -> tuple[str, str]:
    """The CPU that ``--cpu TEXT`` names ("x86-64-v3", "v3", "grace", "9.0a"), and its machine. Raises UsageError."""
    key = _key(text)
    for row in load("variant_machines")["cpu"]:
        if key in (_key(row["name"]), _key(row.get("level", row["name"]))):
            return row["name"], row["namespace"]
    known = ", ".join(row["name"] for row in load("variant_machines")["cpu"])
    raise UsageError(f"the CPU {text[:100]!r} is unknown", expected=f"one of {known}")


def cpu_of(product: str, machine: str) -> str:
    """The CPU next to a product on a machine ("x86_64", "aarch64"): that of the table, else the machine's default."""
    rows = [row for row in load("variant_machines")["cpu"] if row["namespace"] == machine]
    own = (row["name"] for row in rows if product in row.get("products", ()))
    return next(own, "") or next(row["name"] for row in rows if row.get("default"))


def _key(text: str) -> str:
    return re.sub(r"[^a-z0-9.]", "", text.lower())


def _cpu(name: str) -> Mapping[str, Any]:
    row: Mapping[str, Any] = next(row for row in load("variant_machines")["cpu"] if row["name"] == name)
    return row


@cache
def _of_cpu(name: str, level: str) -> Features:
    """The levels of a CPU and of those below it, then the features of all of them."""
    rows = [_cpu(name)]
    while below := rows[-1].get("below"):
        rows.append(_cpu(below))
    levels = tuple(row["level"] for row in rows if "level" in row)
    return {level: levels} | {feature: ("on",) for row in rows for feature in row.get("features", ())}


@cache
def _nvidia(sm: int, cuda: str) -> Features:
    """NVIDIA's features, in its provider's order; a machine without a driver has none."""
    if not cuda:
        return {}
    table = load("variant_machines")[NVIDIA]
    own = tuple(map(int, cuda.split(".")))
    versions = list(_versions(table["majors"][0], table["majors"][1], table["minors"]))
    # A major version alone stands for its first release: "13" as a bound is 13.0.
    found = {
        "cuda_version_lower_bound": tuple(v for v in versions if _version(v) <= own),
        "cuda_version_upper_bound": tuple(v for v in versions if _version(v) > own),
    }
    if sm >= table["oldest_sm"]:
        major, minor = divmod(sm, 10)
        found["sm_arch"] = (*(f"{major}{each}_real" for each in range(minor, -1, -1)), f"{major}0_virtual")
    return {feature: values for feature, values in found.items() if values}


def _versions(oldest: int, newest: int, minors: int) -> Iterator[str]:
    """From the latest down: 15.20, ..., 15.0, 15, 14.20, ..., 11."""
    for major in range(newest, oldest - 1, -1):
        yield from (f"{major}.{minor}" for minor in range(minors, -1, -1))
        yield str(major)


def _version(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    return int(major), int(minor or 0)
