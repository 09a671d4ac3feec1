"""WHL851 to WHL854: the choices of described machines in a release with variants."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from packaging.requirements import Requirement

from tests.rules.case import ERROR, NOTE, WARNING, Case
from tests.support.variants import document
from tests.support.wheel_facts import AARCH64, X86_64, listed
from wheel_checks.formats.wheel.variant_metadata import parse_variant_metadata
from wheel_checks.targets.variant_choice import MachineChoice, choose_for_machines
from wheel_checks.targets.variant_machine import Machine

H100 = Machine("x86_64", "x86-64-v3", "H100", 90, "580", "13.0")
H100_OLD = Machine("x86_64", "x86-64-v3", "H100", 90, "535", "12.2")
NO_DRIVER = Machine("x86_64", "x86-64-v3", "H100", 90)
T4 = Machine("x86_64", "x86-64-v3", "T4", 75, "580", "13.0")
ORIN = Machine("aarch64", "Armv8.2-A", "Orin", 87, "580", "13.0")
PLAIN = Machine("x86_64", "x86-64-v3")

GH200 = Machine("aarch64", "Grace", "GH200", 90, "580", "13.0")

BOTH = ("x86_64", "aarch64")
CPU = {"cpu": ["x86_64 :: level :: v3"]}
CU126 = {"cu126": ["nvidia :: cuda_version_lower_bound :: 12.6", "nvidia :: sm_arch :: 90_real"]}
SM_80 = {"cu13": ["nvidia :: sm_arch :: 80_real"]}


def gets(
    machine: Machine, variants: Mapping[str, Sequence[str]], *, plain: bool = True, built_for: Sequence[str] = BOTH
) -> MachineChoice:
    """The machine's choice in one release with these variants for both CPUs, and a plain wheel."""
    names = [f"demo-1.0-cp312-cp312-manylinux_2_28_{m}-{v}.whl" for v in variants for m in built_for]
    files = [listed(name) for name in names] + [listed("demo-1.0-py3-none-any.whl")] * plain
    metadata = parse_variant_metadata(json.dumps(document(variants)).encode())
    target = AARCH64 if machine.machine == "aarch64" else X86_64
    (made,) = choose_for_machines(Requirement("demo"), files, target, [machine], lambda _: metadata)
    return made


CASES = [
    Case(
        "WHL851",
        "a driver that is older than the lower bound",
        lambda: gets(H100_OLD, CU126 | CPU),
        ("H100 (driver 535, x86_64) gets the variant cpu: it supports no variant for a GPU",),
        WARNING,
        evidence=(
            "it needs nvidia :: cuda_version_lower_bound :: 12.6, which H100 (driver 535, x86_64) does not support",
        ),
    ),
    Case(
        "WHL851",
        "a GPU that no variant has code for, and a wheel without a label",
        lambda: gets(T4, CU126),
        ("T4 (driver 580, x86_64) gets a wheel without a variant: it supports no variant for a GPU",),
        WARNING,
    ),
    Case(
        "WHL851",
        "a GPU without a driver, and nothing else",
        lambda: gets(NO_DRIVER, CU126, plain=False),
        ("H100 (no driver, x86_64) gets nothing: it supports no variant for a GPU",),
        WARNING,
    ),
    Case(
        "WHL851",
        "a Grace machine, and CUDA variants only for x86_64",
        lambda: gets(GH200, CU126, built_for=["x86_64"]),
        ("GH200 (driver 580, aarch64) gets a wheel without a variant: it supports no variant for a GPU",),
        WARNING,
        evidence=("it has no wheel for cp312 aarch64",),
    ),
    Case("WHL851", "a GPU that gets its variant", lambda: gets(H100, CU126 | CPU)),
    Case("WHL851", "a release without a variant for GPUs", lambda: gets(H100, CPU)),
    Case(
        "WHL852",
        "machine code that the provider takes for compatible",
        lambda: gets(ORIN, SM_80),
        (
            "Orin (driver 580, aarch64) gets the variant cu13, which claims code for 80_real; that code does not run "
            "on Orin (8.7)",
        ),
        ERROR,
    ),
    Case("WHL852", "machine code of the same major version", lambda: gets(H100, CU126)),
    Case(
        "WHL853",
        "a namespace that no one here knows",
        lambda: gets(PLAIN, CPU | {"fast": ["intel :: device_ip :: 12.60.7"]}),
        ("the namespace intel is unknown: an installer with its provider may select another variant",),
        NOTE,
        evidence=("fast",),
    ),
    Case(
        "WHL853", "a namespace that a list of values explains", lambda: gets(PLAIN, {"b": ["blas :: library :: mkl"]})
    ),
    Case(
        "WHL854",
        "variants and nothing next to them",
        lambda: gets(H100, CU126, plain=False),
        ("installers without variant support find no wheel, while others get cu126 of 1.0",),
        WARNING,
    ),
    Case("WHL854", "a wheel without a label next to them", lambda: gets(H100, CU126)),
]
