"""The reaction of installers and the index to a fault, from a dated table: evidence of a finding."""

from __future__ import annotations

from collections import defaultdict
from functools import cache

from wheel_checks.data import load
from wheel_checks.model import Evidence, Finding, Fix, Location

_SOURCE = "wheel_checks/data/installers.toml"
_TOOLS = {
    "pip_file": "pip {pip}",
    "pip_index": "pip {pip} from an index",
    "uv_file": "uv {uv} from a file",
    "uv_streamed": "uv {uv} while streaming",
    "index": "the index at the upload",
}


@cache
def installer_evidence(case: str) -> tuple[Evidence, ...]:
    """The tools that refuse a wheel with this fault, their messages, and those that accept it; empty without a row.

    The index's check of archives is omitted if it accepts a wheel: it has other checks.
    """
    table = load("installers")
    row = next((row for row in table["case"] if row["name"] == case), None)
    if row is None:
        return ()
    tools: defaultdict[str, list[str]] = defaultdict(list)
    for column, label in _TOOLS.items():
        if column in row and (row[column] or column != "index"):
            tools[row[column]].append(label.format_map(table["versions"]))
    taking = tools.pop("", [])
    found = [Evidence(", ".join(labels), f"refuse: {answer}", _SOURCE) for answer, labels in tools.items()]
    files = ", and write different files" if row["differ"] else ""
    return (*found, *([Evidence(", ".join(taking), f"install it{files}", _SOURCE)] if taking else []))


def finding_of(case: str, message: str, fix: Fix, place: Location) -> Finding:
    """A finding with the reactions of the tools, and the installer that refuses the wheel if the other accepts it."""
    row = next(row for row in load("installers")["case"] if row["name"] == case)
    refusing = {tool for tool in ("pip", "uv") for kind in _TOOLS if kind.startswith(tool) and row.get(kind)}
    refused_by = refusing.pop() if len(refusing) == 1 else ""
    return Finding(message, installer_evidence(case), fix, place, refused_by=refused_by)
