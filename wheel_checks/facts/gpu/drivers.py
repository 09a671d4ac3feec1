"""Which CUDA a driver supports, and which GPUs, by the dated tables."""

from __future__ import annotations

import re
from typing import Literal

from wheel_checks.data import load
from wheel_checks.errors import UsageError

NO_DRIVER = "none"
_VERSION = re.compile(r"\d{3,4}(?:\.\d{1,3}){0,2}", re.ASCII)


def parse_driver(text: str) -> str:
    """A driver such as "535" or "580.95.05", or "none", known or not. Raises UsageError for anything else."""
    if text != NO_DRIVER and not _VERSION.fullmatch(text):
        raise UsageError(
            f"{text[:100]!r} is not a driver", expected="a branch or a version such as 535 or 580.95.05, or none"
        )
    return text


def highest_cuda(driver_version: str) -> str | None:
    """The latest CUDA that a driver supports ("580.95.05" gives "13.0"); None outside of the table."""
    row = newest_cuda(driver_version)
    return row[0] if row else None


def oldest_driver(cuda_major: int) -> str | None:
    """The oldest driver for programs made with this CUDA (13 gives "580"); None outside of the table."""
    return next((row["driver"] for row in load("drivers")["major"] if row["cuda"] == cuda_major), None)


def newest_major() -> int:
    """The newest major CUDA version of the table."""
    return max(int(row["cuda"]) for row in load("drivers")["major"])


def newest_cuda(version: str) -> tuple[str, bool] | None:
    """The latest CUDA of the branch of a driver, and whether that is inferred; None past the table's ends."""
    matched = re.match(r"(\d{3,4})\.", version)
    table = load("drivers")
    if matched is None or int(matched[1]) >= table["horizon"]:
        return None
    older = [row for row in table["branch"] if row["branch"] <= int(matched[1])]
    return (older[-1]["cuda"], older[-1].get("inferred", False)) if older else None


def is_known(driver: str) -> bool:
    """Whether the table of drivers reaches a driver such as "535" or "580.95.05"."""
    return newest_cuda(f"{driver}.") is not None


def runs_cuda(driver: str, cuda_major: int) -> Literal["yes", "no", "unknown"]:
    """Whether a driver runs programs made with a major CUDA version: any minor one (minor-version compatibility).

    Of a branch alone ("525") the latest release is meant. Source: as ``data/drivers.toml`` says.
    """
    oldest = oldest_driver(cuda_major)
    if oldest is None or not is_known(driver):
        return "unknown"
    own = _numbers(driver)
    return "yes" if own >= _numbers(oldest)[: len(own)] else "no"


def cuda_of_ptx(isa: str) -> str | None:
    """The first CUDA (of the table) whose driver compiles PTX of this version: "9.0" gives "13.0"; or None."""
    if re.fullmatch(r"[1-6]\.\d", isa):
        return "11.0"
    found: str | None = load("drivers")["ptx"].get(isa)
    return found


def last_branch_for(sm: int) -> int | None:
    """The last branch for GPUs of a capability (sm_70), or None (``data/variant_machines.toml``, ``last_driver``)."""
    return min((row["branch"] for row in load("variant_machines")["last_driver"] if sm < row["below_sm"]), default=None)


def first_branch_for(sm: int) -> int | None:
    """The first branch for GPUs of a capability (sm_100 gives 570): of the first CUDA that compiles for it.

    None for GPUs before Blackwell (``data/triton_releases.toml``, ``gpu``), and outside of the tables.
    """
    since = next((_numbers(row["ptxas"]) for row in load("triton_releases")["gpu"] if row["sm"] == sm), None)
    branches = (row["branch"] for row in load("drivers")["branch"] if since and _numbers(row["cuda"]) >= since)
    return min(branches, default=None)


def has_forward_compatibility(product: str) -> bool:
    """Whether NVIDIA's packages ``cuda-compat-13-0`` run a newer CUDA on an older driver with this GPU."""
    return product in load("drivers")["forward_compatibility"]["products"]


def branch_of(driver: str) -> int:
    """The branch of a driver: 580 of "580.95.05"."""
    return _numbers(driver)[0]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
