"""Which CUDA a driver supports, by the dated table."""

from __future__ import annotations

import re

from wheel_checks.data import load


def highest_cuda(driver_version: str) -> str | None:
    """The newest CUDA that a driver supports ("580.95.05" gives "13.0"); None for what the table does not reach."""
    row = newest_cuda(driver_version)
    return row[0] if row else None


def oldest_driver(cuda_major: int) -> str | None:
    """The oldest driver for programs made with this CUDA (13 gives "580"); None for what the table does not have."""
    return next((row["driver"] for row in load("drivers")["major"] if row["cuda"] == cuda_major), None)


def newest_cuda(version: str) -> tuple[str, bool] | None:
    """The newest CUDA of the branch of a driver, and whether that is inferred; None past the table's ends."""
    matched = re.match(r"(\d{3,4})\.", version)
    table = load("drivers")
    if matched is None or int(matched[1]) >= table["horizon"]:
        return None
    older = [row for row in table["branch"] if row["branch"] <= int(matched[1])]
    return (older[-1]["cuda"], older[-1].get("inferred", False)) if older else None
