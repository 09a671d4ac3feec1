"""The health mask of the NVLink fabric, against nvml.h written out a second time, by hand."""

from __future__ import annotations

import pytest

from wheel_checks.facts.host.gpus.fabric_health import fabric_faults

SHIFTS = {"bandwidth": 0, "route recovery": 2, "route": 4, "access timeout recovery": 6}  # 1 is TRUE, 2 FALSE
CONFIGURATION, PARTITION, MANAGER = 8, 12, 14


def faulty_fields(mask: int) -> list[str]:
    """The fields with a value that nvml.h calls a fault."""
    found = [name for name, shift in SHIFTS.items() if mask >> shift & 3 == 1]
    found += ["configuration"] * (2 <= (mask >> CONFIGURATION & 0xF) <= 8)
    found += ["partition"] * (mask >> PARTITION & 3 == 2)
    return found + ["global fabric manager"] * (mask >> MANAGER & 3 == 2)


def test_every_mask() -> None:
    for mask in range(1 << 16):
        assert [fault.partition(":")[0] for fault in fabric_faults(mask)] == faulty_fields(mask), hex(mask)


@pytest.mark.parametrize("mask", [0, 0xAA, 0x1AA, 0x51AA, 0x0FAA, 0xFFFF_0000])
def test_masks_without_a_fault(mask: int) -> None:
    assert fabric_faults(mask) == ()


@pytest.mark.parametrize(
    ("mask", "faults"),
    [
        (0xA9, ("bandwidth: degraded",)),
        (0xA6, ("route recovery: in progress",)),
        (0x9A, ("route: unhealthy",)),
        (0x6A, ("access timeout recovery: in progress",)),
        (0x4AA, ("configuration: no partition",)),
        (0xA1AA, ("partition: not assigned", "global fabric manager: disconnected")),
    ],
)
def test_what_a_mask_names(mask: int, faults: tuple[str, ...]) -> None:
    assert fabric_faults(mask) == faults


@pytest.mark.parametrize(
    ("mask", "summary", "faults"),
    [
        (0xAA, 1, ()),
        (0xAA, 0, ()),
        (None, None, ()),
        (0xAA, 2, ("fabric: unhealthy",)),
        (0xA9, 3, ("bandwidth: degraded",)),
        (None, 3, ("fabric: limited capacity",)),
    ],
)
def test_the_summary_counts_where_the_mask_names_no_fault(
    mask: int | None, summary: int | None, faults: tuple[str, ...]
) -> None:
    assert fabric_faults(mask, summary) == faults
